"""Simulation: finite networks with a seed, answering what the theory answers in the limit."""

from __future__ import annotations

from giantsteps.simulation._batch import batch
from giantsteps.simulation._bias_variance import bias_variance
from giantsteps.simulation._cost import Cost
from giantsteps.simulation._engine._devices import resolve
from giantsteps.simulation._network._data import Data
from giantsteps.simulation._questions import (
    degrees_of_freedom,
    gradient,
    learned_function,
    movement,
    risk,
    run,
    trajectory,
)
from giantsteps.simulation._run import Run as Run
from giantsteps.simulation._spectral_questions import features, kernel, weights

__all__ = [
    "Data",
    "batch",
    "bias_variance",
    "degrees_of_freedom",
    "features",
    "gradient",
    "kernel",
    "learned_function",
    "movement",
    "risk",
    "run",
    "trajectory",
    "weights",
]

#: Classes that functions return: documented, and never made by hand.
RETURNED = ["Run"]
