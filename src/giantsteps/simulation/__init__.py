"""Simulation: finite networks with a seed, answering what the theory answers in the limit."""

from __future__ import annotations

from giantsteps.simulation._bias_variance import bias_variance
from giantsteps.simulation._cost import Cost
from giantsteps.simulation._data import Data
from giantsteps.simulation._run import Run
from giantsteps.simulation._simulate import (
    degrees_of_freedom,
    features,
    gradient,
    kernel,
    learned_function,
    risk,
    run,
    weights,
)

__all__ = [
    "Cost",
    "Data",
    "Run",
    "bias_variance",
    "degrees_of_freedom",
    "features",
    "gradient",
    "kernel",
    "learned_function",
    "risk",
    "run",
    "weights",
]
