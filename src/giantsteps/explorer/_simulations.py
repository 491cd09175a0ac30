"""Simulate here: networks in the background, kept in a store of campaigns."""

from __future__ import annotations

import os
import secrets
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from giantsteps import campaign
from giantsteps.campaign import Cells, Store
from giantsteps.errors import GiantstepsError
from giantsteps.explorer._requests import Simulation

#: Bars of a histogram of simulated values.
BARS = 60
#: Finished jobs whose results are remembered; the networks themselves stay in the store.
REMEMBERED = 20


class AlreadyRunning(GiantstepsError):
    """A simulation is at work already."""


def default_store() -> Path:
    """Where simulations are kept unless a file is given: the user's cache folder."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "giantsteps" / "explorer.sqlite"


class Job:
    """One simulation: its progress, and its results so far.

    Attributes
    ----------
    id : str
        For the client.
    state : {"running", "done", "cancelled", "failed"}
    done, failed, total : int
        Cells: one question about one network each.
    """

    def __init__(self, asked: Simulation, store: Path, workers: int) -> None:
        self.id = secrets.token_urlsafe(9)
        self.asked, self.state, self.message = asked, "running", ""
        self.done = self.failed = self.total = 0
        self.results: list[dict[str, Any]] = []
        self._store = store
        self._parts = [
            Cells.of_networks(
                target,
                question,
                [asked.d],
                range(asked.seeds),
                options,
                initial=question.initial and question.answer == "Risk",
            )
            for question, target, options in asked.asks
        ]
        self._cells: Sequence[Cells] = [part for parts in self._parts for part in parts]
        self._crew, _ = campaign.as_workers("processes", workers)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Stop; networks that are finished stay in the store."""
        if self.state == "running":
            self.state = "cancelled"
            self._crew.stop()

    def join(self) -> None:
        self._thread.join()

    def to_data(self) -> dict[str, Any]:
        """The job as the page sees it."""
        names = ("id", "state", "message", "done", "failed", "total", "results")
        found = {name: getattr(self, name) for name in names}
        return found | {"d": self.asked.d, "seeds": self.asked.seeds}

    def _run(self) -> None:
        try:
            self._store.parent.mkdir(parents=True, exist_ok=True)
            with Store(self._store, write=True) as store:
                try:
                    status = campaign.run(
                        self._cells, store, executor=self._crew, progress=self._report, retry=True
                    )
                    if status.failed:
                        self.message = str(next(iter(status.errors)))
                finally:
                    self.results = [_result(parts, store) for parts in self._parts]
            if self.state == "running":
                self.state = "failed" if self.done == 0 else "done"
        except Exception as error:  # to the client, who asked
            if self.state != "cancelled":
                self.state, self.message = "failed", str(error) or type(error).__name__
        finally:
            self._crew.close(now=True)

    def _report(self, done: int, failed: int, total: int) -> None:
        self.done, self.failed, self.total = done, failed, total


def _result(parts: Sequence[Cells], store: Store) -> dict[str, Any]:
    """Means and standard errors over the seeds; of a bulk, its histogram."""
    after = parts[-1]
    found: dict[str, Any] = {
        "question": after.question.name,
        "coords": {path: values.tolist() for path, values in after.grid.coords.items()},
        "numbers": _numbers(after, store),
        "initial": _numbers(parts[0], store) if len(parts) > 1 else {},
    }
    if len(parts) > 1:
        found["numbers"] |= _gain(parts, store)
    bulk = campaign.read_table(after, store, bulk=True).get("bulk")
    if bulk is not None:
        found["histogram"] = _histogram(bulk[1])
    return found


def _gain(parts: Sequence[Cells], store: Store) -> dict[str, Any]:
    """What the steps gain in test error, network by network."""
    before, after = (campaign.read_table(part, store).get("test") for part in parts)
    if before is None or after is None:
        return {}
    return _means({"gain": (after[0], before[1] - after[1])})


def _numbers(cells: Cells, store: Store) -> dict[str, Any]:
    return _means(campaign.read_table(cells, store))


def _means(table: campaign.Table) -> dict[str, Any]:
    """Means and standard errors over the seeds, by name."""
    numbers = {}
    for name, (dims, values) in table.items():
        seeds = dims.index("seed")
        mean, error, count = campaign.mean_and_error(values, axis=seeds)
        kept = [dim for dim in dims if dim != "seed"]
        size = kept.index("d")
        numbers[name] = {
            "dims": [dim for dim in kept if dim != "d"],
            "mean": mean.take(0, axis=size),
            "error": error.take(0, axis=size),
            "seeds": count.take(0, axis=size),
        }
    return numbers


def _histogram(values: np.ndarray) -> dict[str, Any]:
    """The density of all values but zeros; mass counts the zeros, as the law of theory does."""
    finite = values[np.isfinite(values)]
    positive = finite[finite > 1e-9 * finite.max()] if finite.size else finite
    if positive.size == 0:
        return {"edges": [], "density": []}
    # Values far above the bulk are spikes: they have marks of their own.
    top = np.quantile(positive, 0.98) * 1.25
    low = positive.min()
    heights, edges = np.histogram(positive, BARS, range=(low, max(low * (1 + 1e-9), top)))
    return {"edges": edges, "density": heights / np.diff(edges) / finite.size}


class Jobs:
    """The simulations of a server: one at a time, the latest remembered."""

    def __init__(self, store: Path, workers: int) -> None:
        self.store, self.workers = store, workers
        self._jobs: dict[str, Job] = {}

    def start(self, asked: Simulation) -> Job:
        """Start a simulation.

        Raises
        ------
        AlreadyRunning
            If one is at work.
        """
        if any(job.state == "running" for job in self._jobs.values()):
            raise AlreadyRunning("a simulation is running: cancel it, or wait for it")
        job = Job(asked, self.store, self.workers)
        self._jobs[job.id] = job
        for old in list(self._jobs)[:-REMEMBERED]:
            del self._jobs[old]
        return job

    def get(self, name: str) -> Job | None:
        """The job of that name, if it is remembered."""
        return self._jobs.get(name)

    def close(self) -> None:
        """Cancel what is at work and wait for it to end."""
        for job in self._jobs.values():
            job.cancel()
        for job in self._jobs.values():
            job.join()
