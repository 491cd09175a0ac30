"""`compare` with the theory and the simulation of the package, small and end to end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.answers import Risk

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.1,
    width=1.0,
    steps=[gs.Step(samples=2.0, rate=3.0)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
)


def gain(run: Risk) -> np.ndarray:
    """What the step gains in one run."""
    assert run.initial is not None
    return np.asarray(run.initial.test) - np.asarray(run.test)


def test_a_curve_over_a_grid() -> None:
    grid = gs.Grid(PROBLEM, {"readout.samples": [0.5, 1.0, 3.0]})
    comparison = gs.compare(grid, 150, seeds=8, theory_d=None)
    assert comparison.verdict in ("agree", "unresolved")
    limit = theory.risk(grid)
    np.testing.assert_array_equal(comparison["test"].largest.theory, limit.test)
    runs = [simulation.risk(grid[1], d=150, seed=seed) for seed in range(8)]
    found = np.asarray(comparison["gain"].largest.mean)[1]
    assert found == pytest.approx(np.mean([gain(run) for run in runs]), rel=1e-9)


def test_a_wrong_theory_disagrees() -> None:
    def doubled(problem: gs.Problem, d: int | None = None) -> Risk:
        return theory.risk(problem.replace({"noise_variance": 0.2}))

    comparison = gs.compare(PROBLEM, 150, seeds=8, theory=doubled, quantities=["test", "train"])
    assert comparison.verdict == "disagree"


def test_the_spike_of_the_weights() -> None:
    comparison = gs.compare(PROBLEM, 300, seeds=24, question="weights", theory_d=None)
    assert comparison.quantities == ("spikes.0.value", "spikes.0.overlap")
    assert comparison["spikes.0.value"].largest.resolution <= 0.02
    assert comparison["spikes.0.value"].verdict == "agree"


def test_lines_of_theory_are_finer_than_the_grid() -> None:
    grid = gs.Grid(PROBLEM, {"readout.samples": [0.5, 1.0, 3.0], "readout.penalty": [0.01, 0.1]})
    comparison = gs.compare(grid, 60, seeds=2, theory_d=None, quantities=["test"])
    display = comparison.plot(points=20)
    series = display.series[1]
    assert series.x.size == 3
    single = PROBLEM.replace({"readout.samples": series.curve_x[7], "readout.penalty": 0.1})
    assert series.curve[7] == theory.risk(single).test
    assert comparison.plot(points=0).series[0].curve.size == 3


def test_without_steps_there_is_no_gain_to_compare() -> None:
    comparison = gs.compare(PROBLEM.untrained(), 80, seeds=3, theory_d=None)
    assert comparison.quantities == ("test", "train")


def test_the_tangent_kernel_stands_beside_the_conjugate_one() -> None:
    grid = gs.Grid(PROBLEM, {"readout.samples": [0.5, 2.0]})
    quantities = ["test", "tangent.test", "tangent.gain"]
    comparison = gs.compare(grid, 40, seeds=3, quantities=quantities, test_samples=500)
    options: dict[str, Any] = {"kind": "tangent", "test_samples": 500}
    runs = [simulation.risk(grid, d=40, seed=seed, **options) for seed in range(3)]
    mean = np.mean([np.asarray(run.test) for run in runs], axis=0)
    np.testing.assert_allclose(comparison["tangent.test"].largest.mean, mean, rtol=1e-9)
    gains = np.mean([gain(run) for run in runs], axis=0)
    np.testing.assert_allclose(comparison["tangent.gain"].largest.mean, gains, rtol=1e-7)
    assert np.isnan(comparison["tangent.test"].largest.theory).all()
    assert set(np.ravel(comparison["tangent.test"].verdict)) == {""}
    assert "simulated only" in repr(comparison)
    display = comparison.plot(points=0)
    assert [series.label for series in display.series] == ["", "tangent kernel (simulation)"]


@pytest.mark.parametrize(
    ("question", "quantities"),
    [
        ("risk", "tangent.test"),  # nothing that theory answers
        ("risk", ["test", "tangent.tset"]),
        ("weights", ["spikes.0.value", "tangent.spikes.0.value"]),
        ("kernel", ["spikes.0.value", "tangent.spikes.first.value"]),
    ],
)
def test_bad_quantities_of_the_tangent_kernel(question: str, quantities: Any) -> None:
    with pytest.raises(gs.errors.InvalidProblem, match="quantities"):
        gs.compare(PROBLEM, 40, seeds=2, question=question, quantities=quantities)
