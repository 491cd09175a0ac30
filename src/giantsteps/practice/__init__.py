"""In practice: inspect trained networks, predict the curves of their probes, record training."""

from __future__ import annotations

from giantsteps.practice._bulk import WeightSpike as WeightSpike
from giantsteps.practice._display import InspectionDisplay as InspectionDisplay
from giantsteps.practice._display import LayerDisplay as LayerDisplay
from giantsteps.practice._display import ProbeCurveDisplay
from giantsteps.practice._gradient import FirstGradient as FirstGradient
from giantsteps.practice._inspect import inspect
from giantsteps.practice._inspection import TABLES as TABLES
from giantsteps.practice._inspection import Change as Change
from giantsteps.practice._inspection import Inspection as Inspection
from giantsteps.practice._layer import Layer as Layer
from giantsteps.practice._measure import measure_probe
from giantsteps.practice._module import TwoLayer as TwoLayer
from giantsteps.practice._module import problem_of_module as problem_of_module
from giantsteps.practice._module import two_layer as two_layer
from giantsteps.practice._record import Record
from giantsteps.practice._record_display import RecordDisplay as RecordDisplay
from giantsteps.practice._recorder import Recorder
from giantsteps.practice._teacher import TeacherFit as TeacherFit
from giantsteps.practice._teacher import fit_teacher

__all__ = ["ProbeCurveDisplay", "Record", "Recorder", "fit_teacher", "inspect", "measure_probe"]

#: Classes that functions return: documented, and never made by hand.
RETURNED = ["Inspection", "Layer"]
