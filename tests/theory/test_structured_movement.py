"""How far steps move a network on inputs with a covariance (theory §10)."""

from __future__ import annotations

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
