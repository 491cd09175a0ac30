"""Jobs: cells that a worker computes in one go, and that are saved in one transaction."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from giantsteps.campaign._cells import Cell, Cells, Place, is_below
from giantsteps.campaign._work import Task

#: Most cells of theory that are solved in one batch, and most readouts that share a run.
BATCH, READOUTS = 64, 1024
#: Most networks of one problem that are simulated in one go, and most operations that they may
#: take together: about a second of work, on a processor and on a GPU.
NETWORKS, OPERATIONS = {"cpu": 16, "gpu": 256}, {"cpu": 1e10, "gpu": 1e13}


@dataclass(frozen=True, eq=False)
class Job:
    """A block of a grid at one d, for some seeds; ``initial``: with the cells before the steps."""

    cells: Cells
    place: Place
    d: int | None
    seeds: tuple[int | None, ...]
    initial: bool = False

    @property
    def parts(self) -> list[Cells]:
        """The cells, and those before the steps if they are computed with them."""
        before = self.cells.initial
        return [self.cells, before] if self.initial and before is not None else [self.cells]

    @property
    def addresses(self) -> tuple[str, ...]:
        """Of each part, for each seed, the block row-major."""
        return tuple(address for part in self.parts for address in self._of(part))

    def _of(self, part: Cells) -> list[str]:
        at = part.sizes.index(self.d)
        here = part.addresses[(*np.ix_(*self.place), at)] if self.place else part.addresses[at]
        columns = [part.seeds.index(seed) for seed in self.seeds]
        return [address for column in columns for address in here[..., column].ravel()]

    def task(self, threads: int) -> Task:
        cells = self.cells
        return Task(
            question=cells.question,
            source=cells.source,
            target=cells.target(self.place),
            d=self.d,
            seeds=self.seeds,
            options=cells.options,
            initial=self.initial,
            threads=threads,
        )

    def rows(self) -> list[Cell]:
        """The cells as they are stored, in the order of the addresses."""
        return [
            row
            for part in self.parts
            for row in part.rows(self.place, self.d, self.seeds, self._of(part))
        ]

    def halves(self) -> list[Job]:
        """Two smaller jobs for the same cells; none if it has one cell."""
        if self.initial and self.cells.initial is not None:
            return [
                replace(self, initial=False),
                replace(self, cells=self.cells.initial, initial=False),
            ]
        if len(self.seeds) > 1:
            middle = len(self.seeds) // 2
            seeds = (self.seeds[:middle], self.seeds[middle:])
            return [replace(self, seeds=part) for part in seeds]
        axis = next((axis for axis, chosen in enumerate(self.place) if len(chosen) > 1), None)
        if axis is None:
            return []
        before, chosen, after = self.place[:axis], self.place[axis], self.place[axis + 1 :]
        middle = len(chosen) // 2
        parts = (chosen[:middle], chosen[middle:])
        return [replace(self, place=(*before, part, *after)) for part in parts]


def plan(cells: Sequence[Cells], known: Container[str]) -> list[Job]:
    """Jobs for all cells that are not ``known``, each cell once, theory first.

    Theory is solved in batches; a cell's answer does not depend on its batch. The readouts of
    one network share its run and networks that differ in the seed alone are simulated together,
    if the cells say so. Which ones are together depends neither on the number of workers nor on
    what an earlier run has finished.
    """
    jobs: list[Job] = []
    seen: set[str] = set()
    for part in sorted(cells, key=lambda part: (part.source == "simulation", part.untrained)):
        for d in part.sizes:
            for job in _jobs_at(part, d, known, seen):
                before = replace(job, initial=True)
                if part.initial is not None and part.share:
                    earlier = before._of(part.initial)
                    if not any(address in known or address in seen for address in earlier):
                        seen.update(earlier)
                        job = before
                jobs.append(job)
    return jobs


def _jobs_at(part: Cells, d: int | None, known: Container[str], seen: set[str]) -> Iterator[Job]:
    simulated = part.source == "simulation"
    here = part.addresses[..., part.sizes.index(d), :]
    together, limit = _together(part), READOUTS if simulated else BATCH
    size = _networks(part, d) if simulated and part.share else 1
    chunks: dict[tuple[Place, int], list[int | None]] = {}
    for number, seed in enumerate(part.seeds):
        missing = _missing(here[..., number], known, seen)
        for place in _places(missing, together, limit):
            chunks.setdefault((place, number // size), []).append(seed)
    for (place, _), seeds in chunks.items():
        yield Job(part, place, d, tuple(seeds))


def _networks(part: Cells, d: int | None) -> int:
    """How many networks are simulated in one go: as many as take about a second."""
    kind = "cpu" if part.options.get("device") in (None, "cpu", "torch") else "gpu"
    return int(max(1, min(NETWORKS[kind], OPERATIONS[kind] // _operations(part, d))))


def _operations(part: Cells, d: int | None) -> float:
    """Of one network, roughly: steps, features and readout of the grid's own problem."""
    problem, d = part.grid.problem, d or 0
    fitted = 0.0 if problem.readout is None else problem.readout.samples * d
    neurons, steps = problem.width * d, sum(step.samples for step in problem.steps) * d
    products = (4 * steps + 2 * fitted + d) * d * neurons
    return max(1.0, products + fitted * neurons * min(fitted, neurons))


def operations(cells: Sequence[Cells]) -> float:
    """Of all networks together, roughly; no network is drawn to find out."""
    return sum(
        _operations(part, d) * part.addresses[..., 0, :].size
        for part in cells
        if part.source == "simulation"
        for d in part.sizes
    )


def _missing(
    addresses: NDArray[np.object_], known: Container[str], seen: set[str]
) -> NDArray[np.bool_]:
    """Where an address occurs for the first time; all of them are seen afterwards."""
    mask = np.zeros(addresses.shape, dtype=bool)
    for index, address in np.ndenumerate(addresses):
        if address not in known and address not in seen:
            seen.add(address)
            mask[index] = True
    return mask


def _together(part: Cells) -> list[int]:
    """The axes of the grid along which cells are asked at once."""
    paths = part.grid.dims
    if not part.question.together:
        return []
    if part.source != "simulation":
        return list(range(len(paths)))
    readouts = [axis for axis, path in enumerate(paths) if is_below(path, ["readout"])]
    return readouts if part.share else []


def _places(mask: NDArray[np.bool_], together: Sequence[int], limit: int) -> Iterator[Place]:
    """Blocks that cover the true entries: single indices but along the axes ``together``."""
    apart = [axis for axis in range(mask.ndim) if axis not in together]
    moved = mask.transpose(*apart, *together)
    for index in np.ndindex(moved.shape[: len(apart)]):
        for block in blocks(moved[index], limit):
            chosen = dict(zip([*apart, *together], [*((number,) for number in index), *block]))
            yield tuple(chosen[axis] for axis in range(mask.ndim))


def blocks(mask: NDArray[np.bool_], limit: int) -> Iterator[Place]:
    """Products of indices that cover the true entries, each once, of at most ``limit`` entries.

    What is not a product is cut in half along its longest axis, as often as needed.
    """
    if not mask.any():
        return
    axes = range(mask.ndim)
    place = tuple(
        np.flatnonzero(mask.any(axis=tuple(other for other in axes if other != axis)))
        for axis in axes
    )
    box = mask[np.ix_(*place)] if place else mask
    if box.all() and box.size <= limit:
        yield tuple(tuple(map(int, numbers)) for numbers in place)
        return
    axis = int(np.argmax(box.shape))
    for half in np.array_split(np.arange(box.shape[axis]), 2):
        for inner in blocks(box.take(half, axis=axis), limit):
            steps = [half[list(n)] if a == axis else n for a, n in enumerate(inner)]
            yield tuple(
                tuple(int(number) for number in numbers[list(step)])
                for numbers, step in zip(place, steps)
            )
