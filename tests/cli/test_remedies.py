"""Advice on the command line is given as flags, and a problem can be stated by flags alone."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from giantsteps import cli
from giantsteps.cli._remedies import as_flags
from giantsteps.problem import Problem, Vocabulary
from giantsteps.theory.scope.conditions import CONDITIONS

PYTHON = re.compile(r"\bgs\.|\w=[\"(]|\[Step|Ridge\(|(pass|give) d\b")
PLAIN = Problem.from_data(
    {"activation": "tanh", "teacher": "sin", "width": 1.0,
     "steps": [{"samples": 2.0, "rate": 1.0, "exponent": 0.3}]}
)  # fmt: skip


@pytest.mark.parametrize("name", CONDITIONS)
def test_remedies_of_theory_become_flags(name: str) -> None:
    fix = CONDITIONS[name].fix
    for d in (None, 100):
        advice = fix(PLAIN, d) if callable(fix) else fix
        assert not PYTHON.search(as_flags(advice)), as_flags(advice)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[Any, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(list(arguments))
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


BASE = ["--activation", "tanh", "--teacher", "sin", "--width", "1.5"]
READOUT = ["--samples", "2", "--penalty", ".1"]
STEP = ["--step", "samples=1,rate=1"]
ADVICE = {
    "readout": (BASE, "--samples and --penalty"),
    "centred activation": ([*BASE, *READOUT, *STEP, "--activation", "relu"],
                           '--activation "centered(NAME)", or give -d'),
    "centred teacher": ([*BASE, *READOUT, "--step", "samples=1,rate=1,exponent=.3",
                         "--teacher", "relu"], '--teacher "centered(NAME)"'),
    "rule": (
        [*BASE, *READOUT, "--step", "samples=1,rate=1,rule=muon"], "--set steps.N.rule=gradient"
    ),
    "inputs": (
        [*BASE, *READOUT, *STEP, "--set", "inputs.law=power_law", "--set", "inputs.exponent=0.4"],
        "--set inputs=isotropic",
    ),
    "steps": ([*BASE, *READOUT, "--set", "steps.rate=1"], "--step samples=2,rate=3"),
    "later step": ([*BASE, *READOUT, "--set", "steps.3.rate=1"], "0 would add one"),
    "a part of a number": ([*BASE, *READOUT, "--set", "width.x=1"], "'width' has no parts"),
}  # fmt: skip


@pytest.mark.parametrize("case", ADVICE)
def test_errors_advise_flags(capsys: pytest.CaptureFixture[str], case: str) -> None:
    arguments, needle = ADVICE[case]
    code, out, error = run(capsys, "predict", *arguments)
    assert (code, out) == (2, "")
    assert needle in error
    assert not PYTHON.search(error.split("must be")[-1]), error


def test_the_advice_works(capsys: pytest.CaptureFixture[str]) -> None:
    centred = ["--activation", "centered(relu)", "--teacher", "centered(relu)"]
    code, out, _ = run(capsys, "predict", *BASE, *READOUT, *centred, "--json")
    assert code == 0
    assert json.loads(out)["problem"]["activation"] == {"name": "relu", "centered": True}


def stated(capsys: pytest.CaptureFixture[str], *arguments: str) -> Problem:
    small = ["-d", "20", "--question", "trajectory", "--json"]
    code, out, error = run(capsys, "simulate", *arguments, *small)
    assert code == 0, error
    return Problem.from_data(json.loads(out)["problem"])


def test_set_states_any_field_without_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    fields = ["activation=tanh", "teacher=sin", "width=1", "readout.samples=2",
              "readout.penalty=.1",
              "steps.0.samples=2", "steps.0.rate=1", "steps.1.samples=3", "steps.1.rate=.5",
              "steps.1.decay=0.25", "init.output=unscaled",
              "init.second_layer.law=vocabulary", "init.second_layer.values=[-1, 1]",
              "init.second_layer.probabilities=[0.5, 0.5]"]  # fmt: skip
    options = [option for field in fields for option in ("--set", field)]
    problem = stated(capsys, *options)
    assert problem.steps[1].decay == 0.25
    assert problem.steps[1].rate == 0.5
    assert problem.init.output == "unscaled"
    assert isinstance(problem.init.second_layer, Vocabulary)
    assert problem.init.second_layer.values == (-1.0, 1.0)
    assert problem.require_readout().penalty == 0.1


def test_set_follows_what_depends_on_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "problem.toml"
    steps = [{"samples": 2.0, "rate": 1.0}, {"samples": 2.0, "rate": 1.0, "batch": "previous"}]
    file.write_text(PLAIN.replace(steps=steps).to_toml())
    problem = stated(capsys, str(file), "--set", "steps.0.samples=3")
    assert [step.samples for step in problem.steps] == [3.0, 3.0]


@pytest.mark.parametrize(("text", "value"), [(".5", 0.5), ("5.", 5.0), ("+1e0", 1.0), ("2", 2.0)])
def test_numbers_as_people_type_them(
    capsys: pytest.CaptureFixture[str], text: str, value: float
) -> None:
    step = ["--step", "samples=1,rate=1"]
    assert stated(capsys, *BASE, *step, "--width", text).width == value
