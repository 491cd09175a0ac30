"""The commands that run networks: outputs are checked first, nothing is overwritten unasked."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import giantsteps as gs
from giantsteps import simulation

FLAGS = ["--activation", "tanh", "--teacher", "sin", "--width", "1.5", "--samples", "2",
         "--penalty", "0.1", "--step", "samples=2,rate=3"]  # fmt: skip
COMPARE = ["compare", *FLAGS, "-d", "20", "--seeds", "2"]
SWEEP = """
d = [12, 20]
seeds = 2
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
Run = Callable[..., tuple[Any, str, str]]


@pytest.fixture
def no_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever simulates has failed."""

    def drawn(*_: Any, **__: Any) -> None:
        raise AssertionError("a network was drawn before the mistake was found")

    monkeypatch.setattr(simulation.Run, "risk", drawn)


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    file = tmp_path / "curve.toml"
    file.write_text(SWEEP)
    return file


def one_line(error: str) -> bool:
    return error.startswith("giantsteps: error: ") and error.count("\n") == 1


MISTAKES: dict[str, tuple[list[str], str]] = {
    "no axis": ([*COMPARE, "-o", "x.png"], "--vary a field with numbers, or give several -d"),
    "no such ending": ([*COMPARE, "-d", "20,30", "-o", "c.xyz"], "must end in .png, .pdf, .svg"),
    "no folder for the figure": ([*COMPARE, "-d", "20,30", "-o", "no/c.png"], "no folder 'no'"),
    "no folder for the table": ([*COMPARE, "--csv", "no/c.csv"], "no folder 'no'"),
    "a folder as table": ([*COMPARE, "--csv", "."], "is a folder"),
    "no folder for the store": ([*COMPARE, "--store", "no/s.sqlite"], "no folder 'no'"),
    "a quantity": ([*COMPARE, "--quantity", "tset"], 'did you mean "test"'),
    "a question": ([*COMPARE, "--question", "bounds"], "only theory answers"),
    "no workers": ([*COMPARE, "--workers", "0"], "--workers"),
    "no time": ([*COMPARE, "--time-limit", "0"], "--time-limit"),
    "an axis of texts": (
        [*COMPARE, "--vary", "activation=tanh,erf", "-o", "c.png"], "needs an axis"
    ),
    "demo without folder": (["demo", "-o", "no/demo.png"], "no folder 'no'"),
    "demo with an ending": (["demo", "-o", "demo.doc"], "must end in"),
    "two sizes of a figure": (["figure", "cui2024-2", "--smoke", "--paper"], "cannot be combined"),
    "no such figure": (["figure", "cui2024-9"], 'did you mean "cui2024'),
    "two scales": (["certify", "--short", "--full"], "--short and --full cannot be combined"),
    "a store for an old certificate": (
        ["certify", "--again", __file__, "--store", "s.sqlite"], "cannot be combined"
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found_before_any_network(
    run: Run, no_networks: None, mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, needle = MISTAKES[mistake]
    code, out, error = run(*arguments)
    assert code == 2, error
    assert out == ""
    assert needle in error
    assert one_line(error)


SWEEP_MISTAKES: dict[str, tuple[list[str], str]] = {
    "serial workers": (["run", "--serial", "--workers", "2"], "--serial and --workers"),
    "serial and dask": (["run", "--serial", "--dask", "local"], "--serial and --dask"),
    "serial limit": (["run", "--serial", "--time-limit", "3"], "--serial and --time-limit"),
    "a slice": (["plot", "--at", "d=300"], "one of the values of d: 12, 20"),
    "a slice of nothing": (["plot", "--at", "width=2"], '"readout.samples"'),
    "a figure's ending": (["plot", "-o", "c.xyz"], "must end in .png, .pdf, .svg"),
    "a file's ending": (["export", "-o", "c.xls"], "must end in .nc, .parquet, .csv"),
    "no folder": (["export", "-o", "no/c.csv"], "no folder 'no'"),
    "a quantity": (["plot", "--quantity", "risk.tset"], 'did you mean "test"'),
    "both kinds": (["export", "-o", "c.nc", "--summary", "--spectra"], "cannot be combined"),
}


@pytest.mark.parametrize("mistake", SWEEP_MISTAKES)
def test_mistakes_with_a_sweep_get_one_line(
    run: Run, sweep: Path, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sweep.parent)
    (verb, *options), needle = SWEEP_MISTAKES[mistake]
    if verb != "run":
        run("sweep", "run", sweep, "--serial")
    code, _, error = run("sweep", verb, sweep, *options)
    assert code == 2, error
    assert needle in error
    assert one_line(error)


# Outputs ----------------------------------------------------------------------------------------


def test_nothing_is_overwritten_unasked(run: Run, tmp_path: Path) -> None:
    csv = tmp_path / "table.csv"
    csv.write_text("precious")
    code, out, error = run(*COMPARE, "--csv", csv)
    assert (code, out) == (2, "")
    assert "add --overwrite" in error
    assert csv.read_text() == "precious"
    code, _, _ = run(*COMPARE, "--csv", csv, "--overwrite")
    assert code in (0, 3)
    assert csv.read_text().startswith("quantity,")


def test_the_table_is_there_if_the_drawing_fails(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from giantsteps.comparison import Comparison

    def broken(*_: Any, **__: Any) -> None:
        raise OSError("no ink")

    monkeypatch.setattr(Comparison, "plot", broken)
    csv = tmp_path / "c.csv"
    code, out, error = run(
        *COMPARE, "--vary", "readout.samples=1,2", "-o", tmp_path / "c.png", "--csv", csv
    )
    assert code == 1
    assert "no ink" in error
    assert "initial.test" in out
    assert csv.exists()


def test_a_comparison_is_kept_and_estimated(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "networks.sqlite"
    code, out, error = run(*COMPARE, "--store", store, "--dry-run")
    assert (code, out) == (0, "")
    assert "4 networks" in error
    assert not store.exists()
    run(*COMPARE, "--store", store, "--json")
    _, _, error = run(*COMPARE, "--store", store, "--dry-run")
    assert "0 networks" in error
    code, out, _ = run(*COMPARE, "--store", store, "--workers", 2, "--json")
    values = json.loads(out)["values"]
    assert values["seeds"] == [2.0] * 4
    code, out, _ = run(*COMPARE, "--question", "learned_function", "-o", tmp_path / "f.png")
    assert (tmp_path / "f.png").exists()
    assert "mean" in out


def test_set_alone_states_a_problem(run: Run) -> None:
    fields = ["activation=tanh", "teacher=sin", "width=1.5", "readout={samples=2.0, penalty=0.1}"]
    options = [option for field in fields for option in ("--set", field)]
    code, out, error = run("predict", *options, "--json")
    assert code == 0, error
    problem = gs.Problem(
        activation="tanh", teacher="sin", width=1.5, readout=gs.Ridge(samples=2.0, penalty=0.1)
    )
    assert json.loads(out)["problem"] == problem.to_data()


def test_the_resume_hint_repeats_the_store(run: Run, sweep: Path, tmp_path: Path) -> None:
    other = tmp_path / "my store.sqlite"
    _, out, _ = run("sweep", "status", sweep, "--store", other)
    assert f"run the remaining cells with: giantsteps sweep run {sweep} --store '{other}'" in out


def test_a_sweep_says_what_it_will_take(run: Run, sweep: Path) -> None:
    _, out, error = run("sweep", "run", sweep, "--dry-run")
    assert "cells to run" in out
    assert "8 networks" in error  # two sizes, two seeds, before and after; readouts share them
    run("sweep", "run", sweep, "--serial")
    _, out, error = run("sweep", "run", sweep, "--dry-run")
    assert (out[:4], error) == ("0 of", "")


def test_a_summary_has_verdicts(run: Run, sweep: Path) -> None:
    import pandas as pd

    run("sweep", "run", sweep, "--serial")
    run("sweep", "export", sweep, "--summary", "-o", sweep.with_suffix(".csv"))
    table = pd.read_csv(sweep.with_suffix(".csv"))
    assert set(table["verdict"].dropna()) <= {"agree", "unresolved", "finite size", "disagree"}
    judged = table[table["quantity"] == "risk.test"]["verdict"]
    assert judged.notna().all()


@pytest.mark.parametrize("command", [[], ["sweep"]])
def test_without_a_command_there_is_help(run: Run, command: list[str]) -> None:
    code, out, error = run(*command)
    assert (code, error) == (0, "")
    assert out.startswith("Usage: giantsteps")
    assert out.count("\n") > 15


def test_python_m_giantsteps() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "giantsteps", "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("Usage: giantsteps")


# Extras -----------------------------------------------------------------------------------------

WITHOUT: dict[str, tuple[list[str], str, str]] = {
    "demo": (["demo"], "matplotlib", "giantsteps[plot]"),
    "compare": ([*COMPARE, "-d", "20,30", "-o", "c.png"], "matplotlib", "giantsteps[plot]"),
    "figure": (["figure", "cui2024-2"], "matplotlib", "giantsteps[plot]"),
    "plot": (["sweep", "plot", "curve.toml"], "matplotlib", "giantsteps[plot]"),
    "export to NetCDF": (["sweep", "export", "curve.toml", "-o", "c.nc"], "xarray",
                         "giantsteps[sweep]"),
    "export to CSV": (["sweep", "export", "curve.toml", "-o", "c.csv"], "pandas",
                      "giantsteps[sweep]"),
    "Dask": (["sweep", "run", "curve.toml", "--dask", "local"], "distributed",
             "giantsteps[cluster]"),
}  # fmt: skip


@pytest.mark.parametrize("command", WITHOUT)
def test_a_missing_extra_is_one_line_before_any_network(
    run: Run,
    sweep: Path,
    no_networks: None,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(sweep.parent)
    arguments, library, remedy = WITHOUT[command]
    for name in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    code, out, error = run(*arguments)
    assert (code, out) == (1, "")
    assert f'needs {library}: pip install "{remedy}"' in error
    assert one_line(error)
    assert not (sweep.parent / "curve.sqlite").exists()
