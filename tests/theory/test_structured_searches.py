"""Bounds, searches and phase diagrams on inputs with a covariance (theory §10)."""

from __future__ import annotations

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.displays import PhaseDiagramDisplay

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    steps=[gs.Step(samples=4.0, rate=1.0, exponent=0.5)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
    init=gs.Init(second_layer="constant"),
    inputs=gs.Covariance((0.5, 1.5), (0.5, 0.5), (0.3, 0.7)),
)
SPIKED = PROBLEM.replace(inputs=gs.SpikedCovariance(5.0, 0.3))


@pytest.mark.parametrize("problem", [PROBLEM, SPIKED])
def test_risk_at_the_best_penalty_lies_between_the_bounds(problem: gs.Problem) -> None:
    found = theory.bounds(problem)
    assert found["linear"] == theory.bounds(problem.replace(inputs=gs.Isotropic()))["linear"]
    model = theory.equivalent(problem)
    for samples in (0.5, 8.0):
        risks = [model.risk(gs.Ridge(samples=samples, penalty=p)).test for p in (0.01, 0.1, 1.0)]
        assert found["optimal penalty"] < min(risks) < found["infinite penalty"]
    simple = theory.equivalent(problem, simplify="isotropic bulk")
    last = simple.risk(gs.Ridge(samples=8.0, penalty=1e4)).test
    assert last == pytest.approx(found["infinite penalty"], rel=2e-3)


def test_no_readout_of_initial_features_passes_the_linear_floor() -> None:
    """With many more neurons and samples than directions the floor is reached, not passed."""
    floor = theory.bounds(PROBLEM.untrained())["linear"]
    many = PROBLEM.untrained().replace({"width": 60.0, "readout.samples": 60.0})
    best = theory.optimize(many, d=2000).value.test
    assert floor < best < 1.1 * floor


def test_bounds_of_a_power_law_without_a_limit_point_to_the_model() -> None:
    heavy = PROBLEM.replace(inputs=gs.PowerLaw(0.4))
    with pytest.raises(gs.NotCovered, match=r"equivalent\(problem, d\)\.bounds"):
        theory.bounds(heavy)
    assert set(theory.equivalent(heavy, 500).bounds().floors) == {"linear", "optimal penalty"}


@pytest.mark.parametrize("rule", ["normalized", "sign"])
def test_bounds_know_the_rule_of_the_step(rule: str) -> None:
    problem = PROBLEM.replace({"inputs": gs.Isotropic(), "steps.0.rule": rule})
    found, own = theory.bounds(problem), theory.equivalent(problem).bounds()
    assert found["optimal penalty"] == own["optimal penalty"]
    plain = theory.bounds(problem.replace({"steps.0.rule": "gradient"}))
    assert abs(found["optimal penalty"] - plain["optimal penalty"]) > 1e-3


def test_optimize_over_the_alignment_of_teacher_and_inputs() -> None:
    """One spike helps the more, the more of the teacher it holds; a power law has a best one."""
    best = theory.optimize(SPIKED, over=("inputs.alignment",))
    assert best.arguments["inputs.alignment"] == 1.0
    law = PROBLEM.replace(inputs=gs.PowerLaw(0.2, 0.1))
    path = "inputs.teacher"
    inside = theory.optimize(law, over=(path,), bounds={path: (-0.5, 0.35)})
    place = inside.arguments[path]
    for other in (place - 0.05, place + 0.05):
        assert theory.risk(law.replace({path: other})).test > inside.value.test


def test_crossing_and_level_curves_over_the_alignment() -> None:
    noisy = SPIKED.replace(noise_variance=0.05)
    (place,) = theory.crossing(noisy, along="inputs.alignment").values
    there = theory.risk(noisy.replace({"inputs.alignment": place})).test
    assert there == pytest.approx(theory.bounds(noisy)["linear"], rel=1e-8)
    grid = gs.Grid(noisy, {"inputs.alignment": [0.0, 0.5, 1.0], "steps.0.rate": [0.5, 1.0, 2.0]})
    (curve,) = theory.level_curves(grid)
    middle = curve[np.argmin(abs(curve[:, 1] - 1.0))]
    assert middle == pytest.approx([place, 1.0], rel=1e-6)


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_the_critical_rate_is_where_the_spike_of_the_weights_appears(power: float) -> None:
    small = SPIKED.replace({"steps.0.exponent": 0.0, "steps.0.precondition": power})
    rate = theory.critical_rate(small, 4000)
    assert rate == pytest.approx(theory.critical_rate(small), rel=2e-3)
    plain = theory.critical_rate(small.replace(inputs=gs.Isotropic()))
    assert (rate < 0.7 * plain) if power == 0 else (rate > 1.2 * plain)
    below, above = (small.replace({"steps.0.rate": f * rate}) for f in (0.95, 1.5))
    assert not theory.weights(below, 4000).spikes
    (found,), (limit,) = theory.weights(above, 4000).spikes, theory.weights(above).spikes
    assert found.value == pytest.approx(limit.value, rel=5e-3)
    assert found.overlaps["teacher"] == pytest.approx(limit.overlaps["teacher"], rel=0.01)


def test_a_phase_diagram_over_the_alignment() -> None:
    small = SPIKED.replace({"steps.0.exponent": 0.0})
    display = PhaseDiagramDisplay.from_grid(
        small,
        x="inputs.alignment",
        x_values=[0.0, 0.5, 1.0],
        y="steps.0.rate",
        y_values=[0.5, 1.5, 4.5],
        quantity="gain",
        lines=["critical rate"],
        d=300,
    )
    assert np.all(np.isfinite(display.values))
    (line,) = display.lines
    for alignment, rate in np.concatenate(line.pieces):
        there = small.replace({"inputs.alignment": alignment})
        assert rate == pytest.approx(theory.critical_rate(there, 300), rel=1e-8)
