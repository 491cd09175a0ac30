"""Readouts of many equivalent models at one resolution, in stacks that leave no trace (§5c)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from giantsteps.errors import NotConverged, NotCovered
from giantsteps.problem import Ridge
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
#: Types up to which nodes without weight cost next to nothing.
_FEW = 2

#: A model and a readout of it.
Cell = tuple[SpikedFeatures, Ridge]


class Kept(NamedTuple):
    """A readout at one resolution, and its change from the one before."""

    readout: Readout | None
    before: Readout | None
    level: int
    rank: int
    error: float
    residual: float
    iterations: int


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
        return solve(cells, parts_of(cells, [level] * len(cells))).every()
    parts = [
        Part([i], model.at_level(level).system([readout], level, points[i]))
        for i, (model, readout) in enumerate(cells)
    ]
    return solve(cells, parts).every()


class Part(NamedTuple):
    """Cells of one model at one resolution, by their numbers, and their system."""

    members: list[int]
    system: System

    @property
    def rank(self) -> int:
        """How many channels the model has."""
        return int(self.system.decomposed[2][0])

    def with_rank(self, rank: int) -> Part:
        """The same cells with so many channels, if there are."""
        return self if rank == self.rank else Part(self.members, self.system.with_rank(rank))

    def beside(self, finer: Part) -> Part:
        """The same cells in the shape of a finer resolution, unless that costs much."""
        shapes = self.system.probabilities.shape[1:], finer.system.probabilities.shape[1:]
        few = shapes[0] == shapes[1] and shapes[0][0] <= _FEW and self.rank == finer.rank
        return Part(self.members, self.system.padded(finer.system)) if few else self

    def split(self, count: int) -> Iterator[Part]:
        """Parts of at most so many cells."""
        if len(self.members) <= count:
            yield self
            return
        for start in range(0, len(self.members), count):
            some = np.arange(start, min(start + count, len(self.members)))
            yield Part(self.members[start : start + count], self.system.take(some))


def parts_of(cells: Sequence[Cell], levels: Sequence[int], first: int = 0) -> list[Part]:
    """The cells by models and resolutions, numbered from ``first``."""
    groups: dict[tuple[int, int], list[int]] = {}
    for i, (model, _) in enumerate(cells):
        groups.setdefault((id(model), levels[i]), []).append(i)
    return [
        Part(
            [first + i for i in members],
            cells[members[0]][0].at_level(level).system([cells[i][1] for i in members], level),
        )
        for (_, level), members in groups.items()
    ]


def solve(cells: Sequence[Cell], parts: Sequence[Part]) -> Solved:
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


def _stacks(parts: Sequence[Part]) -> Iterator[tuple[list[int], System]]:
    """Cells solved together: of one shape and rank, and as many as the memory holds."""
    groups: dict[object, list[Part]] = {}
    for part in parts:
        groups.setdefault((part.system.shape, part.rank), []).append(part)
    for group in groups.values():
        count = max(1, _MEMORY // group[0].system.size)
        waiting: list[Part] = []
        for part in (piece for whole in group for piece in whole.split(count)):
            if waiting and sum(len(p.members) for p in waiting) + len(part.members) > count:
                yield _joined(waiting)
                waiting = []
            waiting.append(part)
        yield _joined(waiting)


def _joined(parts: Sequence[Part]) -> tuple[list[int], System]:
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
