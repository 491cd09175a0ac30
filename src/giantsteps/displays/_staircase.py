"""The staircase: errors against the exponent, in the limit, at finite size and simulated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from giantsteps.displays import _style
from giantsteps.displays._display import AxesDisplay
from giantsteps.errors import InvalidProblem
from giantsteps.gaussian import hermite_coefficients

if TYPE_CHECKING:
    from giantsteps.answers import Risk

Array = NDArray[np.float64]

_EXPONENT = "steps.0.exponent"
_LIMIT: dict[str, Any] = {"color": "black", "linewidth": 0.9, "zorder": 1.5}
_THRESHOLDS = [(level - 1) / (2 * level) for level in range(2, 6)]
_NONE = np.empty(0)


@dataclass(frozen=True, kw_only=True, eq=False)
class StaircaseSeries:
    """One colour of the picture; what is absent has no entries.

    Attributes
    ----------
    label : str
        In the legend.
    x, curve : ndarray
        Theory at finite size.
    steps_x, steps : ndarray
        The limit, constant between two thresholds.
    points_x, mean, standard_error : ndarray
        Simulation.
    """

    label: str
    x: Array = field(default_factory=lambda: _NONE)
    curve: Array = field(default_factory=lambda: _NONE)
    steps_x: Array = field(default_factory=lambda: _NONE)
    steps: Array = field(default_factory=lambda: _NONE)
    points_x: Array = field(default_factory=lambda: _NONE)
    mean: Array = field(default_factory=lambda: _NONE)
    standard_error: Array = field(default_factory=lambda: _NONE)


class StaircaseDisplay(AxesDisplay):
    """Errors against the exponent e of the learning rate η = rate · N^e (theory §6).

    Curves are theory at finite size, markers simulations with error bars (three standard errors),
    steps the limit; thin vertical lines are the thresholds (ℓ−1)/(2ℓ). Made by `from_sizes` or
    `from_degrees`; keeps its data, so that `plot` can draw it again on other axes.

    Parameters
    ----------
    series : sequence of StaircaseSeries
        One a colour.
    y_label, legend_title : str
        Words of the axis and the legend.
    from_zero : bool
        Whether the vertical axis starts at zero.

    Attributes
    ----------
    ax_, figure_
        Set by `plot`.

    References
    ----------
    theory §6; moniri2023.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import theory
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=2.0, rate=1.0, exponent=0.1)],
    ...                      readout=gs.Ridge(samples=2.0, penalty=0.1))
    >>> finite = gs.Grid(problem, {"steps.0.exponent": [0.1, 0.3]})
    >>> limit = gs.Grid(problem, {"steps.0.exponent": theory.staircase_exponents(3)})
    >>> display = StaircaseDisplay.from_sizes(
    ...     [theory.risk(finite, d=d) for d in (500, 5000)], theory.risk(limit))
    >>> [series.label for series in display.series]
    ['500', '5000', 'limit']
    """

    def __init__(
        self,
        *,
        series: Sequence[StaircaseSeries],
        y_label: str,
        legend_title: str = "",
        from_zero: bool = False,
    ) -> None:
        self.series, self.from_zero = tuple(series), from_zero
        self.y_label, self.legend_title = y_label, legend_title

    @classmethod
    def from_sizes(
        cls,
        finite: Sequence[Risk],
        limit: Risk | None = None,
        *,
        simulated: Sequence[Risk] = (),
        degree: int | None = None,
        **options: Any,
    ) -> StaircaseDisplay:
        """One curve for each size N, and the limit they approach.

        Parameters
        ----------
        finite : sequence of Risk
            Theory at different d, each over a grid of exponents alone.
        limit : Risk, optional
            The limit over such a grid, one exponent a level is enough
            (``theory.staircase_exponents``).
        simulated : sequence of Risk
            Simulations over such a grid, one a seed; they take the colour of their size.
        degree : int, optional
            Draw the part of this degree that is not learned; the test error unless given.
        **options
            For `plot`: ``ax``, ``width``, ``height``.
        """
        series = []
        for answer in finite:
            runs = [run for run in simulated if run.d == answer.d]
            series.append(
                StaircaseSeries(
                    label=_size(answer),
                    x=_exponents(answer),
                    curve=_values(answer, degree),
                    **_points(runs, degree),
                )
            )
        if limit is not None:
            series.append(StaircaseSeries(label="limit", **_steps(limit, degree)))
        y_label = _style.label("test") if degree is None else f"part of degree {degree} left"
        return cls(
            series=series, y_label=y_label, legend_title="$N$", from_zero=degree is not None
        ).plot(**options)

    @classmethod
    def from_degrees(
        cls,
        finite: Risk,
        limit: Risk | None = None,
        *,
        simulated: Sequence[Risk] = (),
        degrees: Sequence[int] = (1, 2, 3),
        **options: Any,
    ) -> StaircaseDisplay:
        r"""One colour for each degree: the part of k! c*_k² that is not learned.

        Parameters as in `from_sizes`, for one size; ``degrees`` are those of the teacher.
        """
        series = []
        for degree in degrees:
            steps = {} if limit is None else _steps(limit, degree)
            series.append(
                StaircaseSeries(
                    label=str(degree),
                    x=_exponents(finite),
                    curve=_values(finite, degree),
                    **steps,
                    **_points(simulated, degree),
                )
            )
        return cls(
            series=series,
            y_label="part left",
            legend_title=f"degree, $N$ = {_size(finite)}",
            from_zero=True,
        ).plot(**options)

    def _draw(self) -> None:
        for threshold in _THRESHOLDS:
            self.ax_.axvline(threshold, color="0.88", linewidth=0.6, zorder=0.5)
        colours = _style.colours(sum(series.x.size > 0 for series in self.series))
        looks = iter(zip(colours, _style.MARKERS * len(colours)))
        for series in self.series:
            colour, marker = next(looks) if series.x.size else ("black", "")
            self._draw_series(series, colour, marker)
        self.ax_.set_xlim(-0.01, 0.51)
        if self.from_zero:
            self.ax_.set_ylim(bottom=0.0)
        self.ax_.set_xlabel(_style.label(_EXPONENT))
        self.ax_.set_ylabel(self.y_label)
        self._legend()

    def _legend(self) -> None:
        handles, _ = self.ax_.get_legend_handles_labels()
        if any(series.x.size and series.steps_x.size for series in self.series):
            look = _LIMIT | {"color": _style.GREY, "linestyle": "--", "label": "limit"}
            handles += self.ax_.plot([], [], **look)
        self.ax_.legend(handles=handles, title=self.legend_title or None)

    def _draw_series(self, series: StaircaseSeries, colour: Any, marker: str) -> None:
        if series.x.size:
            self.ax_.plot(series.x, series.curve, color=colour, label=series.label, zorder=2)
        if series.steps_x.size:
            alone = not series.x.size
            look = _LIMIT | ({"label": series.label} if alone else {"color": colour})
            self.ax_.plot(series.steps_x, series.steps, linestyle="--", **look)
        if series.points_x.size:
            self.ax_.errorbar(
                series.points_x,
                series.mean,
                yerr=3 * series.standard_error,
                color=colour,
                marker=marker,
                linestyle="none",
                elinewidth=0.8,
                zorder=3,
            )


def _exponents(answer: Risk) -> Array:
    if answer.dims != (_EXPONENT,):
        raise InvalidProblem("finite", answer.dims, f"answers over a grid of {_EXPONENT} alone")
    return np.asarray(answer.coords[_EXPONENT], dtype=float)


def _values(answer: Risk, degree: int | None) -> Array:
    """The test error, or the part of one degree of the teacher that is left."""
    if degree is None:
        return np.asarray(answer.test, dtype=float)
    if answer.by_degree is None or not 1 <= degree < answer.by_degree.shape[-1]:
        raise InvalidProblem("degree", degree, "a degree k ≥ 1 that the answers report")
    link = getattr(answer.field("teacher"), "link", None)
    if link is None:
        raise InvalidProblem("teacher", answer.field("teacher"), "a teacher of one direction")
    energy = math.factorial(degree) * hermite_coefficients(link, degree)[degree] ** 2
    if energy < 1e-20:
        raise InvalidProblem("degree", degree, "a degree that the teacher has")
    return np.asarray(answer.by_degree[..., degree], dtype=float) / float(energy)


def _points(runs: Sequence[Risk], degree: int | None) -> dict[str, Array]:
    if not runs:
        return {}
    if len(runs) < 2:
        raise InvalidProblem("simulated", len(runs), "two or more seeds of a size")
    values = np.array([_values(run, degree) for run in runs])
    return {
        "points_x": _exponents(runs[0]),
        "mean": values.mean(axis=0),
        "standard_error": values.std(axis=0, ddof=1) / math.sqrt(len(runs)),
    }


def _steps(limit: Risk, degree: int | None) -> dict[str, Array]:
    """The two ends of the interval of each exponent, with the limit's value there."""
    exponents, values = _exponents(limit), _values(limit, degree)
    order = np.argsort(exponents)
    levels = np.floor(1 / (1 - 2 * exponents[order]) + 1e-9)
    ends = np.stack([(levels - 1) / (2 * levels), levels / (2 * levels + 2)], axis=1)
    return {"steps_x": ends.ravel(), "steps": np.repeat(values[order], 2)}


def _size(answer: Risk) -> str:
    """The number of neurons, as a power of ten where it is one."""
    if answer.d is None:
        raise InvalidProblem("finite", "the limit", "answers at a given d")
    neurons = float(answer.d * answer.field("width"))
    power = math.log10(neurons)
    if abs(power - round(power)) < 1e-9 and power >= 3:
        return f"$10^{{{round(power)}}}$"
    return f"{round(neurons)}"
