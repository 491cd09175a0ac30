"""Two steps: how many outliers there are, and what reusing the batch does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from giantsteps.answers import require
from giantsteps.displays import _style
from giantsteps.displays._comparison import ComparisonDisplay, Series
from giantsteps.displays._display import AxesDisplay, Display
from giantsteps.errors import InvalidProblem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from giantsteps.answers import OutlierCount
    from giantsteps.comparison import Comparison

_EXPONENTS = ("steps.0.exponent", "steps.1.exponent")
_EXPONENT_LABELS = (r"first exponent $e_1$", r"second exponent $e_2$")
_MANY = 7  # counts from here on share a colour


class OutlierMapDisplay(AxesDisplay):
    """The number of outliers over the plane of the two exponents (theory §7).

    Parameters
    ----------
    count : OutlierCount
        Over a grid of ``steps.0.exponent`` and ``steps.1.exponent``.

    Attributes
    ----------
    ax_, figure_
        Set by `plot`.

    References
    ----------
    theory §7; moniri2026.

    Examples
    --------
    >>> import giantsteps as gs, numpy as np
    >>> from giantsteps import theory
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1, steps=[
    ...     gs.Step(samples=4, rate=1), gs.Step(samples=4, rate=1)])
    >>> exponents = np.linspace(0, 0.49, 8)
    >>> grid = gs.Grid(problem, {"steps.0.exponent": exponents, "steps.1.exponent": exponents})
    >>> OutlierMapDisplay(theory.outlier_count(grid)).plot().ax_.get_xlabel()
    'first exponent $e_1$'
    """

    def __init__(self, count: OutlierCount) -> None:
        if sorted(count.dims) != sorted(_EXPONENTS):
            raise InvalidProblem("count", count.dims, f"over a grid of {' and '.join(_EXPONENTS)}")
        self.count = count

    def _draw(self) -> None:
        colors = require("matplotlib.colors", "a figure", "plot")
        values = np.asarray(self.count.count)
        order = [self.count.dims.index(path) for path in _EXPONENTS]
        values = np.minimum(np.transpose(values, order), _MANY).T
        present = np.arange(0, _MANY + 1)
        # Light for few and dark for many, even in grey.
        shades = require("matplotlib", "a figure", "plot").colormaps["Blues"]
        palette = colors.ListedColormap([shades(0.02 + 0.9 * k / _MANY) for k in present])
        norm = colors.BoundaryNorm(np.arange(-0.5, _MANY + 1), palette.N)
        x, y = (self.count.coords[path] for path in _EXPONENTS)
        mesh = self.ax_.pcolormesh(
            x, y, values, cmap=palette, norm=norm, shading="nearest", rasterized=True
        )
        self._lines(float(x.max()), float(y.max()))
        self.ax_.set_xlim(float(x.min()), float(x.max()))
        self.ax_.set_ylim(float(y.min()), float(y.max()))
        self.ax_.set_xlabel(_EXPONENT_LABELS[0])
        self.ax_.set_ylabel(_EXPONENT_LABELS[1])
        low, high = int(values.min()), int(values.max())
        bar = self.figure_.colorbar(mesh, ax=self.ax_, ticks=np.arange(low, high + 1))
        bar.ax.set_ylim(low - 0.5, high + 0.5)
        names = [f"{k}" if k < _MANY else rf"$\geq {k}$" for k in range(low, high + 1)]
        bar.ax.set_yticklabels(names)
        bar.ax.minorticks_off()
        bar.set_label("outliers")

    def _lines(self, right: float, top: float) -> None:
        """e₂ = k(1/2 − e₁), where the term with right vector A^(k+1) appears, if it does."""
        powers = [int(name.partition("^")[2] or 1) for name in self.count.sizes]
        for power in powers[1:_MANY]:
            k = power - 1
            first = np.array([max(0.5 - top / k, 0.0), right])
            self.ax_.plot(first, k * (0.5 - first), color="black", linewidth=0.7)


class ReuseDisplay(Display):
    """Risk and overlap against the samples of the steps, fresh and reused, side by side.

    Parameters
    ----------
    risk, overlap : sequence of Series
        One for each way to choose the second batch.

    Attributes
    ----------
    panels : tuple of ComparisonDisplay
        Risk and overlap.
    axes_, ax_, figure_
        Set by `plot`.

    References
    ----------
    theory §7; moniri2026.

    Examples
    --------
    >>> import numpy as np
    >>> from giantsteps.displays import Series
    >>> x, empty = np.array([1.0, 2.0, 4.0]), np.empty(0)
    >>> def curve(label, y):
    ...     return Series(label=label, curve_x=x, curve=y,
    ...                   x=empty, mean=empty, standard_error=empty)
    >>> display = ReuseDisplay(risk=[curve("fresh", 1 / x), curve("reused", 0.5 / x)],
    ...                        overlap=[curve("fresh", 0 * x), curve("reused", 1 - 0.5 / x)]).plot()
    >>> len(display.panels), len(display.axes_)
    (2, 2)
    """

    panels: tuple[ComparisonDisplay, ...]
    axes_: tuple[Axes, ...]

    @property
    def ax_(self) -> Axes:
        """The first panel."""
        return self.axes_[0]

    def __init__(self, *, risk: Sequence[Series], overlap: Sequence[Series]) -> None:
        self.risk, self.overlap = tuple(risk), tuple(overlap)

    @classmethod
    def from_comparisons(
        cls,
        samples: Sequence[float],
        comparisons: Mapping[str, Sequence[tuple[Comparison, Comparison]]],
        curves: Mapping[str, Sequence[tuple[float, float, float]]] | None = None,
    ) -> ReuseDisplay:
        """From comparisons of the risk and of the weights at each number of samples.

        Parameters
        ----------
        samples : sequence of float
            n₀/d of the steps.
        comparisons : mapping of str to sequence of pairs
            ``{"fresh": [(compare(p, ...), compare(p, ..., question="weights")), ...], ...}``, a
            pair of comparisons of one problem for each of ``samples``.
        curves : mapping of str to sequence of triples, optional
            Theory on a finer grid: (samples, risk, overlap).
        """
        series: list[list[Series]] = [[], []]
        for name, pairs in comparisons.items():
            fine = None if curves is None else np.asarray(curves[name], dtype=float)
            for number, quantity in enumerate(("test", "spikes.0.overlap")):
                found = [pair[number][quantity].largest for pair in pairs]
                theory = np.array([float(estimate.theory) for estimate in found])
                series[number].append(
                    Series(
                        label=name,
                        x=np.asarray(samples, dtype=float),
                        mean=np.array([float(estimate.mean) for estimate in found]),
                        standard_error=np.array([float(e.standard_error) for e in found]),
                        curve_x=np.asarray(samples, dtype=float) if fine is None else fine[:, 0],
                        curve=theory if fine is None else fine[:, 1 + number],
                    )
                )
        return cls(risk=series[0], overlap=series[1])

    def plot(self, *, width: float = _style.DOUBLE, height: float | None = None) -> ReuseDisplay:
        """Draw on a new figure of the given width in inches."""
        pyplot = require("matplotlib.pyplot", "a figure", "plot")
        size = (width, width / 2 * 0.8 if height is None else height)
        with _style.style():
            self.figure_, axes = pyplot.subplots(1, 2, figsize=size, layout="constrained")
        self.axes_ = tuple(axes)
        shown = []
        names = ("test", "spikes.0.overlap")
        for ax, series, name in zip(self.axes_, (self.risk, self.overlap), names):
            display = ComparisonDisplay(
                series=series,
                x_label=_style.label("steps.0.samples"),
                y_label=_style.label(name),
                legend_title="second batch",
            )
            shown.append(display.plot(ax=ax))
        self.panels = tuple(shown)
        return self
