"""What figures measure by themselves, against the library or a plain computation."""

from __future__ import annotations

import numpy as np
import pytest

from giantsteps import simulation, theory
from giantsteps.figures._cui2024 import _closest, _model
from giantsteps.figures._networks import (
    covariance_gap,
    direction_overlaps,
    kernel_errors,
    leading_direction,
    neurons,
)
from giantsteps.problem import Problem, Ridge, Step

PROBLEM = Problem(
    activation="erf",
    teacher="erf",
    width=2.0,
    steps=[Step(samples=4.0, rate=1.0, exponent=0.5)],
    readout=Ridge(samples=2.0, penalty=0.1),
)


def test_the_first_direction_is_that_of_the_weights() -> None:
    found = leading_direction(PROBLEM, 40, 3)
    overlap = float(found["vector"] @ found["teacher"] / 40) ** 2
    expected = simulation.weights(PROBLEM, 40, 3, top=1).spikes[0].overlaps["teacher"]
    assert overlap == pytest.approx(float(expected), rel=1e-8)
    stages = direction_overlaps(PROBLEM, 40, 3)["overlap"]
    assert stages.shape == (2, 1)
    assert stages[1, 0] == pytest.approx(overlap, rel=1e-8)


def test_neurons_before_and_after() -> None:
    found = neurons(PROBLEM, 30, 1)
    arrays = simulation.run(PROBLEM, 30, 1).arrays
    teacher = np.asarray(arrays["beta"])[:, 0]
    np.testing.assert_allclose(found["before"][0], teacher @ arrays["W0"], rtol=1e-12)
    np.testing.assert_allclose(found["after"][0], teacher @ arrays["W1"], rtol=1e-12)
    moved = np.mean(found["after"] ** 2, axis=1) - np.mean(found["before"] ** 2, axis=1)
    assert moved[0] > 5 * abs(moved[1])  # along the teacher, and hardly across
    assert found["loss"][1] < found["loss"][0]
    # The gradient of this loss is the one that the step takes: its direction is b = Xᵀ(y − f₀)/n₀.
    output = PROBLEM.activation(arrays["X0"] @ arrays["W0"]) @ arrays["a"] / np.sqrt(60)
    assert found["loss"][0] == pytest.approx(np.mean((arrays["y0"] - output) ** 2), rel=1e-12)


def test_the_covariance_of_the_features() -> None:
    """By Monte Carlo for few neurons."""
    problem = PROBLEM.replace({"width": 1.5})
    weights = np.asarray(simulation.run(problem, 4, 0).arrays["W1"])
    x = np.random.default_rng(0).standard_normal((400_000, 4))
    features = problem.activation(x @ weights)
    gram = weights.T @ weights
    z = np.random.default_rng(1).standard_normal(400_000)
    value = problem.activation(z)
    linear = np.mean(value * z)
    expected = features.T @ features / len(x)
    expected -= linear**2 * gram + (np.mean(value**2) - linear**2) * np.eye(6)
    assert covariance_gap(problem, 4, 0)["gap"][0] == pytest.approx(
        np.linalg.norm(expected, 2), abs=0.01
    )


def test_kernels_learn_linear_functions_and_no_quadratic_ones() -> None:
    """With samples in proportion to d, whatever the kernel (theory §4)."""
    samples = (2.0, 8.0)
    linear = kernel_errors(PROBLEM.replace({"teacher": "he1"}), 60, 0, samples=samples)
    square = kernel_errors(PROBLEM.replace({"teacher": "he2(x)/2**0.5"}), 60, 0, samples=samples)
    for name in ("gaussian", "exponential", "tangent"):
        assert linear[name][1] < 0.5 * linear[name][0]
        assert linear[name][1] < 0.15
        assert min(square[name]) > 0.7


@pytest.mark.parametrize("spike", [0.5, 0.9, 2.0])
def test_the_functions_of_the_bounds_are_as_far_as_the_bounds_say(spike: float) -> None:
    model = _model("tanh", "sin", spike)
    x = np.linspace(-9.0, 9.0, 4001)
    weights = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) * (x[1] - x[0])
    found, bounds = _closest(model, x), model.bounds()
    distance = {
        name: float(weights @ (found["target"] - found[name]) ** 2)
        for name in ("infinite penalty", "optimal penalty")
    }
    upper, lower = bounds.ceilings["infinite penalty"], bounds.floors["optimal penalty"]
    assert distance["infinite penalty"] == pytest.approx(float(upper), rel=1e-6)
    assert distance["optimal penalty"] == pytest.approx(float(lower), rel=1e-4)
    assert np.array_equal(found["target"], np.sin(x))


def test_both_readings_of_the_published_rate() -> None:
    """The captions of ba2022-weights and ba2022-kernel state θ₁ and the threshold."""
    from giantsteps.functions import centered
    from giantsteps.theory import critical_rate

    weights = Problem(
        activation="tanh", teacher=centered("relu"), width=2.0, steps=[Step(samples=4.0, rate=1.0)]
    )
    kernel = Problem(
        activation=centered("softplus"), teacher="tanh", width=1.25,
        steps=[Step(samples=1.5, rate=1.0)],
    )  # fmt: skip
    for problem, high, threshold in ((weights, 1.40, 1.19), (kernel, 1.59, 1.06)):
        strength = 4.0 * problem.width**0.25 / float(critical_rate(problem))
        assert strength == pytest.approx(high, abs=0.006)
        assert problem.width**0.25 == pytest.approx(threshold, abs=0.006)
        assert theory.weights(problem.replace({"steps.0.rate": 4.0})).spikes
        assert not theory.weights(problem.replace({"steps.0.rate": 2.0})).spikes
