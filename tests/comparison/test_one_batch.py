"""A split budget against one batch that step and readout both use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.comparison import against_one_batch
from giantsteps.errors import InvalidProblem

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.5,
    steps=[gs.Step(samples=4, rate=3)],
    readout=gs.Ridge(samples=2, penalty=0.1),
)
FOUND = theory.optimize(PROBLEM, over=("steps.0.samples",), budget=6.0)


def test_the_result_says_that_one_batch_may_win() -> None:
    assert "one batch of all 6 d samples" in FOUND.note
    assert "may beat every split" in repr(FOUND)
    assert "simulate_one_batch" in FOUND._repr_html_()
    without = theory.optimize(PROBLEM)
    assert without.note == ""
    assert "split" not in repr(without)


def test_the_networks_are_those_of_the_simulation(tmp_path: Path) -> None:
    found = FOUND.simulate_one_batch(d=40, seeds=3, store=tmp_path / "store.sqlite")
    pairs = ((found.split, found.split_errors), (found.one_batch, found.one_batch_errors))
    for problem, errors in pairs:
        drawn = [simulation.risk(problem, 40, seed).test for seed in range(3)]
        assert errors == pytest.approx(drawn, rel=1e-9)
    ratio = found.one_batch_errors.mean() / found.split_errors.mean()
    assert found.gain == pytest.approx(1 - ratio)
    again = against_one_batch(FOUND, 40, 3, store=tmp_path / "store.sqlite")
    assert np.array_equal(again.split_errors, found.split_errors)
    assert "3 networks at d = 40" in repr(found)
    with pytest.raises(InvalidProblem, match="one has no error bar"):
        against_one_batch(FOUND, 40, 1)


@pytest.mark.slow
def test_one_batch_wins_here() -> None:
    """More samples for the step and for the readout outweigh that they are not independent."""
    found = FOUND.simulate_one_batch(d=200, seeds=10)
    assert found.gain > 2 * found.standard_error > 0


def test_what_has_no_rival_is_refused() -> None:
    for other in (
        theory.optimize(PROBLEM),
        theory.optimize(gs.Grid(PROBLEM, {"width": [1.0, 2.0]}), ("steps.0.samples",), budget=6.0),
    ):
        with pytest.raises(gs.InvalidProblem, match="budget"):
            other.simulate_one_batch(d=40)
    with pytest.raises(gs.InvalidProblem, match="d"):
        FOUND.simulate_one_batch()
    with pytest.raises(gs.InvalidProblem, match="seeds"):
        FOUND.simulate_one_batch(d=40, seeds=0)
