"""The engine: arrays on every device, random numbers, threads and memory."""
