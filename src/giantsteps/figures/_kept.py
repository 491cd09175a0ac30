"""What a figure computes by itself, kept in the store of the sweeps, one cell a seed."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from giantsteps.problem import Problem
from giantsteps.problem._serialize import content_hash
from giantsteps.questions import QUESTIONS
from giantsteps.sweeps import Crew, Store
from giantsteps.sweeps._provenance import provenance
from giantsteps.sweeps._values import Cell, Outcome
from giantsteps.sweeps._work import capped

__all__ = ["THREADS", "Compute", "Kept"]

#: ``compute(problem, d, seed, device=…, **options)``: numbers of one network by name. A function of
#: a module, so that workers find it; its options are plain data.
Compute: TypeAlias = Callable[..., Mapping[str, Any]]

#: Of these functions; raised when a number of one of them changes.
VERSION = 1
#: Threads of the linear algebra in each worker.
THREADS = 1


@dataclass(frozen=True, eq=False)
class Kept:
    """What ``compute`` makes of networks of one problem, one a seed.

    Attributes
    ----------
    compute : callable
    problem : Problem
    d, seeds : int
    options : mapping
        Of ``compute``; the device is none of them, as results agree to rounding.
    """

    compute: Compute
    problem: Problem
    d: int
    seeds: int
    options: Mapping[str, Any]

    @cached_property
    def cells(self) -> list[Cell]:
        """As they are stored. Any version of the library's answers may matter to them."""
        question = f"figures.{self.compute.__name__}"
        options = json.dumps(self.options, sort_keys=True)
        told = {
            "question": question,
            "options": options,
            "version": VERSION,
            "versions": [(q.theory_version, q.simulation_version) for q in QUESTIONS.values()],
            "problem": self.problem.content_hash,
            "d": self.d,
        }
        return [
            Cell(
                address=content_hash("kept", told | {"seed": seed}),
                source="simulation",
                question=question,
                version=VERSION,
                d=self.d,
                seed=seed,
                problem=self.problem.content_hash,
                content=json.dumps(self.problem.to_data()),
                options=options,
            )
            for seed in range(self.seeds)
        ]

    @property
    def addresses(self) -> frozenset[str]:
        """Of all cells."""
        return frozenset(cell.address for cell in self.cells)

    def run(
        self, path: Path, crew: Crew, device: str | None, report: Callable[[int], None]
    ) -> None:
        """Compute what is not in the store, and save each cell as soon as it is done."""
        with Store(path, write=True) as store:
            known = store.status()
            waiting = deque(cell for cell in self.cells if cell.address not in known)
            done = len(self.cells) - len(waiting)
            running: dict[Future[Outcome], Cell] = {}
            report(done)
            while waiting or running:
                while waiting and len(running) < crew.capacity:
                    cell = waiting.popleft()
                    running[crew.submit(_outcome, self._ask(cell, device), device)] = cell
                ready, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ready:
                    store.save([(running.pop(future), future.result())])
                    done += 1
                    report(done)

    def _ask(self, cell: Cell, device: str | None) -> Callable[[], Mapping[str, Any]]:
        return partial(self.compute, self.problem, self.d, cell.seed, device=device, **self.options)


def _outcome(ask: Callable[[], Mapping[str, Any]], device: str | None) -> Outcome:
    """Of a worker: one cell."""
    started = time.perf_counter()
    with capped(THREADS):
        found = {name: np.ascontiguousarray(x, dtype="<f8") for name, x in ask().items()}
    axes = {name: tuple(f"{name}.{axis}" for axis in range(x.ndim)) for name, x in found.items()}
    return Outcome(
        arrays={name: (axes[name], x) for name, x in found.items()},
        seconds=time.perf_counter() - started,
        finished=time.time(),
        provenance=provenance(THREADS, device not in (None, "cpu")),
    )
