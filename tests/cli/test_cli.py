"""The command line: answers, files, exit codes, and the mistakes of a newcomer."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.answers import Risk

Run = Callable[..., tuple[Any, str, str]]

FLAGS = [
    "--activation",
    "tanh",
    "--teacher",
    "sin",
    "--width",
    "1.5",
    "--samples",
    "2",
    "--penalty",
    "0.1",
]
STEP = ["--step", "samples=2,rate=3"]
PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    steps=[gs.Step(samples=2, rate=3)],
    readout=gs.Ridge(samples=2, penalty=0.1),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "problem.toml"
    path.write_text(PROBLEM.to_toml())
    return path


def test_predict_from_flags_file_and_set_agree(run: Run, file: Path) -> None:
    expected = theory.risk(PROBLEM).test
    for arguments in (FLAGS + STEP, [file], [*FLAGS, *STEP, "--width", "9", "--set", "width=1.5"]):
        code, out, _ = run("predict", *arguments, "--json")
        assert code == 0
        assert json.loads(out)["values"]["test"] == [expected]


def test_predict_varies_along_paths(run: Run, file: Path, tmp_path: Path) -> None:
    csv = tmp_path / "curve.csv"
    code, out, _ = run("predict", file, "--vary", "readout.samples=1:2:3", "--json", "--csv", csv)
    assert code == 0
    grid = gs.Grid(PROBLEM, {"readout.samples": [1, 1.5, 2]})
    assert json.loads(out)["values"]["test"] == np.asarray(theory.risk(grid).test).tolist()
    assert len(csv.read_text().splitlines()) == 4
    code, out, _ = run("predict", file, "--vary", "readout.penalty=0.01:1:3:log", "--json")
    assert json.loads(out)["values"]["readout.penalty"] == pytest.approx([0.01, 0.1, 1.0])


def test_predict_tables(run: Run, file: Path) -> None:
    code, out, _ = run("predict", file)
    assert code == 0
    assert f"{theory.risk(PROBLEM).test:.6g}" in out
    code, out, _ = run("predict", file, "--question", "weights")
    assert "bulk: [" in out
    assert "overlap.teacher" in out
    assert code == 0


def test_simulate(run: Run, file: Path) -> None:
    from giantsteps import simulation

    code, out, _ = run("simulate", file, "-d", 60, "--seed", 3, "--json")
    assert code == 0
    assert json.loads(out)["values"]["test"] == [simulation.risk(PROBLEM, d=60, seed=3).test]


def test_every_question_of_theory_has_a_table(run: Run, file: Path) -> None:
    bounds = theory.bounds(PROBLEM)
    code, out, _ = run("predict", file, "--question", "bounds")
    assert code == 0
    assert f"{bounds['linear']:.6g}" in out
    code, _, error = run("predict", file, "--question", "bounds", "-d", 100)
    assert code == 2
    assert "leave out -d 100" in error
    code, out, _ = run("predict", file, "--question", "learned_function", "-d", 100, "--json")
    assert json.loads(out)["values"]["mean"] == list(theory.learned_function(PROBLEM, 100).mean)


def test_compare_passes_the_device_on(run: Run, file: Path) -> None:
    code, _, error = run("compare", file, "-d", 30, "--seeds", 2, "--device", "gpu")
    assert code == 2
    assert "device" in error


def test_compare_draws_and_judges(run: Run, file: Path, tmp_path: Path) -> None:
    figure, csv = tmp_path / "curve.png", tmp_path / "curve.csv"
    code, out, _ = run(
        *("compare", file, "-d", 60, "--seeds", 4, "--vary", "readout.samples=1,2"),
        *("-o", figure, "--csv", csv, "--json"),
    )
    assert code in (0, 3)
    assert (code == 3) == (json.loads(out)["verdict"] == "disagree")
    assert figure.stat().st_size > 5000
    assert csv.read_text().startswith("readout.samples,quantity,d,")


def test_disagreement_has_its_own_exit_code(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted error of 20 % in theory must be found."""
    from dataclasses import replace

    def wrong(problem: gs.Problem | gs.Grid, d: int | None = None) -> Risk:
        answer = right(problem)
        return replace(answer, test=1.2 * answer.test)

    right = theory.risk
    monkeypatch.setattr(theory, "risk", wrong)
    code, _, _ = run("compare", file, "-d", 100, "--seeds", 12, "--quantity", "test")
    assert code == 3


def test_output_is_strict_json(run: Run) -> None:
    growing = ["--step", "samples=2,rate=3,exponent=0.5"]
    code, out, _ = run("predict", *FLAGS, *growing, "--question", "weights", "--json")
    assert code == 0
    assert json.loads(out)["values"]["value"] == ["inf"]


MISTAKES = {
    "no problem": (["predict"], "no problem given"),
    "missing file": (["predict", "nothing.toml"], "no file 'nothing.toml'"),
    "a folder": (["predict", "."], "cannot read '.'"),
    "unknown command": (["predcit"], "did you mean 'predict'?"),
    "unknown option": (["predict", *FLAGS, "--widht", "1"], "--widht"),
    "unknown function": (["predict", *FLAGS, "--activation", "tanhh"], "tanh"),
    "hostile text": (["predict", *FLAGS, "--activation", "__import__('os')"], "activation"),
    "missing field": (["predict", "--activation", "tanh", "--teacher", "sin"], "width"),
    "word for number": (["predict", *FLAGS, "--width", "wide"], "width = 'wide'"),
    "negative": (["predict", *FLAGS, "--set", "width=-1"], "width = -1"),
    "unknown path": (["predict", *FLAGS, "--set", "readout.sample=2"], 'did you mean "samples"'),
    "no equals sign": (["predict", *FLAGS, "--set", "width"], "PATH=VALUE"),
    "exponent": (["predict", *FLAGS, "--step", "samples=1,rate=1,exponent=0.7"], "0.7"),
    "bad range": (["predict", *FLAGS, "--vary", "width=1:2"], "a:b:n"),
    "log of zero": (["predict", *FLAGS, "--vary", "width=0:2:3:log"], "a, b > 0"),
    "no dimension": (["simulate", *FLAGS], "dimension"),
    "dimension zero": (["simulate", *FLAGS, "-d", "0"], "d = 0"),
    "dimension word": (["compare", *FLAGS, "-d", "big"], "big"),
    "one seed": (["compare", *FLAGS, "-d", "50", "--seeds", "1"], "seeds = 1"),
    "negative seed": (["simulate", *FLAGS, "-d", "50", "--seed", "-1"], "seed"),
    "uncentred": (
        ["predict", *FLAGS, "--activation", "relu", "--step", "samples=1,rate=1"],
        '--activation "centered(NAME)"',
    ),
    "no readout": (
        ["predict", "--activation", "tanh", "--teacher", "sin", "--width", "1"],
        "readout",
    ),
    "question": (["predict", *FLAGS, "--question", "riks"], "riks"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_get_one_line(run: Run, mistake: str) -> None:
    arguments, needle = MISTAKES[mistake]
    code, out, err = run(*arguments)
    assert code == 2, err
    assert out == ""
    assert needle in err
    assert err.startswith("giantsteps: error: ")
    assert err.count("\n") == 1


def test_broken_toml(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text('activation = "tanh\n')
    code, _, err = run("predict", path)
    assert code == 2
    assert "not valid TOML" in err


@pytest.mark.parametrize("command", [[], ["predict"], ["simulate"], ["compare"], ["demo"]])
def test_help_teaches(run: Run, command: list[str]) -> None:
    code, out, _ = run(*command, "--help")
    assert code == 0
    assert "Usage: giantsteps" in out
    if command != ["demo"]:
        assert "Example" in out


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom giantsteps import cli\n"
        "try: cli.main(['--help'])\nexcept SystemExit: pass\n"
        "assert not {'numpy', 'scipy', 'rich', 'matplotlib'} & set(sys.modules), 'heavy import'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
