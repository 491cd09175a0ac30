"""What a process may use: threads under process pools, memory of control groups."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from giantsteps.simulation._engine import _machine
from giantsteps.simulation._engine._devices import resolve
from giantsteps.threads import processors


def in_worker(stated: str | None) -> tuple[int, list[int]]:
    """Threads of a run in a fresh process, and of the libraries in it."""
    for name in _machine.THREAD_VARIABLES:
        os.environ.pop(name, None)
    if stated is not None:
        os.environ["OMP_NUM_THREADS"] = stated
    threads = resolve("cpu").threads
    return threads, [pool["num_threads"] for pool in threadpool_info()]


def test_a_worker_takes_one_thread_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _machine.THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)  # or the worker's libraries would start with it
    available = processors()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        # told first: the libraries keep what they have, which is every processor
        assert pool.submit(in_worker, str(available)).result()[0] == available
        threads, pools = pool.submit(in_worker, None).result()
    assert threads == 1
    assert set(pools) == {1}


def test_the_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    pools = [{"user_api": "blas", "num_threads": 8}, {"user_api": "openmp", "num_threads": 8}]
    monkeypatch.setattr(_machine, "processors", lambda: 8)
    libraries = SimpleNamespace(info=lambda: pools)
    monkeypatch.setattr(_machine, "controller", lambda: libraries)
    monkeypatch.setattr(_machine, "threadpool_limits", lambda limits: seen.append(limits))
    for name in _machine.THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert _machine.threads() == 8  # not a worker
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: object())
    assert _machine.threads() == 1
    assert seen == [1]
    pools[0]["num_threads"] = pools[1]["num_threads"] = 3  # somebody limited them
    assert _machine.threads() == 3
    pools[1]["num_threads"] = 8  # PyTorch came later
    assert _machine.threads() == 1
    pools[0]["num_threads"] = 8
    monkeypatch.setenv("MKL_NUM_THREADS", "8")
    assert _machine.threads() == 8
    assert seen == [1, 1]


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_one_thread() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with _machine.one_thread():
            assert blas_threads() == {1}
        assert blas_threads() == before
        with pytest.raises(KeyError), _machine.one_thread():
            raise KeyError
        assert blas_threads() == before


def test_one_thread_is_lifted_by_who_set_it() -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with _machine.one_thread():
            inside.set()
            leave.wait(10)

    before, thread = blas_threads(), threading.Thread(target=other)
    with _machine.one_thread():
        thread.start()
        assert inside.wait(10)
        assert blas_threads() == {1}
    assert blas_threads() == before
    leave.set()
    thread.join()
    assert blas_threads() == before


@pytest.mark.parametrize(
    ("group", "folder", "file"),
    [
        ("0::/jobs/task", "jobs", "memory.max"),
        ("4:cpu,memory:/jobs/task", "memory/jobs", "memory.limit_in_bytes"),
    ],
)
def test_limit_of_a_control_group(
    group: str, folder: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / folder / "task").mkdir(parents=True)
    (tmp_path / folder / "task" / file).write_text("max\n")
    (tmp_path / folder / file).write_text("123456789\n")
    original = Path.read_text

    def read(path: Path) -> str:
        return group if str(path) == "/proc/self/cgroup" else original(path)

    monkeypatch.setattr(Path, "read_text", read)
    assert _machine._group_limits(tmp_path) == [123456789]


def test_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limits, expected in (([], physical), ([2**70], physical), ([1000, 2**70], 1000)):
        monkeypatch.setattr(_machine, "_group_limits", lambda limits=limits: limits)
        assert _machine.memory() == expected
