"""Processors of this process, and a limit on the threads of its linear algebra.

Theory works with one thread: its matrices are small, and results do not depend on the number.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def controller() -> ThreadpoolController:
    """The libraries with threads in this process; PyTorch, if it is there, among them."""
    return _controller("torch" in sys.modules)


@cache
def _controller(torch: bool) -> ThreadpoolController:
    return ThreadpoolController()  # which takes milliseconds; once more with PyTorch's


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
                found = controller()
                above = any(one.num_threads > threads for one in found.lib_controllers)
                self._limit = found.limit(limits=threads) if above else nullcontext()
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
