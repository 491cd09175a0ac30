"""What is asked: a problem, its parts, grids of problems, the conventions of the papers."""

from __future__ import annotations

# Checks, plain data and the names that fields take are shared with other packages; they are not
# part of the interface.
from giantsteps.problem._checks import choice as choice
from giantsteps.problem._checks import integer as integer
from giantsteps.problem._checks import suggest as suggest
from giantsteps.problem._convention import Convention as Convention
from giantsteps.problem._conventions import CONVENTIONS as CONVENTIONS
from giantsteps.problem._covariance import Covariance, SpikedCovariance
from giantsteps.problem._grid import Grid
from giantsteps.problem._input_laws import INPUTS as INPUTS
from giantsteps.problem._inputs import Inputs as Inputs
from giantsteps.problem._inputs import Isotropic
from giantsteps.problem._learning_rate import (
    LearningRate as LearningRate,
)
from giantsteps.problem._learning_rate import (
    learning_rate_of_rate,
    rate_of_learning_rate,
)
from giantsteps.problem._parts import BATCHES as BATCHES
from giantsteps.problem._parts import OUTPUTS as OUTPUTS
from giantsteps.problem._parts import WEIGHTS as WEIGHTS
from giantsteps.problem._parts import Init, Ridge
from giantsteps.problem._parts import Sizes as Sizes
from giantsteps.problem._power_law import PowerLaw
from giantsteps.problem._problem import Problem
from giantsteps.problem._second_layer import Constant, Gaussian, Vocabulary
from giantsteps.problem._second_layer import SecondLayer as SecondLayer
from giantsteps.problem._second_layer import as_second_layer as as_second_layer
from giantsteps.problem._serialize import content_hash as content_hash
from giantsteps.problem._serialize import read_toml as read_toml
from giantsteps.problem._serialize import to_data as to_data
from giantsteps.problem._serialize import to_toml as to_toml
from giantsteps.problem._step import LOSSES as LOSSES
from giantsteps.problem._step import RULES as RULES
from giantsteps.problem._step import Step
from giantsteps.problem._validation import is_binary as is_binary

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
