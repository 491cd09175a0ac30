"""Kernel and features after a small step: closed forms, limits of one equation in another."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.answers import Spectrum, Spike
from giantsteps.gaussian import moments
from giantsteps.laws import KernelBulk, Law, outlier
from giantsteps.problem import Constant, Vocabulary
from giantsteps.theory.steps.first import first_step, link_of
from giantsteps.theory.steps.spiked_population import SpikedPopulation

QUADRATIC = "0.5*x + x**2 - 1"  # μ₁ = ½, μ₂² = 2, c₂ = 1


def problem(**changes: Any) -> gs.Problem:
    base = gs.Problem(
        activation="tanh",
        teacher="tanh",
        noise_variance=0.1,
        width=1.25,
        steps=[gs.Step(samples=3.0, rate=6.0)],
        readout=gs.Ridge(samples=1.5, penalty=0.1),
    )
    return base.replace(changes)


def bulk_of(spectrum: Spectrum) -> Law:
    """The law of the bulk of one spectrum."""
    assert isinstance(spectrum.bulk, Law)
    return spectrum.bulk


@pytest.mark.parametrize("width", [0.2, 1.0, 1.25, 5.0])
@pytest.mark.parametrize("samples", [0.4, 1.5, 6.0])
def test_odd_activation_is_the_closed_form_of_the_weights_and_then_of_the_kernel(
    width: float, samples: float
) -> None:
    p = problem(**{"width": width, "readout.samples": samples, "steps.0.rate": 9.0})
    activation, teacher, step = moments(p.activation), moments(link_of(p)), first_step(p)
    spike = outlier(step.strength, width)
    tau = activation.linear**2 * spike.value**2 + activation.residual_variance
    bulk = KernelBulk(
        width=width, samples=samples, linear=activation.linear, residual=activation.residual
    )
    ratio = samples / width
    # Λ and Λ' once more, by quadrature over the population.
    law = cast(Law, bulk.population)
    value = ratio * tau + tau * law.expectation(lambda t: t / (tau - t))
    slope = ratio - law.expectation(lambda t: (t / (tau - t)) ** 2)
    assert slope > 0
    labels = teacher.second_moment + 0.1
    seen = teacher.linear**2 * activation.linear**2 * spike.value**2 * step.alignment * spike.left
    m, m_slope = -1 / (ratio * tau), 1 / (ratio * tau**2 * slope)
    (found,) = theory.kernel(p).spikes
    assert found.value == pytest.approx(value, rel=1e-9)
    assert found.overlap == pytest.approx(seen / tau / labels * m**2 / m_slope, rel=1e-8)
    (feature,) = theory.features(p).spikes
    assert feature.degree == 1
    assert feature.overlaps["second_layer_power"] == pytest.approx(
        spike.right * tau * slope / value, rel=1e-8
    )
    assert theory.kernel(p).bulk == bulk


@pytest.mark.parametrize(
    "second_layer", ["gaussian", Constant(1.0), Vocabulary((0.2, 1.8), (0.5, 0.5))]
)
@pytest.mark.parametrize("activation", ["tanh", "relu", QUADRATIC])
@pytest.mark.parametrize("d", [None, 400])
def test_features_are_square_roots_of_the_kernel(
    activation: str, second_layer: Any, d: int | None
) -> None:
    p = problem(
        **{"activation": activation, "init.second_layer": second_layer, "readout.samples": 3.0}
    )
    kernel, features = theory.kernel(p, d), theory.features(p, d)
    assert len(kernel.spikes) == len(features.spikes)
    for one, other in zip(kernel.spikes, features.spikes):
        assert other.value**2 == pytest.approx(one.value, rel=1e-14)
        assert 0 <= one.overlap <= 1
        assert all(0 <= overlap <= 1 + 1e-12 for overlap in other.overlaps.values())
    values = [float(spike.value) for spike in kernel.spikes]
    assert values == sorted(values, reverse=True)
    assert all(value > bulk_of(kernel).edge for value in values)
    assert bulk_of(features).edge ** 2 == pytest.approx(bulk_of(kernel).edge)
    assert bulk_of(features).atoms == ()
    assert kernel.source == features.source == ("limit" if d is None else "finite width")
    assert kernel.initial is not None
    assert kernel.initial.initial is None


def test_both_conditions_of_a_spike() -> None:
    """Just above the weights' threshold the kernel has none; above its own it leaves the edge."""

    def spikes(rate: float) -> tuple[Spike, ...]:
        return theory.kernel(problem(**{"steps.0.rate": rate})).spikes

    p = problem()
    unit = first_step(p).strength / p.steps[0].rate
    of_weights = p.width**0.25 / unit
    assert spikes(0.999 * of_weights) == ()
    assert spikes(1.001 * of_weights) == ()  # Λ' < 0 still
    low, high = of_weights, 6.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if spikes(middle) else (middle, high)
    (spike,) = spikes(high * (1 + 1e-7))
    assert spike.value == pytest.approx(bulk_of(theory.kernel(p)).edge, rel=1e-10)
    assert spike.overlap == pytest.approx(0, abs=1e-5)


def test_nothing_moves_without_a_step_or_without_a_linear_part() -> None:
    assert theory.kernel(problem().untrained()).spikes == ()
    start = theory.kernel(problem()).initial
    assert start is not None
    assert start.spikes == ()
    even = theory.kernel(problem(activation="x**2 - 1"))
    assert even.initial is not None
    assert [spike.value for spike in even.spikes] == [s.value for s in even.initial.spikes]
    assert all(spike.overlap == 0 for spike in even.spikes)
    blind = theory.kernel(problem(teacher="x**2 - 1")).spikes  # b is noise: no alignment
    assert len(blind) == 1
    assert blind[0].overlap == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("weights", "count"), [("sphere", 1), ("gaussian", 2)])
def test_norms_of_inputs_and_neurons_make_spikes_of_their_own(weights: str, count: int) -> None:
    p = problem(
        **{"activation": QUADRATIC, "width": 2.0, "readout.samples": 3.0, "init.weights": weights}
    ).untrained()
    spectrum = theory.kernel(p)
    bulk = bulk_of(spectrum)
    assert isinstance(bulk, KernelBulk)
    # 1 = 2αc₂² z m_n(z) m_N(z)
    for spike in spectrum.spikes:
        z = spike.value
        m = bulk.stieltjes(z).real
        companion = bulk.ratio * m - (1 - bulk.ratio) / z
        assert 2 * 3.0 * z * m * companion == pytest.approx(1, rel=1e-9)
        assert spike.overlap == 0
    assert len(spectrum.spikes) == count
    assert [spike.degree for spike in theory.features(p).spikes] == [None] * count
    # A mean hides them: c₀𝟙 + c₂v and (c₀ + c₂‖x‖²/d)𝟙 are one rank-one term.
    shifted = theory.kernel(p.replace({"activation": "0.5*x + x**2"}))
    assert [spike.value for spike in shifted.spikes] == [math.inf]


def population(shared: float, common: float, strength: float = 2.5) -> SpikedPopulation:
    bulk = KernelBulk(width=1.5, samples=3.0, linear=0.8, residual=0.6)
    return SpikedPopulation(bulk=bulk, strength=strength, common=common, shared=shared)


@pytest.mark.parametrize(("shared", "count"), [(0.0, 2), (0.3, 2), (0.9, 1), (1.0, 1)])
def test_spikes_of_a_drawn_population(shared: float, count: int) -> None:
    """Σ written out: eigenvalues and what its eigenvectors are made of."""
    d, width, strength, common = 400, 1.5, 2.5, 8.0
    n, measured = round(width * d), []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        weights = rng.normal(size=(d, n)) / np.sqrt(d)
        ones = np.ones(n) / np.sqrt(n)
        other = rng.normal(size=n)
        other -= ones * (ones @ other)
        a = shared * ones + math.sqrt(1 - shared**2) * other / np.linalg.norm(other)
        b = rng.normal(size=d)
        b /= np.linalg.norm(b)
        trained = weights + strength * np.outer(b, a)
        sigma = 0.64 * trained.T @ trained + 0.36 * np.eye(n) + common * np.outer(ones, ones)
        values, vectors = np.linalg.eigh(sigma)
        top = vectors[:, -1:-3:-1]
        measured.append(
            np.stack(
                [values[-1:-3:-1], (b @ trained @ top) ** 2, (a @ top) ** 2, (ones @ top) ** 2]
            )
        )
    mean = np.mean(measured, axis=0)
    spikes = population(shared, common, strength).spikes()
    assert len(spikes) == count
    for number, spike in enumerate(spikes):
        expected = [spike.tau, spike.step, spike.second_layer, spike.common]
        np.testing.assert_allclose(mean[:, number], expected, rtol=0.05, atol=0.02)


def test_an_infinite_common_term_is_a_limit() -> None:
    (limit,) = population(0.6, math.inf).spikes()
    (largest, close) = population(0.6, 1e9).spikes()
    assert largest.tau == pytest.approx(1e9, rel=1e-6)
    assert largest.common == pytest.approx(1, rel=1e-6)
    for name in ("tau", "step", "second_layer", "rest"):
        assert getattr(close, name) == pytest.approx(getattr(limit, name), rel=1e-6)
    (weaker,) = population(0.0, math.inf, strength=2.5 * 0.8).spikes()  # √(1 − 0.36) = 0.8
    assert limit.tau == pytest.approx(weaker.tau, rel=1e-9)
    assert population(1.0, math.inf).spikes() == []


def test_an_eigenvalue_between_two_parts_of_the_bulk_is_not_listed() -> None:
    """β > 1, n ≫ N: what ‖x‖² adds leaves the lower part of K but does not reach the upper.

    Spikes are eigenvalues above the bulk.
    """
    p = gs.Problem(
        activation="x + 0.1*(x**2 - 1)",
        teacher="tanh",
        width=4.0,
        readout=gs.Ridge(samples=80.0, penalty=0.1),
        init=gs.Init(weights="sphere"),
    )
    spectrum = theory.kernel(p)
    assert spectrum.spikes == ()
    (lower, upper) = bulk_of(spectrum).support
    d, n, neurons = 50, 4000, 200
    for seed in range(6):
        rng = np.random.default_rng(seed)
        weights = rng.normal(size=(d, neurons))
        weights /= np.linalg.norm(weights, axis=0)
        features = p.activation(rng.normal(size=(n, d)) @ weights) / np.sqrt(neurons)
        values = np.linalg.eigvalsh(features.T @ features)
        assert lower[1] < values[-d - 1] < upper[0] < values[-d]


@pytest.mark.parametrize("activation", ["relu", "softplus", "tanh(x) + 0.3"])
def test_outlier_of_a_mean(activation: str) -> None:
    p = problem(**{"activation": activation, "init.weights": "sphere"}).untrained()
    d = 1600
    sized, sigma = p.realised(d), moments(p.activation)
    samples, drawn = sized.require_readout().samples, p.at(d).samples
    assert drawn is not None
    ratio = samples / sized.width
    (spike,) = theory.kernel(p, d).spikes
    simple = drawn * sigma.mean**2 + sigma.variance * (1 + ratio)
    extra = 2 * samples * sigma.quadratic**2
    assert spike.value == pytest.approx(simple + extra, abs=0.02)
    (feature,) = theory.features(p, d).spikes
    assert feature.degree == 0
    assert feature.overlaps["monomial"] == pytest.approx(1, abs=0.02)
    (limit,) = theory.features(p).spikes
    assert limit.value == math.inf
    assert dict(limit.overlaps) == {"monomial": 1.0, "second_layer_power": 1.0}


@pytest.mark.parametrize("second_layer", [Constant(1.0), Vocabulary((0.2, 1.8), (0.5, 0.5))])
@pytest.mark.parametrize("activation", ["tanh", "x + 0.8*(x**2 - 1)"])
def test_equivalent_model_of_a_vanishing_movement(activation: str, second_layer: Any) -> None:
    """theory §5d as η̃ → 0 is §3, also where the step and ‖x‖² share a direction.

    What the initial output pulls is of order η̃, 3e-5 of the value at d = 10⁸.
    """
    p = problem(
        **{
            "activation": activation,
            "init.second_layer": second_layer,
            "init.weights": "sphere",
        }
    )
    model = theory.equivalent(p, d=10**10).kernel(samples=1.5)
    (spike,), (expected,) = model.spikes, theory.kernel(p).spikes
    assert spike.value == pytest.approx(expected.value, rel=1e-5)
    assert spike.overlap == pytest.approx(expected.overlap, rel=1e-4)
    assert bulk_of(model).edge == pytest.approx(bulk_of(theory.kernel(p)).edge, rel=1e-5)


def test_needs_a_readout() -> None:
    with pytest.raises(gs.InvalidProblem, match="readout"):
        theory.kernel(problem(readout=None))
