"""Squared overlaps at a given d: which direction they are with, and what chance adds to them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory


def make(teacher: Any, **changes: Any) -> gs.Problem:
    given: dict[str, Any] = {
        "activation": "tanh",
        "teacher": teacher,
        "width": 1.3,
        "noise_variance": 0.1,
        "steps": [gs.Step(samples=1.5, rate=2.0)],
        "readout": gs.Ridge(samples=1.6, penalty=0.1),
    }
    return gs.Problem(**(given | changes))


def cosines(link: Any, noise: float, d: int, samples: int, count: int) -> np.ndarray:
    """⟨b, β*⟩²/‖b‖² of b = Xᵀy/n, drawn without the library: b beside β* is Gaussian given y."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((count, samples))
    y = link(z) + np.sqrt(noise) * rng.standard_normal(z.shape)
    along = (z * y).mean(axis=1)
    beside = rng.chisquare(d - 1, count) * (y**2).mean(axis=1) / samples
    found: np.ndarray = along**2 / (along**2 + beside)
    return found


@pytest.mark.parametrize(
    ("teacher", "link", "d"),
    [
        ("he2", lambda z: (z**2 - 1) / np.sqrt(2), 500),
        ("sin", np.sin, 50),
        ("sign", np.sign, 50),
        ("x + 0.3*(x**3 - 3*x)", lambda z: z + 0.3 * (z**3 - 3 * z), 500),
    ],
)
def test_the_gradient_has_something_of_the_teacher_by_chance(
    teacher: str, link: Any, d: int
) -> None:
    drawn = cosines(link, 0.1, d, round(1.5 * d), 2_500_000 // d)
    error = drawn.std() / np.sqrt(drawn.size)
    predicted = float(theory.gradient(make(teacher), d=d).overlaps["teacher"])
    limit = float(theory.gradient(make(teacher)).overlaps["teacher"])
    assert abs(predicted - drawn.mean()) < 4 * error + 0.1 * abs(predicted - limit)
    if teacher != "sign":  # where the terms of order 1/d happen to cancel
        assert abs(limit - drawn.mean()) > 6 * error


def test_zero_is_zero() -> None:
    assert theory.gradient(make("he2")).overlaps["teacher"] == 0
    (spike,) = theory.weights(make("he2", steps=[gs.Step(samples=3, rate=2, exponent=0.5)])).spikes
    assert spike.overlaps["teacher"] == 0


def test_vectors_of_the_kernel_meet_the_labels_by_chance() -> None:
    problem = make("he2", activation="relu", steps=())
    predicted = theory.kernel(problem, d=300).spikes[0].overlap
    assert predicted == pytest.approx(1 / 480, rel=0.02)
    spikes = [simulation.kernel(problem, d=60, seed=seed).spikes[0] for seed in range(80)]
    found = np.array([float(spike.overlap) for spike in spikes])
    expected = theory.kernel(problem, d=60).spikes[0].overlap
    assert abs(found.mean() - expected) < 4 * found.std() / np.sqrt(found.size)


def test_monomials_are_those_of_the_first_step() -> None:
    steps = [gs.Step(samples=3, rate=2.5), gs.Step(samples=3, rate=1.0, exponent=0.5)]
    problem = make("tanh", steps=steps, init=gs.Init(second_layer="constant", weights="sphere"))
    spike = theory.features(problem, d=150).spikes[0]
    found = [simulation.features(problem, d=150, seed=seed).spikes[0] for seed in range(12)]
    missing = 1 - np.array([one.overlaps["monomial"] for one in found])
    assert spike.degree == found[0].degree == 1
    error = missing.std() / np.sqrt(missing.size)
    assert abs(1 - spike.overlaps["monomial"] - missing.mean()) < 4 * error + 0.1 * missing.mean()


@pytest.mark.parametrize(
    ("teacher", "layer", "rate"), [("sin", "constant", 3.0), ("tanh", "gaussian", 1.0)]
)
def test_the_direction_of_a_step_has_the_initial_output(
    teacher: str, layer: str, rate: float
) -> None:
    problem = make(
        teacher,
        steps=[gs.Step(samples=3, rate=rate, exponent=0.5)],
        init=gs.Init(second_layer=layer),
    )
    d, count = 200, 40
    model = theory.equivalent(problem, d)
    bare = replace(model, first_direction=None, norms=None, bounded=None, finer=None)
    predicted, without = model.weights().spikes[0], bare.weights().spikes[0]
    found = [
        simulation.weights(problem, d=d, seed=seed, top=1, bulk=False).spikes[0]
        for seed in range(count)
    ]
    for name in ("gradient", "second_layer"):
        lost = 1 - np.array([one.overlaps[name] for one in found])
        mean, error = float(lost.mean()), float(lost.std(ddof=1)) / math.sqrt(count)
        assert error < 0.05 * mean
        # What is lost is itself of order 1/N: next to it there are terms of order d^{-1/2}.
        assert abs(1 - float(predicted.overlaps[name]) - mean) < 3 * error + 0.05 * mean
        # Without the initial output, and without leans that vary, a good part is missing.
        if name == "gradient" or layer == "constant":
            assert 1 - float(without.overlaps[name]) < 0.9 * mean
