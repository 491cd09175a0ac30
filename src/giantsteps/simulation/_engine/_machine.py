"""What the machine grants this process: threads and memory."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from threadpoolctl import threadpool_limits

from giantsteps.threads import controller, processors

#: Each says how many threads the linear algebra of a process may use.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)

# Where a control group (a container, a job of a cluster) writes its limit: by the name of the
# controller in /proc/self/cgroup, the folder and the file; version 2 has no names.
_GROUPS = {"": ("", "memory.max"), "memory": ("memory", "memory.limit_in_bytes")}


def threads() -> int:
    """As many threads as the linear algebra uses, never more than the processors.

    A worker of a process pool has neighbours, and linear algebra that nobody limited takes every
    processor in each of them. So where `multiprocessing` started this process, none of the
    variables `THREAD_VARIABLES` is set and a library still takes all processors, its libraries
    are limited to one thread, for good.
    """
    available = processors()
    found = controller().info()
    pools = [(str(pool["user_api"]), int(pool["num_threads"])) for pool in found]
    greedy = any(count >= available for _, count in pools) or not pools
    worker = multiprocessing.parent_process() is not None
    if worker and greedy and not any(name in os.environ for name in THREAD_VARIABLES):
        threadpool_limits(limits=1)
        return 1
    return max(1, min([available, *(count for api, count in pools if api == "blas")]))


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, each call of the linear algebra uses no thread but the one that makes it.

    The limit is the process's. So one thread sets it and lifts it; another that enters meanwhile
    takes what it finds.
    """
    if not _limiting.acquire(blocking=False):
        yield
        return
    try:
        with controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limiting.release()


_limiting = threading.Lock()


def memory() -> int | None:
    """Bytes that this process may use: the machine's, or those of its control group if fewer.

    None where the system does not say.
    """
    if not hasattr(os, "sysconf"):
        return None
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_group_limits()])


def _group_limits(root: Path = Path("/sys/fs/cgroup")) -> list[int]:
    """Limits of the control groups that this process is in, and of those above them."""
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:  # not Linux
        return []
    found = []
    for _, controllers, path in (group.split(":", 2) for group in groups):
        for folder, file in (_GROUPS[name] for name in controllers.split(",") if name in _GROUPS):
            place = root / folder
            for part in ("", *Path(path.lstrip("/")).parts):
                place = place / part
                # A container may see its group at the root, and not the path to it.
                if (place / file).is_file():
                    limit = (place / file).read_text().strip()
                    found += [int(limit)] if limit.isdigit() else []
    return found
