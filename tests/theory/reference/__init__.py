"""The equations of one step as they are written, and the solver against them."""
