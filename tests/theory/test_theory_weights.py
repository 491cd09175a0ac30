"""Singular values of the weights at small steps (theory §1, §2)."""

from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.answers import Spectrum
from giantsteps.laws import Law

OPEN = gs.Problem(
    activation="tanh",
    teacher="tanh",
    noise_variance=0.1,
    width=1.25,
    steps=[gs.Step(samples=3, rate=3)],
)


def test_open_values() -> None:
    answer = theory.weights(OPEN)
    (spike,) = answer.spikes
    assert spike.value == pytest.approx(2.171984, abs=1e-6)
    assert spike.overlap == pytest.approx(0.261306, abs=1e-6)
    assert isinstance(answer.bulk, Law)
    assert answer.bulk.support[0] == pytest.approx((np.sqrt(1.25) - 1, np.sqrt(1.25) + 1))
    assert answer.bulk.atoms == ()


def test_no_spike_below_threshold_or_without_step() -> None:
    assert theory.weights(OPEN.untrained()).spikes == ()
    critical = 1.25**0.25 / theory.weights(OPEN.replace({"steps.0.rate": 50})).spikes[0].value * 50
    assert theory.weights(OPEN.replace({"steps.0.rate": 0.9 * critical})).spikes == ()
    assert len(theory.weights(OPEN.replace({"steps.0.rate": 1.1 * critical})).spikes) == 1


def test_a_growing_step_has_an_infinite_spike_along_the_gradient() -> None:
    for exponent in (0.2, 0.25, 0.5):
        (spike,) = theory.weights(OPEN.replace({"steps.0.exponent": exponent})).spikes
        assert spike.value == np.inf
        assert spike.overlaps["gradient"] == 1
        assert spike.overlap == pytest.approx(0.261306 / 0.378658, rel=1e-5)


def test_second_layer_scales_the_spike() -> None:
    """θ₁ is proportional to ‖a‖, whatever the law."""
    two = OPEN.replace({"init.second_layer": gs.Constant(2.0)})
    twice = OPEN.replace({"steps.0.rate": 6.0})
    assert theory.weights(two).spikes == theory.weights(twice).spikes


def test_uncentered_activation_sees_shifted_labels() -> None:
    """f₀ → c₀ E A: the gradient's labels are y − c₀ E A (theory §0)."""
    problem = OPEN.replace({"activation": "relu", "init.second_layer": "constant"})
    (spike,) = theory.weights(problem).spikes
    c0, labels = 1 / np.sqrt(2 * np.pi), 0.39429449039746 + 0.1
    linear2 = 0.60570550960254  # of tanh: E tanh' = 0.6057...
    norm2 = linear2**2 + (labels + c0**2) / 3
    theta2 = 9 * 0.25 * norm2
    assert spike.value == pytest.approx(np.sqrt((1 + theta2) * (1.25 + theta2) / theta2), rel=1e-8)


def test_grid() -> None:
    grid = gs.Grid(OPEN, {"steps.0.rate": [0.1, 3.0, 5.0]})
    answer = theory.weights(grid)
    assert isinstance(answer.count, np.ndarray)
    assert answer.count.tolist() == [0, 1, 1]
    assert np.isnan(np.asarray(answer.spikes[0].value)[0])
    assert np.asarray(answer.spikes[0].value)[1] == theory.weights(OPEN).spikes[0].value


def small_step(d: int | None, **others: Any) -> Spectrum:
    """tanh → sin with rate 4, whose spike the initial output moves by 1.3 % at d = 500."""
    given: dict[str, Any] = {"activation": "tanh", "noise_variance": 0.05, "width": 0.8}
    step = gs.Step(samples=4, rate=4)
    return theory.weights(gs.Problem(teacher="sin", steps=[step], **(given | others)), d)


def test_a_small_step_at_a_size_feels_the_initial_output() -> None:
    """300 networks: 2.192(3), squared overlap .516(2); centred ReLU 2.486(4), .463(2)."""
    (spike,) = small_step(500).spikes
    assert spike.value == pytest.approx(2.1917, abs=2 * 0.0032)
    assert spike.overlap == pytest.approx(0.5161, abs=2 * 0.0021)
    relu = gs.Problem(
        activation=gs.centered("relu"),
        teacher="x + 0.5*(x**2 - 1)",
        noise_variance=0.1,
        width=1.2,
        steps=[gs.Step(samples=3, rate=3)],
        init=gs.Init(second_layer="constant"),
    )
    (spike,) = theory.weights(relu, 500).spikes
    assert spike.value == pytest.approx(2.4860, abs=2 * 0.0044)
    assert spike.overlap == pytest.approx(0.4632, abs=2 * 0.0020)


def test_the_pull_on_a_small_step_vanishes_with_the_size() -> None:
    (limit,), (large,) = small_step(None).spikes, small_step(10**8).spikes
    assert large.value == pytest.approx(limit.value, rel=1e-4)
    assert large.overlaps == pytest.approx(limit.overlaps, rel=1e-3)


def test_the_pull_in_closed_form() -> None:
    """One second-layer value, odd σ: 1 + (θ² + (1−δ)² + δ²/α₀) m(s²) = 0."""
    d, alpha, width = 400, 4.0, 0.8
    (spike,) = small_step(d, init=gs.Init(second_layer="constant")).spikes
    neurons, z = width * d, spike.value**2
    linear, sine = 0.6057055, np.exp(-0.5)  # E tanh'(z), E cos(z)
    label = (1 - np.exp(-2)) / 2 + 0.05
    theta = 4 * linear * np.sqrt(sine**2 + label / alpha)
    delta = 4 * linear**2 / np.sqrt(neurons)
    # m of W₀W₀ᵀ above its bulk: 1/m = −z + β/(1 + m).
    m = -(z + 1 - width - np.sqrt((z + 1 - width) ** 2 - 4 * z)) / (2 * z)
    own = (1 - delta) ** 2 + delta**2 / alpha
    # The bulk has moved by O(1/N) beside that.
    assert 1 + (theta**2 + own) * m == pytest.approx(0, abs=2e-3)
    assert abs(1 + (theta**2 + 1) * m) > 1.5e-2
