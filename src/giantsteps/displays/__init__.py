"""Displays: figures fit for a paper, each an object that keeps its data."""

from __future__ import annotations

from giantsteps.displays._comparison import (
    ComparisonDisplay,
    Series,
    draw_curve,  # shared with figures
    draw_floor,
    draw_points,
    horizontal_axis,
)
from giantsteps.displays._curves import curves
from giantsteps.displays._display import (
    AxesDisplay,
    Display,  # the type of every plot()
)
from giantsteps.displays._heat_map import HeatMapDisplay
from giantsteps.displays._learned_function import LearnedFunctionDisplay
from giantsteps.displays._phase_diagram import CriticalLine, PhaseDiagramDisplay
from giantsteps.displays._probe_curve import ProbeCurveDisplay
from giantsteps.displays._spectrum import SpectrumDisplay, SpikeMark
from giantsteps.displays._style import (
    DOUBLE,  # shared with other packages
    GREY,
    MARKERS,
    PALETTE,
    SINGLE,
    STYLE,
    colours,
    label,
    panels,
    save,
    style,
    symbol,
)

__all__ = [
    "ComparisonDisplay",
    "LearnedFunctionDisplay",
    "PhaseDiagramDisplay",
    "Series",
    "SpectrumDisplay",
    "style",
]
