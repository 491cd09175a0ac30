"""What a figure has simulated: asked first, done together, and kept as soon as it is done.

Questions of the library are cells of a `Sweep`; what a figure computes from a network by itself
is kept beside them, one cell a seed, in the same store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import Spectrum, Spike
from giantsteps.errors import StoreError
from giantsteps.figures._kept import THREADS, Compute, Kept
from giantsteps.laws import EmpiricalLaw
from giantsteps.problem import Grid, Problem
from giantsteps.sweeps import Crew, Store, Sweep
from giantsteps.sweeps._executors import as_crew
from giantsteps.sweeps._export import read

__all__ = ["Later", "Memory"]

Array = NDArray[np.float64]
T = TypeVar("T")


class Later(Generic[T]):
    """Something simulated, done together with all else that was asked when it is first read."""

    def __init__(self, memory: Memory, reader: Callable[[], T]) -> None:
        self._memory, self._reader = memory, reader

    @cached_property
    def value(self) -> T:
        """The numbers."""
        self._memory.simulate()
        return self._reader()


@dataclass(kw_only=True)
class Memory:
    """The simulations of a figure; a context manager that ends its workers.

    Attributes
    ----------
    store : Path
        The store, as a sweep keeps it: what is done is not done again.
    device : str or None
        Where simulations run, as in `simulation.run`. Results agree to rounding, so that a store
        serves every device.
    workers : int
        Processes; 1 works in this process.
    progress : callable, optional
        Called as ``progress(done, total)`` with the networks of everything that was asked.
    """

    store: Path
    device: str | None = None
    workers: int = 1
    progress: Callable[[int, int], None] | None = None
    _waiting: list[Sweep | Kept] = field(default_factory=list, repr=False)
    _addresses: set[str] = field(default_factory=set, repr=False)
    _crew: Crew | None = field(default=None, repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._crew is not None:
            self._crew.close(now=error is not None)

    # Asking -----------------------------------------------------------------------------------

    def samples(
        self, problem: Problem | Grid, quantity: str, *, d: int, seeds: int, **options: Any
    ) -> Later[Array]:
        """A simulated leaf, such as ``"risk.test"``, of the shape of the grid, its own axes if it
        has any, and the seeds; ``options`` of the question, such as ``top``."""
        question, _, rest = quantity.partition(".")
        before = rest.startswith("initial")
        sweep = self._sweep(problem, question, d, seeds, options, initial=before)

        def reader() -> Array:
            with Store(self.store) as store:
                dims, values = read(sweep, store).tables["simulation"][quantity]
            size, seed = dims.index("d"), dims.index("seed")
            return np.moveaxis(values, (size, seed), (0, -1))[0]

        return Later(self, reader)

    def spectra(
        self, question: str, problem: Problem, *, d: int, seeds: int, **options: Any
    ) -> Later[list[Spectrum]]:
        """Simulated spectra with all their values, one a seed."""
        sweep = self._sweep(problem, question, d, seeds, options)

        def reader() -> list[Spectrum]:
            cells = [sweep.values(question, problem, d, seed) for seed in range(seeds)]
            return [_spectrum(question, problem, d, cell) for cell in cells]

        return Later(self, reader)

    def kept(
        self, compute: Compute, problem: Problem, *, d: int, seeds: int, **options: Any
    ) -> Later[list[dict[str, Array]]]:
        """What ``compute(problem, d, seed, device=…, **options)`` returns, one mapping a seed."""
        kept = Kept(compute, problem, d, seeds, options)
        self._ask(kept)

        def reader() -> list[dict[str, Array]]:
            with Store(self.store) as store:
                found = [store.arrays_of(cell.address) for cell in kept.cells]
            return [{name: array for name, (_, array) in cell.items()} for cell in found]

        return Later(self, reader)

    def _sweep(
        self,
        problem: Problem | Grid,
        question: str,
        d: int,
        seeds: int,
        options: Mapping[str, Any],
        initial: bool = False,
    ) -> Sweep:
        where = {} if self.device is None else {"device": self.device}
        exact = {"test_samples": "exact"} if question == "risk" else {}
        sweep = Sweep(
            grid=problem,
            d=d,
            seeds=seeds,
            questions={question: options},
            sources=("simulation",),
            store=self.store,
            options=exact | where,
            initial=initial,
        )
        self._ask(sweep)
        return sweep

    def _ask(self, asked: Sweep | Kept) -> None:
        self._waiting.append(asked)
        self._addresses |= asked.addresses

    # Work -------------------------------------------------------------------------------------

    def simulate(self) -> None:
        """Simulate all that was asked and is not in the store."""
        if not self._waiting:
            return
        with Store(self.store, write=True) as store:
            status = store.status()
        done = {name for name in self._addresses if status.get(name) == "done"}
        self._report(len(done))
        while self._waiting:
            asked = self._waiting[0]
            if not asked.addresses <= done:
                self._run(asked, len(done - asked.addresses))
                done |= asked.addresses
            del self._waiting[0]

    def _run(self, asked: Sweep | Kept, outside: int) -> None:
        """Work off one question; of the others ``outside`` networks are done."""

        def report(done: int, *_: int) -> None:
            self._report(outside + done)

        if isinstance(asked, Kept):
            asked.run(self.store, self.crew, self.device, report)
            return
        status = asked.retry(executor=self.crew, threads=THREADS, progress=report)
        if status.failed:
            raise StoreError(f"{status.failed} simulations failed: {list(status.errors)[:1]}")

    def _report(self, done: int) -> None:
        if self.progress is not None:
            self.progress(done, len(self._addresses))

    @property
    def crew(self) -> Crew:
        """Who works: the same for all questions."""
        if self._crew is None:
            executor = "serial" if self.workers == 1 else "processes"
            self._crew, _ = as_crew(executor, self.workers)
        return self._crew


def _spectrum(question: str, problem: Problem, d: int, cell: Mapping[str, Any]) -> Spectrum:
    """A simulated spectrum from its stored numbers."""
    start = "overlap."
    overlaps = {k.removeprefix(start): v for k, v in cell.items() if k.startswith(start)}
    degrees = cell.get("degree")
    return Spectrum(
        problem=problem,
        d=d,
        source="simulation",
        exact=True,
        matrix=question,  # type: ignore[arg-type]
        bulk=EmpiricalLaw(cell["bulk"]),
        spikes=tuple(
            Spike(
                value=value,
                overlaps={name: found[number] for name, found in overlaps.items()},
                degree=None if degrees is None else int(degrees[number]),
            )
            for number, value in enumerate(cell["value"])
        ),
    )
