"""In practice: inspect trained networks, predict the curves of their probes, record training."""

from __future__ import annotations

from giantsteps.displays import ProbeCurveDisplay
from giantsteps.practice._bulk import WeightSpike
from giantsteps.practice._display import InspectionDisplay, LayerDisplay
from giantsteps.practice._gradient import FirstGradient
from giantsteps.practice._inspect import inspect
from giantsteps.practice._inspection import TABLES, Change
from giantsteps.practice._inspection import Inspection as Inspection
from giantsteps.practice._layer import Layer as Layer
from giantsteps.practice._measure import measure_probe
from giantsteps.practice._module import TwoLayer, problem_of_module, two_layer
from giantsteps.practice._record import Record, RecordDisplay
from giantsteps.practice._recorder import Recorder
from giantsteps.practice._teacher import TeacherFit, fit_teacher

__all__ = ["ProbeCurveDisplay", "Record", "Recorder", "fit_teacher", "inspect", "measure_probe"]

#: Classes that functions return: documented, and never made by hand.
RETURNED = ["Inspection", "Layer"]
