"""One worker process: what it does, and how it ended."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from giantsteps.errors import GiantstepsError


def answer_calls(pipe: Connection, watched: Connection, gpu: str | None) -> None:
    """Of a worker: leave Ctrl-C to the runner, end with it, and answer calls."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(watched,), daemon=True).start()
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    with suppress(EOFError, OSError):  # when the runner has gone
        pipe.send("ready")
        while True:
            function, arguments = pipe.recv()
            try:
                pipe.send((True, function(*arguments)))
            except Exception as error:
                pipe.send((False, _portable(error)))


def _portable(error: Exception) -> Exception:
    """The error, or one with its text if it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return GiantstepsError(f"{type(error).__name__}: {error}")
    return error


def _end_with(watched: Connection) -> None:
    watched.poll(None)  # returns when the other end is closed
    os._exit(1)


def ending(code: int | None, memory: bool = False) -> str:
    """How a process ended, in words."""
    if memory:
        return "the system killed its process because memory ran out"
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        if name == "SIGKILL":
            return "its process was killed (SIGKILL), as the system does when memory runs out"
        return f"its process was ended by {name}"
    return f"its process ended with exit code {code}"


def killed_for_memory() -> int:
    """How many processes the system has killed for memory so far, as far as it tells."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
