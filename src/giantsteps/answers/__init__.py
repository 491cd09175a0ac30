"""Answers: the types that theory and simulation both return."""

from __future__ import annotations

from giantsteps.answers._answer import Answer
from giantsteps.answers._answer import Source as Source
from giantsteps.answers._answer import small_size as small_size
from giantsteps.answers._bias_variance import BiasVariance
from giantsteps.answers._bibliography import bibliography as bibliography
from giantsteps.answers._bibliography import bibtex
from giantsteps.answers._bounds import Bounds
from giantsteps.answers._crossing import Crossing
from giantsteps.answers._degrees_of_freedom import DegreesOfFreedom
from giantsteps.answers._export import plain as plain  # shared with other packages
from giantsteps.answers._export import require as require
from giantsteps.answers._export import to_csv as to_csv
from giantsteps.answers._gradient import Gradient
from giantsteps.answers._learned_function import LearnedFunction
from giantsteps.answers._learned_function import direction_of as direction_of
from giantsteps.answers._leaves import Leaf as Leaf
from giantsteps.answers._leaves import Record as Record
from giantsteps.answers._leaves import as_leaf as as_leaf
from giantsteps.answers._movement import Movement
from giantsteps.answers._optimum import Optimum
from giantsteps.answers._outlier_count import OutlierCount
from giantsteps.answers._probe_curve import ProbeCurve
from giantsteps.answers._risk import Risk
from giantsteps.answers._solution import Solution
from giantsteps.answers._spectrum import Matrix as Matrix
from giantsteps.answers._spectrum import Spectrum, Spike
from giantsteps.answers._training_loss import TrainingLoss
from giantsteps.answers._trajectory import Trajectory

__all__ = [
    "Answer",
    "BiasVariance",
    "Bounds",
    "Crossing",
    "DegreesOfFreedom",
    "Gradient",
    "LearnedFunction",
    "Movement",
    "Optimum",
    "OutlierCount",
    "ProbeCurve",
    "Risk",
    "Solution",
    "Spectrum",
    "Spike",
    "TrainingLoss",
    "Trajectory",
    "bibtex",
]
