"""Processes that compute theory: warm, one request each, ended when nobody waits for them.

A request that takes long makes room: after `PATIENCE` seconds of work its place is given to another
process and it goes on with a lower priority, so that a long request never blocks a short one.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from giantsteps.campaign import processors
from giantsteps.errors import GiantstepsError
from giantsteps.explorer import _compute

#: Seconds of work after which a request counts as long; waiting for a processor is not work.
PATIENCE = 0.4
#: Seconds that a request nobody waits for any more may still take before its process is ended.
GRACE = 0.25
#: Most requests that wait for a place, and most long ones at once.
WAITING, LONG = 64, 24
#: What a process imports before it is forked.
_WARM = "giantsteps.explorer._warm"


class Busy(GiantstepsError):
    """There are too many requests already."""


class TooLong(GiantstepsError):
    """A request took longer than its time limit."""


class _Worker:
    """A process that answers one request after the other."""

    def __init__(self, context: Any) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.slowed = False

    def call(self, operation: str, body: Any) -> dict[str, Any]:
        """Send a request and wait for its answer; EOFError if the process ends."""
        self.pipe.send((operation, body))
        answer: dict[str, Any] = self.pipe.recv()
        return answer

    def work(self) -> float:
        """Seconds that its process has worked; of the clock where the system does not tell."""
        try:
            text = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii")
        except OSError:
            return time.monotonic()
        user, system = text.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def slow_down(self) -> None:
        """Leave the processors to others, where the system can."""
        if hasattr(os, "setpriority"):
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self.process.pid, 10)
                self.slowed = True  # for good: only the system's administrator can take it back

    def end(self) -> None:
        with suppress(OSError):
            self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection) -> None:
    """Of a worker: answer until the other end is closed; leave Ctrl-C to the server."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            operation, body = pipe.recv()
            if operation == "warm up":
                _compute.warm_up()
                pipe.send({})
            else:
                pipe.send(_compute.compute(operation, body))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class Pool:
    """Warm processes for theory.

    * ``places``: short requests at once; by default one per processor, at least two.
    * ``time_limit``: seconds that a request may take.
    """

    def __init__(self, places: int | None = None, time_limit: float = 60.0) -> None:
        self.places, self.time_limit = places or max(2, processors()), time_limit
        methods = multiprocessing.get_all_start_methods()
        kind = "forkserver" if "forkserver" in methods else "spawn"
        self._context: Any = multiprocessing.get_context(kind)
        if kind == "forkserver":
            self._context.set_forkserver_preload([_WARM])
        self._free = asyncio.Semaphore(self.places)
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._waiting = self._long = 0
        self._jobs: set[asyncio.Future[Any]] = set()
        self._threads = ThreadPoolExecutor(WAITING, thread_name_prefix="explorer")

    async def start(self) -> None:
        """Start the processes and let them load what they need."""
        workers = [await self._in_thread(self._new) for _ in range(self.places)]
        await asyncio.gather(*(self._in_thread(w.call, "warm up", None) for w in workers))
        self._idle += workers

    async def close(self) -> None:
        for job in list(self._jobs):
            job.cancel()
        for worker in list(self._all):
            await self._in_thread(self._end, worker)
        self._idle.clear()
        self._threads.shutdown(wait=False)

    async def run(self, operation: str, body: Any) -> dict[str, Any]:
        """Answer a request on a process of its own; when cancelled, its process ends soon after.

        Raises
        ------
        Busy, TooLong
        """
        if self._waiting >= WAITING:
            raise Busy("too many requests are waiting: try again in a moment")
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        abandoned = asyncio.Event()
        job = asyncio.ensure_future(self._job(operation, body, abandoned))
        self._jobs.add(job)
        job.add_done_callback(self._forget)
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            abandoned.set()
            raise

    def _forget(self, job: asyncio.Future[Any]) -> None:
        self._jobs.discard(job)
        if not job.cancelled():
            job.exception()  # of a request that nobody waits for

    async def _job(self, operation: str, body: Any, abandoned: asyncio.Event) -> dict[str, Any]:
        """Hold a place, use a worker, and give both back whatever happens."""
        worker: _Worker | None = None
        call: asyncio.Future[dict[str, Any]] | None = None
        held, long = True, False
        try:
            worker = self._idle.pop() if self._idle else await self._in_thread(self._new)
            before, started = worker.work(), time.monotonic()
            call = asyncio.ensure_future(self._in_thread(worker.call, operation, body))
            call.add_done_callback(lambda done: done.cancelled() or done.exception())
            while not call.done() and not abandoned.is_set() and worker.work() - before < PATIENCE:
                await _either(call, abandoned, PATIENCE)
                if time.monotonic() - started > self.time_limit:
                    break
            if not call.done() and not abandoned.is_set():
                if self._long >= LONG:
                    raise Busy(f"{LONG} long requests are at work already: try again later")
                self._long, long = self._long + 1, True
                worker.slow_down()
                self._idle.append(await self._in_thread(self._new))  # for whoever comes next
                self._free.release()
                held = False
                left = self.time_limit - (time.monotonic() - started)
                await _either(call, abandoned, max(left, 0.0))
            if not call.done() and abandoned.is_set():
                await asyncio.wait({call}, timeout=GRACE)
            if not call.done():
                raise TooLong(
                    f"not finished after {self.time_limit:g} s: ask for fewer points, or start "
                    "the explorer with a larger --time-limit"
                )
            return call.result()
        except (EOFError, OSError):
            lost = "the process that computed this ended: it may have run out of memory"
            raise GiantstepsError(lost) from None
        finally:
            if worker is not None:
                well = call is not None and call.done() and call.exception() is None
                if well and not worker.slowed:
                    self._idle.append(worker)
                else:
                    await self._in_thread(self._end, worker)
            if held:
                self._free.release()
            self._long -= long

    # Processes --------------------------------------------------------------------------------

    def _new(self) -> _Worker:
        worker = _Worker(self._context)
        self._all.add(worker)
        return worker

    def _end(self, worker: _Worker) -> None:
        self._all.discard(worker)
        worker.end()

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *arguments)


async def _either(call: asyncio.Future[Any], abandoned: asyncio.Event, seconds: float) -> None:
    """Wait until the call is done, nobody waits for it, or the time is up."""
    gone = asyncio.ensure_future(abandoned.wait())
    try:
        await asyncio.wait({call, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
