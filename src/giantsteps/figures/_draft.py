"""A draft: where a figure's answers and points are gathered while it is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from giantsteps.answers import Answer, LearnedFunction, Spectrum
from giantsteps.displays import (
    GREY,
    MARKERS,
    LearnedFunctionDisplay,
    SpectrumDisplay,
    colours,
    draw_curve,
    draw_floor,
    draw_points,
    panels,
)
from giantsteps.figures._simulations import Measured, Pending, Simulations
from giantsteps.problem import Grid, Problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Whatever NumPy and matplotlib read as numbers: arrays, lists of leaves, single numbers.
Values: TypeAlias = Any

Some = TypeVar("Some", bound=Answer)


@dataclass(kw_only=True)
class Draft(Simulations):
    """What a figure draws with: it asks theory and simulation, and remembers every point.

    A figure asks for all its simulations first and draws then: they are done together when the
    first of them is read.
    """

    #: Every plotted point: panel, series, source, x, y, standard error.
    rows: list[dict[str, Any]] = field(default_factory=list)
    #: Every problem that theory was asked about, by its content.
    theory: dict[str, Problem | Grid] = field(default_factory=dict)
    #: Assumptions of the theory that a problem leaves, and papers, each once.
    violated: dict[str, None] = field(default_factory=dict)
    references: dict[str, None] = field(default_factory=dict)
    drawing: Any = None  # the matplotlib figure
    #: Name of a panel → labels of its axes.
    panels: dict[str, tuple[str, str]] = field(default_factory=dict)

    # Answers ----------------------------------------------------------------------------------

    def stated(self, answer: Some) -> Some:
        """The same answer, after what it leaves of its assumptions is noted for the caption."""
        self.violated |= dict.fromkeys(answer.violated)
        self.references |= dict.fromkeys(answer.references)
        if isinstance(answer.problem, (Problem, Grid)):
            self.theory.setdefault(answer.problem.content_hash, answer.problem)
        return answer

    # Drawing ----------------------------------------------------------------------------------

    def axes(
        self,
        *labels: tuple[str, str],
        height: float = 2.4,
        width: float | None = None,
        **share: Any,
    ) -> list[Axes]:
        """A new figure with one panel for each pair of labels, lettered where there are several."""
        axes = panels(len(labels), width, height, **share)
        for letter, ax, (x, y) in zip("abcdef", axes, labels):
            ax.set(xlabel=x, ylabel=y, label=letter)
            self.panels[letter] = (x, y)
        self.drawing = axes[0].get_figure(root=True)
        return axes

    def record(
        self, ax: Axes, series: str, source: str, x: Values, y: Values, error: Values
    ) -> None:
        """Remember points that are drawn by other means than those below."""
        x, y, error = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (x, y, error)))
        for values in zip(x.ravel(), y.ravel(), error.ravel()):
            point = dict(zip(("x", "y", "standard_error"), map(float, values)))
            self.rows.append({"panel": ax.get_label(), "series": series, "source": source, **point})

    def line(self, ax: Axes, x: Values, y: Values, series: str, **look: Any) -> None:
        """Theory."""
        self.record(ax, _plain(series), "theory", x, y, np.nan)
        draw_curve(ax, x, y, **look)

    def points(self, ax: Axes, x: Values, measured: Measured, series: str, **look: Any) -> None:
        """Simulation, with error bars of three standard errors."""
        mean, error = measured.mean, measured.standard_error
        self.record(ax, _plain(series), "simulation", x, mean, error)
        draw_points(ax, x, mean, error, **look)

    def cloud(self, ax: Axes, x: Values, y: Values, series: str, **look: Any) -> None:
        """Many simulated points without error bars."""
        self.record(ax, _plain(series), "simulation", x, y, np.nan)
        shown: dict[str, Any] = {"color": "#9DB0BE", "s": 3.0, "linewidths": 0.0, "zorder": 1}
        ax.scatter(x, y, **(shown | {"rasterized": True} | look))

    def pair(
        self,
        ax: Axes,
        label: str,
        number: int,
        curve: tuple[Values, Values] | None,
        found: tuple[Values, Measured] | None,
        **look: Any,
    ) -> None:
        """A line of theory and the points of the simulation over it, under one legend entry."""
        shown: dict[str, Any] = {"color": colours(6)[number % 6]} | look
        marker: dict[str, Any] = {"marker": MARKERS[number % 6], "markeredgewidth": 0.8}
        if curve is not None:
            self.line(ax, *curve, label, **shown)
        if found is not None:
            self.points(ax, *found, label, color=shown["color"], **marker)
        handle = shown if curve is not None else shown | {"linestyle": "none"}
        ax.plot([], [], label=label, **(marker if found is not None else {}), **handle)

    def floor(self, ax: Axes, level: float, label: str) -> None:
        self.record(ax, _plain(label), "reference", np.nan, level, np.nan)
        draw_floor(ax, level, label=label)

    def mark(self, ax: Axes, place: float, label: str = "", **look: Any) -> None:
        self.record(ax, _plain(label), "reference", place, np.nan, np.nan)
        shown: dict[str, Any] = {"color": GREY, "linewidth": 0.6, "linestyle": ":"} | look
        ax.axvline(place, **shown, label=label or None, zorder=0)

    def spectrum(
        self, ax: Axes, answer: Spectrum, runs: Pending[list[Spectrum]], **options: Any
    ) -> SpectrumDisplay:
        """A spectrum by theory over the histogram of the simulated one."""
        self.stated(answer)
        labels = {"xlabel": ax.get_xlabel(), "ylabel": ax.get_ylabel()}
        ax.set(xlabel="", ylabel="")  # panels for far spikes may cover these axes
        display = SpectrumDisplay.from_spectra(answer, runs.value, ax=ax, **options)
        display.ax_.set(**labels)
        law = display.law
        for lower, upper in law.support:
            x = np.linspace(lower, upper, 201)[1:-1]
            self.record(ax, "bulk", "theory", x, law.density(x), np.nan)
        for mark in display.predicted:
            self.record(ax, "spike (y: overlap)", "theory", mark.value, mark.overlap, np.nan)
        for mark in display.found:
            self.record(ax, "spike (y: overlap)", "simulation", mark.value, mark.overlap, np.nan)
        if display.values is not None:
            self.record(ax, "values", "simulation", display.values, np.nan, np.nan)
        return display

    def function(
        self, ax: Axes, answer: LearnedFunction, runs: Pending[list[LearnedFunction]]
    ) -> LearnedFunctionDisplay:
        """A learned function by theory with its band, over the mean of the simulated ones."""
        self.stated(answer)
        labels = {"xlabel": ax.get_xlabel(), "ylabel": ax.get_ylabel()}
        display = LearnedFunctionDisplay.from_answers(answer, runs.value, ax=ax)
        ax.set(**labels)
        curves = {"mean": display.mean, "mean - band": display.mean - display.band,
                  "mean + band": display.mean + display.band}  # fmt: skip
        if display.target is not None:
            curves["teacher"] = display.target
        for series, curve in curves.items():
            self.record(ax, series, "theory", display.x, curve, np.nan)
        error = np.nan if display.found_error is None else display.found_error
        self.record(ax, "mean", "simulation", display.points, display.found, error)
        return display


def logarithmic(ax: Axes, axes: str = "xy") -> None:
    """Logarithmic axes with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for name in axes:
        getattr(ax, f"set_{name}scale")("log")
        axis = getattr(ax, f"{name}axis")
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def _plain(label: str) -> str:
    """A label without the marks of mathtext."""
    return label.replace("$", "").replace("\\", "").replace("{", "").replace("}", "")
