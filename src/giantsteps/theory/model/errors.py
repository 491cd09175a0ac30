"""Errors of ridge regression on equivalent models, each with an estimate of its own error (§5c)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from giantsteps.answers import Risk
from giantsteps.errors import NotConverged
from giantsteps.gaussian import moments
from giantsteps.theory.model.parts_of_errors import parts_by_degree, wrong_sign_of_model
from giantsteps.theory.model.ridge_batch import DEGREES, RidgeBatch, risks_of
from giantsteps.theory.model.rules import LEVELS
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.model.stacks import Cell, Kept, parts_of, solve
from giantsteps.theory.solver.readout import Readout
from giantsteps.types import Array, FloatArray

#: Changes to the next resolution below which an answer is good, and above which it is none: of
#: models of several steps on one batch or with explicit directions, of those of few types, whose
#: finest resolutions cost little, of one step, and of several fresh steps with many types.
GOOD, BAD = (1e-3, 1e-6, 1e-7, 1e-5), (3e-3, 3e-3, 1e-6, 3e-3)
#: A change up to which it is the stated error of the first kind where a finer resolution takes too
#: long.
_STATED = 1e-2
#: Share of a change that the next one is at least after several steps: two resolutions may agree by
#: accident.
_SLOW = 0.03
#: The first resolution whose change says something of few types.
_TRUSTED = 2
#: What rounding may do with one type of neurons, and with several, whose functions nearly depend on
#: each other.
_ROUNDING = (1e-13, 3e-10)
#: With an even part of σ the types of a continuous second layer converge slowly in the end, by less
#: from one resolution to the next than is left: after several steps no error is stated below this.
_EVEN = 3e-6
#: A change beyond which the resolution before was spoilt by rounding, and the one before it counts.
_ROUNDED = 100.0
#: What an answer is for.
Effort = Literal["answer", "search", "scan"]


@dataclass(frozen=True, eq=False)
class Refined:
    """Readouts at the resolution where they no longer change, and what the last change was."""

    readouts: list[Readout | None]  # None of those that failed
    levels: list[int]
    error: FloatArray  # (B,): estimate of the relative error: the change from the resolution before
    residual: FloatArray  # (B,)
    iterations: Array


def refine(
    cells: Sequence[Cell],
    good: tuple[float, ...] = GOOD,
    failed: dict[int, Exception] | None = None,
    effort: Effort = "answer",
) -> Refined:
    """Solve every cell at two resolutions, and at finer ones until its errors no longer change.

    Parameters
    ----------
    cells : sequence of Cell
    good : tuple of float
        Changes that are small enough, by `kind_of` a model.
    failed : dict, optional
        Takes the failures by the numbers of the cells, instead of the first one being raised.
    effort : str
        A ``"scan"`` stops after two resolutions, coarse ones; it and a ``"search"`` go on from what
        they know of a model.

    Raises
    ------
    NotConverged
        Where the errors still change by too much at the finest resolution.
    """
    failures = {} if failed is None else failed
    known: dict[int, Kept] = {}
    if effort != "answer":
        known = {i: m.answered[r] for i, (m, r) in enumerate(cells) if r in m.answered}

    fresh = [i for i in range(len(cells)) if i not in known]
    _begin(cells, fresh, effort, known, failures)
    last: set[int] = set()  # those without a finer resolution
    while effort != "scan" and (failed is not None or not failures):
        waiting = {
            i: one
            for i, one in known.items()
            if i not in failures and i not in last and _waits(cells[i][0], one, good)
        }
        if not waiting:
            break
        _advance(cells, waiting, known, failures, last)
    found = [known[i] for i in range(len(cells))]
    rounding = np.array([_least(model) for model, _ in cells])
    residual = np.array([one.residual for one in found])
    error = np.maximum([one.error for one in found], np.maximum(rounding, 10.0 * residual))
    for i, (model, readout) in enumerate(cells):
        if effort != "answer" and i not in failures:
            model.answered[readout] = found[i]
        if (
            effort != "scan"
            and i not in failures
            and not error[i] <= (_STATED if i in last else BAD[kind_of(model)])
        ):
            failures[i] = NotConverged(
                f"the quadratures of {model.describe()} with {readout}",
                float(error[i]),
                LEVELS,
                "a smaller rate, a larger penalty, or smoother functions",
            )
    for failure in failures.values() if failed is None else ():
        raise failure
    return Refined(
        [None if i in failures else one.readout for i, one in enumerate(found)],
        [one.level for one in found],
        error,
        residual,
        np.array([one.iterations for one in found]),
    )


def _begin(
    cells: Sequence[Cell],
    fresh: list[int],
    effort: Effort,
    known: dict[int, Kept],
    failures: dict[int, Exception],
) -> None:
    """Some of the cells at their first two resolutions, both at once.

    Few types are given the same shape, and cost little more than one. Each resolution has more
    channels than the one before: else the change hides those left out.
    """
    some, count = [cells[i] for i in fresh], len(fresh)
    first = [max(model.levels[0] - (effort == "scan"), 0) for model, _ in some]
    lower, upper = parts_of(some, first), parts_of(some, [level + 1 for level in first], count)
    upper = [high.with_rank(max(high.rank, low.rank + 1)) for low, high in zip(lower, upper)]
    lower = [low.beside(high) for low, high in zip(lower, upper)]
    both = solve([*some, *some], [*lower, *upper])
    for i, failure in sorted(both.failed.items()):
        failures.setdefault(fresh[i % count], failure)
    for part in upper:
        for at in part.members:
            i = fresh[at - count]
            before = both.readouts[at - count]
            error = _change(cells[i], before, both.readouts[at])
            known[i] = both.kept(at, first[at - count] + 1, part.rank, error, before)


def _advance(
    cells: Sequence[Cell],
    waiting: dict[int, Kept],
    known: dict[int, Kept],
    failures: dict[int, Exception],
    last: set[int],
) -> None:
    """Some of the cells at their next resolutions; ``last`` takes those whose last it was."""
    chosen, some = list(waiting), [cells[i] for i in waiting]
    levels = [one.level + 1 for one in waiting.values()]
    parts = [
        part.with_rank(max(part.rank, waiting[chosen[part.members[0]]].rank + 1))
        for part in parts_of(some, levels)
    ]
    solved = solve(some, parts)
    for at, failure in solved.failed.items():
        i = chosen[at]
        if kind_of(cells[i][0]) == 0 and waiting[i].error <= _STATED:
            last.add(i)
        else:
            failures[i] = failure
    for part in parts:
        for at in part.members:
            i, new = chosen[at], solved.readouts[at]
            if i in last:
                continue
            before = waiting[i].readout
            error = _change(cells[i], before, new)
            if error > _ROUNDED:
                before = waiting[i].before
                error = _change(cells[i], before, new)
            elif waiting[i].error <= _ROUNDED and kind_of(cells[i][0]) != 2:
                error = max(error, _SLOW * waiting[i].error)
            known[i] = solved.kept(at, levels[at], part.rank, error, before)


def _least(model: SpikedFeatures) -> float:
    """The least error of a model that is stated."""
    if model.fine and not moments(model.activation).is_odd:
        return _EVEN
    return _ROUNDING[len(model.probabilities) > 1]


def kind_of(model: SpikedFeatures) -> int:
    """Which of the four kinds of `GOOD` and `BAD` a model is."""
    first, last = model.levels
    if model.fine:
        return 3
    return 2 if first > 0 else int(last == LEVELS - 2)


def _waits(model: SpikedFeatures, one: Kept, good: tuple[float, ...]) -> bool:
    """Whether a finer resolution is wanted."""
    (first, last), kind = model.levels, kind_of(model)
    least = _TRUSTED if kind == 1 else first + 1
    if one.level < least or (one.error > good[kind] and one.level < last):
        return True
    # One more where there would be no answer at all, two after the first: it is a coarse one.
    more = min(last + (2 if last == 1 else 1), LEVELS - 1 - (kind != 2))
    return one.error > BAD[kind] and last <= one.level < more


def _change(cell: Cell, old: Readout | None, new: Readout | None) -> float:
    """Largest relative change of test and train error; infinite without both."""
    if old is None or new is None:
        return math.inf
    noise = cell[0].noise_variance
    test = abs(float(new.error[0] - old.error[0])) / max(abs(float(new.error[0]) - noise), 1e-300)
    scale = max(float(new.train[0]), 1e-12 * float(new.error[0]), 1e-300)
    return max(test, abs(float(new.train[0] - old.train[0])) / scale)


def ridge_batch(
    cells: Sequence[Cell],
    failed: dict[int, Exception] | None = None,
    effort: Effort = "answer",
    parts: bool = True,
) -> RidgeBatch:
    """Errors of every cell, in this order; none sees its neighbours, to the last bit.

    ``failed`` and ``effort`` as in `refine`; cells that failed have NaN. Without ``parts`` the
    parts by degree and the classification error are NaN.
    """
    refined = refine(cells, failed=failed, effort=effort)
    by_model: dict[tuple[int, int], Callable[[Readout], Array]] = {}
    rows = []
    for (model, _), level, found in zip(cells, refined.levels, refined.readouts, strict=True):
        degrees, wrong, error, train = np.full(DEGREES, np.nan), math.nan, math.nan, math.nan
        if found is not None:
            error, train = float(found.error[0]) - model.noise_variance, float(found.train[0])
        if found is not None and parts:
            if (id(model), level) not in by_model:
                by_model[id(model), level] = parts_by_degree(model.at_level(level), level)
            degrees = by_model[id(model), level](found)
            wrong = wrong_sign_of_model(model.at_level(level), found, level)
        rows.append((error, train, degrees, wrong))
    columns = list(zip(*rows))
    return RidgeBatch(
        test=np.array(columns[0]),
        train=np.array(columns[1]),
        by_degree=np.stack(columns[2]),
        residual=refined.residual,
        iterations=refined.iterations,
        error=refined.error,
        classification_error=np.array(columns[3]),
    )


def risk_of_models(
    cells: Sequence[Cell],
    initial: Sequence[Risk] | None = None,
    claims: Sequence[Any] | None = None,
    **options: Any,
) -> list[Risk]:
    """The risk of each model and readout, beside that of the untrained features.

    Claims are those of the models unless given: models may stand for several problems. Options are
    those of `ridge_batch`.
    """
    stated = [model.stated for model, _ in cells] if claims is None else claims
    return risks_of(ridge_batch(cells, **options), stated, initial)
