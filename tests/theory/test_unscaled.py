"""What the first step of an unscaled network sees of its initial output (theory §9)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import giantsteps as gs
from giantsteps import theory
from giantsteps.theory.steps.first import curvature, initial_output
from giantsteps.theory.steps.labels import labels

NOISE, OUTPUT = 0.3, 0.7


def given(activation: Any = "tanh", layer: Any = "gaussian", **step: Any) -> gs.Problem:
    return gs.Problem(
        activation=activation,
        teacher="sin",
        noise_variance=NOISE,
        width=1.5,
        steps=[gs.Step(**{"samples": 3.0, "rate": 1.0, "exponent": 0.5} | step)],
        readout=gs.Ridge(samples=2.0, penalty=0.1),
        init=gs.Init(second_layer=layer, output="unscaled"),
    )


def normal(count: int) -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def by_hand(loss: str, variance: float) -> tuple[float, float]:
    """E r² and E[u r] by sums over teacher, noise and output."""
    z, w = normal(160)
    u, y = z[:, None], np.sin(z)[:, None] + np.sqrt(NOISE) * z
    weights = np.outer(w, w)
    if loss == "hinge":
        inside = ndtr(1.0 / (np.abs(y) * np.sqrt(variance)))
        square, seen = y**2 * inside, u * y * inside
    else:
        f = np.sqrt(variance) * z
        r = gs.Step(samples=1, rate=1, loss=loss).residual(f + 0.0 * y[..., None], y[..., None])
        square, seen = r**2 @ w, u * (r @ w)
    return float((weights * square).sum()), float((weights * seen).sum())


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_residuals_contain_the_output(loss: str) -> None:
    law = labels(given().teacher, NOISE, 0.0, 0.25, 3, loss=loss, output_variance=OUTPUT)
    square, seen = by_hand(loss, OUTPUT)
    assert law.moment(2) == pytest.approx(square, rel=1e-6)
    assert law.signal == pytest.approx(seen, rel=1e-6)


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_output_is_unlearned_by_the_curvature_of_the_loss(loss: str) -> None:
    """E[f₀ r] = −Var f₀ E ℓ''."""
    problem = given(loss=loss)
    _, variance = initial_output(problem)
    z, w = normal(150)
    y, f = np.sin(z)[:, None, None] + np.sqrt(NOISE) * z[:, None], np.sqrt(variance) * z
    r = problem.steps[0].residual(f + 0.0 * y, y)
    product = float(np.einsum("i,j,k,ijk->", w, w, w, f * r))
    assert curvature(problem) == pytest.approx(-product / variance, rel=1e-3)


@pytest.mark.parametrize(
    ("activation", "layer"),
    [("relu", "gaussian"), (gs.centered("relu"), gs.Constant(1.3)), ("tanh", "constant")],
)
def test_output_of_networks_has_the_variance(activation: Any, layer: Any) -> None:
    """Over inputs and networks, at d = 200: a mean of zero, what varies in all."""
    problem, d, rng = given(activation, layer), 200, np.random.default_rng(3)
    neurons, squares = 300, []
    for _ in range(60):
        w = rng.standard_normal((d, neurons)) / np.sqrt(d)
        a = problem.init.second_layer.sample(rng, neurons) / np.sqrt(neurons)
        f = problem.activation(rng.standard_normal((400, d)) @ w) @ a
        squares.append(np.mean(f**2))
    error = np.std(squares, ddof=1) / np.sqrt(len(squares))
    mean, variance = initial_output(problem)
    assert mean == pytest.approx(0.0, abs=1e-12)
    assert abs(np.mean(squares) - variance) <= 3 * error
    assert error <= 0.08 * variance


def test_a_mean_of_each_network_is_no_noise() -> None:
    assert theory.risk(given(gs.centered("relu")), d=300).exact
    answer = theory.risk(given("relu"), d=300)
    assert not answer.exact
    assert any("initial output" in text for text in answer.violated)
    assert theory.risk(given("relu").replace({"init.output": "scaled"}), d=300).exact


def test_hardly_a_sign_step_is_none() -> None:
    """A rate of zero leaves the neurons where they lean from the start: random features."""
    for rule in ("gradient", "sign"):
        moved = theory.risk(given(rule=rule, rate=1e-9), d=400)
        assert moved.initial is not None
        assert moved.test == pytest.approx(moved.initial.test, rel=2e-3)
