"""Many calls on workers, in order: for what is computed but not kept."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

from giantsteps.campaign._progress import Progress
from giantsteps.campaign._workers import Workers


def each(
    workers: Workers,
    calls: Sequence[tuple[Any, ...]],
    progress: Progress | None = None,
    limit: float | None = None,
) -> list[Any]:
    """Results of calls, each a function with its arguments; the first error is raised."""
    found: dict[int, Any] = {}
    running: dict[Future[Any], int] = {}
    for number, call in enumerate(calls):
        running[workers.submit(*call, limit=limit)] = number
        while len(running) >= workers.capacity or (running and number == len(calls) - 1):
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                found[running.pop(future)] = future.result()
                if progress is not None:
                    progress(len(found), 0, len(calls))
    return [found[number] for number in range(len(calls))]
