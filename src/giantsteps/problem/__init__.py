"""What is asked: a problem, its parts, grids of problems, the conventions of the papers."""

from __future__ import annotations

# Checks, plain data and the names that fields take are shared with other packages; they are not
# part of the interface.
from giantsteps.errors import suggest
from giantsteps.problem._checks import choice, integer, number
from giantsteps.problem._convention import Convention
from giantsteps.problem._conventions import CONVENTIONS
from giantsteps.problem._covariance import Covariance, SpikedCovariance
from giantsteps.problem._grid import Grid
from giantsteps.problem._inputs import Inputs, Isotropic
from giantsteps.problem._learning_rate import (
    LearningRate as LearningRate,
)
from giantsteps.problem._learning_rate import (
    learning_rate_of_rate,
    rate_of_learning_rate,
)
from giantsteps.problem._parts import BATCHES, OUTPUTS, WEIGHTS, Init, Ridge, Sizes
from giantsteps.problem._power_law import PowerLaw
from giantsteps.problem._problem import INPUTS, Problem
from giantsteps.problem._second_layer import (
    Constant,
    Gaussian,
    SecondLayer,
    Vocabulary,
    as_second_layer,
)
from giantsteps.problem._serialize import content_hash, read_toml, to_data, to_toml
from giantsteps.problem._step import LOSSES, RULES, Step
from giantsteps.problem._validation import is_binary

__all__ = [
    "Constant",
    "Covariance",
    "Gaussian",
    "Grid",
    "Init",
    "Isotropic",
    "PowerLaw",
    "Problem",
    "Ridge",
    "SpikedCovariance",
    "Step",
    "Vocabulary",
    "learning_rate_of_rate",
    "rate_of_learning_rate",
]

#: Classes that functions return: documented, and never made by hand.
RETURNED = ["LearningRate"]
