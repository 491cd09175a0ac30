"""Risk at every learning rate against trained networks, at a resolution of two per cent."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.gaussian import hermite_functions

VALUES = gs.Vocabulary((-1.0, 0.5, 2.0), (0.3, 0.4, 0.3))


def problem(law: object, rate: float, step: float, activation: str = "tanh") -> gs.Problem:
    return gs.Problem(
        activation=activation,
        teacher="sin",
        noise_variance=0.1,
        width=1.5 if activation == "tanh" else 1.0,
        steps=[gs.Step(samples=step, rate=rate, exponent=0.5)],
        readout=gs.Ridge(samples=2.0, penalty=0.1),
        init=gs.Init(second_layer=law),  # type: ignore[arg-type]
    )


def train(given: gs.Problem, d: int, seed: int, test: int = 2000) -> np.ndarray:
    """Test error, train error and the error's component on He_3(⟨x, β*⟩) of one network."""
    rng = np.random.default_rng(seed)
    sizes = given.at(d)
    neurons, samples, step = sizes.neurons, sizes.samples, given.steps[0]
    assert samples is not None
    sigma, slope = given.activation, given.activation.derivative
    w = rng.standard_normal((d, neurons)) / np.sqrt(d)
    a = given.init.second_layer.sample(rng, neurons) / np.sqrt(neurons)

    def labels(x: np.ndarray) -> np.ndarray:
        return np.sin(x[:, 0]) + np.sqrt(given.noise_variance) * rng.standard_normal(len(x))

    x = rng.standard_normal((sizes.step_samples[0], d))
    h = x @ w
    missing = labels(x) - sigma(h) @ a / np.sqrt(neurons)
    gradient = x.T @ (missing[:, None] * a * slope(h)) / (len(x) * np.sqrt(neurons))
    w += step.learning_rate(neurons) * np.sqrt(neurons) * gradient
    x = rng.standard_normal((samples, d))
    y, phi = labels(x), sigma(x @ w) / np.sqrt(neurons)
    penalty = given.require_readout().penalty / neurons
    readout = np.linalg.solve(
        phi.T @ phi / samples + penalty * np.eye(neurons), phi.T @ y / samples
    )
    x = rng.standard_normal((test, d))
    error = sigma(x @ w) @ readout / np.sqrt(neurons) - np.sin(x[:, 0])
    cubic = np.mean(error * hermite_functions(x[:, 0], 3)[3])
    return np.array([np.mean(error**2), np.mean((phi @ readout - y) ** 2), cubic])


@lru_cache(maxsize=8)
def networks(given: gs.Problem, d: int, seeds: int) -> tuple[np.ndarray, np.ndarray]:
    drawn = np.array([train(given, d, seed) for seed in range(seeds)])
    return drawn.mean(axis=0), drawn.std(axis=0, ddof=1) / np.sqrt(seeds)


CONSTANT = problem("constant", 3.0, 1.0)


@pytest.mark.agreement
@pytest.mark.parametrize(
    "given",
    [CONSTANT, problem("gaussian", 1.0, 2.0), problem(VALUES, 1.0, 1.5)],
    ids=["constant", "gaussian", "vocabulary"],
)
def test_networks_have_the_errors_of_the_theory(given: gs.Problem) -> None:
    d, seeds = 280, 130
    mean, error = networks(given, d, seeds)
    wanted = theory.risk(given, d=d)
    assert 3 * error[0] / wanted.test <= 0.02
    assert abs(mean[0] - wanted.test) <= 3 * error[0]
    assert abs(mean[1] - wanted.train) <= 3 * error[1]
    assert wanted.by_degree is not None
    # What is not learned of He_3 is the same in theory (squared) and in the network.
    assert mean[2] ** 2 == pytest.approx(wanted.by_degree[3], rel=0.06)


@pytest.mark.agreement
def test_isotropic_bulk_is_refuted_where_the_exact_one_agrees() -> None:
    mean, error = networks(CONSTANT, 280, 130)
    isotropic = theory.equivalent(CONSTANT, 280, simplify="isotropic bulk").risk().test
    assert (mean[0] - isotropic) / error[0] > 3


@pytest.mark.agreement
@pytest.mark.parametrize("rate", [2.0, 4.0])
def test_relu_with_a_constant_second_layer(rate: float) -> None:
    given = problem("constant", rate, 2.0, "relu")
    mean, error = networks(given, 400, 24)
    wanted = theory.risk(given, d=400).test
    assert error[0] / wanted <= 0.01
    assert abs(mean[0] - wanted) <= 3 * error[0]
