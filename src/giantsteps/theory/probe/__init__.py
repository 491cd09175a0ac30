"""The learning curve of a linear probe on given features (section 8)."""
