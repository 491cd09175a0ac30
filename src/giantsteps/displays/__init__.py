"""Displays: figures fit for a paper, each an object that keeps its data."""

from __future__ import annotations

from giantsteps.displays._comparison import ComparisonDisplay, Series
from giantsteps.displays._comparison import draw_curve as draw_curve  # shared with figures
from giantsteps.displays._comparison import draw_floor as draw_floor
from giantsteps.displays._comparison import draw_points as draw_points
from giantsteps.displays._comparison import horizontal_axis as horizontal_axis
from giantsteps.displays._curves import curves as curves
from giantsteps.displays._display import AxesDisplay as AxesDisplay
from giantsteps.displays._display import Display as Display  # the type of every plot()
from giantsteps.displays._heat_map import HeatMapDisplay as HeatMapDisplay
from giantsteps.displays._learned_function import LearnedFunctionDisplay
from giantsteps.displays._phase_diagram import CriticalLine as CriticalLine
from giantsteps.displays._phase_diagram import PhaseDiagramDisplay
from giantsteps.displays._spectrum import SpectrumDisplay
from giantsteps.displays._spectrum import SpikeMark as SpikeMark
from giantsteps.displays._style import DOUBLE as DOUBLE  # shared with other packages
from giantsteps.displays._style import GREY as GREY
from giantsteps.displays._style import MARKERS as MARKERS
from giantsteps.displays._style import PALETTE as PALETTE
from giantsteps.displays._style import SINGLE as SINGLE
from giantsteps.displays._style import STYLE as STYLE
from giantsteps.displays._style import colours as colours
from giantsteps.displays._style import label as label
from giantsteps.displays._style import panels as panels
from giantsteps.displays._style import save as save
from giantsteps.displays._style import style

__all__ = [
    "ComparisonDisplay",
    "LearnedFunctionDisplay",
    "PhaseDiagramDisplay",
    "Series",
    "SpectrumDisplay",
    "style",
]
