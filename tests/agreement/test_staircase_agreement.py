"""The staircase in simulated networks: errors, by degree too, and the shape of the regressors."""

import math

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory

pytestmark = pytest.mark.agreement

#: A small activation keeps f₀ out of the first gradient, as in the limit.
ODD = ("0.1*tanh(x)", "sin")
EVEN = (gs.centered("0.1*tanh(x) + 0.06*tanh(x)**2"), gs.centered("tanh(x) + 0.5*tanh(x)**2"))


def problem(functions: tuple[str, str], exponent: float) -> gs.Problem:
    activation, teacher = functions
    return gs.Problem(
        activation=activation,
        teacher=teacher,
        noise_variance=0.1,
        width=1.0,
        steps=[gs.Step(samples=6, rate=10, exponent=exponent)],
        readout=gs.Ridge(samples=3, penalty=5e-4),
        init=gs.Init(weights="sphere"),
    )


@pytest.mark.parametrize(("functions", "exponent"), [(ODD, 0.2), (EVEN, 0.4)])
def test_risk_between_small_and_large_steps(functions: tuple[str, str], exponent: float) -> None:
    d, seeds = 150, 170
    case = problem(functions, exponent)
    expected = theory.risk(case, d)
    runs = [simulation.risk(case, d, seed, test_samples="exact") for seed in range(seeds)]
    test = np.array([run.test for run in runs])
    standard_error = test.std(ddof=1) / math.sqrt(seeds)
    assert 3 * standard_error / expected.test <= 0.02
    assert abs(test.mean() - expected.test) <= 3 * standard_error
    by_degree = np.array([run.by_degree for run in runs])
    spread = by_degree.std(axis=0, ddof=1) / math.sqrt(seeds)
    gap = np.abs(by_degree.mean(axis=0) - expected.by_degree)
    # a squared coefficient has the variance of the coefficient as bias, O(1/d)
    assert np.all(gap <= 4 * spread + expected.test / d)


def test_lengthening_of_the_neurons() -> None:
    """The second spike of relu is He₂ + (1 + κ₀): the constant and the He₂ part of a neuron,
    E relu(w·x) = ‖w‖/√2π and E relu(w·x) He₂(b̂·x)/2 = (w·b̂)²/(2‖w‖√2π), as they grow with A²."""
    d, seeds = 400, 40
    case = gs.Problem(
        activation="relu",
        teacher="sin",
        width=2.0,
        steps=[gs.Step(samples=2, rate=0.3, exponent=0.5)],
        init=gs.Init(weights="sphere"),
    )
    constant, quadratic = np.empty(seeds), np.empty(seeds)
    for seed in range(seeds):
        arrays = simulation.run(case, d, seed).arrays
        weights, direction = arrays["W1"], arrays["b"] / np.linalg.norm(arrays["b"])
        powers = (arrays["a"] * math.sqrt(weights.shape[1]))[:, None] ** np.arange(5)
        length = np.linalg.norm(weights, axis=0)
        parts = np.stack([length, (direction @ weights) ** 2 / (2 * length)], axis=1)
        constant[seed], quadratic[seed] = np.linalg.lstsq(powers, parts)[0][2]
    ratio = constant.mean() / quadratic.mean()
    spread = np.std(constant - ratio * quadratic, ddof=1) / quadratic.mean()
    standard_error = spread / math.sqrt(seeds)
    expected = 1 + theory.staircase(case.replace({"steps.0.exponent": 0.3})).lengthening
    assert 3 * standard_error / expected <= 0.02
    assert abs(ratio - expected) <= 3 * standard_error
    assert expected - 1 > 20 * standard_error


def test_unequal_lengths_of_gaussian_weights() -> None:
    """Lengths 1 ± (2/d)^½ of the columns of W make a constant feature where c₂ ≠ 0, which pays for
    the constant in p₂ = He₂ + (1 + κ₀): gaussian weights learn more than the sphere."""
    d, seeds = 150, 30
    case = gs.Problem(
        activation="0.1*x + 0.05*(x**2 - 1)",
        teacher="x + 0.7*(x**2 - 1)",
        noise_variance=0.1,
        width=1.0,
        steps=[gs.Step(samples=8, rate=10, exponent=0.35)],
        readout=gs.Ridge(samples=3, penalty=1e-3),
    )
    sphere = case.replace({"init.weights": "sphere"})
    gap = np.array(
        [
            simulation.risk(sphere, d, seed, test_samples="exact").test
            - simulation.risk(case, d, seed, test_samples="exact").test
            for seed in range(seeds)
        ]
    )
    equal = theory.risk(sphere, d).test
    expected = equal - theory.risk(case, d).test
    standard_error = gap.std(ddof=1) / math.sqrt(seeds)
    assert 3 * standard_error / equal <= 0.02
    assert abs(gap.mean() - expected) <= 3 * standard_error
    assert expected > 6 * standard_error
