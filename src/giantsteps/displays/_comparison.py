"""Learning curves and other comparisons: theory as lines, simulation as markers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from giantsteps.displays import _style
from giantsteps.displays._display import AxesDisplay
from giantsteps.errors import InvalidProblem
from giantsteps.problem import suggest
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from giantsteps.answers import Answer
    from giantsteps.comparison import Comparison


_DOTTED = (0, (1.2, 1))
#: Error bars are so many standard errors.
BARS = 3.0
#: Curves with a name in the legend, at most.
_NAMED = 24
_FLOOR: dict[str, Any] = {"color": "black", "linestyle": "--", "linewidth": 0.8}


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """One curve: theory at ``curve_x``, simulation at ``x``.

    Attributes
    ----------
    label : str
        Value of the other axes of the grid, empty if there are none.
    x, mean, standard_error : ndarray
        Simulation.
    curve_x, curve : ndarray
        Theory.
    before : bool
        Whether it shows the network before the steps.
    """

    label: str
    x: FloatArray
    mean: FloatArray
    standard_error: FloatArray
    curve_x: FloatArray
    curve: FloatArray
    before: bool = False


@dataclass(kw_only=True, eq=False, repr=False)
class ComparisonDisplay(AxesDisplay):
    r"""Theory as lines and simulation as markers with error bars (three standard errors).

    Made by `from_comparison` or ``comparison.plot(x=path)``; keeps its data, so that `plot` can
    draw it again on other axes.

    Parameters
    ----------
    series : sequence of Series
        The curves; those with ``before`` are drawn with open markers.
    x_label, y_label, legend_title : str
        Labels of the axes, title of the legend.
    floor : float, optional
        A dashed horizontal line.
    floor_label : str
        Its name.
    steps : str
        "step" or "steps", for the legend.
    title : str
        Above the axes, such as the slice that is shown.
    nameless : str
        Name of a curve without a label in the legend.

    Attributes
    ----------
    ax_, figure_
        Set by `plot`.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=3)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> grid = gs.Grid(problem, {"readout.samples": [1.0, 2.0]})
    >>> comparison = gs.compare(grid, d=40, seeds=2, test_samples=500)
    >>> display = ComparisonDisplay.from_comparison(comparison, floor=0.06)
    >>> display.ax_.get_xlabel(), len(display.series)  # before and after the step
    ('readout samples $\\alpha = n/d$', 2)
    """

    series: Sequence[Series]
    x_label: str
    y_label: str
    legend_title: str = ""
    floor: float | None = None
    floor_label: str = "kernel floor"
    steps: str = "step"
    title: str = ""
    nameless: str = "theory and simulation"

    @classmethod
    def from_comparison(
        cls,
        comparison: Comparison,
        *,
        x: str | None = None,
        quantity: str | None = None,
        before: bool = True,
        curve: Answer | Sequence[Answer] | None = None,
        floor: float | None = None,
        floor_label: str = "kernel floor",
        title: str = "",
        **options: Any,
    ) -> ComparisonDisplay:
        """Draw a comparison, at every size that was simulated.

        Parameters
        ----------
        comparison : Comparison
        x : str, optional
            Path of the horizontal axis, an axis of the quantity (the ``"x"`` of a learned
            function), or ``"d"`` where there are several sizes; by default the first of these with
            numbers.
        quantity : str, optional
            What to draw; by default the first that was compared (``"test"``).
        before : bool
            Draw ``"initial.test"`` beside ``"test"`` if it was compared. ``"tangent.test"`` is
            drawn with it, too.
        curve : Answer or sequence of Answer, optional
            Answers of theory over the same axes, finer along ``x``, one per size: for smooth
            lines.
        floor, floor_label
            A dashed horizontal line and its name.
        title : str
            Above the axes.
        **options
            For `plot`: ``ax``, ``width``, ``height``.
        """
        x = horizontal_axis(comparison, x, quantity)
        quantity = comparison.quantities[0] if quantity is None else quantity
        series = _series(comparison, quantity, x, curve)
        earlier = f"initial.{quantity}"
        if before and earlier in comparison.quantities:
            series += _series(comparison, earlier, x, curve, before=True)
        beside = f"tangent.{quantity}"
        if beside in comparison.quantities:
            named = _series(comparison, beside, x, curve)
            series += [replace(one, label=_tangent(one.label)) for one in named]
        others = _others(comparison, quantity, x)
        display = cls(
            series=series,
            x_label=_style.label(x),
            y_label=_style.label(quantity, comparison.question),
            legend_title=_style.label(others[0]) if len(others) == 1 else "",
            floor=floor,
            floor_label=floor_label,
            steps="steps" if len(comparison.theory[0].field("steps")) > 1 else "step",
            title=title,
        )
        return display.plot(**options)

    def _draw(self) -> None:
        looks = self._looks()
        for series, look in zip(self.series, looks):
            line = {"color": look["color"], "linestyle": look["linestyle"]}
            draw_curve(self.ax_, series.curve_x, series.curve, **line)
            draw_points(self.ax_, series.x, series.mean, series.standard_error, **look)
        if self.floor is not None:
            draw_floor(self.ax_, self.floor)
        self.ax_.set(xlabel=self.x_label, ylabel=self.y_label)
        if spans_decades(*(s.curve_x for s in self.series)):
            self.ax_.set_xscale("log")
        elif _counts(*(s.curve_x for s in self.series)) and self.ax_.get_xscale() == "linear":
            self.ax_.locator_params(axis="x", integer=True)
        if self.title:
            self.ax_.set_title(self.title)
        self._legend(looks)

    def _looks(self) -> list[dict[str, Any]]:
        """Colour by label; the start has open markers, in grey where all curves share it."""
        names = list(dict.fromkeys(series.label for series in self.series))
        palette = dict(zip(names, _style.colours(len(names))))
        markers = dict(zip(names, itertools.cycle(_style.MARKERS)))
        shared = sum(series.before for series in self.series) == 1
        looks = []
        for series in self.series:
            colour = _style.GREY if series.before and shared else palette[series.label]
            looks.append(
                {
                    "color": colour,
                    "marker": markers[series.label] if series.x.size else "",
                    "markerfacecolor": "white" if series.before else colour,
                    "markeredgewidth": 0.8,
                    "linestyle": _line(series, shared),
                }
            )
        return looks

    def _legend(self, looks: Sequence[dict[str, Any]]) -> None:
        from matplotlib.lines import Line2D

        earlier = [look for series, look in zip(self.series, looks) if series.before]
        nameless = f"after the {self.steps}" if earlier else self.nameless
        handles = [
            Line2D([], [], **look, label=series.label or nameless)
            for series, look in zip(self.series, looks)
            if not series.before
        ]
        if earlier:
            look = earlier[0] if len(earlier) == 1 else earlier[0] | {"color": _style.GREY}
            handles.append(Line2D([], [], **look, label=f"before the {self.steps}"))
        if self.floor is not None:
            handles.append(Line2D([], [], **_FLOOR, label=self.floor_label))
        title = self.legend_title or None
        if len(handles) > _NAMED:  # so many are graded in colour: some of them are enough
            title = f"{title or 'curves'}, {_NAMED} of {len(handles)}"
            chosen = np.linspace(0, len(handles) - 1, _NAMED).round().astype(int)
            handles = [handles[place] for place in chosen]
        if len(handles) <= 5:
            self.ax_.legend(handles=handles, title=title)
            return
        beside = self.ax_.legend(
            handles=handles, title=title, loc="upper left", bbox_to_anchor=(1.0, 1.0)
        )
        figure = self.figure_
        if len(figure.axes) > 1 or figure.get_layout_engine() is None:  # arranged by the caller
            return
        width, height = figure.get_size_inches()
        needed = beside.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
        if needed.width <= 0.3 * width and needed.height <= 0.8 * height:
            return
        beside.remove()
        columns = max(1, int(width // needed.width))
        rows = -(-len(handles) // columns)
        figure.set_size_inches(width, height + needed.height * rows / len(handles))
        figure.legend(handles=handles, title=title, ncols=columns, loc="outside lower center")


def draw_curve(ax: Axes, x: Any, y: Any, **look: Any) -> None:
    """A line of theory, below the points of simulations."""
    ax.plot(x, y, **({"zorder": 2} | look))


def draw_points(ax: Axes, x: Any, mean: Any, standard_error: Any, **look: Any) -> None:
    """Points of a simulation, with error bars of three standard errors."""
    fixed: dict[str, Any] = {"linestyle": "none"}
    shown = {"elinewidth": 0.8, "zorder": 3} | look | fixed
    ax.errorbar(x, mean, yerr=BARS * np.asarray(standard_error), **shown)


def draw_floor(ax: Axes, level: float, **look: Any) -> None:
    """A dashed horizontal line."""
    ax.axhline(level, **(_FLOOR | {"zorder": 1} | look))


def horizontal_axis(comparison: Comparison, x: str | None, quantity: str | None = None) -> str:
    """The path of the horizontal axis, checked."""
    quantity = comparison.quantities[0] if quantity is None else quantity
    if quantity not in comparison.quantities:
        raise InvalidProblem("quantity", quantity, suggest(quantity, comparison.quantities))
    axes = _axes(comparison, quantity)
    numeric = [dim for dim, values in axes.items() if values.dtype.kind in "fiu"]
    if len(comparison.sizes) > 1:
        numeric.append("d")
    if not numeric:
        raise InvalidProblem("x", x, "an axis with numbers: compare a Grid, or several sizes d")
    if x is None:
        return numeric[0]
    if x not in numeric:
        raise InvalidProblem("x", x, suggest(x, numeric))
    return x


def _axes(comparison: Comparison, quantity: str) -> dict[str, Any]:
    """Axes of a quantity: those of the grid, then its own."""
    from giantsteps.comparison import Quantity

    answer = comparison.theory[-1]
    return {**answer.coords, **Quantity(quantity).axes(answer)}


def _others(comparison: Comparison, quantity: str, x: str) -> list[str]:
    """Axes along which there are several curves."""
    names = [dim for dim in _axes(comparison, quantity) if dim != x]
    return [*names, "d"] if x != "d" and len(comparison.sizes) > 1 else names


def _series(
    comparison: Comparison,
    quantity: str,
    x: str,
    curve: Answer | Sequence[Answer] | None,
    before: bool = False,
) -> list[Series]:
    from giantsteps.comparison import Quantity

    axes, estimates = _axes(comparison, quantity), comparison[quantity].by_size
    sizes = np.asarray(comparison.sizes, dtype=float)
    points = sizes if x == "d" else np.asarray(axes[x])
    place = list(axes).index(x) if x != "d" else -1
    found = {
        name: np.stack([np.asarray(getattr(e, name)) for e in estimates], axis=-1)
        for name in ("mean", "standard_error", "theory")
    }
    mean, error, theory = (_rows(values, place) for values in found.values())
    fine_x, fine, dimension = points, theory, comparison.theory[-1].d
    if curve is not None:
        curves = curve if isinstance(curve, Sequence) else [curve]
        fine_x, dimension = np.asarray(curves[-1].coords[x]), curves[-1].d
        refined = [Quantity(quantity).read(answer) for answer in curves]
        fine = _rows(np.stack(refined, axis=-1), place)
    if before and len(fine) > 1 and np.ptp(theory, axis=0).max() == 0:
        mean, error, fine = mean[:1], error[:1], fine[:1]
    others = _others(comparison, quantity, x)
    combinations = itertools.product(*({**axes, "d": comparison.sizes}[dim] for dim in others))
    series = []
    for values, row, spread, line in zip(combinations, mean, error, fine):
        d = values[-1] if "d" in others else comparison.sizes[0]
        series.append(
            Series(
                label=curve_name(others, values),
                x=_realised(x, points, d),
                mean=row,
                standard_error=spread,
                curve_x=fine_x if dimension is None else _realised(x, fine_x, d),
                curve=line,
                before=before,
            )
        )
    return series


def _realised(path: str, values: FloatArray, d: int) -> FloatArray:
    """Ratios as networks of dimension d have them: they count whole neurons and samples."""
    ratio = re.fullmatch(r"width|(readout|steps\.\d+)\.samples", path)
    return np.array([round(value * d) / d for value in values]) if ratio else values


def _rows(values: Any, axis: int) -> FloatArray:
    """One row for each combination of the other axes."""
    moved = np.moveaxis(np.asarray(values, dtype=float), axis, -1)
    return moved.reshape(-1, moved.shape[-1])


def _line(series: Series, shared: bool) -> Any:
    """None where there is no theory to draw."""
    if np.isnan(series.curve).all():
        return "none"
    return _DOTTED if series.before and not shared else "solid"


def _tangent(label: str) -> str:
    """Name of a curve of the tangent kernel, which is simulated only."""
    return f"{label}, tangent kernel" if label else "tangent kernel (simulation)"


def curve_name(dims: Sequence[str], values: Sequence[Any]) -> str:
    """Values of the axes along which there are several curves; of one axis, its value alone."""
    texts = [f"{v:g}" if isinstance(v, float) else str(v) for v in values]
    if len(texts) == 1:
        return texts[0]
    return ", ".join(f"{_style.symbol(dim)} = {text}" for dim, text in zip(dims, texts))


def _counts(*axes: FloatArray) -> bool:
    """Whether points are a few whole numbers, such as steps."""
    points = np.unique(np.concatenate(axes))
    return points.size <= 12 and bool((points == np.round(points)).all())


def spans_decades(*axes: FloatArray) -> bool:
    """Whether points ask for a logarithmic axis."""
    points = np.concatenate(axes)
    return bool(points.min() > 0 and points.max() / points.min() >= 50)
