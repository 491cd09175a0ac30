"""Run a campaign: claim, hand out, collect, save, until every cell is done or has failed."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import contextmanager
from typing import Any

from giantsteps.campaign._cells import Cell, Cells
from giantsteps.campaign._cost import announcement
from giantsteps.campaign._jobs import Job, plan
from giantsteps.campaign._leases import Runner
from giantsteps.campaign._progress import Progress, shown
from giantsteps.campaign._status import Status, read_status
from giantsteps.campaign._store import Store
from giantsteps.campaign._values import Outcome
from giantsteps.campaign._work import failure, work
from giantsteps.campaign._workers import TimeLimit, WorkerLost, Workers, WorkersGone, as_workers
from giantsteps.errors import GiantstepsError, InvalidProblem
from giantsteps.problem import integer, number

#: Seconds after which results are saved: what a power cut can cost.
SAVE = 0.5
#: Seconds between looks at a store in which other runners have claimed all that is left.
LOOK = 0.5
#: A cell that was at work when its worker died, so many times, has failed.
DEATHS = 3
#: Workers that a job may have ended among others before it is blamed for one that it had alone.
SUSPECTED = 1
#: Most jobs claimed ahead.
AHEAD = 1024


def run(
    cells: Sequence[Cells],
    store: Store,
    *,
    executor: str | Executor | Workers = "processes",
    workers: int | None = None,
    threads: int = 1,
    time_limit: float | None = None,
    progress: Progress | bool | None = None,
    retry: bool = False,
) -> Status:
    """Compute all cells that are neither done nor failed, and say how they stand then.

    Whatever interrupts it, finished cells are saved. Two processes of one machine may run the
    same cells on one store: they share the work. The arguments are those of `Sweep.run`; the
    store is open to write.
    """
    threads = integer(threads, "threads", "an integer >= 1")
    devices = {part.options.get("device") for part in cells if part.source == "simulation"}
    with crew(executor, workers, devices.pop() if len(devices) == 1 else None) as found:
        _check_limit(time_limit, found)

        def before() -> str | None:
            return announcement(cells, store.status(), found.count)

        with Runner(store) as runner, shown(progress, before) as report:
            if retry:
                store.forget_failures(address for part in cells for address in part.distinct)
            loop = _Loop(cells, runner, found, threads, time_limit, report)
            while jobs := loop.plan():
                if not loop.work_off(jobs):
                    time.sleep(LOOK)
    return read_status(cells, store)


@contextmanager
def simulated(
    cells: Sequence[Cells],
    path: str | os.PathLike[str] | None,
    workers: int | None,
    time_limit: float | None = None,
    progress: Progress | bool | None = None,
) -> Iterator[Store]:
    """The store, a file or in memory, with all of these cells; one that fails is an error.

    One worker is this process, unless it has to be stopped in time.
    """
    with Store(path, write=True) as store:
        run(
            cells,
            store,
            executor=executor_for(workers, time_limit),
            workers=workers,
            time_limit=time_limit,
            progress=progress,
            retry=True,
        ).check()
        yield store


def executor_for(workers: int | None, time_limit: float | None) -> str:
    """This process for one worker, unless it has to be stopped in time."""
    return "serial" if workers == 1 and time_limit is None else "processes"


@contextmanager
def crew(
    executor: str | Executor | Workers, workers: int | None, device: Any = None
) -> Iterator[Workers]:
    """The workers that are meant; those that were started here end with the block."""
    found, ours = as_workers(executor, workers, device)
    try:
        yield found
    except BaseException:
        if ours:
            found.close(now=True)
        raise
    if ours:
        found.close()


def each(
    workers: Workers,
    calls: Sequence[tuple[Any, ...]],
    progress: Progress | None = None,
    limit: float | None = None,
) -> list[Any]:
    """Results of calls, each a function with its arguments; the first error is raised."""
    found: dict[int, Any] = {}
    running: dict[Future[Any], int] = {}
    for place, call in enumerate(calls):
        running[workers.submit(*call, limit=limit)] = place
        while len(running) >= workers.capacity or (running and place == len(calls) - 1):
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                found[running.pop(future)] = future.result()
                if progress is not None:
                    progress(len(found), 0, len(calls))
    return [found[place] for place in range(len(calls))]


def _check_limit(limit: Any, workers: Workers) -> None:
    if limit is None:
        return
    allowed = "a positive number of seconds, or None"
    number(limit, "time_limit", allowed, lower=0.0, open_below=True)
    if not workers.can_stop:
        raise InvalidProblem(
            "time_limit", limit, 'None here: only worker processes (executor="processes") and '
            "Dask can end a cell that takes too long"
        )  # fmt: skip


class _Loop:
    """One runner at work."""

    def __init__(
        self,
        cells: Sequence[Cells],
        runner: Runner,
        workers: Workers,
        threads: int,
        time_limit: float | None,
        progress: Progress | None,
    ) -> None:
        self.cells, self.runner, self.store, self.workers = cells, runner, runner.store, workers
        self.addresses = frozenset().union(*(part.distinct for part in cells))
        self.threads, self.time_limit, self.progress = threads, time_limit, progress
        self.waiting: deque[Job] = deque()  # left, and not claimed by us
        self.claimed: deque[Job] = deque()  # ours, not yet handed out
        self.running: dict[Future[list[Outcome]], Job] = {}  # handed out
        self.suspects: deque[Job] = deque()  # one of them ended a worker: each runs alone
        self.deaths: dict[Job, int] = {}
        self.fruitless = 0
        self.finished: list[tuple[Cell, Outcome]] = []  # not yet saved
        self.worked = self.done = self.failed = 0
        self.ahead = 2 * workers.capacity
        self.saved = time.monotonic()
        self.claimed_at = self.saved - 2 * SAVE

    def plan(self) -> list[Job]:
        """The jobs that are left, whoever works on them."""
        status = self.store.status()
        known = [status.get(address) for address in self.addresses]
        self.done, self.failed = known.count("done"), known.count("failed")
        self._report()
        return plan(self.cells, status)

    def work_off(self, jobs: list[Job]) -> bool:
        """Work off those jobs that can be claimed; False if none could."""
        self.waiting = deque(jobs)
        before = self.worked
        try:
            while True:
                self._claim()
                while self.claimed and len(self.running) < self.workers.capacity:
                    self._submit(self.claimed.popleft())
                if not self.running and self.suspects:
                    self._submit(self.suspects.popleft())
                if not self.running:
                    break
                self._collect()
                if time.monotonic() > self.saved + SAVE:
                    self._save()
        finally:
            self._gather()
            self._save()
        return self.worked > before

    # Steps of the loop ------------------------------------------------------------------------

    def _claim(self) -> None:
        """Claim about a second of work, when the last claim is used up."""
        while self.waiting and not self.claimed:
            self._save()
            lasted = time.monotonic() - self.claimed_at
            if lasted < SAVE:
                self.ahead = min(2 * self.ahead, AHEAD)
            elif lasted > 4 * SAVE:
                self.ahead = max(self.ahead // 2, 1)
            asked = [self.waiting.popleft() for _ in range(min(self.ahead, len(self.waiting)))]
            self.claimed.extend(self.runner.claim(asked))
            self.claimed_at = time.monotonic()

    def _submit(self, job: Job) -> None:
        task = job.task(self.threads)
        limit = None if self.time_limit is None else self.time_limit * task.size
        try:
            self.running[self.workers.submit(work, task, limit=limit)] = job
        except BrokenExecutor as error:
            raise WorkersGone(f"the workers were lost: {error}") from error

    def _collect(self) -> None:
        patience = max(0.0, self.saved + SAVE - time.monotonic())
        ready, _ = wait(self.running, timeout=patience, return_when=FIRST_COMPLETED)
        if not ready:
            self.workers.watch()
        for future in ready:
            self._receive(future)

    def _receive(self, future: Future[list[Outcome]]) -> None:
        job = self.running.pop(future)
        try:
            self._finish(job, future.result())
            self.fruitless = 0
        except TimeLimit as error:
            self._failed(job, error)
        except WorkerLost as error:
            self._lost(job, error)
        except (BrokenExecutor, CancelledError) as error:
            raise WorkersGone(
                "the workers were lost: the executor was shut down, or its scheduler has gone"
            ) from error
        except WorkersGone:
            raise
        except Exception as error:  # the executor's own: Dask blames all calls that a worker had
            self._suspected(job, self.workers.lost(error))

    def _finish(self, job: Job, outcomes: list[Outcome]) -> None:
        """Keep what was computed; of a job that raised, find the cells that do so."""
        if outcomes[0].error is not None and (halves := job.halves()):
            self.claimed.extendleft(halves)
        else:
            self.deaths.pop(job, None)
            self.finished.extend(zip(job.rows(), outcomes, strict=True))

    def _failed(self, job: Job, error: GiantstepsError) -> None:
        self._finish(job, [failure(error, 0.0, job.task(self.threads))])

    def _lost(self, job: Job, error: WorkerLost) -> None:
        """A worker died: try again, for another may have taken its memory, then find the cell."""
        self.deaths[job] = self.deaths.get(job, 0) + 1
        alone = not job.halves()
        if self.deaths[job] < (DEATHS if alone else DEATHS - 1):
            self.claimed.appendleft(job)
            return
        if alone:
            self.fruitless += 1
            if self.fruitless == DEATHS:
                raise WorkersGone(
                    f"worker processes die before they finish anything: {error}. Fewer workers or "
                    "smaller networks may help"
                )
            error = WorkerLost(f"{error} ({DEATHS} times)")
        self._failed(job, error)

    def _suspected(self, job: Job, error: WorkerLost) -> None:
        """A worker died that had this job and maybe others: see what it does alone."""
        tried = self.deaths.get(job, 0)
        self.deaths[job] = tried + 1
        if tried < SUSPECTED:
            self.suspects.append(job)
        elif halves := job.halves():
            self.suspects.extendleft(halves)
        else:
            self._failed(job, error)

    def _gather(self) -> None:
        """Take what has been finished without waiting; leave the rest."""
        for future in [future for future in self.running if future.done()]:
            if not future.cancelled() and future.exception() is None:
                self._finish(self.running.pop(future), future.result())

    def _save(self) -> None:
        """Save all that is finished, job by job as a whole."""
        self.runner.check()
        self.saved = time.monotonic()
        if not self.finished:
            return
        self.store.save(self.finished)
        failures = sum(outcome.error is not None for _, outcome in self.finished)
        self.worked += len(self.finished)
        self.failed += failures
        self.done += len(self.finished) - failures
        self.finished = []
        self._report()

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(self.done, self.failed, len(self.addresses))
