"""The bulk after one step: nodes that integrate what the laws of 𝐒 and M integrate."""

from __future__ import annotations

import numpy as np
import pytest
from giantsteps.theory._bulk import label_law, labels
from giantsteps.theory.model.build import equivalent, risk_batch
from scipy.optimize import brentq

import giantsteps as gs
from giantsteps.functions import as_function
from giantsteps.theory import _bulk

SIN = as_function("sin")
CASES = [(0.0, 4.0), (0.1, 1.0), (0.5, 0.3), (1.0, 8.0)]  # noise, α₀


def transform(z: float, noise: float, samples: float) -> float:
    """m(z) at z < 0 by bisection of z = −1/m + E[q/(1 + qm/α₀)]."""
    rule = labels(SIN, noise, 0.0)
    q = rule.y**2
    return brentq(
        lambda m: -1 / m + rule.mean(q / (1 + q * m / samples)) - z, 1e-9, 1 / -z, xtol=1e-15
    )


@pytest.mark.parametrize(("noise", "samples"), CASES)
def test_nodes_have_the_stieltjes_transforms_of_the_theory(noise: float, samples: float) -> None:
    law = label_law(SIN, noise, 0.0, samples, 16.0, False)
    rule = labels(SIN, noise, 0.0)
    u, y = rule.u, rule.y
    linear = rule.mean(u * y)
    length = np.sqrt(linear**2 + rule.mean(y * y) / samples)
    gamma = linear / length
    for z in (-0.0625, -0.3, -2.0, -40.0):
        m = transform(z, noise, samples)
        assert law.weights @ (1 / (law.nodes - z)) == pytest.approx(m, rel=1e-8)
        shrink = 1 / (1 + y * y * m / samples)
        teacher = 1 / (rule.mean(u * u * y * y * shrink) - z)
        mixed = rule.mean(y * u * shrink) * teacher
        b = m / samples * rule.mean(y * y * shrink) + rule.mean(y * u * shrink) ** 2 * teacher
        first = b / length**2
        cross = (mixed / length - gamma * first) / np.sqrt(1 - gamma**2)
        second = (teacher - 2 * gamma * mixed / length + gamma**2 * first) / (1 - gamma**2)
        found = np.tensordot(1 / (law.special_nodes - z), law.special, axes=1)
        wanted = np.array([[first, cross], [cross, second]])
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9 * first)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("noise", "samples"), CASES)
def test_masses_and_moments(noise: float, samples: float, signed: bool) -> None:
    law = label_law(SIN, noise, 0.0, samples, 1.0, signed)
    rule = labels(SIN, noise, 0.0)
    q = rule.y if signed else rule.y**2
    assert law.weights.sum() == pytest.approx(1.0, abs=1e-8)
    np.testing.assert_allclose(law.special.sum(axis=0), np.eye(2), atol=1e-8)
    assert np.all(law.weights > 0)
    assert np.all(np.linalg.eigvalsh(law.special) > -1e-12)
    assert law.weights @ law.nodes == pytest.approx(rule.mean(q), abs=1e-7)
    second = rule.mean(q) ** 2 + rule.mean(q * q) / samples  # free cumulants E[q^k] α₀^{1−k}
    assert law.weights @ law.nodes**2 == pytest.approx(second, rel=1e-6)
    # 𝐒(ι) has mean E y², whatever the law it is taken along.
    assert law.weights @ law.square == pytest.approx(rule.mean(rule.y**2), rel=1e-7)


def test_few_samples_leave_an_atom_at_zero() -> None:
    law = label_law(SIN, 0.1, 0.0, 0.4, 4096.0, False)
    assert law.weights[law.nodes < 1e-4].sum() == pytest.approx(0.6, abs=2e-3)


@pytest.mark.parametrize("signed", [False, True])
def test_laws_are_those_of_a_random_matrix(signed: bool) -> None:
    d, noise, seeds = 500, 0.2, 10
    samples = 800 / d
    law = label_law(SIN, noise, 0.0, samples, 1.0, signed)
    measured = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((800, d))
        y = np.sin(x[:, 0]) + np.sqrt(noise) * rng.standard_normal(800)
        values, vectors = np.linalg.eigh((x.T * (y if signed else y * y)) @ x / 800)
        b = x.T @ y / 800
        b /= np.linalg.norm(b)
        rest = np.eye(d)[0] - b[0] * b
        frame = vectors.T @ np.stack([b, rest / np.linalg.norm(rest)], axis=1)
        f = 1 / (1 + values**2)
        special = (frame * f[:, None]).T @ frame
        measured.append([f.mean(), special[0, 0], special[0, 1], special[1, 1]])
    f = 1 / (1 + law.special_nodes**2)
    special = np.tensordot(f, law.special, axes=1)
    wanted = np.array(
        [law.weights @ (1 / (1 + law.nodes**2)), special[0, 0], special[0, 1], special[1, 1]]
    )
    error = np.std(measured, axis=0, ddof=1) / np.sqrt(seeds)
    assert 3 * error[0] < 0.02 * wanted[0]
    assert np.all(np.abs(np.mean(measured, axis=0) - wanted) < 3.5 * error)


def test_trace_is_that_of_the_gradient_noise() -> None:
    # c_t = (1 + κ_t E y₀)² + η̃²A² Ey₀² Var σ'/α₀, for a mean of the activation too.
    for activation in ("tanh", "relu", gs.centered("relu")):
        problem = gs.Problem(
            activation=activation,
            teacher="sin",
            noise_variance=0.3,
            width=1.0,
            steps=[gs.Step(samples=1.5, rate=1.2, exponent=0.5)],
            init=gs.Init(second_layer="constant"),
        )
        both = [equivalent(problem, bulk=bulk).bulk.totals[0] for bulk in ("exact", "isotropic")]
        assert both[0] == pytest.approx(both[1], rel=1e-3)


@pytest.mark.parametrize("name", ["_REACH", "nodes", "special"])
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
    wanted = 0.2093097735
    assert risk_batch([problem]).test[0] == pytest.approx(wanted, abs=5e-10)
    original = _bulk.label_law

    def mutant(*arguments: object) -> _bulk.LabelLaw:
        law = original(*arguments)  # type: ignore[arg-type]
        factor = {"_REACH": 1.0, "nodes": 1.05, "special": 1.0}[name]
        special = law.special.copy()
        if name == "special":
            special[:, 0, 1] *= 0.95
            special[:, 1, 0] *= 0.95
        if name == "_REACH":  # β* and b̂ as generic directions
            special = np.zeros_like(special)
            special += np.eye(2) / len(special)
        return _bulk.LabelLaw(
            factor * law.nodes,
            law.weights,
            factor * law.special_nodes,
            special,
            law.square,
            law.special_square,
        )

    monkeypatch.setattr("giantsteps.theory._one_step.label_law", mutant)
    assert abs(risk_batch([problem]).test[0] - wanted) > 1e-5
