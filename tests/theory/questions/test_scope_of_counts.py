"""Refusals of counts and orders, and evidence of what a search finds."""

from __future__ import annotations

from typing import Any

import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.errors import InvalidProblem, NotCovered

ONE = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.0,
    steps=[gs.Step(samples=2, rate=1, exponent=0.1)],
    readout=gs.Ridge(samples=2, penalty=0.1),
)
MANY = ONE.replace(teacher=gs.MultiIndex("x0*(1 + x1)", rank=2))


def test_counts_and_orders() -> None:
    for question in (theory.outlier_count, theory.reuse_exponent):
        with pytest.raises(NotCovered, match="gradient"):
            question(ONE.replace({"steps.0.rule": "sign"}))
    with pytest.raises(NotCovered, match="two steps"):
        theory.outlier_count(ONE.replace(steps=ONE.steps * 3))
    assert theory.outlier_count(MANY).evidence


def test_a_covariance_in_the_limit_asks_for_d() -> None:
    structured = ONE.replace(
        {"steps.0.exponent": 0, "inputs": gs.Covariance((0.5, 1.5), (0.5, 0.5))}
    )
    with pytest.raises(NotCovered, match="pass d"):
        theory.risk(structured)
    assert theory.risk(structured, 300).test > 0


def test_searches_say_what_they_rest_on() -> None:
    small = ONE.replace({"steps.0.exponent": 0})
    assert theory.optimize(small).evidence == theory.risk(small).evidence


# -- the number of steps ------------------------------------------------------------------------

GIANT = ONE.replace(
    {"steps.0.exponent": 0.5, "steps.0.samples": 6, "init": gs.Init(second_layer="constant")}
)


def test_the_best_number_of_equal_steps() -> None:
    found = theory.optimize(GIANT, over=("steps",), bounds={"steps": (1, 3)}, d=500)
    tests = [theory.risk(GIANT.split_steps(count), 500).test for count in (1, 2, 3)]
    assert found.value.test == min(tests)
    assert found.arguments["steps"] == 1 + tests.index(min(tests))
    assert theory.risk(found.best, 500).test == found.value.test
    assert sum(step.samples for step in found.best.steps) == pytest.approx(6)
    assert sum(step.rate for step in found.best.steps) == pytest.approx(1)


def test_steps_together_with_the_penalty() -> None:
    over = ("steps", "readout.penalty")
    found = theory.optimize(GIANT, over=over, bounds={"steps": (1, 2)}, d=500)
    plain = theory.optimize(GIANT, over=("steps",), bounds={"steps": (1, 2)}, d=500)
    assert set(found.arguments) == set(over)
    assert found.value.test <= plain.value.test


def test_steps_together_with_a_budget() -> None:
    over, bounds = ("steps", "steps.0.samples"), {"steps": (2, 2)}
    found = theory.optimize(GIANT, over=over, bounds=bounds, budget=9.0, d=500)
    best = found.best
    total = sum(step.samples for step in best.steps)
    assert [step.rate for step in best.steps] == [0.5, 0.5]
    assert total == pytest.approx(found.arguments["steps.0.samples"])
    assert total + best.readout.samples == pytest.approx(9.0)
    assert found.one_batch is None
    for share in (0.9, 1.1):
        moved = {"steps.0.samples": share * total, "readout.samples": 9.0 - share * total}
        other = GIANT.replace(moved).split_steps(2)
        assert theory.risk(other, 500).test > found.value.test


@pytest.mark.parametrize(
    "options",
    [
        {"over": ("steps", "steps.1.rate")},
        {"over": ("steps",), "budget": 5.0},
        {"over": ("steps",), "bounds": {"steps": (0, 3)}},
        {"over": ("steps",), "bounds": {"steps": (1, 2.5)}},
    ],
)
def test_bad_splits_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidProblem):
        theory.optimize(GIANT, **options)


def test_one_batch_for_step_and_readout() -> None:
    small = ONE.replace({"steps.0.exponent": 0})
    found = theory.optimize(small, over=("steps.0.samples",), budget=5.0)
    rival = found.one_batch
    assert rival.readout.batch == "previous"
    assert rival.steps[0].samples == rival.readout.samples == pytest.approx(5.0)
    assert theory.optimize(small).one_batch is None
