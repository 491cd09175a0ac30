"""Displays: figures fit for a paper, each an object that keeps its data."""

from __future__ import annotations

from giantsteps.displays._comparison import ComparisonDisplay, Series
from giantsteps.displays._comparison import draw_curve as draw_curve  # shared with figures
from giantsteps.displays._comparison import draw_floor as draw_floor
from giantsteps.displays._comparison import draw_points as draw_points
from giantsteps.displays._comparison import horizontal_axis as horizontal_axis
from giantsteps.displays._curves import curves
from giantsteps.displays._display import Display as Display  # the type of every plot()
from giantsteps.displays._heat_map import HeatMapDisplay
from giantsteps.displays._learned_function import LearnedFunctionDisplay
from giantsteps.displays._phase_diagram import CriticalLine, PhaseDiagramDisplay
from giantsteps.displays._spectrum import SpectrumDisplay, SpikeMark
from giantsteps.displays._staircase import StaircaseDisplay, StaircaseSeries
from giantsteps.displays._style import DOUBLE, PALETTE, SINGLE, STYLE, save, style
from giantsteps.displays._style import GREY as GREY  # shared with other packages
from giantsteps.displays._style import MARKERS as MARKERS
from giantsteps.displays._style import colours as colours
from giantsteps.displays._style import label as label
from giantsteps.displays._two_steps import OutlierMapDisplay, ReuseDisplay, StepsDisplay

__all__ = [
    "DOUBLE",
    "PALETTE",
    "SINGLE",
    "STYLE",
    "ComparisonDisplay",
    "CriticalLine",
    "HeatMapDisplay",
    "LearnedFunctionDisplay",
    "OutlierMapDisplay",
    "PhaseDiagramDisplay",
    "ReuseDisplay",
    "Series",
    "SpectrumDisplay",
    "SpikeMark",
    "StaircaseDisplay",
    "StaircaseSeries",
    "StepsDisplay",
    "curves",
    "save",
    "style",
]
