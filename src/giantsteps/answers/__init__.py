"""Answers: the types that theory and simulation both return."""

from __future__ import annotations

from giantsteps.answers._answer import Answer, Source, small_size
from giantsteps.answers._bibliography import bibliography, bibtex
from giantsteps.answers._crossing import Crossing as Crossing
from giantsteps.answers._export import Table, of_rows, plain, require, to_csv, written
from giantsteps.answers._learned_function import LearnedFunction as LearnedFunction
from giantsteps.answers._learned_function import direction_of
from giantsteps.answers._leaves import Leaf, Record, as_leaf
from giantsteps.answers._optimum import Optimum as Optimum
from giantsteps.answers._probe_curve import ProbeCurve as ProbeCurve
from giantsteps.answers._readout import BiasVariance as BiasVariance
from giantsteps.answers._readout import Bounds as Bounds
from giantsteps.answers._readout import DegreesOfFreedom as DegreesOfFreedom
from giantsteps.answers._readout import Risk as Risk
from giantsteps.answers._readout import TrainingLoss as TrainingLoss
from giantsteps.answers._solution import Solution as Solution
from giantsteps.answers._spectrum import Matrix
from giantsteps.answers._spectrum import Spectrum as Spectrum
from giantsteps.answers._spectrum import Spike as Spike
from giantsteps.answers._steps import Gradient as Gradient
from giantsteps.answers._steps import Movement as Movement
from giantsteps.answers._steps import OutlierCount as OutlierCount
from giantsteps.answers._steps import Trajectory as Trajectory

__all__ = ["Answer", "bibtex"]

#: Classes that functions return: documented, and never made by hand.
RETURNED = [
    *("BiasVariance", "Bounds", "Crossing", "DegreesOfFreedom", "Gradient", "LearnedFunction"),
    *("Movement", "Optimum", "OutlierCount", "ProbeCurve", "Risk", "Solution", "Spectrum", "Spike"),
    *("TrainingLoss", "Trajectory"),
]
