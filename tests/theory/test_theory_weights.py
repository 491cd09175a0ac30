"""Singular values of the weights at small steps (theory §1, §2)."""

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory

OPEN = gs.Problem(
    activation="tanh",
    teacher="tanh",
    noise_variance=0.1,
    width=1.25,
    steps=[gs.Step(samples=3, rate=3)],
)


def test_open_values():
    answer = theory.weights(OPEN)
    (spike,) = answer.spikes
    assert spike.value == pytest.approx(2.171984, abs=1e-6)
    assert spike.overlap == pytest.approx(0.261306, abs=1e-6)
    assert answer.bulk.support[0] == pytest.approx((np.sqrt(1.25) - 1, np.sqrt(1.25) + 1))
    assert answer.bulk.atoms == ()


def test_no_spike_below_threshold_or_without_step():
    assert theory.weights(OPEN.untrained()).spikes == ()
    critical = 1.25**0.25 / theory.weights(OPEN.replace({"steps.0.rate": 50})).spikes[0].value * 50
    assert theory.weights(OPEN.replace({"steps.0.rate": 0.9 * critical})).spikes == ()
    assert len(theory.weights(OPEN.replace({"steps.0.rate": 1.1 * critical})).spikes) == 1


def test_a_growing_step_has_an_infinite_spike_along_the_gradient():
    for exponent in (0.2, 0.25, 0.5):
        (spike,) = theory.weights(OPEN.replace({"steps.0.exponent": exponent})).spikes
        assert spike.value == np.inf
        assert spike.overlaps["gradient"] == 1
        assert spike.overlap == pytest.approx(0.261306 / 0.378658, rel=1e-5)


def test_second_layer_scales_the_spike():
    """θ₁ is proportional to ‖a‖, whatever the law."""
    two = OPEN.replace({"init.second_layer": gs.Constant(2.0)})
    twice = OPEN.replace({"steps.0.rate": 6.0})
    assert theory.weights(two).spikes == theory.weights(twice).spikes


def test_uncentered_activation_sees_shifted_labels():
    """f₀ → c₀ E A: the gradient's labels are y − c₀ E A (theory §0)."""
    problem = OPEN.replace({"activation": "relu", "init.second_layer": "constant"})
    (spike,) = theory.weights(problem).spikes
    c0, labels = 1 / np.sqrt(2 * np.pi), 0.39429449039746 + 0.1
    linear2 = 0.60570550960254  # of tanh: E tanh' = 0.6057...
    norm2 = linear2**2 + (labels + c0**2) / 3
    theta2 = 9 * 0.25 * norm2
    assert spike.value == pytest.approx(np.sqrt((1 + theta2) * (1.25 + theta2) / theta2), rel=1e-8)


def test_grid():
    grid = gs.Grid(OPEN, {"steps.0.rate": [0.1, 3.0, 5.0]})
    answer = theory.weights(grid)
    assert answer.count.tolist() == [0, 1, 1]
    assert np.isnan(answer.spikes[0].value[0])
    assert answer.spikes[0].value[1] == theory.weights(OPEN).spikes[0].value
