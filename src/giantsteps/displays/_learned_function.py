"""The learned function: mean and band of theory, the target, points of simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from giantsteps.answers import LearnedFunction
from giantsteps.displays import _style
from giantsteps.displays._comparison import draw_points
from giantsteps.displays._display import AxesDisplay, check_kind
from giantsteps.errors import InvalidProblem
from giantsteps.types import FloatArray

_X_LABELS = {
    "spike": r"$\langle x, b\rangle/\Vert b\Vert$, along the spike",
    "teacher": r"$\langle x, \beta_*\rangle$, along the teacher",
}
#: About so many points of the simulation are drawn.
_SHOWN = 13
_THEORY, _FOUND = _style.PALETTE[0], _style.PALETTE[1]


class LearnedFunctionDisplay(AxesDisplay):
    """Mean of the prediction along a direction with its spread, and the teacher.

    Made by `from_answers`; keeps its data, so that `plot` can draw it again on other axes.

    Parameters
    ----------
    theory : LearnedFunction
        Of one problem.
    simulations : sequence of LearnedFunction
        Runs at common points; their mean over the seeds is drawn with three standard errors.

    Attributes
    ----------
    x, mean, band, target : ndarray
        Theory.
    points, found, found_error, found_band : ndarray or None
        Simulation: where, mean over the runs, its standard error, mean spread.
    ax_, figure_
        Set by `plot`.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=3)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> from giantsteps import simulation, theory
    >>> giant = problem.replace({"steps.0.exponent": 0.5})
    >>> runs = [simulation.learned_function(giant, d=60, seed=seed) for seed in range(2)]
    >>> display = LearnedFunctionDisplay.from_answers(theory.learned_function(giant, d=60), runs)
    >>> display.ax_.get_xlabel().split(", ")[-1], display.found.shape == display.points.shape
    ('along the spike', True)
    """

    def __init__(
        self, theory: LearnedFunction, simulations: Sequence[LearnedFunction] = ()
    ) -> None:
        for answer in (theory, *simulations):
            if answer.shape or answer.along != theory.along:
                raise InvalidProblem(
                    "simulations", answer.along, f'answers to one problem along "{theory.along}"'
                )
        self.along = theory.along
        self.x, self.mean, self.band = theory.x, theory.mean, theory.band
        self.target = theory.target
        self.points: FloatArray | None = None
        self.found: FloatArray | None = None
        self.found_error: FloatArray | None = None
        self.found_band: FloatArray | None = None
        if simulations:
            self._average(simulations)

    def _average(self, runs: Sequence[LearnedFunction]) -> None:
        if any(not np.array_equal(run.x, runs[0].x) for run in runs):
            raise InvalidProblem("simulations", "runs", "runs with the same points x")
        means = np.array([run.mean for run in runs])
        self.points, self.found = runs[0].x, means.mean(axis=0)
        self.found_band = np.sqrt(np.mean([run.band**2 for run in runs], axis=0))
        if len(runs) > 1:
            self.found_error = means.std(axis=0, ddof=1) / np.sqrt(len(runs))
        else:
            self.found_error = runs[0].standard_error

    @classmethod
    def from_answers(
        cls,
        theory: LearnedFunction,
        simulations: LearnedFunction | Sequence[LearnedFunction] = (),
        **options: object,
    ) -> LearnedFunctionDisplay:
        """Draw answers of `theory.learned_function` and of one run or several.

        Parameters
        ----------
        theory : LearnedFunction
        simulations : LearnedFunction or sequence of them
        **options
            For `plot`: ``ax``, ``width``, ``height``.
        """
        runs = simulations if isinstance(simulations, Sequence) else (simulations,)
        check_kind("theory", LearnedFunction, theory)
        check_kind("simulations", LearnedFunction, *runs)
        return cls(theory, runs).plot(**options)  # type: ignore[arg-type]

    def _draw(self) -> None:
        band = (self.mean - self.band, self.mean + self.band)
        look: dict[str, Any] = {"color": _THEORY, "alpha": 0.18, "linewidth": 0}
        self.ax_.fill_between(self.x, *band, label="one standard deviation", **look)
        if self.target is not None:
            self.ax_.plot(self.x, self.target, color="black", linestyle="--", label="teacher")
        self.ax_.plot(self.x, self.mean, color=_THEORY, label="theory")
        if self.points is not None and self.found is not None:
            shown = slice(None, None, max(1, round(len(self.points) / _SHOWN)))
            error = np.zeros_like(self.found) if self.found_error is None else self.found_error
            look = {"color": _FOUND, "marker": "o", "clip_on": False}
            points = (self.points[shown], self.found[shown], error[shown])
            draw_points(self.ax_, *points, label="simulation", **look)
        own = rf"$\langle x, \beta_{{{self.along[1:]}}}\rangle$, along a direction of the teacher"
        self.ax_.set(xlabel=_X_LABELS.get(self.along, own), ylabel="learned function")
        self.ax_.set_xlim(self.x[0], self.x[-1])
        self.ax_.legend(loc="upper left")
