"""How far steps move a network on inputs with a covariance (theory §10)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.types import FloatArray

NAMES = ("weights", "spectral", "preactivations", "features", "output")
PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.5,
    steps=[gs.Step(samples=4.0, rate=1.0, exponent=0.5)],
    init=gs.Init(second_layer="constant"),
)
ALIGNED = gs.Covariance((0.3, 1.7), (0.5, 0.5), (0.1, 0.9))


def row(answer: gs.answers.Movement) -> FloatArray:
    return np.array([float(getattr(answer, name)[0]) for name in NAMES])


@pytest.mark.parametrize("activation", ["tanh", gs.centered("relu")])
def test_close_to_the_identity_it_is_that_of_isotropic_inputs(activation: object) -> None:
    problem = PROBLEM.replace({"activation": activation, "steps.0.decay": 0.2})
    near = problem.replace(inputs=gs.Covariance((1.0, 1.0 + 1e-13), (0.5, 0.5)))
    for d in (None, 500):
        assert row(theory.movement(near, d)) == pytest.approx(
            row(theory.movement(problem, d)), rel=1e-8
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{}, {"activation": gs.centered("relu")}, {"steps.0.precondition": 1.0, "steps.0.decay": 0.1}],
)
def test_networks_move_so(changes: dict[str, object]) -> None:
    problem = PROBLEM.replace({"inputs": ALIGNED, **changes})
    networks = np.array([row(simulation.movement(problem, d=250, seed=s)) for s in range(10)])
    error = networks.std(axis=0, ddof=1) / np.sqrt(len(networks))
    mean = networks.mean(axis=0)
    gap = np.abs(row(theory.movement(problem, 250)) - mean)
    assert np.all(gap < 0.01 * mean + 3 * error)


def test_a_step_moves_more_where_the_teacher_lies_along_large_variances() -> None:
    """And a natural step less than a plain one there; W itself moves less than Σ^{1/2}W."""
    plain = row(theory.movement(PROBLEM, 250))
    aligned = PROBLEM.replace(inputs=ALIGNED)
    moved = row(theory.movement(aligned, 250))
    natural = row(theory.movement(aligned.replace({"steps.0.precondition": 1.0}), 250))
    assert np.all(moved > 1.1 * plain)
    assert np.all(natural < moved)
    assert moved[0] < 0.85 * moved[2]


TWO = [gs.Step(samples=4.0, rate=rate, exponent=0.5) for rate in (1.0, 0.7)]


def rows(answer: gs.answers.Movement) -> FloatArray:
    return np.array([getattr(answer, name) for name in NAMES])


@pytest.mark.parametrize("law", ["constant", "gaussian"])
def test_several_steps_close_to_the_identity(law: str) -> None:
    problem = PROBLEM.replace({"steps": TWO, "init.second_layer": law})
    near = problem.replace(inputs=gs.Covariance((1.0, 1.0 + 1e-13), (0.5, 0.5)))
    found, plain = rows(theory.movement(near, 500)), rows(theory.movement(problem, 500))
    assert found == pytest.approx(plain, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("precondition", [0.0, 1.0])
def test_networks_move_so_in_several_steps(precondition: float) -> None:
    steps = [replace(step, precondition=precondition) for step in TWO]
    problem = PROBLEM.replace(steps=steps, inputs=ALIGNED)
    networks = np.array([rows(simulation.movement(problem, d=250, seed=s)) for s in range(10)])
    error = networks.std(axis=0, ddof=1) / np.sqrt(len(networks))
    mean = networks.mean(axis=0)
    gap = np.abs(rows(theory.movement(problem, 250)) - mean)
    assert np.all(gap < 0.01 * mean + 3 * error)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_the_first_gradient_close_to_the_identity_is_that_of_isotropic_inputs(
    activation: str,
) -> None:
    problem = PROBLEM.replace({"activation": activation, "init.second_layer": "gaussian"})
    near = problem.replace(inputs=gs.Covariance((1.0, 1.0 + 1e-13), (0.5, 0.5)))
    ours, plain = theory.gradient(near, 300), theory.gradient(problem, 300)
    for name in ("spike_norm", "residual_frobenius_norm", "residual_operator_norm"):
        assert getattr(ours, name) == pytest.approx(getattr(plain, name), rel=1e-6)
    assert ours.overlaps["teacher"] == pytest.approx(plain.overlaps["teacher"], rel=1e-10)


@pytest.mark.parametrize("width", [0.4, 3.0])
@pytest.mark.parametrize("activation", ["tanh", "relu", "he2"])
def test_the_first_gradient_of_few_samples(activation: str, width: float) -> None:
    """Most of its eigenvalues are zero, and the mass of the others has raised `NotConverged`."""
    few = {"activation": activation, "width": width, "steps.0.samples": 0.3}
    problem = PROBLEM.replace(few)
    for inputs in (
        gs.SpikedCovariance(1e-7, 0.5),
        gs.Covariance((0.9999999, 1.0000001), (0.5, 0.5)),
    ):
        ours, plain = (
            theory.gradient(problem.replace(inputs=inputs), 300),
            theory.gradient(problem, 300),
        )
        assert ours.residual_operator_norm == pytest.approx(plain.residual_operator_norm, rel=1e-5)
    strong = problem.replace(inputs=gs.SpikedCovariance(20.0, 0.5))
    single = theory.gradient(strong, 300).residual_operator_norm
    assert single > 1.3 * theory.gradient(problem, 300).residual_operator_norm


@pytest.mark.parametrize(
    ("changes", "tolerance"),
    [
        ({"inputs": gs.Covariance((0.3, 1.7), (0.5, 0.5), (0.1, 0.9))}, 0.02),
        ({"inputs": gs.PowerLaw(0.6), "activation": "relu", "steps.0.precondition": 1.0}, 0.03),
        ({"inputs": gs.SpikedCovariance(6.0, 0.9), "init.second_layer": "gaussian"}, 0.08),
    ],
)
def test_networks_have_such_a_first_gradient(changes: dict[str, object], tolerance: float) -> None:
    """The rank-one part exactly, and what is left of it up to terms of order 1/d."""
    problem, count = PROBLEM.replace(changes), 12
    ours = theory.gradient(problem, 300)
    drawn = [simulation.gradient(problem, 300, seed) for seed in range(count)]
    for name in ("spike_norm", "residual_frobenius_norm", "residual_operator_norm"):
        found = np.array([getattr(one, name) for one in drawn])
        error = 3 * float(found.std(ddof=1)) / math.sqrt(count)
        slack = 0.0 if name == "spike_norm" else tolerance * found.mean()
        assert abs(found.mean() - getattr(ours, name)) < error + slack, name
    overlaps = np.array([one.overlaps["teacher"] for one in drawn])
    error = 3 * float(overlaps.std(ddof=1)) / math.sqrt(count)
    assert abs(overlaps.mean() - ours.overlaps["teacher"]) < error + 0.01
