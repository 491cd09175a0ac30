"""What a figure has simulated: asked first, computed together, and kept as soon as it is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from giantsteps.campaign import (
    Cells,
    Progress,
    Store,
    mean_and_error,
    read_answers,
    read_table,
    simulated,
)
from giantsteps.problem import Grid, Problem
from giantsteps.questions import QUESTIONS, Question
from giantsteps.types import FloatArray

T = TypeVar("T")
#: ``compute(problem, d, seed, device=…, **options)``: numbers of one network by name. A function
#: of a module, so that workers find it; its options are plain data.
Compute: TypeAlias = Callable[..., Mapping[str, Any]]

#: Of these functions; raised when a number of one of them changes.
VERSION = 2


class Pending(Generic[T]):
    """Something that is simulated when it is first read, with all else that was asked by then."""

    def __init__(self, simulations: Simulations, reader: Callable[[Store], T]) -> None:
        self._simulations, self._reader = simulations, reader

    @cached_property
    def value(self) -> T:
        """The numbers."""
        self._simulations.run()
        with Store(self._simulations.store) as store:
            return self._reader(store)


class Measured:
    """Mean and standard error over seeds, of the shape of what was simulated.

    * ``read``: returns the samples, whose last axis is the seed; called when they are first needed.
    """

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    @classmethod
    def of(cls, samples: Any) -> Measured:
        """From samples whose last axis is the seed."""
        return cls(lambda: samples)

    @classmethod
    def of_networks(cls, networks: Pending[list[dict[str, FloatArray]]], name: str) -> Measured:
        """From one of the numbers that a figure computes of each network."""
        return cls(lambda: np.stack([network[name] for network in networks.value], axis=-1))

    @classmethod
    def stack(cls, parts: Sequence[Measured]) -> Measured:
        """Parts of equal shape along a new first axis."""
        return cls(lambda: np.stack([part.samples for part in parts]))

    def map(self, function: Callable[[FloatArray], Any]) -> Measured:
        """Of what ``function`` makes of the samples; their last axis stays the seed."""
        return Measured(lambda: function(self.samples))

    def __getitem__(self, index: Any) -> Measured:
        return self.map(lambda samples: samples[index])

    @cached_property
    def samples(self) -> FloatArray:
        """Every seed along the last axis."""
        return np.asarray(self._read(), dtype=float)

    @cached_property
    def mean(self) -> FloatArray:
        """Over seeds."""
        return mean_and_error(self.samples, axis=-1)[0]

    @cached_property
    def standard_error(self) -> FloatArray:
        """Of the mean; 0 for a single seed."""
        _, error, count = mean_and_error(self.samples, axis=-1)
        return np.where(count == 1, 0.0, error)


@dataclass(kw_only=True)
class Simulations:
    """The simulations of a figure, kept in a store: what is done is not done again, on whatever
    device (results agree to rounding). The other fields are those of `giantsteps.compare`."""

    store: Path
    device: str | None = None
    workers: int | None = 1
    time_limit: float | None = None
    progress: Progress | bool | None = None
    #: Every problem that was simulated, by its content.
    problems: dict[str, Problem | Grid] = field(default_factory=dict)
    _cells: list[Cells] = field(default_factory=list, repr=False)
    _done: int = field(default=0, repr=False)

    def measure(
        self,
        problem: Problem | Grid | Sequence[Problem | Grid],
        quantity: str,
        *,
        d: int,
        seeds: int,
        **options: Any,
    ) -> Measured:
        """A simulated number such as ``"risk.test"`` or ``"weights.overlap.teacher"``, of the shape
        of the grid, then its own axes.

        Of several problems, along a new first axis. Errors are exact expectations over the test
        points unless the options say how many.
        """
        if not isinstance(problem, Problem | Grid):
            each = [self.measure(p, quantity, d=d, seeds=seeds, **options) for p in problem]
            return Measured.stack(each)
        question, _, name = quantity.partition(".")
        before = name.startswith("initial.")
        exact = {"test_samples": "exact"} if question == "risk" else {}
        cells = self._ask(problem, QUESTIONS[question], d, seeds, exact | options, before)

        def reader(store: Store) -> FloatArray:
            part = cells[0] if before else cells[-1]
            dims, values = read_table(part, store)[name.removeprefix("initial.")]
            size, seed = dims.index("d"), dims.index("seed")
            return np.moveaxis(values, (size, seed), (0, -1))[0]

        found = Pending(self, reader)
        return Measured(lambda: found.value)

    def answers(
        self, question: str, problem: Problem, *, d: int, seeds: int, **options: Any
    ) -> Pending[list[Any]]:
        """Simulated answers with all their values, one per seed."""
        (cells,) = self._ask(problem, QUESTIONS[question], d, seeds, options)
        return Pending(self, lambda store: read_answers(cells, store, bulk=True)[0])

    def computed(
        self, compute: Compute, problem: Problem, *, d: int, seeds: int, **options: Any
    ) -> Pending[list[dict[str, FloatArray]]]:
        """What ``compute(problem, d, seed, device=…, **options)`` returns, a mapping per seed."""
        asked = Question(
            name=f"figures.{compute.__name__}",
            summary="numbers that a figure computes from a network",
            answer="",
            simulation=f"{compute.__module__}:{compute.__name__}",
            # A change of any answer of the library may matter to them.
            simulation_version=VERSION
            + sum(q.theory_version + q.simulation_version for q in QUESTIONS.values()),
        )
        (cells,) = self._ask(problem, asked, d, seeds, options)

        def reader(store: Store) -> list[dict[str, FloatArray]]:
            found = [store.arrays_of(address) for address in cells.addresses.ravel()]
            return [{name: array for name, (_, array) in cell.items()} for cell in found]

        return Pending(self, reader)

    def _ask(
        self,
        problem: Problem | Grid,
        question: Question,
        d: int,
        seeds: int,
        options: Mapping[str, Any],
        initial: bool = False,
    ) -> list[Cells]:
        self.problems.setdefault(problem.content_hash, problem)
        keywords = {"device": self.device, **options}
        cells = Cells.of_networks(problem, question, [d], range(seeds), keywords, initial=initial)
        self._cells += cells
        return cells

    def run(self) -> None:
        """Simulate all that was asked and is not in the store."""
        if self._done == len(self._cells):
            return
        with simulated(self._cells, self.store, self.workers, self.time_limit, self.progress):
            self._done = len(self._cells)
