"""Weak spikes, and the excess of covariances on few vectors, after fresh steps (§5c, §7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps.functions import as_function
from giantsteps.gaussian import coordinate_rule
from giantsteps.theory import SpikedFeatures
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.steps.several.covariance import covariance_of_state, operators_on
from giantsteps.theory.steps.several.model import trained_by
from giantsteps.theory.steps.several.spectrum import spectrum_of

from .commuting import along_directions

A = np.array([-1.5, -0.3, 0.6, 1.4])
C = np.array([1.4, 1.1, 1.1, 1.3])
READOUT = gs.Ridge(samples=2.0, penalty=0.1)


def model(neurons: float, **given: Any) -> SpikedFeatures:
    return SpikedFeatures(
        activation="tanh(x) + 0.4*(tanh(x)**2 - 0.39429449)",
        teacher="x + 0.5*(x**2 - 1)",
        noise_variance=0.1,
        width=1.2,
        neurons=neurons,
        probabilities=np.full(4, 0.25),
        **given,
    )


def test_weak_spikes_are_spikes_to_first_order() -> None:
    """N times the square of the second spike is fixed: what is left falls with its size."""
    gaps, effects = [], []
    for size in (0.05, 0.005):
        lean = size * np.array([1.0, -0.5, 0.7, 1.2])
        neurons = 10.0 / size**2
        spikes = np.column_stack([1.1 * A, lean])
        strong = model(neurons, spikes=spikes, overlap=[0.8, 0.4], bulk=C)
        weak = model(
            neurons,
            spikes=1.1 * A[:, None],
            overlap=[0.8],
            bulk=C + lean**2,
            weak=lean[:, None],
            weak_overlap=np.array([0.4]),
        )
        without = model(neurons, spikes=1.1 * A[:, None], overlap=[0.8], bulk=C)
        expected, found = strong.risk(READOUT), weak.risk(READOUT)
        effects.append(abs(float(without.risk(READOUT).test / expected.test) - 1))
        ratios = found.test / expected.test, found.train / expected.train
        gaps.append(max(abs(float(ratio) - 1) for ratio in ratios))
    assert gaps[1] < 0.15 * gaps[0] < 0.01 * effects[0]


def test_excess_is_a_variance_along_spike_and_teacher() -> None:
    along = np.array([[2.0, 1.2], [0.7, 1.3], [1.6, 0.9], [1.1, 1.0]])
    special = np.array([np.diag([1.0, 0.0]), np.diag([0.0, 1.0])])
    bulk = along_directions([1.0], C[:, None], special, along)
    excess = (along - C[:, None])[:, :, None] * np.eye(2)
    given = {"spikes": 1.1 * A[:, None], "overlap": [0.8]}
    expected = model(1000.0, bulk=bulk, **given).risk(READOUT)
    plain = NeuronCovariance.isotropic(C, 1)
    found = model(1000.0, bulk=replace(plain, excess=excess), **given).risk(READOUT)
    assert found.test == pytest.approx(expected.test, rel=1e-12)
    assert found.train == pytest.approx(expected.train, rel=1e-12)
    without = model(1000.0, bulk=plain, **given).risk(READOUT)
    assert abs(float(without.test / expected.test) - 1) > 1e-4


def problem(second_layer: Any) -> gs.Problem:
    step = {"samples": 3.0, "rate": 0.6, "exponent": 0.5}
    return gs.Problem(
        activation="erf",
        teacher="x + (x**3 - 3*x)/6",
        noise_variance=0.1,
        width=1.3,
        steps=[step, {**step, "rate": 1.0}],
        init=gs.Init(second_layer=second_layer),
    )


def test_forms_of_the_operators_are_those_of_the_solver() -> None:
    """The same recursion that makes the forms exact gives those of the sums over batches."""
    setting = problem(gs.Vocabulary([-1.0, 0.5, 2.0], [0.3, 0.4, 0.3]))
    spectrum = spectrum_of(setting, None)
    found = replace(trained_by(setting, spectrum, np.inf, 1)[-1], multiplied=False)
    plain = covariance_of_state(found, spectrum, 1e-3)
    stated = operators_on(plain, found.directions + 1)
    assert found.represented == pytest.approx(stated, abs=3e-3)
    assert np.abs(found.forms - found.represented).max() > 0.1


def test_covariance_along_the_spike_is_that_of_its_matrices() -> None:
    """(1 + sK)Σ(1 + sK) and the noise of the second step, as matrices of two batches."""
    setting = problem("constant")
    states = trained_by(setting, spectrum_of(setting, None), np.inf, 2)
    drawn = np.array([_drawn(np.random.default_rng(seed), 300) for seed in range(8)])
    error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    assert np.all(np.abs(drawn.mean(axis=0) - states[-1].forms[0]) < 4 * error + 0.01)
    assert abs(drawn.mean(axis=0) - states[-1].represented[0])[0, 0] > 4 * error[0, 0]


def _drawn(rng: np.random.Generator, d: int) -> np.ndarray:
    """Σ on the spike and the teacher's remainder, given two batches."""
    slope = as_function("erf").derivative
    rule = coordinate_rule(1, nodes=40)
    z, mean = rule.nodes[:, 0], rule.weights
    mu = float(np.asarray(slope(z)) @ mean)
    count, teacher = 3 * d, np.eye(d)[0]
    batches = [rng.standard_normal((count, d)) for _ in range(2)]
    labels = [x[:, 0] + (x[:, 0] ** 3 - 3 * x[:, 0]) / 6 for x in batches]
    labels = [y + np.sqrt(0.1) * rng.standard_normal(count) for y in labels]
    b = batches[0].T @ labels[0] / count
    rest = float(np.asarray(slope(z)) ** 2 @ mean) - mu**2
    sigma = np.eye(d) + 0.36 * rest / 3 * (batches[0].T * labels[0] ** 2) @ batches[0] / count
    c, x = np.trace(sigma) / d, batches[1]
    h = 0.6 * mu * (x @ b)[:, None] + np.sqrt(c) * z
    r = labels[1] - np.asarray(as_function("erf")(h)) @ mean
    seen = np.asarray(slope(h))
    zeta, xi = seen @ mean, seen @ (mean * z) / np.sqrt(c)
    noise = seen**2 @ mean - zeta**2 - c * xi**2
    moved = np.eye(d) + (x.T * (r * xi)) @ x / count
    total = moved @ sigma @ moved + (x.T * (r**2 * noise)) @ x / count / 3
    lean = 0.6 * mu * b + x.T @ (r * zeta) / count
    spike = lean / np.linalg.norm(lean)
    left = teacher - spike * spike[0]
    frame = np.stack([spike, left / np.linalg.norm(left)], axis=1)
    return np.asarray(frame.T @ total @ frame)
