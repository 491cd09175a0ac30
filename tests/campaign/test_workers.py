"""Worker processes: they die, hang and fail to start, and each costs its own call alone."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from giantsteps import campaign
from giantsteps.campaign import (
    Cells,
    Store,
    TimeLimit,
    WorkerLost,
    WorkersGone,
    _workers,
    gpus,
    read_table,
)
from giantsteps.campaign._work import failure
from giantsteps.campaign._worker import killed_for_memory
from giantsteps.campaign._workers import InProcess, Processes
from giantsteps.errors import GiantstepsError


@pytest.fixture(scope="module")
def pool() -> Iterator[Processes]:
    workers = Processes(2)
    yield workers
    workers.close()


def test_calls_are_answered_and_errors_come_back(pool: Processes) -> None:
    found = [pool.submit(pow, number, 2) for number in range(20)]
    assert [future.result(60) for future in found] == [number**2 for number in range(20)]
    with pytest.raises(ZeroDivisionError):
        pool.submit(divmod, 1, 0).result(60)
    first = {pool.submit(os.getpid).result(60) for _ in range(5)}
    assert os.getpid() not in first
    assert len(first) <= 2  # an error does not cost a process


def test_a_worker_that_dies_costs_its_own_call(networks: Any) -> None:
    pool = Processes(2)
    try:
        fine = [pool.submit(pow, 2, number) for number in range(10)]
        with pytest.raises(WorkerLost, match="SIGKILL"):
            pool.submit(networks.die).result(60)
        assert [future.result(60) for future in fine] == [2**number for number in range(10)]
        assert pool.submit(pow, 2, 3).result(60) == 8
    finally:
        pool.close()


def test_a_call_that_takes_too_long_is_ended(networks: Any) -> None:
    pool = Processes(1)
    try:
        pool.submit(pow, 2, 3).result(60)
        started = time.monotonic()
        with pytest.raises(TimeLimit, match=r"after 0\.3 s"):
            pool.submit(networks.hang, limit=0.3).result(60)
        assert time.monotonic() - started < 20
        assert pool.submit(pow, 2, 3, limit=50.0).result(60) == 8
    finally:
        pool.close()


def test_an_error_that_cannot_be_sent_is_sent_as_text(networks: Any) -> None:
    pool = Processes(1)
    try:
        with pytest.raises(GiantstepsError, match="Odd: 1"):
            pool.submit(networks.odd).result(60)
    finally:
        pool.close()


def test_closing_at_once_ends_what_is_at_work(networks: Any) -> None:
    pool = Processes(2)
    pool.submit(pow, 2, 3).result(60)
    hanging = pool.submit(networks.hang)
    time.sleep(0.2)
    started = time.monotonic()
    pool.close(now=True)
    assert time.monotonic() - started < 10
    with pytest.raises(WorkersGone):
        hanging.result(0)


def test_closing_at_once_ends_workers_that_start(
    networks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_workers, "answer_calls", networks.hang)  # which is never ready
    pool = Processes(1)
    waiting = pool.submit(pow, 2, 3)
    time.sleep(0.5)
    started = time.monotonic()
    pool.close(now=True)
    assert time.monotonic() - started < 50  # the worker itself would end after a minute
    with pytest.raises(WorkersGone):
        waiting.result(0)


def test_stopped_from_another_thread_nobody_waits_for_ever(networks: Any) -> None:
    pool = Processes(1)
    calls = [pool.submit(networks.hang) for _ in range(3)]  # one at work, two waiting
    threading.Thread(target=pool.stop).start()
    for call in calls:
        with pytest.raises(WorkersGone):
            call.result(30)
    with pytest.raises(WorkersGone):
        pool.submit(pow, 2, 3)
    pool.close(now=True)


def test_a_kill_for_memory_is_called_so(
    misbehaving: Callable[..., list[Cells]], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = iter(range(1000))
    monkeypatch.setattr(_workers, "killed_for_memory", lambda: next(counts))
    with Store(None) as store:
        status = campaign.run(misbehaving(range(4), deadly=[2]), store, workers=1)
    assert (status.done, status.failed) == (3, 1)
    (error,) = status.errors
    assert error == ("WorkerLost: the system killed its process because memory ran out (3 times)")


def test_the_system_counts_kills_for_memory() -> None:
    assert killed_for_memory() >= 0


# A campaign -----------------------------------------------------------------------------------


def test_cells_that_hang_die_or_raise_fail_alone(misbehaving: Callable[..., list[Cells]]) -> None:
    cells = misbehaving(range(6), slow=[1], deadly=[3], wrong=[4])
    with Store(None) as store:
        status = campaign.run(cells, store, workers=2, time_limit=3.0)
        assert (status.done, status.failed, status.left) == (3, 3, 0)
        kinds = sorted(error.partition(":")[0] for error in status.errors)
        assert kinds == ["TimeLimit", "WorkerLost", "ZeroDivisionError"]
        assert "TimeLimit: not finished after 3 s" in status.errors
        numbers = read_table(cells[0], store)["number"][1].ravel()
    assert [int(n) for n in numbers if n == n] == [10, 12, 15]


def test_bare_functions_of_workers_have_no_store(misbehaving: Callable[..., list[Cells]]) -> None:
    with Store(None) as store:
        campaign.run(misbehaving(range(3)), store, executor="serial")
        assert store.path is None
        assert len(store.status()) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")
@pytest.mark.parametrize(
    "call",
    [
        "gs.compare(problem, d=10, seeds=4, workers=2)",
        'gs.compare(problem, d=10, seeds=4, workers=2, store="x.sqlite")',
        'gs.Sweep(grid=problem, d=10, seeds=4, store="x.sqlite").run(workers=2)',
    ],
)
def test_a_script_without_a_guard_gets_one_clear_line(tmp_path: Path, call: str) -> None:
    script = tmp_path / "careless.py"
    script.write_text(
        textwrap.dedent(f"""
        import giantsteps as gs
        problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
                             readout=gs.Ridge(samples=2, penalty=0.1))
        try:
            {call}
        except gs.GiantstepsError as error:
            print(error)
        """)
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.stdout.count("\n") == 1, done.stdout
    assert 'below `if __name__ == "__main__":`' in done.stdout
    assert done.stderr == ""


def test_a_script_that_is_no_file_is_told_so(tmp_path: Path) -> None:
    """As ``python - < script.py`` runs it, which no process can import."""
    script = """
        import giantsteps as gs
        problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
                             readout=gs.Ridge(samples=2, penalty=0.1))
        try:
            gs.compare(problem, 20, seeds=2, workers=2)
        except gs.GiantstepsError as error:
            print(error)
        """
    done = subprocess.run(
        [sys.executable, "-"], input=textwrap.dedent(script), capture_output=True, text=True,
        timeout=120, cwd=tmp_path,
    )  # fmt: skip
    assert "this one is no file. Save it as one, or work in this process" in done.stdout
    assert done.stderr == ""


def test_workers_that_cannot_start_stop_the_run(
    misbehaving: Callable[..., list[Cells]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_workers, "answer_calls", os._exit)  # which takes one argument: it raises
    with Store(None) as store, pytest.raises(WorkersGone, match="cannot start"):
        campaign.run(misbehaving(range(3)), store, workers=1)


# GPUs -----------------------------------------------------------------------------------------


def test_several_gpus_get_a_worker_each(networks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, 5")
    assert gpus("cuda") == ("3", "5")
    assert gpus("cuda:1") == ("cuda:1",)
    assert gpus("cpu") == gpus(None) == gpus("torch") == ()
    workers, ours = campaign.as_workers("processes", None, "cuda")
    try:
        assert ours
        calls = [(networks.environment, "CUDA_VISIBLE_DEVICES")] * 6
        assert set(campaign.each(workers, calls)) == {"3", "5"}
    finally:
        workers.close()


def test_one_gpu_is_left_to_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    workers, _ = campaign.as_workers("processes", None, "cuda")
    try:
        assert workers.capacity == 3
        assert workers.submit(os.getenv, "CUDA_VISIBLE_DEVICES").result(60) == "0"
    finally:
        workers.close()


class _KilledWorker(Exception):
    """Named as Dask names its own."""


class _Blaming(InProcess):
    """Says of the first calls that they ended their workers, as Dask does of all a worker had."""

    def __init__(self, blamed: Callable[[int, Any], bool]) -> None:
        super().__init__()
        self.blamed, self.calls = blamed, 0

    @property
    def capacity(self) -> int:
        return 3

    def submit(self, function: Any, *arguments: Any, limit: float | None = None) -> Future[Any]:
        self.calls += 1
        if not self.blamed(self.calls, arguments[0]):
            return super().submit(function, *arguments, limit=limit)
        found: Future[Any] = Future()
        found.set_exception(_KilledWorker("the workers died"))
        return found


def test_calls_that_are_blamed_with_others_get_their_chance(
    misbehaving: Callable[..., list[Cells]],
) -> None:
    with Store(None) as store:
        crew = _Blaming(lambda calls, task: calls <= 2)
        status = campaign.run(misbehaving(range(6)), store, executor=crew)
    assert (status.done, status.failed) == (6, 0)


def test_the_one_that_ends_its_workers_fails_alone(
    misbehaving: Callable[..., list[Cells]],
) -> None:
    with Store(None) as store:
        crew = _Blaming(lambda calls, task: 4 in task.seeds)
        status = campaign.run(misbehaving(range(6)), store, executor=crew)
    assert (status.done, status.failed) == (5, 1)
    assert list(status.errors) == ["WorkerLost: _KilledWorker: the workers died"]


def test_memory_that_ran_out_without_a_word_is_named() -> None:
    task: Any = SimpleNamespace(threads=1)
    assert failure(MemoryError(), 0.0, task).error == "MemoryError: no memory was left for it"
