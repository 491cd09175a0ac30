"""Spectra of a run against dense decompositions of its matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation
from giantsteps.laws import EmpiricalLaw
from giantsteps.simulation import _spectrum


def make(samples: float = 1.5, width: float = 1.25, **changes: Any) -> gs.Problem:
    problem = gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.1,
        width=width,
        steps=[gs.Step(samples=3.0, rate=3.0)],
        readout=gs.Ridge(samples=samples, penalty=0.05),
    )
    return problem.replace(changes)


def squared_cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float((a @ b) ** 2 / (a @ a) / (b @ b))


@pytest.mark.parametrize(("d", "width"), [(60, 0.5), (60, 2.0), (450, 1.5)])
def test_weights(d: int, width: float) -> None:
    run = simulation.run(make(width=width), d, seed=0)
    u, s, vt = np.linalg.svd(run.arrays["W1"], full_matrices=False)
    spectrum = run.weights(top=3)
    assert len(spectrum.spikes) == 3
    assert spectrum.matrix == "weights"
    assert spectrum.source == "simulation"
    for number, spike in enumerate(spectrum.spikes):
        assert spike.value == pytest.approx(s[number], rel=1e-11)
        expected = {
            "teacher": squared_cosine(u[:, number], run.arrays["beta"][:, 0]),
            "gradient": squared_cosine(u[:, number], run.arrays["b"]),
            "second_layer": squared_cosine(vt[number], run.arrays["a"]),
        }
        assert dict(spike.overlaps) == pytest.approx(expected, rel=1e-6, abs=1e-12)
        assert spike.overlap == spike.overlaps["teacher"]
    assert isinstance(spectrum.bulk, EmpiricalLaw)
    np.testing.assert_allclose(spectrum.bulk.values, s[::-1], atol=1e-7)
    assert spectrum.bulk.values.size == min(run.sizes.d, run.sizes.neurons)


def test_bulk_is_computed_when_read(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    original = _spectrum.bulk

    def counted(*given: Any) -> Any:
        calls.append(given)
        return original(*given)

    monkeypatch.setattr(_spectrum, "bulk", counted)
    spectrum = simulation.weights(make(), 40, seed=0)
    assert not calls
    assert spectrum.bulk is spectrum.bulk
    assert len(calls) == 1
    assert simulation.weights(make(), 40, seed=0, bulk=False).bulk is None
    assert simulation.weights(make(), 40, seed=0, top=0).spikes == ()


@pytest.mark.parametrize("samples", [0.6, 1.25, 3.0])
def test_kernel_and_features(samples: float) -> None:
    run = simulation.run(make(samples), 60, seed=1)
    phi, y = run.arrays["Phi"], run.arrays["y"]
    values, vectors = np.linalg.eigh(phi @ phi.T)
    kernel, features = run.kernel(top=3), run.features(top=3)
    for number, (spike, other) in enumerate(zip(kernel.spikes, features.spikes)):
        at = -1 - number
        assert spike.value == pytest.approx(values[at], rel=1e-11)
        assert spike.overlap == pytest.approx(
            squared_cosine(vectors[:, at], y), rel=1e-6, abs=1e-12
        )
        assert other.value**2 == pytest.approx(spike.value, rel=1e-12)
    assert isinstance(kernel.bulk, EmpiricalLaw)
    assert isinstance(features.bulk, EmpiricalLaw)
    np.testing.assert_allclose(kernel.bulk.values, np.maximum(values, 0), atol=1e-13)
    assert kernel.bulk.values.size == phi.shape[0]
    if phi.shape[0] > phi.shape[1]:
        assert kernel.bulk.cdf(0.0) == pytest.approx(1 - phi.shape[1] / phi.shape[0])
    singular = np.linalg.svd(phi, compute_uv=False)[::-1]
    np.testing.assert_allclose(features.bulk.values, singular, atol=1e-7)


def test_kernel_shares_the_matrix_of_the_risk(monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulation.run(make(3.0), 50, seed=0, test_samples=100)
    run.risk(penalties=[0.1, 1.0])
    expected = simulation.run(make(3.0), 50, seed=0).kernel(2)
    monkeypatch.setattr(run.network.__class__, "readout_batch", lambda *given: pytest.fail("drawn"))
    found = run.kernel(2)
    assert [s.value for s in found.spikes] == pytest.approx([s.value for s in expected.spikes])


@pytest.mark.parametrize("samples", [0.8, 4.0])
def test_feature_spikes_have_degrees(samples: float) -> None:
    # σ with c₁, c₂ ≠ 0 and c₀ = 0 at a large step: z leads, then z², orthogonal to it
    problem = make(
        samples,
        activation="x + 0.5*he2(x)",
        **{"steps.0.rate": 1.0, "steps.0.exponent": 0.45, "steps.0.samples": 30.0},
    )
    run = simulation.run(problem, 100, seed=0)
    spikes = run.features(top=2).spikes
    u, _, vt = np.linalg.svd(run.arrays["Phi"], full_matrices=False)
    z = run.arrays["X"] @ run.arrays["b"]
    second = z**2 - (z**2 @ z) / (z @ z) * z
    a = run.arrays["a"]
    square = a**2 - (a**2 @ a) / (a @ a) * a
    basis, powers = {1: z, 2: second}, {1: a, 2: square}
    assert sorted(spike.degree or 0 for spike in spikes) == [1, 2]
    for number, spike in enumerate(spikes):
        assert spike.degree is not None
        monomial = squared_cosine(u[:, number], basis[spike.degree])
        assert spike.overlaps["monomial"] == pytest.approx(monomial, rel=1e-8)
        assert spike.overlap == spike.overlaps["monomial"] > 0.5
        power = squared_cosine(vt[number], powers[spike.degree])
        assert spike.overlaps["second_layer_power"] == pytest.approx(power, rel=1e-8)


def test_features_without_a_step() -> None:
    centred = simulation.features(make().untrained(), 50, seed=0)
    assert dict(centred.spikes[0].overlaps) == {}
    raw = simulation.features(make(activation="relu").untrained(), 200, seed=0)
    assert raw.spikes[0].degree == 0
    assert raw.spikes[0].overlap > 0.95


def test_one_value_of_the_second_layer_has_one_power() -> None:
    problem = make(init=gs.Init(second_layer="constant"), **{"steps.0.exponent": 0.5})
    spikes = simulation.features(problem, 60, seed=0).spikes
    assert spikes[0].overlaps["second_layer_power"] > 0.9
    assert all(0 <= s.overlaps["second_layer_power"] <= 1 for s in spikes)


def test_gradient() -> None:
    run = simulation.run(make(), 80, seed=0)
    weights, x, y, a = (run.arrays[name] for name in ("W0", "X0", "y0", "a"))
    neurons = len(a)
    f = np.tanh(x @ weights) @ a / math.sqrt(neurons)
    b = x.T @ (y - f) / len(y)
    full = x.T @ (np.outer(y - f, a) * (1 - np.tanh(x @ weights) ** 2)) / len(y)
    linear = 0.6057055  # E tanh'(z)
    rest = full - linear * np.outer(b, a)
    answer = run.gradient()
    norm = linear * np.linalg.norm(b) * np.linalg.norm(a)
    assert answer.spike_norm == pytest.approx(norm, rel=1e-6)
    assert answer.residual_operator_norm == pytest.approx(np.linalg.norm(rest, 2), rel=1e-5)
    assert answer.residual_frobenius_norm == pytest.approx(np.linalg.norm(rest), rel=1e-5)
    u, _, vt = np.linalg.svd(full)
    assert answer.overlaps["direction"] == pytest.approx(squared_cosine(u[:, 0], b), rel=1e-8)
    assert answer.overlaps["second_layer"] == pytest.approx(squared_cosine(vt[0], a), rel=1e-8)
    assert answer.overlaps["teacher"] == pytest.approx(
        squared_cosine(u[:, 0], run.arrays["beta"][:, 0]), rel=1e-8
    )


def test_spectra_before_the_steps_and_over_a_grid() -> None:
    grid = gs.Grid(make(), {"steps.0.rate": [0.0, 3.0]})
    over = simulation.weights(grid, 50, seed=0, top=2)
    assert np.shape(over.spikes[0].value) == (2,)
    assert isinstance(over.bulk, np.ndarray)
    assert over.bulk.shape == (2,)
    alone = simulation.weights(grid[1], 50, seed=0, top=2)
    assert np.asarray(over.spikes[1].value)[1] == alone.spikes[1].value
    untrained = simulation.weights(make().untrained(), 50, seed=0, top=2)
    assert alone.initial is not None
    assert over.initial is not None
    assert alone.initial.spikes[0].value == untrained.spikes[0].value
    assert over.initial.spikes[0].value == pytest.approx([untrained.spikes[0].value] * 2)
    assert np.asarray(over.spikes[0].value)[0] == pytest.approx(
        untrained.spikes[0].value, rel=1e-12
    )
    gradients = simulation.gradient(grid, 50, seed=0)
    assert np.shape(gradients.ratio) == (2,)
    learned = simulation.learned_function(grid, 50, seed=0, along="teacher")
    assert learned.mean.shape == (2, 61)


def test_after_each_step() -> None:
    problem = make(steps=[gs.Step(samples=3.0, rate=1.0), gs.Step(samples=3.0, rate=2.0)])
    run = simulation.run(problem, 40, seed=0)
    for step in (0, 1, 2):
        assert run.after(step).weights(1).spikes[0].value == pytest.approx(
            np.linalg.norm(run.arrays[f"W{step}"], 2), rel=1e-12
        )
    assert run.after(2) is run


@pytest.mark.parametrize("top", [-1, 1.5, True, "4"])
def test_refused_top(top: Any) -> None:
    with pytest.raises(gs.InvalidProblem, match="top"):
        simulation.weights(make(), 30, 0, top=top)
