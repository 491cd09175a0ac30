"""Phase diagrams: a quantity over two fields as a map, critical lines as solved curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from giantsteps.answers import require
from giantsteps.displays import _style
from giantsteps.displays._display import AxesDisplay
from giantsteps.errors import InvalidProblem
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from giantsteps.problem import Problem


#: Name of a line → quantity, level and label.
_LINES: dict[str, tuple[str, float | str, str]] = {
    "floor": ("test", "floor", "$R$ = kernel floor"),
    "gain": ("gain", 0.0, "$R_1 = R_0$"),
    "critical rate": ("rate over critical", 1.0, "spike leaves the bulk"),
}
_LABELS = {
    "gain over floor": r"kernel floor $-$ test error $R$",
    "rate over critical": r"$\eta/\eta_c$",
}
#: Quantities whose sign matters: the map is centred at zero.
_SIGNED = ("gain", "gain over floor")
_DASHES: tuple[Any, ...] = ("solid", "--", (0, (1.2, 1)), "-.")


@dataclass(frozen=True, eq=False)
class CriticalLine:
    """A line of the plane: its label and its pieces, each (points, 2) in the units of the axes."""

    label: str  # its name in the legend
    pieces: tuple[FloatArray, ...]  # each of shape (points, 2)


@dataclass(kw_only=True, eq=False, repr=False)
class PhaseDiagramDisplay(AxesDisplay):
    """A map of a quantity over two fields, with critical lines.

    Made by `from_grid`; keeps its data, so that `plot` can draw it again on other axes.

    Parameters
    ----------
    x, y : ndarray
        Points of the axes, increasing.
    values : ndarray of shape (y, x)
        The quantity; NaN is left white.
    lines : sequence of CriticalLine
        Drawn over the map.
    x_label, y_label, label : str
        Of the axes and of the colour bar.
    signed : bool
        Whether zero is the middle of the colours.

    Attributes
    ----------
    ax_, figure_, colorbar_
        Set by `plot`.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=3)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> display = PhaseDiagramDisplay.from_grid(
    ...     problem, x="steps.0.rate", x_values=[1.0, 3.0, 9.0],
    ...     y="steps.0.samples", y_values=[1.0, 3.0, 9.0], quantity="gain", lines=["critical rate"])
    >>> display.values.shape, [line.label for line in display.lines]
    ((3, 3), ['spike leaves the bulk'])
    """

    x: FloatArray
    y: FloatArray
    values: FloatArray
    lines: Sequence[CriticalLine] = ()
    x_label: str
    y_label: str
    label: str
    signed: bool = False
    colorbar_: Any = field(init=False)

    @classmethod
    def from_grid(
        cls,
        problem: Problem,
        *,
        x: str,
        y: str,
        x_values: ArrayLike,
        y_values: ArrayLike,
        quantity: str = "test",
        lines: Sequence[str | float] = (),
        d: int | None = None,
        **options: Any,
    ) -> PhaseDiagramDisplay:
        """Solve and draw a phase diagram.

        Parameters
        ----------
        problem : Problem
            Everything that all points have in common.
        x, y : str
            Paths of the fields that vary.
        x_values, y_values : array_like
            Increasing. The topology of the lines depends on their spacing, their position does not.
        quantity : str
            ``"test"``, ``"gain"`` (over initialisation), ``"gain over floor"``, or another one of
            ``theory.crossing``.
        lines : sequence
            ``"floor"`` (where the test error crosses the kernel floor), ``"gain"`` (where the step
            stops paying), ``"critical rate"`` (where the spike leaves the bulk of the weights),
            or a number: a level of the quantity.
        d : int, optional
            Input dimension; the limit without it.
        **options
            For `plot`: ``ax``, ``width``, ``height``.
        """
        from giantsteps.problem import Grid
        from giantsteps.theory import level_curves, values_of

        wanted = [_line(line, quantity) for line in lines]
        grid = Grid(problem, {y: np.asarray(y_values), x: np.asarray(x_values)})
        values = values_of(quantity, list(grid), d).reshape(grid.shape)
        drawn = []
        for name, level, label in wanted:
            known = values if name == quantity else None
            curves = level_curves(grid, name, level, d, values=known)
            drawn.append(CriticalLine(label, tuple(curve[:, ::-1] for curve in curves)))
        display = cls(
            x=grid.coords[x],
            y=grid.coords[y],
            values=values,
            lines=drawn,
            x_label=_style.label(x),
            y_label=_style.label(y),
            label=_LABELS.get(quantity) or _style.label(quantity),
            signed=quantity in _SIGNED,
        )
        return display.plot(**options)

    def _draw(self) -> None:
        self._scales()
        mesh = self.ax_.pcolormesh(
            self.x, self.y, self.values, shading="gouraud", rasterized=True, **self._colours()
        )
        self.colorbar_ = self.figure_.colorbar(mesh, ax=self.ax_, label=self.label, pad=0.02)
        self.colorbar_.outline.set_linewidth(0.6)
        self._colour_ticks()
        self._draw_lines()
        self.ax_.set(xlim=(self.x[0], self.x[-1]), ylim=(self.y[0], self.y[-1]))
        self.ax_.set(xlabel=self.x_label, ylabel=self.y_label)

    def _scales(self) -> None:
        """Logarithmic where the points are spaced so over a decade or more."""
        ticker = require("matplotlib.ticker", "a figure", "plot")
        for name, points in (("x", self.x), ("y", self.y)):
            if _is_geometric(points):
                getattr(self.ax_, f"set_{name}scale")("log")
                axis = getattr(self.ax_, f"{name}axis")
                axis.set_minor_formatter(ticker.NullFormatter())

    @property
    def _range(self) -> tuple[float, float]:
        finite = self.values[np.isfinite(self.values)]
        return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)

    @property
    def _two_sided(self) -> bool:
        low, high = self._range
        rounding = 1e-9 * max(-low, high)
        return self.signed and low < -rounding and high > rounding

    def _colours(self) -> dict[str, Any]:
        low, high = self._range
        if not self._two_sided:
            return {"cmap": "viridis", "vmin": low, "vmax": high}
        norm = require("matplotlib.colors", "a figure", "plot").TwoSlopeNorm(0.0, low, high)
        return {"cmap": "RdBu", "norm": norm}

    def _colour_ticks(self) -> None:
        """Ticks on both sides of zero, each side with its own scale."""
        if self._two_sided:
            locator = require("matplotlib.ticker", "a figure", "plot").MaxNLocator(4)
            low, high = self._range
            ticks = [*locator.tick_values(low, 0.0), *locator.tick_values(0.0, high)]
            self.colorbar_.set_ticks(sorted({t for t in ticks if low <= t <= high}))
            self.colorbar_.ax.yaxis.set_major_formatter("{x:.3g}")
            self.colorbar_.ax.minorticks_off()

    def _draw_lines(self) -> None:
        for number, line in enumerate(self.lines):
            look: dict[str, Any] = {
                "linestyle": _DASHES[number % len(_DASHES)],
                "linewidth": 1.2,
                "zorder": 3,
            }
            for piece in line.pieces:
                # A light rim keeps the line readable on every colour.
                self.ax_.plot(*piece.T, color="white", linewidth=2.4, alpha=0.7, zorder=2)
                self.ax_.plot(*piece.T, color="black", **look)
            if line.pieces:
                self.ax_.plot([], [], color="black", label=line.label, **look)
        if any(line.pieces for line in self.lines):
            self.ax_.legend(
                loc="lower left",
                bbox_to_anchor=(0.0, 1.0),
                ncols=min(len(self.lines), 2),
                borderaxespad=0.2,
            )


def _is_geometric(points: FloatArray) -> bool:
    """Whether the points are spaced evenly in their logarithms, over a decade or more."""
    if points[0] <= 0 or points[-1] < 10 * points[0]:
        return False
    spread = [np.ptp(steps) / steps.mean() for steps in (np.diff(points), np.diff(np.log(points)))]
    return bool(spread[1] < spread[0])


def _line(line: object, quantity: str) -> tuple[str, float | str, str]:
    """Quantity, level and label of a line."""
    if isinstance(line, str) and line in _LINES:
        return _LINES[line]
    if isinstance(line, int | float | np.floating) and not isinstance(line, bool):
        return quantity, float(line), f"{quantity} = {line:g}"
    names = ", ".join(f'"{name}"' for name in _LINES)
    raise InvalidProblem("lines", line, f"one of {names}, or a level of the quantity")
