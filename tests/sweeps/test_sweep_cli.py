"""The command line: run, status, export, plot, retry; stopped and resumed."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import giantsteps as gs
from giantsteps import cli

TOML = """
d = 12
seeds = 3
options = {test_samples = 50}
[problem]
activation = "tanh"
teacher = "sin"
width = 1.5
steps = [{samples = 2.0, rate = 1.0}]
readout = {samples = 2.0, penalty = 0.1}
[vary]
"readout.samples" = [1.0, 2.0]
"""
CLI = [sys.executable, "-c", "from giantsteps.cli import main; main()", "sweep"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "curve.toml"
    path.write_text(TOML)
    return path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """``call(*arguments)``: exit code, standard output and error of ``giantsteps sweep``."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            cli.main(["sweep", *map(str, arguments)])
        found = capsys.readouterr()
        return int(left.value.code or 0), found.out, found.err

    return run


def test_from_a_file_to_a_figure(file: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = call("run", file, "--dry-run")
    assert (code, out.split(",")[0]) == (0, "14 of 14 cells to run")
    assert not file.with_suffix(".sqlite").exists()
    code, out, err = call("run", file, "--serial")
    assert code == 0, err
    assert "14" in out
    assert err == ""  # no terminal, no bar
    code, out, _ = call("run", file, "--dry-run")
    assert out.startswith("0 of 14")
    for name in ("o.nc", "o.parquet", "o.csv"):
        code, out, err = call("export", file, "-o", file.with_name(name))
        assert code == 0, err
        assert file.with_name(name).exists()
    code, out, _ = call("export", file, "--summary", "-o", file.with_name("s.csv"))
    summary = pd.read_csv(file.with_name("s.csv"))
    assert {"risk.test", "risk.gain"} <= set(summary["quantity"])
    code, out, err = call("plot", file)
    assert code == 0, err
    assert file.with_suffix(".png").exists()
    code, out, err = call(
        "plot", file, "-x", "samples", "--at", "d=12", "-o", file.with_name("p.png")
    )
    assert code == 0, err


def test_the_store_alone_is_enough(file: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    call("run", file, "--serial")
    store = file.with_suffix(".sqlite")
    file.unlink()
    code, out, _ = call("status", store)
    assert code == 0
    assert "simulation" in out
    assert call("export", store, "-o", file.with_name("o.csv"))[0] == 0


def test_another_store(file: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    other = file.with_name("other.sqlite")
    assert call("run", file, "--serial", "--store", other)[0] == 0
    assert other.exists()
    assert not file.with_suffix(".sqlite").exists()


def test_failures_are_shown_and_retried(
    file: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    file.write_text(TOML.replace('"tanh"', '"relu"') + "\n")
    lines = f'sources = ["limit", "simulation"]\n{file.read_text()}'
    file.write_text(lines)
    code, out, _ = call("run", file, "--serial")
    assert code == 1
    assert "2 × NotCovered: theory.risk" in out
    assert f"giantsteps sweep retry {file}" in out
    code, out, _ = call("status", file)
    assert code == 0
    assert "NotCovered" in out
    assert call("retry", file, "--serial", "--dry-run")[1].startswith("2 of 14")
    assert call("retry", file, "--serial")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "none.toml"], "cannot read 'none.toml'"),
        (["run", "{file}", "--serial", "--dask", "local"], "cannot be combined"),
        (["run", "{file}", "--job", "cores=2"], "--job is for --dask slurm"),
        (["run", "{file}", "--dask", "slurm", "--job", "cores"], "not KEY=VALUE"),
        (["run", "{file}", "--dask", "somewhere"], "the address of a scheduler"),
        (["run", "{file}", "--workers", "0"], "0 is not in the range"),
        (["status", "{broken}"], "is not valid TOML"),
        (["status", "{wrong}"], 'did you mean "seeds"'),
        (["export", "{file}", "-o", "x.csv"], "run the sweep first"),
        (["plot", "{file}"], "run the sweep first"),
        (["plot", "{file}", "--at", "d"], "PATH=VALUE"),
        (["plot", "{file}", "--at", "d=300"], "at = 'd=300': must be one of the values of d: 12"),
    ],
)
def test_mistakes_are_one_line(
    file: Path, call: Callable[..., tuple[int, str, str]], arguments: list[str], message: str
) -> None:
    broken, wrong = file.with_name("broken.toml"), file.with_name("wrong.toml")
    broken.write_text("d = = 3")
    wrong.write_text(TOML.replace("seeds", "seed"))
    names = {"file": file, "broken": broken, "wrong": wrong}
    code, _, err = call(*(argument.format(**names) for argument in arguments))
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_a_damaged_store_is_one_line(file: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    store = file.with_suffix(".sqlite")
    store.write_bytes(b"SQLite format 3\0" + bytes(200))
    code, _, err = call("run", file, "--serial")
    assert code == 2
    assert err.count("\n") == 1
    assert store.read_bytes() == b"SQLite format 3\0" + bytes(200)


def long_sweep(file: Path) -> gs.Sweep:
    """Few cells, so that asking for its status is quick, but a minute of work."""
    file.write_text(TOML.replace("seeds = 3", "seeds = 1000").replace("d = 12", "d = 250"))
    return gs.Sweep.from_toml(file)


def wait_for_cells(sweep: gs.Sweep, process: subprocess.Popen[bytes], before: int) -> int:
    patience = time.monotonic() + 120
    while time.monotonic() < patience and process.poll() is None:
        done = sweep.status().done
        if done > before:
            return done
        time.sleep(0.1)
    process.kill()
    _, err = process.communicate(timeout=60)
    raise AssertionError(f"the sweep ended or did not start: {err.decode()}")


def test_ctrl_c_and_sigterm_stop_cleanly_and_say_how_to_resume(file: Path) -> None:
    sweep, before = long_sweep(file), 0
    for number, options in ((signal.SIGINT, ["--serial"]), (signal.SIGTERM, ["--workers", "1"])):
        process = subprocess.Popen(
            [*CLI, "run", str(file), *options],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        started = wait_for_cells(sweep, process, before)
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
        text = err.decode()
        assert process.returncode == 130, text
        assert text.startswith("stopped: ")
        assert f"resume with: giantsteps sweep run {file}" in text
        assert text.count("\n") == 1
        status = sweep.status()
        assert started <= status.done < status.total
        assert status.running == status.failed == 0
        before = status.done


def test_a_terminal_shows_a_bar(file: Path) -> None:
    screen, end = pty.openpty()
    process = subprocess.Popen(
        [*CLI, "run", str(file), "--serial"],
        stderr=end,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(end)
    shown = b""
    try:
        while chunk := os.read(screen, 4096):
            shown += chunk
    except OSError:  # the other end was closed
        pass
    os.close(screen)
    assert process.wait(60) == 0
    assert b"cells" in shown
    assert b"14/14" in shown
    assert b"/s" in shown
