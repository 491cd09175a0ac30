"""``giantsteps optimize`` and ``giantsteps rate``: theory's answers to an engineer's questions."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import giantsteps as gs
from giantsteps import theory

Run = Callable[..., tuple[Any, str, str]]

FLAGS = ["--activation", "tanh", "--teacher", "sin", "--width", "1.5", "--samples", "2",
         "--penalty", "0.1"]  # fmt: skip
STEP = ["--step", "samples=4,rate=1"]
PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    steps=[gs.Step(samples=4, rate=1)],
    readout=gs.Ridge(samples=2, penalty=0.1),
)


def test_the_best_penalty_with_its_curve(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "curve.csv"
    code, out, _ = run("optimize", *FLAGS, *STEP, "--csv", file, "--json")
    assert code == 0
    best = theory.optimize(PROBLEM)
    assert json.loads(out)["values"]["test"] == [best.value.test]
    with open(file) as opened:
        rows = list(csv.DictReader(opened))
    errors = [float(row["test"]) for row in rows]
    assert {row["field"] for row in rows} == {"readout.penalty"}
    assert min(errors) == pytest.approx(best.value.test, rel=1e-9)
    assert errors[0] > min(errors) < errors[-1]


def test_short_names_and_figures(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "best.png"
    code, out, _ = run("optimize", *FLAGS, *STEP, "--over", "rate", "--over", "penalty", "-o", file,
                       "--bounds", "rate=0.1:20")  # fmt: skip
    assert code == 0
    assert file.exists()
    assert "steps.0.rate is at its upper bound: widen it with --bounds" in out
    over = ["steps.0.rate", "readout.penalty"]
    best = theory.optimize(PROBLEM, over, {"steps.0.rate": (0.1, 20.0)})
    assert f"{best.value.test:.6g}" in out


def test_one_batch_used_twice_is_named_and_simulated(run: Run) -> None:
    options = [*FLAGS, "--step", "samples=4,rate=3", "--over", "step-samples", "--budget", "6"]
    code, out, _ = run("optimize", *options)
    assert code == 0
    assert "may beat every split" in out
    assert "--one-batch" in out
    code, out, _ = run("optimize", *options, "-d", "40", "--one-batch", "--seeds", "2")
    assert code == 0
    assert "2 networks at d = 40" in out
    code, out, _ = run("optimize", *options, "-d", "40", "--one-batch", "--seeds", "2", "--json")
    assert {name: len(errors) for name, errors in json.loads(out)["one_batch"].items()} == {
        "split": 2, "one_batch": 2,
    }  # fmt: skip
    code, _, err = run("optimize", *options, "--one-batch")
    assert code == 2
    assert "-d" in err


def test_a_budget_is_kept_along_the_curve(run: Run) -> None:
    giant = ["--step", "samples=4,rate=1,exponent=0.5"]
    options = ["--over", "step-samples", "--budget", "8", "--json"]
    code, out, _ = run("optimize", *FLAGS, *giant, *options)
    assert code == 0
    found = json.loads(out)
    best, curve = found["values"]["test"][0], found["curves"]
    lowest = min(zip(curve["test"], curve["value"]))
    assert best <= lowest[0] < 1.01 * best
    step = gs.Step(samples=lowest[1], rate=1, exponent=0.5)
    readout = gs.Ridge(samples=8 - lowest[1], penalty=0.1)
    assert theory.risk(PROBLEM.replace(steps=[step], readout=readout)).test == pytest.approx(
        lowest[0], rel=1e-9
    )


def test_how_many_samples(run: Run) -> None:
    code, out, _ = run("optimize", *FLAGS, *STEP, "--over", "samples", "--reach", "0.15")
    assert code == 0
    needed = theory.crossing(PROBLEM, "readout.samples", 0.15).value
    assert f"test = 0.15 at readout.samples = {needed:.6g}" in out
    code, out, _ = run("optimize", *FLAGS, *STEP, "--over", "samples", "--reach", "0.01")
    assert "test stays above 0.01" in out


def test_one_optimum_for_each_problem(run: Run) -> None:
    code, out, _ = run("optimize", *FLAGS, *STEP, "--vary", "readout.samples=1,2")
    assert code == 0
    best = theory.optimize(PROBLEM.replace({"readout.samples": 1.0}))
    assert f"{best.arguments['readout.penalty']:.6g}" in out


MISTAKES = {
    "no step": (["optimize", *FLAGS, "--over", "rate"], "no step (--step)"),
    "which step": (["optimize", *FLAGS, *STEP, *STEP, "--over", "rate"], "steps.1.rate"),
    "no field": (["optimize", *FLAGS, "--over", "penality"], '"readout.penalty"'),
    "no number": (["optimize", *FLAGS, "--over", "activation"], "path of a number"),
    "bounds": (["optimize", *FLAGS, "--bounds", "penalty=1"], "FIELD=a:b"),
    "level": (["optimize", *FLAGS, "--over", "samples", "--reach", "low"], "a number, or 'floor'"),
    "two fields": (["optimize", *FLAGS, "--over", "samples", "--over", "penalty", "--reach", "1"],
                   "exactly one --over"),
    "budget and level": (["optimize", *FLAGS, "--budget", "1", "--reach", "1"], "exclude each"),
    "drawing a grid": (["optimize", *FLAGS, "--vary", "width=1,2", "-o", "a.png"], "leave out"),
    "no rate": (["rate", "--width", "100", "-d", "10"], "--lr"),
    "both ways": (["rate", "--lr", "1", "--rate", "1", "--width", "9", "-d", "9"], "exclude each"),
    "ratio": (["rate", "--lr", "1", "--width", "1.5", "-d", "9"], "not a valid integer"),
    "no exponent": (["rate", "--rate", "1", "--width", "9", "-d", "9"], "needs --exponent"),
    "negative": (["rate", "--lr", "-1", "--width", "9", "-d", "9"], "lr = -1"),
    "parametrisation": (["rate", "--lr", "1", "--width", "9", "-d", "9", "--parametrization", "sp"],
                        "standard"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_get_one_line(
    run: Run, mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, needle = MISTAKES[mistake]
    code, out, error = run(*arguments)
    assert (code, out) == (2, ""), error
    assert needle in error
    assert error.count("\n") == 1


def test_rate_there_and_back(run: Run) -> None:
    sizes = ["--width", "4096", "--dimension", "784", "--parametrization", "ntk", "--json"]
    _, out, _ = run("rate", "--lr", "30", *sizes)
    found = json.loads(out)
    expected = gs.rate_of_learning_rate(30.0, neurons=4096, d=784, parametrization="ntk")
    assert (found["rate"], found["exponent"]) == (expected.rate, expected.exponent)
    back = ["--rate", found["rate"], "--exponent", found["exponent"]]
    _, out, _ = run("rate", *back, *sizes)
    assert json.loads(out)["learning rate"] == pytest.approx(30.0)


def test_rate_says_how_to_state_the_problem(run: Run) -> None:
    code, out, _ = run("rate", "--lr", "1e-3", "--width", "4096", "--dimension", "784",
                       "--optimizer", "adam", "--weight-decay", "0.1")  # fmt: skip
    assert code == 0
    assert "--step samples=n0/784,rate=3.10384,exponent=0,rule=sign,decay=0.0001" in out
    assert '--activation "tanh(0.5774*x)"' in out
    assert "--set init.output=unscaled, 0.5774 times its size" in out
