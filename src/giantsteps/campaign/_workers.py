"""Workers: who computes, behind the interface of ``concurrent.futures``."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker, spawn
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any

from giantsteps.campaign._worker import answer_calls, ending, killed_for_memory
from giantsteps.errors import GiantstepsError, InvalidProblem
from giantsteps.problem import integer
from giantsteps.threads import processors

#: Exit code of a worker that found that it was about to start workers of its own.
_UNGUARDED = 86
#: Workers that may die before they are ready to work.
_STARTS = 3
#: Seconds between looks whether to stop, while a worker starts.
_LOOK = 0.1


class WorkerLost(GiantstepsError):
    """The process that worked on a cell died: killed from outside, or out of memory."""


class WorkersGone(GiantstepsError):
    """No worker is left, or none can start; what was finished is saved."""


class TimeLimit(GiantstepsError):
    """A cell took longer than its time limit."""


class Workers:
    """Workers of a given executor.

    * ``executor``: of ``concurrent.futures``, or one that follows it.
    * ``workers``: how many calls it can work on at once.
    """

    #: Whether a call that takes too long can be ended.
    can_stop = False

    def __init__(self, executor: Executor, workers: int) -> None:
        self._executor, self._workers = executor, workers

    @property
    def count(self) -> int:
        """How many calls it works on at once."""
        return self._workers

    @property
    def capacity(self) -> int:
        """How many calls keep all workers busy: one at work and one at hand for each, and one."""
        return 2 * self.count + 1

    def submit(
        self, function: Callable[..., Any], *arguments: Any, limit: float | None = None
    ) -> Future[Any]:
        """Call ``function`` on a worker, which may take ``limit`` seconds."""
        return self._executor.submit(function, *arguments)

    def watch(self) -> None:
        """Called now and then while calls are at work."""

    def lost(self, error: Exception) -> WorkerLost:
        """The executor's own error, about a call whose worker was lost, in words."""
        return WorkerLost(f"{type(error).__name__}: {error}")

    def stop(self) -> None:
        """End all calls with `WorkersGone`, from any thread, where they can be ended."""

    def close(self, now: bool = False) -> None:
        """End what was started here; ``now``: without waiting for calls that are at work."""


class InProcess(Workers):
    """Work in this process, one call after the other."""

    def __init__(self) -> None:
        self._workers = 1

    @property
    def capacity(self) -> int:
        return 1

    def submit(
        self, function: Callable[..., Any], *arguments: Any, limit: float | None = None
    ) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


class Processes(Workers):
    """Processes of this machine, started afresh (no memory is shared with this one).

    A worker that dies or takes too long costs its own call alone, and another takes its place.
    It ends when this process does, however that happens: it watches a pipe whose other end only
    this process holds. Each sees one of the ``gpus``, as ``CUDA_VISIBLE_DEVICES`` names them.
    """

    can_stop = True

    def __init__(self, workers: int, gpus: tuple[str, ...] = ()) -> None:
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            os._exit(_UNGUARDED)  # a worker that imports the script of its runner
        check_interpreter()
        self._workers, self._stopped, self._lock = workers, False, threading.Lock()
        methods = multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context(
            "forkserver" if "forkserver" in methods else "spawn"
        )
        if "forkserver" in methods:  # new workers start with everything imported
            self._context.set_forkserver_preload(
                ["giantsteps.campaign", "giantsteps.simulation", "giantsteps.theory"]
            )
        self._calls: SimpleQueue[tuple[Future[Any], Any, float | None] | None] = SimpleQueue()
        self._watched, self._held = self._context.Pipe(duplex=False)
        self._failed_starts = 0
        own = [gpus[number % len(gpus)] if gpus else None for number in range(workers)]
        self._threads = [
            threading.Thread(target=self._serve, args=(gpu,), daemon=True) for gpu in own
        ]
        for thread in self._threads:
            thread.start()

    def submit(
        self, function: Callable[..., Any], *arguments: Any, limit: float | None = None
    ) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            if self._stopped:
                raise WorkersGone("stopped")
            self._calls.put((future, (function, arguments), limit))
        return future

    def stop(self) -> None:
        with self._lock:  # a handle that two threads close may be another file's by then
            self._stopped = True
            self._held.close()  # which ends every worker

    def close(self, now: bool = False) -> None:
        if now:
            self.stop()
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()
        self.stop()
        self._watched.close()

    # One thread looks after one process -------------------------------------------------------

    def _serve(self, gpu: str | None) -> None:
        with without_interrupts():
            self._work_off(gpu)

    def _work_off(self, gpu: str | None) -> None:
        process: Any = None
        pipe: Any = None
        while (call := self._calls.get()) is not None:
            future, asked, limit = call
            try:
                if self._stopped:
                    raise WorkersGone("stopped")
                if process is None:
                    process, pipe = self._start(gpu)
                future.set_result(self._call(process, pipe, asked, limit))
            except BaseException as error:
                if not isinstance(error, _Raised):
                    if process is not None:
                        process.kill()
                        process.join()
                    process = None
                    error = WorkersGone("stopped") if self._stopped else error
                future.set_exception(error.error if isinstance(error, _Raised) else error)
        if process is not None:
            pipe.close()
            if self._stopped:
                process.kill()
            process.join()

    def _start(self, gpu: str | None) -> tuple[Any, Connection]:
        """A new process that is ready to work."""
        while True:
            ours, theirs = self._context.Pipe()
            process = self._context.Process(
                target=answer_calls, args=(theirs, self._watched, gpu), daemon=True
            )
            try:
                process.start()
            except (EOFError, OSError):  # the process that starts them was killed: it comes back
                ours.close()
                theirs.close()
                self._failed_starts += 1
                if self._failed_starts >= _STARTS:
                    raise
                continue
            theirs.close()
            with suppress(EOFError, OSError):
                while not ours.poll(_LOOK):
                    if self._stopped:
                        process.kill()  # Ctrl-C does not wait until it has started
                ours.recv()
                self._failed_starts = 0
                return process, ours
            process.join()
            self._failed_starts += 1
            if self._stopped:
                raise WorkersGone("stopped")
            if process.exitcode == _UNGUARDED:
                raise WorkersGone(
                    "worker processes cannot start: they import the script that starts them. Put "
                    'what it runs below `if __name__ == "__main__":`, or work in this process '
                    '(executor="serial", workers=1)'
                )
            if self._failed_starts >= _STARTS:
                raise WorkersGone(
                    f"worker processes cannot start: {ending(process.exitcode)}. Work in this "
                    'process (executor="serial", workers=1) to see why'
                )

    def _call(self, process: Any, pipe: Any, asked: Any, limit: float | None) -> Any:
        killed = killed_for_memory()
        pipe.send(asked)
        ready = wait([pipe, process.sentinel], timeout=limit)
        if not ready:
            process.kill()
            raise TimeLimit(f"not finished after {limit:g} s")
        try:
            succeeded, value = pipe.recv()
        except (EOFError, OSError):
            process.join()
            memory = killed_for_memory() > killed
            raise WorkerLost(ending(process.exitcode, memory)) from None
        if not succeeded:
            raise _Raised(value)
        return value


def check_interpreter() -> None:
    """Refuse an interpreter that does not run before every process of it fails by itself.

    Raises
    ------
    GiantstepsError
        If it is missing, may not be run or ends with an error, or if the script was typed into it,
        as ``python - < script.py`` does: every process would import it.
    """
    main = sys.modules["__main__"]
    script = getattr(main, "__file__", None)
    if script == "<stdin>" and getattr(main, "__spec__", None) is None:
        raise GiantstepsError(
            "worker processes cannot start: they import the script that starts them, and this one "
            'is no file. Save it as one, or work in this process (executor="serial", workers=1)'
        )
    program = os.fsdecode(spawn.get_executable() or "")
    try:
        subprocess.run([program, "-I", "-S", "-c", ""], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise GiantstepsError(
            f"worker processes cannot start: the Python interpreter does not run ({error}). "
            'Without worker processes: --serial, or executor="serial"'
        ) from error


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Leave Ctrl-C to the runner: what this thread starts meanwhile does not see it.

    A process inherits which signals are blocked, so that it says nothing when the runner is
    stopped while it is still importing; the runner itself hears of it afterwards.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which, when it starts, lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Raised(Exception):
    """What a call raised in a worker, which is well."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


# Choosing -------------------------------------------------------------------------------------


#: Processes on one machine at most.
_MOST = 1024


def as_workers(
    executor: str | Executor | Workers, workers: int | None, device: Any = None
) -> tuple[Workers, bool]:
    """The workers that are meant, and whether they are ours to close.

    With a GPU as the ``device`` there is one process per GPU unless ``workers`` says otherwise.
    """
    if isinstance(executor, Workers):
        return executor, False
    found = gpus(device)
    count = len(found) or processors()
    if workers is not None:
        count = integer(workers, "workers", "an integer >= 1")
    if isinstance(executor, Executor):
        return Workers(executor, count), False
    if executor == "serial":
        return InProcess(), True
    if executor == "processes":
        if count > _MOST:
            raise InvalidProblem("workers", workers, f"an integer from 1 to {_MOST}")
        return Processes(count, found if device == "cuda" else ()), True
    raise InvalidProblem(
        "executor", executor, '"processes", "serial" or an Executor of concurrent.futures'
    )


def gpus(device: Any) -> tuple[str, ...]:
    """The GPUs that a device stands for, as ``CUDA_VISIBLE_DEVICES`` names them."""
    if device != "cuda":
        return (str(device),) if str(device).startswith("cuda") else ()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return tuple(name.strip() for name in visible.split(",") if name.strip())
    try:
        import torch
    except ImportError:
        return ()
    return tuple(str(number) for number in range(torch.cuda.device_count()))
