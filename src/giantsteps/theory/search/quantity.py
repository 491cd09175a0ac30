"""Numbers that searches follow: what they are called and how a batch of problems gives them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from giantsteps.answers import Risk
from giantsteps.errors import InvalidProblem, NotConverged, NotCovered
from giantsteps.problem import Problem, number, suggest
from giantsteps.theory.model.errors import Effort
from giantsteps.theory.model.teacher import teacher_moments
from giantsteps.theory.questions.risk import attempts
from giantsteps.theory.search.critical_rate import rate_over_critical
from giantsteps.theory.steps.build import Models
from giantsteps.types import FloatArray

#: Those that need the errors before the steps.
_OF_INITIAL = ("initial.test", "gain")
#: What a coarse value may be off, over the change from the resolution before.
_DOUBT = 3.0

#: Name → meaning.
QUANTITIES = {
    "test": "the test error R",
    "test_noisy": "R + Δ",
    "train": "the training error",
    "initial.test": "the test error before the steps, R₀",
    "gain": "R₀ − R",
    "gain over floor": "kernel floor − R",
    "rate over critical": "learning rate of the step over the one at which its spike appears",
}


def _floor(problem: Problem) -> float:
    """‖P_{>1}f*‖², the floor of every kernel (theory §4)."""
    return teacher_moments(problem.teacher).residual_variance


def level_of(problem: Problem, level: object, quantity: str) -> float:
    """A level as a number: ``"floor"`` is the kernel floor of the test error."""
    _check(quantity)
    if isinstance(level, str) and level == "floor":
        if quantity != "test":
            raise InvalidProblem("level", level, f'a number: the floor is one of "test", '
                                 f"not of {quantity!r}")  # fmt: skip
        return _floor(problem)
    return number(level, "level", 'a finite number, or "floor"')


def _check(quantity: object) -> None:
    if quantity not in QUANTITIES:
        raise InvalidProblem("quantity", quantity, suggest(quantity, QUANTITIES))


def values_of(quantity: str, problems: Sequence[Problem], d: int | None) -> FloatArray:
    """The quantity for each problem, in one batch; NaN where the theory has no answer.

    Raises
    ------
    NotCovered, NotConverged
        If it has none for all of them.
    """
    found = asked_of(quantity, problems, d)
    if found.refusal is not None and np.all(np.isnan(found.values)):
        raise found.refusal
    return found.values


class Asked(NamedTuple):
    """Values, NaN where there is none; by how much they may be off; why the first has none."""

    values: FloatArray
    doubts: FloatArray
    refusal: Exception | None


def asked_of(
    quantity: str,
    problems: Sequence[Problem],
    d: int | None,
    effort: Effort = "answer",
    known: Models | None = None,
) -> Asked:
    """The quantity for each problem, in one batch; ``effort`` and ``known`` as in `attempts`."""
    _check(quantity)
    found = (
        [_rate_over_critical(problem, d) for problem in problems]
        if quantity == "rate over critical"
        else attempts(problems, d, effort, quantity in _OF_INITIAL, known)
    )
    values, doubts = np.full((2, len(problems)), np.nan)
    for i, one in enumerate(found):
        if isinstance(one, Risk):
            values[i] = _read(quantity, one)
            error = one.solution.error if one.solution is not None else None
            size = max(abs(float(one.test)), abs(values[i]))
            doubts[i] = _DOUBT * size * float(error or 0.0)
        elif not isinstance(one, Exception):
            values[i], doubts[i] = one, 0.0
    return Asked(values, doubts, next((one for one in found if isinstance(one, Exception)), None))


def _rate_over_critical(problem: Problem, d: int | None) -> float | Exception:
    try:
        return rate_over_critical(problem, d)
    except (NotCovered, NotConverged) as refusal:
        return refusal


def _read(quantity: str, risk: Risk) -> float:
    if quantity == "gain over floor":
        return _floor(risk.problem) - float(risk.test)  # type: ignore[arg-type]
    return float(attrgetter(quantity)(risk))
