"""Errors of ridge regression on equivalent models, each with an estimate of its own error (§5c)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from giantsteps.answers import Risk
from giantsteps.errors import NotConverged, NotCovered
from giantsteps.problem import Ridge
from giantsteps.theory.model.parts_of_errors import parts_by_degree, wrong_sign_of_model
from giantsteps.theory.model.ridge_batch import DEGREES, RidgeBatch, risks_of
from giantsteps.theory.model.rules import LEVELS
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.solver.newton import solve_state
from giantsteps.theory.solver.readout import Readout, read_out
from giantsteps.theory.solver.state import Equations
from giantsteps.theory.solver.system import System
from giantsteps.types import Array, FloatArray

#: Share of E_k[ω] from |k| > 6 (1e-9 without features) beyond which there is no answer.
_FAR_SHARE = 1e-4
#: Numbers that a stack of cells may hold at once.
_MEMORY = 6_000_000
#: Changes to the next resolution below which an answer is good, and above which it is none: of
#: models of several steps, whose equations are approximate, and of one.
GOOD, BAD = (1e-3, 1e-7), (3e-3, 1e-6)
#: What rounding may do with one type of neurons, and with several, whose functions nearly depend on
#: each other.
_ROUNDING = (1e-13, 3e-10)

#: A change beyond which the resolution before was spoilt by rounding, and the one before it counts.
_ROUNDED = 100.0
#: Types up to which nodes without weight cost next to nothing.
_FEW = 2

#: A model and a readout of it.
Cell = tuple[SpikedFeatures, Ridge]
#: What an answer is for.
Effort = Literal["answer", "search", "scan"]


@dataclass(frozen=True, eq=False)
class Solved:
    """The readouts of some cells at one resolution, and why others have none."""

    readouts: list[Readout | None]
    residual: FloatArray
    iterations: Array
    failed: dict[int, Exception]

    def kept(self, at: int, level: int, rank: int, error: float, before: Readout | None) -> Kept:
        """What is known of a cell."""
        return Kept(
            self.readouts[at],
            before,
            level,
            rank,
            error,
            float(self.residual[at]),
            int(self.iterations[at]),
        )

    def every(self) -> list[Readout]:
        """All readouts; the first failure is raised."""
        for error in self.failed.values():
            raise error
        return [found for found in self.readouts if found is not None]


def solve_cells(
    cells: Sequence[Cell], level: int, points: Sequence[FloatArray | None] | None = None
) -> list[Readout]:
    """Solve every cell at one resolution; stacks are by shape and rank, and leave no trace."""
    if points is None:
        return _solve(cells, _parts(cells, [level] * len(cells))).every()
    parts = [
        _Part([i], model.at_level(level).system([readout], level, points[i]))
        for i, (model, readout) in enumerate(cells)
    ]
    return _solve(cells, parts).every()


class _Part(NamedTuple):
    """Cells of one model at one resolution, by their numbers, and their system."""

    members: list[int]
    system: System

    @property
    def rank(self) -> int:
        """How many channels the model has."""
        return int(self.system.decomposed[2][0])

    def with_rank(self, rank: int) -> _Part:
        """The same cells with so many channels, if there are."""
        return self if rank == self.rank else _Part(self.members, self.system.with_rank(rank))

    def beside(self, finer: _Part) -> _Part:
        """The same cells in the shape of a finer resolution, unless that costs much."""
        shapes = self.system.probabilities.shape[1:], finer.system.probabilities.shape[1:]
        few = shapes[0] == shapes[1] and shapes[0][0] <= _FEW and self.rank == finer.rank
        return _Part(self.members, self.system.padded(finer.system)) if few else self

    def split(self, count: int) -> Iterator[_Part]:
        """Parts of at most so many cells."""
        if len(self.members) <= count:
            yield self
            return
        for start in range(0, len(self.members), count):
            some = np.arange(start, min(start + count, len(self.members)))
            yield _Part(self.members[start : start + count], self.system.take(some))


def _parts(cells: Sequence[Cell], levels: Sequence[int], first: int = 0) -> list[_Part]:
    """The cells by models and resolutions, numbered from ``first``."""
    groups: dict[tuple[int, int], list[int]] = {}
    for i, (model, _) in enumerate(cells):
        groups.setdefault((id(model), levels[i]), []).append(i)
    return [
        _Part(
            [first + i for i in members],
            cells[members[0]][0].at_level(level).system([cells[i][1] for i in members], level),
        )
        for (_, level), members in groups.items()
    ]


def _solve(cells: Sequence[Cell], parts: Sequence[_Part]) -> Solved:
    """The readouts of all cells that have one."""
    readouts: list[Readout | None] = [None] * len(cells)
    solved = Solved(readouts, np.zeros(len(cells)), np.zeros(len(cells), dtype=int), {})
    for members, stack in _stacks(parts):
        try:
            _solve_stack(cells, members, stack, solved)
        except (FloatingPointError, np.linalg.LinAlgError):  # of one of them, which leaves no trace
            for position, i in enumerate(members):
                try:
                    _solve_stack(cells, [i], stack.take(np.array([position])), solved)
                except (FloatingPointError, np.linalg.LinAlgError) as error:
                    solved.failed[i] = error
    return solved


def _solve_stack(
    cells: Sequence[Cell], members: Sequence[int], stack: System, into: Solved
) -> None:
    solved = solve_state(Equations(stack), stack.penalty)
    into.residual[members], into.iterations[members] = solved.residual, solved.iterations
    for i in np.array(members)[~solved.converged].tolist():
        model, readout = cells[i]
        rounds = int(into.iterations[i])
        into.failed[i] = _not_converged(model, readout, into.residual[i], rounds)
    some = np.flatnonzero(solved.converged)
    if not some.size:
        return
    found = read_out(solved.state if len(some) == len(members) else solved.state.take(some))
    for position, i in enumerate(np.array(members)[some].tolist()):
        if found.far[position] > _FAR_SHARE:
            into.failed[i] = NotCovered(
                f"{cells[i][1]} on {cells[i][0].describe()}",
                "σ saturates, so samples far along the spike have no feature variance and λ → 0 "
                "has no limit",
                "a larger penalty",
            )
        else:
            into.readouts[i] = found.take(slice(position, position + 1))


def _stacks(parts: Sequence[_Part]) -> Iterator[tuple[list[int], System]]:
    """Cells solved together: of one shape and rank, and as many as the memory holds."""
    groups: dict[object, list[_Part]] = {}
    for part in parts:
        groups.setdefault((part.system.shape, part.rank), []).append(part)
    for group in groups.values():
        count = max(1, _MEMORY // group[0].system.size)
        waiting: list[_Part] = []
        for part in (piece for whole in group for piece in whole.split(count)):
            if waiting and sum(len(p.members) for p in waiting) + len(part.members) > count:
                yield _joined(waiting)
                waiting = []
            waiting.append(part)
        yield _joined(waiting)


def _joined(parts: Sequence[_Part]) -> tuple[list[int], System]:
    members = [i for part in parts for i in part.members]
    systems = [part.system for part in parts]
    return members, systems[0] if len(systems) == 1 else System.stack(systems)


def _not_converged(
    model: SpikedFeatures, readout: Ridge, residual: float, rounds: int
) -> Exception:
    return NotConverged(
        f"the equivalent model of {model.describe()} with {readout}",
        float(residual),
        int(rounds),
        "a larger penalty, a smaller rate, or samples further from the width (without penalty the "
        "error diverges at n = N)",
    )


@dataclass(frozen=True, eq=False)
class Refined:
    """Readouts at the resolution where they no longer change, and what the last change was."""

    readouts: list[Readout | None]  # None of those that failed
    levels: list[int]
    error: FloatArray  # (B,): estimate of the relative error: the change from the resolution before
    residual: FloatArray  # (B,)
    iterations: Array


class Kept(NamedTuple):
    """A readout at one resolution, and its change from the one before."""

    readout: Readout | None
    before: Readout | None
    level: int
    rank: int
    error: float
    residual: float
    iterations: int


def refine(
    cells: Sequence[Cell],
    good: tuple[float, float] = GOOD,
    failed: dict[int, Exception] | None = None,
    effort: Effort = "answer",
) -> Refined:
    """Solve every cell at two resolutions, and at finer ones until its errors no longer change.

    Parameters
    ----------
    cells : sequence of Cell
    good : tuple of float
        Changes that are small enough, of models of several steps and of one.
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
    while effort != "scan" and (failed is not None or not failures):
        waiting = {
            i: one
            for i, one in known.items()
            if i not in failures and _waits(cells[i][0], one, good)
        }
        if not waiting:
            break
        _advance(cells, waiting, known, failures)
    found = [known[i] for i in range(len(cells))]
    rounding = np.array([_ROUNDING[len(model.probabilities) > 1] for model, _ in cells])
    residual = np.array([one.residual for one in found])
    error = np.maximum([one.error for one in found], np.maximum(rounding, 10.0 * residual))
    for i, (model, readout) in enumerate(cells):
        if effort != "answer" and i not in failures:
            model.answered[readout] = found[i]
        if effort != "scan" and i not in failures and not error[i] <= BAD[model.levels[0] > 0]:
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
    lower, upper = _parts(some, first), _parts(some, [level + 1 for level in first], count)
    upper = [high.with_rank(max(high.rank, low.rank + 1)) for low, high in zip(lower, upper)]
    lower = [low.beside(high) for low, high in zip(lower, upper)]
    both = _solve([*some, *some], [*lower, *upper])
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
) -> None:
    """Some of the cells at their next resolutions."""
    chosen, some = list(waiting), [cells[i] for i in waiting]
    levels = [one.level + 1 for one in waiting.values()]
    parts = [
        part.with_rank(max(part.rank, waiting[chosen[part.members[0]]].rank + 1))
        for part in _parts(some, levels)
    ]
    solved = _solve(some, parts)
    failures.update({chosen[at]: failure for at, failure in solved.failed.items()})
    for part in parts:
        for at in part.members:
            i, new = chosen[at], solved.readouts[at]
            before = waiting[i].readout
            error = _change(cells[i], before, new)
            if error > _ROUNDED:
                before = waiting[i].before
                error = _change(cells[i], before, new)
            known[i] = solved.kept(at, levels[at], part.rank, error, before)


def _waits(model: SpikedFeatures, one: Kept, good: tuple[float, float]) -> bool:
    """Whether a finer resolution is wanted."""
    (first, last), single = model.levels, model.levels[0] > 0
    if one.level <= first or (one.error > good[single] and one.level < last):
        return True
    # One more where there would be no answer at all.
    return one.error > BAD[single] and one.level == last < LEVELS - 1


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
