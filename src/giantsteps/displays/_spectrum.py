"""Spectra: the law of the bulk as a line, simulated values as a histogram, spikes as markers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from giantsteps.answers import Spectrum
from giantsteps.displays import _style
from giantsteps.displays._display import AxesDisplay, check_kind
from giantsteps.errors import InvalidProblem
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from giantsteps.laws import Law


_FAR = 1.2  # spikes further than this many widths of the bulk above its edge get their own panel
_NEAR = 0.35  # far spikes within this relative distance share a panel
_PANELS = 3  # most panels beside that of the bulk
_RIM = 0.05  # part of an interval at its ends that does not set the scale: it may be a pole
_POINTS = 400  # of the density, on each interval
#: Part of the mass. The outermost nodes of a continuous second layer may leave an island of less
#: behind a gap at the upper edge; it is not drawn.
_ISLAND = 1e-3
_HISTOGRAM = "#C9D3DB"
_THEORY, _FOUND = _style.PALETTE[0], _style.PALETTE[1]

_VALUE_LABELS = {
    "weights": r"singular value of $W$",
    "features": r"singular value of $\Phi$",
    "kernel": r"eigenvalue of $K$",
    "tangent kernel": r"eigenvalue of the tangent kernel",
}
_OVERLAP_LABELS = {
    "teacher": r"\langle u, \beta_*\rangle^2",
    "labels": r"\langle u, \tilde{y}\rangle^2 / \|\tilde{y}\|^2",
    "monomial": r"\langle u, k\rangle^2 / \|k\|^2",
}


@dataclass(frozen=True, kw_only=True)
class SpikeMark:
    """A spike: where it is and how its vector aligns."""

    value: float  # may be infinite where the theory says so
    overlap: float = np.nan  # squared cosine; NaN if it is not known
    degree: int | None = None  # of the polynomial it carries, written above a predicted spike


@dataclass(kw_only=True, eq=False, repr=False)
class SpectrumDisplay(AxesDisplay):
    """A spectrum by theory, with simulated values if there are any.

    Made by `from_spectra`; keeps its data, so that `plot` can draw it again on other axes. Spikes
    far above the bulk get separate panels behind a break of the horizontal axis.

    Parameters
    ----------
    law : Law
        The bulk.
    predicted : sequence of SpikeMark
        Spikes by theory, largest first.
    values : array_like, optional
        All simulated values, zeros included, of all seeds.
    found : sequence of SpikeMark
        Simulated values above the bulk.
    bins : int, optional
        Bars over the bulk; by default chosen by the number of values.
    value_label, overlap_name, simulation_label : str
        Labels of the axes, title of the legend.

    Attributes
    ----------
    ax_ : Axes
        The panel of the bulk.
    axes_ : tuple of Axes
        All panels, left to right.
    figure_ : Figure

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import theory
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=2.0,
    ...                      steps=[gs.Step(samples=4.0, rate=5.0)])
    >>> display = SpectrumDisplay.from_spectra(theory.weights(problem))
    >>> len(display.axes_), [round(mark.value, 2) for mark in display.predicted]
    (1, [2.8])
    """

    law: Law
    predicted: Sequence[SpikeMark] = ()
    values: FloatArray | None = None
    found: Sequence[SpikeMark] = ()
    bins: int | None = None
    value_label: str = "value"
    overlap_name: str = ""
    simulation_label: str = "simulation"
    axes_: tuple[Axes, ...] = field(init=False)

    def __post_init__(self) -> None:
        if not self.law.support:
            raise InvalidProblem("law", self.law, "a law with a density, such as theory gives")
        if self.values is not None:
            self.values = np.sort(np.asarray(self.values, dtype=float), axis=None)

    @classmethod
    def from_spectra(
        cls,
        theory: Spectrum,
        simulation: Spectrum | Sequence[Spectrum] | None = None,
        *,
        bins: int | None = None,
        **options: Any,
    ) -> SpectrumDisplay:
        """Draw a spectrum of theory, and that of one or several simulations.

        Parameters
        ----------
        theory : Spectrum
            Of one problem (a cell of a grid: ``spectrum[i, j]``).
        simulation : Spectrum or sequence of Spectrum, optional
            Of the same matrix; several seeds are pooled in the histogram.
        bins : int, optional
            Bars over the bulk.
        **options
            For `plot`: ``ax``, ``width``, ``height``.

        Examples
        --------
        >>> import giantsteps as gs
        >>> from giantsteps import simulation, theory
        >>> problem = gs.Problem(activation="tanh", teacher=gs.centered("relu"), width=2.0,
        ...                      steps=[gs.Step(samples=4.0, rate=2.0)])
        >>> display = SpectrumDisplay.from_spectra(
        ...     theory.weights(problem), simulation.weights(problem, d=100, seed=0))
        >>> display.ax_.get_xlabel()
        'singular value of $W$'
        """
        check_kind("theory", Spectrum, theory)
        law = theory.bulk
        if theory.shape or law is None:
            raise InvalidProblem("theory", theory, "the spectrum of one problem; of a grid, a cell")
        runs = [] if simulation is None else simulation
        runs = list(runs) if isinstance(runs, Sequence) else [runs]
        check_kind("simulation", Spectrum, *runs)
        for run in runs:
            if run.matrix != theory.matrix:
                raise InvalidProblem("simulation", run.matrix, f"a spectrum of {theory.matrix}")
        bulks = [run.bulk.values for run in runs if run.bulk is not None]  # type: ignore[union-attr]
        names = [name for spike in theory.spikes for name in spike.overlaps]
        name = names[0] if names else ""
        sizes = sorted({run.d for run in runs if run.d is not None})
        size = "" if not sizes else f", $d = {sizes[0]}$" if len(sizes) == 1 else ""
        display = cls(
            law=law,  # type: ignore[arg-type]
            predicted=[_mark(spike, name) for spike in theory.spikes],
            values=np.concatenate(bulks) if bulks else None,
            found=[mark for run in runs for mark in _above(law, run, name, len(theory.spikes))],
            bins=bins,
            value_label=_VALUE_LABELS.get(theory.matrix or "", "value"),
            overlap_name=_OVERLAP_LABELS.get(name, ""),
            simulation_label="simulation" + size,
        )
        return display.plot(**options)

    def _draw(self) -> None:
        windows = self._windows()
        self.axes_ = _panels(self.ax_, len(windows))
        self.ax_ = self.axes_[0]
        top = self._bulk(self.ax_)
        for panel, (lower, upper) in zip(self.axes_, windows):
            panel.set(xlim=(lower, upper), ylim=(0.0, top))
            self._spikes(panel, lower, upper, top)
        self._dress(windows)

    # -- what goes where -----------------------------------------------------------------------

    @property
    def _bottom(self) -> float:
        return float(self.law.support[0][0])

    @property
    def _top(self) -> float:
        return float(self.law.support[-1][1])

    def _windows(self) -> list[tuple[float, float]]:
        """Ranges of the panels: the bulk with the spikes near it, then groups of far spikes."""
        breadth = self._top - self._bottom
        marks = sorted(m.value for m in (*self.predicted, *self.found) if np.isfinite(m.value))
        far = [value for value in marks if value > self._top + _FAR * breadth]
        end = max([self._top, *(value for value in marks if value not in far)])
        pad = 0.05 * (end - self._bottom)
        lowest = max(self._bottom - 1.5 * pad, min(0.0, self._bottom))
        windows = [(lowest - (0.3 * pad if lowest <= 0 else 0), end + 2.0 * pad)]
        groups: list[list[float]] = []
        for value in far:
            near = groups and value <= groups[-1][-1] * (1 + _NEAR)
            if near or len(groups) == _PANELS:
                groups[-1].append(value)
            else:
                groups.append([value])
        for group in groups:
            middle, spread = 0.5 * (group[0] + group[-1]), group[-1] - group[0]
            half = max(0.75 * spread, 0.12 * middle)
            windows.append((middle - half, middle + half))
        return windows

    # -- drawing -------------------------------------------------------------------------------

    def _bulk(self, ax: Axes) -> float:
        """Histogram and density; returns the top of the vertical axis."""
        heights = [self._histogram(ax)]
        for number, (lower, upper) in enumerate(self.law.support):
            # Chebyshev points: dense where the density starts like a square root.
            unit = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, _POINTS))
            x = lower + (upper - lower) * unit
            y = self.law.density(x)
            x, y, unit = (values[: _mainland(x, y)] for values in (x, y, unit))
            heights.append(float(y[(unit > _RIM) & (unit < 1 - _RIM)].max()))
            ax.plot(x, y, color=_THEORY, zorder=3, label="_" if number else "theory")
        return 1.2 * max(heights)

    def _histogram(self, ax: Axes) -> float:
        """Bars over all values that are not zero; returns the highest away from the rim."""
        if self.values is None:
            return 0.0
        inside = self.values[self.values > 1e-8 * self._top]
        count = self.bins or int(np.clip(3.0 * inside.size ** (1 / 3), 20, 80))
        step = (self._top - self._bottom) / count
        first = self._bottom - step * np.ceil(max(self._bottom - inside.min(), 0.0) / step)
        last = min(max(inside.max(), self._top), self._windows()[0][1])
        edges = first + step * np.arange(np.ceil((last - first) / step - 1e-9) + 1)
        bars = np.histogram(inside, edges)[0] / (self.values.size * step)
        ax.stairs(bars, edges, fill=True, color=_HISTOGRAM, zorder=1, label=self.simulation_label)
        middle = 0.5 * (edges[1:] + edges[:-1])
        return float(bars[middle > self._bottom + _RIM * (self._top - self._bottom)].max())

    def _spikes(self, ax: Axes, lower: float, upper: float, top: float) -> None:
        for mark in self.predicted:
            if lower <= mark.value <= upper:
                stem = 0.24 * top
                ax.plot([mark.value] * 2, [0, stem], color=_THEORY, linewidth=0.9, zorder=3)
                ax.plot([mark.value], [stem], **_PREDICTED, zorder=3)
                if mark.degree is not None:
                    ax.annotate(f"degree {mark.degree}", (mark.value, stem), **_ABOVE)
        for mark in self.found:
            if lower <= mark.value <= upper:
                ax.plot([mark.value], [0.0], **_MEASURED, zorder=4, clip_on=False)

    def _dress(self, windows: Sequence[tuple[float, float]]) -> None:
        """Labels, ticks and a legend that also says what cannot be drawn to scale."""
        from matplotlib.lines import Line2D
        from matplotlib.ticker import MaxNLocator

        self.ax_.set(xlabel=self.value_label, ylabel="density")
        self.ax_.yaxis.set_major_locator(MaxNLocator(5))
        for panel, (lower, upper) in zip(self.axes_[1:], windows[1:]):
            ticks = [m.value for m in self.predicted if lower <= m.value <= upper]
            panel.set_xticks(ticks[:1] or [0.5 * (lower + upper)])
            panel.xaxis.set_major_formatter("{x:.3g}")
        handles: list[Any] = self.ax_.get_legend_handles_labels()[0]
        if any(np.isfinite(mark.value) for mark in self.predicted):
            handles.append(Line2D([], [], **_PREDICTED, label="predicted spike"))
        if self.found:
            handles.append(Line2D([], [], **_MEASURED, label="simulated spike"))
        nothing: dict[str, Any] = {"linestyle": "none", "color": _THEORY}
        for location, mass in self.law.atoms:
            label = f"mass {mass:.3g} at {location:.3g}"
            handles.append(Line2D([], [], marker="|", label=label, **nothing))
        if any(np.isinf(mark.value) for mark in self.predicted):
            handles.append(Line2D([], [], marker=">", label=r"spike at $\infty$", **nothing))
        title = self._overlap_text() or None
        self.axes_[-1].legend(handles=handles, loc="upper right", title=title)

    def _overlap_text(self) -> str:
        """The overlap of the first spike that has one, by theory and by simulation."""
        known = [mark for mark in self.predicted if mark.overlap > 0]
        if not known or not self.overlap_name:
            return ""
        here = [
            mark.overlap
            for mark in self.found
            if np.isfinite(known[0].value) and abs(mark.value / known[0].value - 1) < 0.2
        ]
        found = f",\nsimulation {np.mean(here):.3f}" if here else ""
        return f"${self.overlap_name}$: theory {known[0].overlap:.3f}{found}"


_PREDICTED: dict[str, Any] = {
    "color": _THEORY,
    "marker": "v",
    "markersize": 4.5,
    "markerfacecolor": "white",
    "linestyle": "none",
}
_MEASURED: dict[str, Any] = {
    "color": _FOUND,
    "marker": "o",
    "markersize": 3.5,
    "linestyle": "none",
}


_ABOVE: dict[str, Any] = {
    "xytext": (0, 5),
    "textcoords": "offset points",
    "ha": "center",
    "fontsize": 6.5,
    "color": _THEORY,
}


def _mark(spike: Any, name: str) -> SpikeMark:
    """A spike that a constant makes aligns with nothing worth a number."""
    overlap = np.nan if spike.degree == 0 else spike.overlaps.get(name, np.nan)
    return SpikeMark(value=float(spike.value), overlap=float(overlap), degree=spike.degree)


def _mainland(x: FloatArray, y: FloatArray) -> int:
    """Number of points up to the last gap of the density with next to no mass behind it."""
    beyond = np.cumsum((0.5 * (y[1:] + y[:-1]) * np.diff(x))[::-1])[::-1]
    gaps = np.flatnonzero((y[:-1] <= 0) & (beyond < _ISLAND) & (x[:-1] > x[0]))
    return int(gaps[0]) + 1 if gaps.size else len(x)


def _above(law: Any, run: Spectrum, name: str, predicted: int) -> list[SpikeMark]:
    """Top values of a run above the bulk: as many as theory predicts, and any others beyond what
    the edge of a bulk of its size fluctuates."""
    count = len(run.bulk.values) if run.bulk is not None else run.d or 1  # type: ignore[union-attr]
    lower, upper = law.support[0][0], law.support[-1][1]
    limit = upper + 2.0 * (upper - lower) * count ** (-2 / 3)
    return [
        _mark(spike, name)
        for rank, spike in enumerate(run.spikes)
        if spike.value > (upper if rank < predicted else limit)
    ]


def _panels(base: Axes, count: int) -> tuple[Axes, ...]:
    """The given axes, or panels inside them, with slanted marks where the axis is broken."""
    if count == 1:
        return (base,)
    base.set_axis_off()
    narrow, space = 0.17, 0.03
    wide = 1.0 - (count - 1) * (narrow + space)
    panels = [base.inset_axes((0.0, 0.0, wide, 1.0))]
    for number in range(1, count):
        start = wide + space + (number - 1) * (narrow + space)
        panel = base.inset_axes((start, 0.0, narrow, 1.0))
        panel.spines["left"].set_visible(False)
        panel.tick_params(left=False, labelleft=False)
        panels.append(panel)
    slash: dict[str, Any] = {
        "marker": [(-0.5, -1), (0.5, 1)],
        "markersize": 5,
        "linestyle": "none",
        "color": "black",
        "markeredgewidth": 0.6,
        "clip_on": False,
        "zorder": 5,
    }
    for left, right in pairwise(panels):
        left.plot([1], [0], transform=left.transAxes, **slash)
        right.plot([0], [0], transform=right.transAxes, **slash)
    return tuple(panels)
