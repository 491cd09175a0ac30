"""giantsteps: what the first gradient steps do to a two-layer network, by theory and simulation."""
