"""What a worker does: ask one question about a block of problems, and keep the values."""

from __future__ import annotations

import json
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

from threadpoolctl import ThreadpoolController

from giantsteps.answers import Answer, Source
from giantsteps.problem import Grid, Problem
from giantsteps.questions import QUESTIONS, Side
from giantsteps.sweeps._provenance import provenance
from giantsteps.sweeps._values import Outcome, Values, read_answer

__all__ = ["Task", "capped", "lost", "work"]


@dataclass(frozen=True)
class Task:
    """A question to be answered.

    Attributes
    ----------
    source, question
        Whom to ask, and what.
    target : Problem or Grid
        About what.
    d, seed : int or None
    options : mapping
        Keywords for the question.
    threads : int
        Most threads of the linear algebra; with the machine, they decide the last bits.
    """

    source: Source
    question: str
    target: Problem | Grid
    d: int | None
    seed: int | None
    options: Mapping[str, Any]
    threads: int

    @property
    def size(self) -> int:
        """Number of cells."""
        return 1 if isinstance(self.target, Problem) else self.target.size

    def halves(self) -> tuple[Task, Task]:
        """The first and the second half of a block, cut along its first axis."""
        grid = self.target
        assert isinstance(grid, Grid)
        axis = next(axis for axis, size in enumerate(grid.shape) if size > 1)
        middle = grid.shape[axis] // 2
        before = (slice(None),) * axis
        first, second = grid[(*before, slice(middle))], grid[(*before, slice(middle, None))]
        return replace(self, target=_alone(first)), replace(self, target=_alone(second))


def _alone(target: Problem | Grid) -> Problem | Grid:
    """A grid of one cell as its problem."""
    return next(iter(target)) if isinstance(target, Grid) and target.size == 1 else target


def work(task: Task) -> list[Outcome]:
    """Answer a task: one outcome a cell, row-major. Errors of a cell are outcomes too.

    A block that fails is cut in half, until the cells that fail stand alone.
    """
    side: Side = "simulation" if task.source == "simulation" else "theory"
    ask = QUESTIONS[task.question].function(side)
    device = task.options.get("device")
    torch = device not in (None, "cpu")
    if torch:
        import_module("torch")  # its threads are capped below, if it is there by then
    with capped(task.threads):
        return _answer(task, ask, provenance(task.threads, torch))


def _answer(task: Task, ask: Any, origin: str) -> list[Outcome]:
    started = time.perf_counter()
    sizes = {"d": task.d, "seed": task.seed}
    keywords = {name: value for name, value in sizes.items() if value is not None}
    try:
        answer: Answer = ask(task.target, **keywords, **task.options)
        values, notes = read_answer(answer), _notes(answer)
    except Exception as error:
        if task.size > 1:
            return [outcome for half in task.halves() for outcome in _answer(half, ask, origin)]
        seconds = time.perf_counter() - started
        return [_failure(error, seconds, origin)]
    seconds = (time.perf_counter() - started) / task.size
    return [_success(cell, notes, seconds, origin) for cell in values]


def _success(values: Values, notes: str | None, seconds: float, origin: str) -> Outcome:
    numbers, arrays = values
    return Outcome(
        numbers=numbers,
        arrays=arrays,
        notes=notes,
        seconds=seconds,
        finished=time.time(),
        provenance=origin,
    )


def _failure(error: BaseException, seconds: float, origin: str) -> Outcome:
    return Outcome(
        error=f"{type(error).__name__}: {error}",
        traceback="".join(traceback.format_exception(error)),
        seconds=seconds,
        finished=time.time(),
        provenance=origin,
    )


def lost(error: BaseException, count: int, threads: int) -> list[Outcome]:
    """Outcomes of a task whose worker died each time."""
    return [_failure(error, 0.0, provenance(threads, False))] * count


def _notes(answer: Answer) -> str | None:
    """What a theory says of itself; a simulation has nothing to say."""
    if answer.source == "simulation":
        return None
    return json.dumps({"violated": answer.violated, "references": answer.references})


@cache
def _controller(torch: bool) -> ThreadpoolController:
    """The libraries with threads in this process; PyTorch, if it is there, among them."""
    return ThreadpoolController()


class _Cap:
    """A limit on the threads of this process, which threads of it enter and leave."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: AbstractContextManager[Any] | None = None

    @contextmanager
    def __call__(self, threads: int) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                self._limit = _controller("torch" in sys.modules).limit(limits=threads)
                self._limit.__enter__()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0 and self._limit is not None:
                    self._limit.__exit__(None, None, None)


#: ``with capped(threads):`` the linear algebra of the process uses no more threads. The first
#: to enter sets the limit, the last to leave lifts it.
capped = _Cap()
