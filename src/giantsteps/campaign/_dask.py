"""Workers on a cluster, through Dask: a given scheduler, processes of this machine, or SLURM."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import Any

from giantsteps.answers import require
from giantsteps.campaign._workers import (
    TimeLimit,
    WorkerLost,
    Workers,
    WorkersGone,
    check_interpreter,
    without_interrupts,
)
from giantsteps.errors import GiantstepsError, InvalidProblem

#: Seconds between the answer that a call took too long and the end of its worker.
_FAREWELL = 2.0
#: Seconds without a worker of our own cluster after which it is started again, and how often.
_MISSING, _REVIVALS = 20.0, 3
#: Dask blames all calls that a lost worker had: the run itself finds the one that did it.
_FAILURES = 0


class DaskWorkers(Workers):
    """The workers of a Dask cluster; one that is lost has its calls done by another."""

    can_stop = True

    def __init__(self, client: Any, cluster: Any = None) -> None:
        super().__init__(client.get_executor(pure=False), 1)
        self._client, self._cluster = client, cluster
        self._wanted = 0 if cluster is None else len(cluster.workers)
        self._counted = 0.0
        self._seen, self._revived = time.monotonic(), 0

    @property
    def count(self) -> int:
        """Workers may come and go: they are counted once a second."""
        now = time.monotonic()
        if now > self._counted + 1:
            self._counted = now
            threads = sum(self._client.nthreads().values())
            if threads:
                self._seen, self._revived = now, 0
            self._workers = max(1, threads)
        return self._workers

    def watch(self) -> None:
        """Start workers of our own cluster again that Dask has given up: they died too soon."""
        if (self.count and self._cluster is None) or time.monotonic() < self._seen + _MISSING:
            return
        if self._revived == _REVIVALS:
            raise WorkersGone("Dask's worker processes end as soon as they start")
        self._revived += 1
        self._cluster.scale(0)
        self._cluster.scale(self._wanted)
        self._seen = time.monotonic()

    @property
    def capacity(self) -> int:
        return 4 * self.count

    def submit(
        self, function: Callable[..., Any], *arguments: Any, limit: float | None = None
    ) -> Future[Any]:
        if limit is None:
            return self._executor.submit(function, *arguments)
        return self._executor.submit(_within, limit, function, *arguments)

    def lost(self, error: Exception) -> WorkerLost:
        if type(error).__name__ != "KilledWorker":
            return super().lost(error)
        return WorkerLost(
            "it ended every Dask worker that tried it: killed from outside, or out of memory (the "
            "workers' logs say which)"
        )

    def close(self, now: bool = False) -> None:
        self._executor.shutdown(wait=False)  # Dask cancels what has not been done


def _within(limit: float, function: Callable[..., Any], *arguments: Any) -> Any:
    """Of a worker: a call that may take ``limit`` seconds.

    What goes on after that can only be ended with the process: the worker says that the call
    failed and leaves soon after, and Dask starts another in its place.
    """
    result: Future[Any] = Future()

    def call() -> None:
        try:
            result.set_result(function(*arguments))
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    try:
        return result.result(limit)
    except TimeoutError:
        if result.done():
            raise
        leave = threading.Timer(_FAREWELL, os._exit, (1,))
        leave.daemon = True
        leave.start()
        raise TimeLimit(f"not finished after {limit:g} s") from None


@contextmanager
def dask_workers(
    where: str, workers: int | None = None, job: Mapping[str, Any] | None = None
) -> Iterator[DaskWorkers]:
    """Workers on a Dask cluster; at the end it is left, or ended if it was started here.

    Parameters
    ----------
    where : str
        Address of a scheduler, such as ``"tcp://host:8786"``; ``"local"``: start worker
        processes on this machine; ``"slurm"``: start a scheduler here and jobs of SLURM.
    workers : int, optional
        For ``"local"`` how many processes, all processors by default; for ``"slurm"`` how many
        jobs, one by default.
    job : mapping, optional
        For ``"slurm"``: keywords of ``dask_jobqueue.SLURMCluster`` (``cores``, ``memory``,
        ``walltime``, ``queue``, ``account``, …); the others come from Dask's configuration.

    Examples
    --------
    >>> from distributed import LocalCluster
    >>> with LocalCluster(1, processes=False, dashboard_address=":0") as cluster:
    ...     with dask_workers(cluster.scheduler_address) as workers:
    ...         workers.submit(pow, 2, 10).result()
    1024
    """
    distributed = require("distributed", "--dask", "cluster")
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        own = None
        if where == "local":
            cluster: Any = stack.enter_context(_local_cluster(distributed, workers))
            own = cluster
        elif where == "slurm":
            cluster = stack.enter_context(_slurm_cluster(job or {}))
            cluster.scale(jobs=workers or 1)
        elif ":" in where:
            cluster = where
        else:
            raise InvalidProblem(
                "--dask", where, 'the address of a scheduler (tcp://host:8786), "local" or "slurm"'
            )
        try:
            client = stack.enter_context(distributed.Client(cluster, set_as_default=False))
        except OSError as error:
            raise GiantstepsError(f"no Dask scheduler at {where}: {error}") from error
        found = DaskWorkers(client, own)
        stack.callback(found.close)
        yield found


def _local_cluster(distributed: Any, workers: int | None) -> Any:
    """Worker processes of this machine."""
    dask = require("dask", "--dask", "cluster")
    check_interpreter()
    bounded = dask.config.set({"distributed.scheduler.allowed-failures": _FAILURES})
    try:
        with bounded, without_interrupts():
            return distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",  # any free port: another cluster may have Dask's
                silence_logs=logging.CRITICAL,
            )
    except Exception as error:  # whatever the start of a process may raise
        raise GiantstepsError(
            f"Dask's worker processes did not start ({_root(error)}). Without --dask the run has "
            "worker processes of its own"
        ) from error


def _root(error: BaseException) -> str:
    """What an error says that was raised because of others."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"


@contextmanager
def _quiet() -> Iterator[None]:
    """No log of Dask's own on the terminal: what matters is said once, by the run."""
    logger = logging.getLogger("distributed")
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    loggers = [logger, *map(logging.getLogger, names)]
    levels = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for one, level in zip(loggers, levels):
            one.setLevel(level)


def slurm_script(job: Mapping[str, Any]) -> str:
    """The script of one SLURM job, as ``dask_workers("slurm", job=job)`` would submit it.

    * ``job``: keywords of ``dask_jobqueue.SLURMCluster``.

    Raises
    ------
    InvalidProblem
        If it has no such option, or needs one that is missing.
    """
    jobqueue = require("dask_jobqueue", "--dask slurm", "cluster")
    scheduler = "tcp://<address of the scheduler>:8786"
    try:
        sample = jobqueue.SLURMCluster.job_cls(scheduler, name="giantsteps", **_complete(job))
    except (TypeError, ValueError) as error:
        raise InvalidProblem(
            "--job", dict(job), f"options of dask_jobqueue.SLURMCluster ({error})"
        ) from error
    return str(sample.job_script())


def _slurm_cluster(job: Mapping[str, Any]) -> Any:
    slurm_script(job)  # says what is wrong with the job, if anything
    jobqueue = require("dask_jobqueue", "--dask slurm", "cluster")
    return jobqueue.SLURMCluster(**_complete(job), scheduler_options={"dashboard_address": ":0"})


def _complete(job: Mapping[str, Any]) -> dict[str, Any]:
    """One process per core: the linear algebra is capped for each process, not each thread."""
    return {"processes": job["cores"], **job} if "cores" in job else dict(job)
