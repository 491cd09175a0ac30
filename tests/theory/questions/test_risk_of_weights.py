"""Errors on features with given weights, against ridge regressions with these very weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation
from giantsteps.theory import risk_of_weights
from giantsteps.theory.steps.first import link_of

D, NEURONS, SAMPLES = 200, 240, 400


def problem(**changes: object) -> gs.Problem:
    found = gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.1,
        width=NEURONS / D,
        steps=[gs.Step(samples=4, rate=2, exponent=0.5)],
        readout=gs.Ridge(samples=SAMPLES / D, penalty=0.1),
        init=gs.Init(second_layer="gaussian"),
    )
    return found.replace(changes)


def measured(asked: gs.Problem, w: np.ndarray, beta: np.ndarray, count: int) -> np.ndarray:
    """Test error, training error and share of wrong signs of ridge regressions on fresh samples."""
    rng = np.random.default_rng(3)
    link, sigma, found = link_of(asked), asked.activation, []
    for _ in range(count):
        x, test = rng.standard_normal((SAMPLES, D)), rng.standard_normal((5000, D))
        noise = math.sqrt(asked.noise_variance) * rng.standard_normal(SAMPLES)
        y, features = link(x @ beta) + noise, np.asarray(sigma(x @ w))
        gram = features.T @ features / SAMPLES + asked.require_readout().penalty * np.eye(NEURONS)
        a = np.linalg.solve(gram, features.T @ y / SAMPLES)
        wanted, learned = np.asarray(link(test @ beta)), np.asarray(sigma(test @ w)) @ a
        wrong = np.mean(np.sign(learned) != np.sign(wanted))
        found.append([np.mean((learned - wanted) ** 2), np.mean((y - features @ a) ** 2), wrong])
    return np.array(found)


TWO = [gs.Step(samples=4, rate=1, exponent=0.5)] * 2
SETTINGS = {
    "giant, gaussian": {},
    "giant, constant, signs": {
        "teacher": "sign", "noise_variance": 0.0, "init": gs.Init(second_layer="constant"),
    },
    "kinked, mean not zero": {"activation": "relu", "steps.0.rate": 1.0},
    "two steps, two values": {
        "steps": TWO, "init": gs.Init(second_layer=gs.Vocabulary([-1, 2], [2 / 3, 1 / 3])),
    },
    "small": {"steps.0.exponent": 0.0},
}  # fmt: skip


@pytest.mark.parametrize("changes", SETTINGS.values(), ids=list(SETTINGS))
def test_the_errors_are_those_of_ridge_on_these_weights(changes: dict[str, Any]) -> None:
    asked = problem().replace(changes)
    run = simulation.run(asked, D, 1)
    w, beta = np.asarray(run.arrays["W1"]), np.asarray(run.arrays["beta"]).ravel()
    found = risk_of_weights(w, beta, asked)
    drawn = measured(asked, w, beta, 24)
    mean, error = drawn.mean(axis=0), drawn.std(axis=0, ddof=1) / math.sqrt(len(drawn))
    assert abs(found.test - mean[0]) < 0.01 * mean[0] + 3 * error[0]
    assert abs(found.train - mean[1]) < 0.01 * mean[1] + 3 * error[1]
    if asked.binary:
        assert abs(found.classification_error - mean[2]) < 0.01 * mean[2] + 3 * error[2]
    else:
        assert found.classification_error is None
    assert found.exact


def test_weights_on_one_line() -> None:
    """Neurons that all see the teacher: the function of one coordinate is learned."""
    rng = np.random.default_rng(0)
    beta = np.eye(D)[0]
    w = rng.standard_normal((D, NEURONS)) / math.sqrt(D) + 1.5 * beta[:, None]
    asked = problem(steps=())
    found = risk_of_weights(w, beta, asked)
    drawn = measured(asked, w, beta, 16)
    mean, error = drawn.mean(axis=0), drawn.std(axis=0, ddof=1) / math.sqrt(len(drawn))
    assert abs(found.test - mean[0]) < 0.02 * mean[0] + 3 * error[0]


def test_scale_of_columns_is_that_of_the_argument() -> None:
    """σ(2⟨w, x⟩) is the activation σ(2x), with common directions too."""
    run = simulation.run(problem(), D, 1)
    w, beta = np.asarray(run.arrays["W1"]), np.asarray(run.arrays["beta"]).ravel()
    doubled = risk_of_weights(2 * w, beta, problem())
    steeper = risk_of_weights(w, beta, problem(activation="tanh(2*x)"))
    assert doubled.test == pytest.approx(steeper.test, rel=1e-6)
