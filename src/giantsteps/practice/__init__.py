"""In practice: inspect trained networks, predict the curves of their probes, record training."""

from __future__ import annotations

from giantsteps.practice._bulk import WeightSpike
from giantsteps.practice._gradient import FirstGradient
from giantsteps.practice._inspect import inspect
from giantsteps.practice._inspection import TABLES, Change, Inspection
from giantsteps.practice._layer import Layer
from giantsteps.practice._measure import measure_probe

__all__ = [
    "TABLES",
    "Change",
    "FirstGradient",
    "Inspection",
    "Layer",
    "WeightSpike",
    "inspect",
    "measure_probe",
]
