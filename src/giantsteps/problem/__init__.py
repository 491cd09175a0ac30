"""What is asked: a problem, its parts, grids of problems, the conventions of the papers."""

from __future__ import annotations

from giantsteps.problem._convention import Convention
from giantsteps.problem._conventions import CONVENTIONS, conventions_table
from giantsteps.problem._grid import Grid
from giantsteps.problem._parts import Init, Ridge, Sizes, Step
from giantsteps.problem._problem import Problem
from giantsteps.problem._second_layer import (
    Constant,
    Gaussian,
    SecondLayer,
    Vocabulary,
    as_second_layer,
)

__all__ = [
    "CONVENTIONS",
    "Constant",
    "Convention",
    "Gaussian",
    "Grid",
    "Init",
    "Problem",
    "Ridge",
    "SecondLayer",
    "Sizes",
    "Step",
    "Vocabulary",
    "as_second_layer",
    "conventions_table",
]
