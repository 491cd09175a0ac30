"""The law of a batch's residuals is one of samples: no weight is negative (theory §5b)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.functions import as_teacher
from giantsteps.theory.steps.labels import labels


@pytest.mark.parametrize("loss", ["squared", "huber", "hinge", "logistic"])
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("teacher", ["sin", "relu", "10*tanh(x)", gs.MultiIndex("x0*x1", 2)])
def test_weights_are_positive(teacher: Any, noise: float, loss: str) -> None:
    found = [labels(as_teacher(teacher), noise, 0.1, 0.25, level, loss=loss) for level in (1, 3)]
    assert all(law.weights.min() >= 0 for law in found)
    coarse, fine = found
    for power in range(5):
        size = 1e-6 * float(fine.weights @ np.abs(fine.nodes) ** power)
        assert coarse.moment(power) == pytest.approx(fine.moment(power), abs=size)
        np.testing.assert_allclose(coarse.teacher(power), fine.teacher(power), rtol=0, atol=size)


def test_very_steep_activations_have_one_answer() -> None:
    """With weights of both signs it was 0.15 at 14.3 samples per input."""
    problem = gs.Problem(
        activation="100*tanh(x)",
        teacher=gs.centered("exp(x/3)"),
        width=9.33,
        steps=[gs.Step(samples=0.398, rate=2.56, exponent=0.5, loss="hinge")],
        readout=gs.Ridge(samples=14.33, penalty=0.00741),
        init=gs.Init(weights="sphere", second_layer=gs.Vocabulary([-3, -1, 1, 3], [0.25] * 4)),
    )
    assert theory.risk(problem).test == pytest.approx(0.68879, abs=1e-4)
    between = theory.risk(problem.replace({"readout.samples": 16.37})).test
    assert 0.38 < float(between) < 0.39


def test_the_first_step_of_a_cubic_activation_moves_no_further_than_networks() -> None:
    problem = gs.Problem(
        activation="x + 0.3*(x**3 - 3*x)",
        teacher="x + 0.5*(x**2 - 1)",
        width=2.252,
        steps=[gs.Step(samples=1.0, rate=1.229), gs.Step(samples=3.193, rate=2.444)],
        readout=gs.Ridge(samples=1.286, penalty=0.142),
        init=gs.Init(weights="sphere"),
    )
    moved = np.array([simulation.movement(problem, 200, seed).spectral for seed in range(12)])[:, 0]
    error = moved.std() / np.sqrt(len(moved))
    assert theory.movement(problem, 200).spectral[0] == pytest.approx(
        moved.mean(), abs=0.01 * moved.mean() + 3 * error
    )
