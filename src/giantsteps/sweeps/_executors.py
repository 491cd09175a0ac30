"""Crews: who does the work, behind the interface of ``concurrent.futures``."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from giantsteps.errors import InvalidProblem

__all__ = ["Crew", "InProcess", "LocalPool", "as_crew"]


class Crew:
    """Workers of a given executor.

    Parameters
    ----------
    executor : Executor
        Of ``concurrent.futures``, or one that follows it.
    workers : int
        How many calls it can work on at once.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as executor:
    ...     crew = Crew(executor, workers=2)
    ...     crew.submit(pow, 2, 10).result(), crew.capacity
    (1024, 5)
    """

    def __init__(self, executor: Executor, workers: int) -> None:
        self._executor, self._workers = executor, workers

    @property
    def capacity(self) -> int:
        """How many calls keep all workers busy: one at work and one at hand for each, and one."""
        return 2 * self._workers + 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call ``function`` on a worker."""
        return self._executor.submit(function, *arguments)

    def restart(self) -> bool:
        """Replace workers that died; False where that is not ours to do."""
        return False

    def close(self, now: bool = False) -> None:
        """End what this crew started; ``now``: without waiting for calls that are at work."""


class InProcess(Crew):
    """Work in this process, one call after the other."""

    def __init__(self) -> None:
        pass

    @property
    def capacity(self) -> int:
        return 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


class LocalPool(Crew):
    """Processes of this machine, started afresh (no memory is shared with this one).

    A worker ends when this process does, however that happens: it watches a pipe whose other end
    only this process holds.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        methods = multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context(
            "forkserver" if "forkserver" in methods else "spawn"
        )
        if "forkserver" in methods:  # new workers start with everything imported
            self._context.set_forkserver_preload(
                ["giantsteps.sweeps._work", "giantsteps.simulation", "giantsteps.theory"]
            )
        self._start()

    def _start(self) -> None:
        watched, self._held = self._context.Pipe(duplex=False)
        self._watched = watched
        self._executor = ProcessPoolExecutor(
            self._workers, self._context, initializer=_begin, initargs=(watched,)
        )

    def restart(self) -> bool:
        self.close(now=True)
        self._start()
        return True

    def close(self, now: bool = False) -> None:
        if now:
            self._held.close()
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._held.close()
        self._watched.close()


def _begin(watched: Connection) -> None:
    """Of a worker: leave Ctrl-C to the runner, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(watched,), daemon=True).start()


def _end_with(watched: Connection) -> None:
    watched.poll(None)  # returns when the other end is closed
    os._exit(1)


def as_crew(executor: str | Executor | Crew, workers: int | None) -> tuple[Crew, bool]:
    """The crew that is meant, and whether it is ours to close."""
    if isinstance(executor, Crew):
        return executor, False
    count = _processors() if workers is None else workers
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InvalidProblem("workers", workers, "an integer >= 1")
    if isinstance(executor, Executor):
        return Crew(executor, count), False
    if executor == "serial":
        return InProcess(), True
    if executor == "processes":
        return LocalPool(count), True
    raise InvalidProblem(
        "executor", executor, '"processes", "serial" or an Executor of concurrent.futures'
    )


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
