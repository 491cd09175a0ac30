"""Dask: the same bits from a cluster of processes, one of which is killed in the middle."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import giantsteps as gs
from giantsteps import cli
from giantsteps.campaign import DaskWorkers, TimeLimit, _dask, _run, dask_workers, slurm_script
from giantsteps.errors import GiantstepsError

distributed = pytest.importorskip("distributed")
pytest.importorskip("dask_jobqueue")


@pytest.fixture(autouse=True)
def calm() -> Iterator[None]:
    """No files in the working directory, no patience of minutes, no talk about killed workers."""
    import logging

    import dask

    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.nanny")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    with dask.config.set({"distributed.comm.timeouts.connect": "5s"}):
        yield
    for logger, level in zip(loggers, levels):
        logger.setLevel(level)


@pytest.fixture(autouse=True)
def taken() -> Iterator[None]:
    """The port of Dask's dashboard is in use, as it is beside any other cluster."""
    with socket.socket() as other:
        with contextlib.suppress(OSError):  # by another test
            other.bind(("", 8787))
            other.listen()
        yield


def test_a_cluster_of_processes_loses_one(
    make: Callable[..., gs.Sweep], bits: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_run, "SAVE", 0.02)  # hear of the first cells at once
    fields = {"questions": ["risk", "weights"], "seeds": 20}
    serial = make(store="serial.sqlite", **fields)
    serial.run(executor="serial")
    sweep = make(**fields)
    with dask_workers("local", workers=2) as workers:
        victims = list(workers._client.run(os.getpid).values())
        assert len(set(victims)) == 2
        killed: list[int] = []

        def kill_one(done: int, failed: int, total: int) -> None:
            if done and not killed:
                assert done < total
                killed.append(victims[0])
                os.kill(victims[0], signal.SIGKILL)

        status = sweep.run(executor=workers, progress=kill_one)
        assert killed
        assert status.complete, status.errors
        address = workers._client.scheduler.address
        with dask_workers(address) as again:  # a scheduler that runs already, and stays
            assert isinstance(again, DaskWorkers)
            assert make(store="again.sqlite", **fields, d=[13]).run(executor=again).complete
        assert workers._client.status == "running"
    assert bits(sweep.store) == bits(serial.store)


def test_slurm_script(capsys: pytest.CaptureFixture[str], make: Callable[..., gs.Sweep]) -> None:
    job = {"cores": 4, "memory": "8GB", "walltime": "02:00:00", "queue": "short"}
    script = slurm_script(job)
    for line in ("#SBATCH -p short", "#SBATCH --cpus-per-task=4", "#SBATCH -t 02:00:00"):
        assert line in script
    assert "--nworkers 4" in script
    assert "--nthreads 1" in script
    file = make().store.with_name("s.toml")
    file.write_text(make().to_toml())
    options = [f"--job={key}={value}" for key, value in job.items()]
    with pytest.raises(SystemExit) as left:
        cli.main(["sweep", "run", str(file), "--dask", "slurm", "--dry-run", *options])
    assert not left.value.code
    found = capsys.readouterr()
    assert "#SBATCH -p short" in found.out
    assert "cells to run" in found.err


def test_bad_addresses_and_jobs() -> None:
    with pytest.raises(GiantstepsError, match="tcp://host:8786"), dask_workers("nowhere"):
        pass
    import dask

    soon = dask.config.set({"distributed.comm.timeouts.connect": "0.2s"})
    with soon, pytest.raises(GiantstepsError, match="no Dask"), dask_workers("tcp://127.0.0.1:9"):
        pass
    with pytest.raises(GiantstepsError, match="SLURMCluster"):
        slurm_script({"memory": "8GB"})


def test_a_call_that_takes_too_long_ends_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(os, "_exit", lambda code: ended.set())
    monkeypatch.setattr(_dask, "_FAREWELL", 0.01)
    with pytest.raises(TimeLimit, match=r"after 0\.1 s"):
        _dask._within(0.1, time.sleep, 1.0)
    assert ended.wait(10)
    assert _dask._within(10.0, pow, 2, 3) == 8
    with pytest.raises(ZeroDivisionError):
        _dask._within(10.0, divmod, 1, 0)
    with pytest.raises(TimeoutError, match="its own"):
        _dask._within(10.0, _raise, TimeoutError("its own"))


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_lost_scheduler_ends_the_run_with_one_line(
    make: Callable[..., gs.Sweep], tmp_path: Path
) -> None:
    file = tmp_path / "s.toml"
    file.write_text(make(seeds=400, d=100).to_toml())
    address = "tcp://127.0.0.1:8797"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    python = [sys.executable, "-m"]
    scheduler = subprocess.Popen(
        [*python, "distributed.cli.dask_scheduler", "--port", "8797", "--no-dashboard"], **quiet
    )
    worker = subprocess.Popen(
        [*python, "distributed.cli.dask_worker", address, "--nthreads", "1"], **quiet
    )
    run = subprocess.Popen(
        [*python, "giantsteps", "sweep", "run", str(file), "--dask", address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        patience = time.monotonic() + 60
        while make(seeds=400, d=100).status().done < 5:
            assert run.poll() is None, run.communicate()
            assert time.monotonic() < patience
            time.sleep(0.1)
        scheduler.kill()
        _, error = run.communicate(timeout=60)
    finally:
        for process in (scheduler, worker, run):
            process.kill()
            process.wait()
    assert run.returncode == 1
    assert error.count("\n") == 1, error
    assert "scheduler has gone" in error
    assert f"resume with: giantsteps sweep run {file}" in error


#: The command line with another interpreter for its workers, and little patience with them.
_COMMAND = """
import sys
from multiprocessing import spawn
from giantsteps.campaign import _dask
if __name__ == "__main__":
    spawn.set_executable(sys.argv.pop(1))
    _dask._MISSING = 2.0
    from giantsteps.cli import main
    main(sys.argv[1:])
"""


def _command(tmp_path: Path, interpreter: Path, *arguments: str) -> list[str]:
    program = tmp_path / "command.py"
    program.write_text(_COMMAND)
    return [sys.executable, str(program), str(interpreter), "sweep", "run", *arguments]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a shell script as interpreter")
@pytest.mark.parametrize("kind", [["--dask", "local"], []], ids=["dask", "processes"])
@pytest.mark.parametrize("there", [False, True], ids=["missing", "broken"])
def test_workers_that_cannot_start_are_one_line(
    make: Callable[..., gs.Sweep], tmp_path: Path, kind: list[str], there: bool
) -> None:
    """Multiprocessing's resource tracker had a traceback of its own for each of them."""
    file, interpreter = tmp_path / "s.toml", tmp_path / "python"
    file.write_text(make(seeds=3).to_toml())
    if there:
        interpreter.write_text("#!/bin/sh\nexit 3\n")
        interpreter.chmod(0o755)
    command = _command(tmp_path, interpreter, str(file), "--workers", "1", *kind)
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert run.returncode == 2  # refused: nothing has been computed
    assert run.stderr.count("\n") == 1, run.stderr
    assert "worker processes cannot start" in run.stderr
    assert str(interpreter) in run.stderr
    assert make(seeds=3).status().done == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("again", [True, False], ids=["revived", "gone"])
def test_workers_that_are_killed_come_back_or_end_the_run_with_one_line(
    make: Callable[..., gs.Sweep], tmp_path: Path, again: bool
) -> None:
    import psutil  # type: ignore[import-untyped]

    file, interpreter, gone = tmp_path / "s.toml", tmp_path / "python", tmp_path / "gone"
    fields: dict[str, Any] = {"seeds": 400, "d": 100}
    file.write_text(make(**fields).to_toml())
    interpreter.write_text(f'#!/bin/sh\ntest -e {gone} && exit 3\nexec {sys.executable} "$@"\n')
    interpreter.chmod(0o755)
    command = _command(tmp_path, interpreter, str(file), "--workers", "1", "--dask", "local")
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        patience = time.monotonic() + 60
        while make(**fields).status().done < 5:
            assert run.poll() is None, run.communicate()
            assert time.monotonic() < patience
            time.sleep(0.1)
        if not again:
            gone.touch()
        killed = 0
        for child in psutil.Process(run.pid).children(recursive=True):
            if "spawn_main" in " ".join(child.cmdline()):
                child.kill()
                killed += 1
        assert killed
        _, error = run.communicate(timeout=200)
    finally:
        run.kill()
        run.wait()
    if again:
        assert (run.returncode, error) == (0, "")
        assert make(**fields).status().complete
        return
    assert run.returncode == 1
    assert error.count("\n") == 1, error
    assert "end as soon as they start" in error
    assert f"resume with: giantsteps sweep run {file}" in error
    assert 5 <= make(**fields).status().done < make(**fields).status().total
