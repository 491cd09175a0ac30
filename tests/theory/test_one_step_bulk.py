"""The covariance of the neurons after one step: traces and forms of its resolvent (theory §5b)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

import giantsteps as gs
from giantsteps import theory
from giantsteps.theory.solver.dyson import Dyson
from giantsteps.theory.solver.special import Forms
from giantsteps.theory.steps.neuron import NeuronLaw
from giantsteps.theory.steps.one import neuron_law

CASES = [(0.0, 4.0), (0.1, 1.0), (0.5, 0.3), (1.0, 8.0)]  # noise, α₀
BENT = gs.centered("tanh(x) + 0.5*tanh(x)**2")


def law(activation: object, noise: float, samples: float, moved: float = 1.5) -> NeuronLaw:
    problem = gs.Problem(
        activation=activation,  # type: ignore[arg-type]
        teacher="sin",
        noise_variance=noise,
        width=1.0,
        steps=[gs.Step(samples=samples, rate=moved, exponent=0.5)],
        init=gs.Init(second_layer="constant"),
    )
    return neuron_law(problem, np.array([moved]), level=3)


def resolvent(given: NeuronLaw, strength: float) -> Dyson:
    """𝒢 = (I + pΣ)⁻¹ by plain iteration of the Dyson equation."""
    covariance = given.covariance()
    strengths = strength * covariance.coefficients[:, :, None, None]
    start = Dyson(covariance.bulk(), np.ones((1, 1, 1)), strengths, np.zeros((1, 0, 0)))
    found = replace(start, active=start.alone())
    for _ in range(2000):
        image = found.image
        moved = np.abs(image - found.active).max()
        found = replace(found, active=(found.active + image) / 2)
        if moved < 1e-14:
            return found
    raise AssertionError("no convergence")


def numbers(given: NeuronLaw, strength: float) -> np.ndarray:
    """τ(𝒢), τ(Σ𝒢), and 𝒢 on (b̂, b̂), (b̂, B), (B, B)."""
    dyson = resolvent(given, strength)
    plain, *others = dyson.traces[0, :, 0, 0]
    forms = Forms(dyson).values[0, :, 0, :, 0]
    covariance = given.covariance().coefficients[0]
    return np.array([plain, covariance @ others, forms[0, 0], forms[0, 1], forms[1, 1]])


@pytest.mark.parametrize(("noise", "samples"), CASES)
def test_an_odd_activation_has_the_transforms_of_sample_covariances(
    noise: float, samples: float
) -> None:
    """Σ = I + ε𝐒: m(z) of 𝐒 by bisection of z = −1/m + E[q/(1 + qm/α₀)], q = r²."""
    given = law("tanh", noise, samples)
    r, weights = given.labels.nodes, given.labels.weights
    q, first, second = r * r, given.labels.first[0], given.labels.second[0, 0]
    eps = float(given.noise[0])
    for strength in (0.05, 1.0, 30.0):
        # (I + p(I + ε𝐒))⁻¹ = (𝐒 − z)⁻¹/(pε)
        z = -(1 + strength) / (strength * eps)
        m = brentq(
            lambda m, z=z: -1 / m + weights @ (q / (1 + q * m / samples)) - z,
            1e-12,
            -1 / z,
            xtol=1e-17,
        )
        shrink = 1 / (1 + q * m / samples)
        teacher = 1 / (second @ (q * shrink) - z)
        mixed = first @ (r * shrink) * teacher
        b = m / samples * (weights @ (q * shrink)) + (first @ (r * shrink)) ** 2 * teacher
        gamma, length = given.overlap, given.length
        spike = b / length**2
        cross = (mixed / length - gamma * spike) / np.sqrt(1 - gamma**2)
        rest = (teacher - 2 * gamma * mixed / length + gamma**2 * spike) / (1 - gamma**2)
        wanted = np.array([m, 0.0, spike, cross, rest]) / (strength * eps)
        wanted[1] = (1 - wanted[0]) / strength  # pτ(Σ𝒢) = 1 − τ(𝒢)
        found = numbers(given, strength)
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10 * wanted[0])


@pytest.mark.parametrize("activation", [BENT, gs.centered("relu"), "relu"])
@pytest.mark.parametrize(("noise", "samples"), CASES[1:])
def test_traces_of_a_tilted_bulk_add_up(activation: object, noise: float, samples: float) -> None:
    """τ(𝒢) + pτ(Σ𝒢) = 1, and τ(𝒢) = 1 − p c + p²τ(Σ²) for small p."""
    given = law(activation, noise, samples)
    for strength in (0.1, 2.0, 40.0):
        plain, traced, *_ = numbers(given, strength)
        assert plain + strength * traced == pytest.approx(1.0, abs=1e-11)
    covariance = given.covariance()
    square = covariance.coefficients[0] @ covariance.gram @ covariance.coefficients[0]
    p = 1e-5
    series = 1 - p * covariance.totals[0] + p**2 * square
    assert numbers(given, p)[0] == pytest.approx(series, abs=3e3 * p**3)


@pytest.mark.parametrize("activation", ["tanh", BENT, "relu"])
def test_forms_are_those_of_a_random_matrix(activation: object) -> None:
    """(I + κM)² + ε𝐒 written out, with b and β*: the two batches' operators do not commute."""
    d, noise, seeds, samples, strength = 400, 0.2, 10, 1.6, 3.0
    given = law(activation, noise, samples)
    kappa, eps = float(given.tilt[0]), float(given.noise[0])
    shift = float(given.labels.weights @ given.labels.nodes)  # E y = 0, so this is −c₀E A
    measured = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        n = round(samples * d)
        x = rng.standard_normal((n, d))
        r = np.sin(x[:, 0]) + np.sqrt(noise) * rng.standard_normal(n) + shift
        tilted = np.eye(d) + kappa * (x.T * r) @ x / n
        sigma = tilted @ tilted + eps * (x.T * r**2) @ x / n
        inverse = np.linalg.inv(np.eye(d) + strength * sigma)
        b = x.T @ r / n
        b /= np.linalg.norm(b)
        rest = np.eye(d)[0] - b[0] * b
        frame = np.stack([b, rest / np.linalg.norm(rest)], axis=1)
        forms = frame.T @ inverse @ frame
        traces = [np.trace(inverse) / d, np.trace(sigma @ inverse) / d]
        measured.append([*traces, forms[0, 0], forms[0, 1], forms[1, 1]])
    wanted = numbers(given, strength)
    error = np.std(measured, axis=0, ddof=1) / np.sqrt(seeds)
    assert 3 * error[0] < 0.02 * wanted[0]
    assert np.all(np.abs(np.mean(measured, axis=0) - wanted) < 3.5 * error + 2e-3 * wanted[0])


@pytest.mark.parametrize("activation", ["tanh", "relu", gs.centered("relu")])
def test_trace_is_that_of_the_gradient_noise(activation: object) -> None:
    """c_t = (1 + κE r)² + s²E r² Var σ'/α₀, for a mean of the activation too."""
    given = law(activation, 0.3, 1.5, moved=1.2)
    mean, square = given.labels.moment(1), given.labels.moment(2)
    variance = given.slope.noise + given.slope.hermite[1] ** 2
    wanted = (1 + given.tilt[0] * mean) ** 2 + 1.2**2 * square * variance / 1.5
    assert given.covariance().totals[0] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("name", ["generic", "noise", "overlap"])
def test_five_percent_in_the_law_shows(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    problem = gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.1,
        width=1.5,
        steps=[gs.Step(samples=1.0, rate=3.0, exponent=0.5)],
        readout=gs.Ridge(samples=2.0, penalty=0.1),
        init=gs.Init(second_layer="constant"),
    )

    def risk() -> float:
        return float(theory.equivalent(problem, simplify="equal norms").risk().test)

    wanted = 0.2093097735
    assert risk() == pytest.approx(wanted, abs=5e-10)
    original = NeuronLaw.covariance

    def mutant(self: NeuronLaw) -> theory.NeuronCovariance:
        right = original(self)
        if name == "noise":  # ε𝐒
            coefficients = right.coefficients * np.array([1.0, 1.05])
            return replace(right, coefficients=coefficients)
        if name == "overlap":  # of the teacher with the step
            assert right.special is not None
            special = right.special.copy()
            special[1, 0] *= 0.95
            return replace(right, special=special)
        generic = np.zeros_like(right.stages[0].sums)  # b̂ and β* as directions like any other
        carry = np.eye(len(right.stages[0].carry))
        stage = replace(right.stages[0], sums=generic, carry=carry, frame=np.eye(1, len(carry)))
        external = np.eye(len(carry))[:, None]
        return replace(right, stages=(stage,), external=external)

    monkeypatch.setattr(NeuronLaw, "covariance", mutant)
    assert abs(risk() - wanted) > 1e-5
