"""The readout: ridge regression on features or a kernel, and its error."""
