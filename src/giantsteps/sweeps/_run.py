"""Run a sweep: claim, hand out, collect, save, until every cell is done or has failed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from typing import TYPE_CHECKING

from giantsteps.errors import GiantstepsError
from giantsteps.sweeps._cells import Unit, plan
from giantsteps.sweeps._executors import Crew
from giantsteps.sweeps._leases import Runner
from giantsteps.sweeps._values import Cell, Outcome
from giantsteps.sweeps._work import Task, lost, work

if TYPE_CHECKING:
    from giantsteps.sweeps._sweep import Sweep

__all__ = ["Progress", "WorkerLost", "run"]

#: Called with the number of cells that are done, that failed, and of all.
Progress = Callable[[int, int, int], None]

#: Seconds after which results are saved: what a power cut can cost.
SAVE = 0.5
#: Seconds between looks at a store in which other runners have claimed all that is left.
LOOK = 0.5
#: A unit that was alone at work when its worker died, so many times, has failed.
DEATHS = 3
#: Most units claimed ahead.
AHEAD = 1024


class WorkerLost(GiantstepsError):
    """The process that worked on a cell died: killed from outside, or out of memory.

    Examples
    --------
    >>> raise WorkerLost("killed by signal 9")
    Traceback (most recent call last):
        ...
    giantsteps.sweeps._run.WorkerLost: killed by signal 9
    """


def run(
    sweep: Sweep, runner: Runner, crew: Crew, threads: int, progress: Progress | None = None
) -> int:
    """Work off all cells of a sweep that are neither done nor failed; return how many were.

    An exception (Ctrl-C among them) leaves everything that was finished saved.
    """
    loop = _Loop(sweep, runner, crew, threads, progress)
    while units := loop.plan():
        if not loop.work_off(units):
            time.sleep(LOOK)
    return loop.worked


class _Loop:
    """One runner at work.

    Attributes
    ----------
    claimed : deque of Unit
        Ours, not yet handed out.
    running : dict of Future to Unit
        Handed out.
    suspects : deque of Unit
        At work when a worker died: handed out one at a time, so that the next death tells whose
        fault it is.
    finished : list of (Cell, Outcome)
        Not yet saved.
    """

    def __init__(
        self,
        sweep: Sweep,
        runner: Runner,
        crew: Crew,
        threads: int,
        progress: Progress | None,
    ) -> None:
        self.sweep, self.store, self.crew, self.runner = sweep, runner.store, crew, runner
        self.threads, self.progress = threads, progress
        self.waiting: deque[Unit] = deque()
        self.claimed: deque[Unit] = deque()
        self.running: dict[Future[list[Outcome]], Unit] = {}
        self.suspects: deque[Unit] = deque()
        self.deaths: dict[Unit, int] = {}
        self.fruitless = 0
        self.finished: list[tuple[Cell, Outcome]] = []
        self.worked = 0
        self.done = self.failed = 0
        self.ahead = 2 * crew.capacity
        self.saved = time.monotonic()
        self.claimed_at = self.saved - 2 * SAVE

    def plan(self) -> list[Unit]:
        """The units that are left, whoever works on them."""
        status = self.store.status()
        known = [status.get(address) for address in self.sweep.addresses]
        self.done, self.failed = known.count("done"), known.count("failed")
        self._report()
        return plan(self.sweep, status)

    def work_off(self, units: list[Unit]) -> bool:
        """Work off those units that can be claimed; False if none could."""
        self.waiting = deque(units)
        before = self.worked
        try:
            while True:
                self._claim()
                self._hand_out()
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
        while self.waiting and not self.claimed and not self.suspects:
            self._save()
            lasted = time.monotonic() - self.claimed_at
            if lasted < SAVE:
                self.ahead = min(2 * self.ahead, AHEAD)
            elif lasted > 4 * SAVE:
                self.ahead = max(self.ahead // 2, 1)
            asked = [self.waiting.popleft() for _ in range(min(self.ahead, len(self.waiting)))]
            self.claimed.extend(self.runner.claim(asked))
            self.claimed_at = time.monotonic()

    def _hand_out(self) -> None:
        while self.suspects and not self.running:
            self._submit(self.suspects.popleft())
        while self.claimed and not self.suspects and len(self.running) < self.crew.capacity:
            self._submit(self.claimed.popleft())

    def _submit(self, unit: Unit) -> None:
        layer = unit.layer
        task = Task(
            layer.source,
            layer.question,
            unit.target,
            unit.d,
            unit.seed,
            layer.options,
            self.threads,
        )
        try:
            self.running[self.crew.submit(work, task)] = unit
        except BrokenExecutor as error:
            self.suspects.append(unit)
            self._recover(error)

    def _collect(self) -> None:
        patience = max(0.0, self.saved + SAVE - time.monotonic())
        ready, _ = wait(self.running, timeout=patience, return_when=FIRST_COMPLETED)
        for future in ready:
            if future in self.running:
                self._receive(future)

    def _receive(self, future: Future[list[Outcome]]) -> None:
        unit = self.running.pop(future)
        try:
            outcomes = future.result()
        except BrokenExecutor as error:
            self.running[future] = unit
            self._recover(error)
        except CancelledError:
            raise GiantstepsError(
                "the workers were lost: the executor was shut down, or its scheduler has gone"
            ) from None
        except Exception as error:  # the executor's own: Dask gave up on a worker
            self._finish(unit, lost(error, len(unit.addresses), self.threads))
        else:
            self.fruitless = 0
            self._finish(unit, outcomes)

    def _finish(self, unit: Unit, outcomes: list[Outcome]) -> None:
        self.deaths.pop(unit, None)
        self.finished.extend(zip(unit.cells(), outcomes, strict=True))

    def _recover(self, error: BrokenExecutor) -> None:
        """A worker died and took the pool with it: start a new one, suspect what was at work."""
        self._gather()
        suspects = list(self.running.values())
        self.running.clear()
        if not self.crew.restart():
            raise GiantstepsError(f"the workers were lost: {error}") from error
        if len(suspects) == 1:
            (unit,) = suspects
            self.deaths[unit] = self.deaths.get(unit, 0) + 1
            if self.deaths[unit] == DEATHS:
                self._give_up(unit)
                suspects = []
        self.suspects.extendleft(reversed(suspects))

    def _give_up(self, unit: Unit) -> None:
        self.fruitless += 1
        if self.fruitless == DEATHS:
            raise WorkerLost(
                "worker processes die before they finish anything: out of memory, or the script "
                'that runs the sweep lacks `if __name__ == "__main__":` (executor="serial" works '
                "in this process)"
            )
        error = WorkerLost(f"its worker died {DEATHS} times (killed, or out of memory)")
        self._finish(unit, lost(error, len(unit.addresses), self.threads))

    def _gather(self) -> None:
        """Take what has been finished without waiting; leave the rest."""
        for future in [future for future in self.running if future.done()]:
            if not future.cancelled() and future.exception() is None:
                self._finish(self.running.pop(future), future.result())

    def _save(self) -> None:
        """Save all that is finished, unit by unit as a whole."""
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
            self.progress(self.done, self.failed, len(self.sweep.addresses))
