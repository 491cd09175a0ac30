"""The network: what a seed draws, the samples, and the steps on the first layer."""
