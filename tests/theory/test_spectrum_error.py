"""What spectra say of their own error: the true one is at most ten times as large.

Truth is a spectrum two resolutions finer, in full, or a closed form.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.answers import Spectrum
from giantsteps.laws import Law
from giantsteps.theory.model import spectra
from giantsteps.theory.model.spiked_features import SpikedFeatures

ACTIVATIONS = ("tanh", "erf", gs.centered("relu"), "sin")
TEACHERS = ("sin", "tanh", "erf(2*x)", "x + (x**3 - 3*x)/6")
LAYERS = ("constant", gs.Vocabulary([-1.0, 2.0], [0.5, 0.5]), "gaussian")


def draw(number: int, *, exponent: float = 0.5) -> gs.Problem:
    rng = np.random.default_rng([16, number])

    def some(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    return gs.Problem(
        activation=ACTIVATIONS[rng.integers(len(ACTIVATIONS))],
        teacher=TEACHERS[rng.integers(len(TEACHERS))],
        width=some(0.5, 2),
        noise_variance=some(0.02, 1) * int(rng.integers(2)),
        steps=[gs.Step(samples=some(0.5, 8), rate=some(0.3, 3), exponent=exponent)],
        readout=gs.Ridge(samples=some(0.5, 4), penalty=0.1),
        init=gs.Init(second_layer=LAYERS[number % len(LAYERS)]),
    )


@pytest.fixture(autouse=True)
def _truth_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectra, "MOST", math.inf)


def finer(model: SpikedFeatures, more: int) -> SpikedFeatures:
    """The model whose spectra start so many resolutions further."""
    assert model.bounded is not None
    bounded = model.bounded
    return replace(model, bounded=lambda further: bounded(min(more + further, 3)))


def off(found: Spectrum, truth: Spectrum) -> float:
    """The largest error of edge, values and overlaps; spikes are paired from the largest."""
    assert isinstance(found.bulk, Law)
    assert isinstance(truth.bulk, Law)
    errors: list[Any] = [abs(found.bulk.edge / truth.bulk.edge - 1)]
    for spike, true in zip(found.spikes, truth.spikes):
        errors.append(abs(spike.value / true.value - 1))
        errors += [abs(spike.overlaps[name] - true.overlaps[name]) for name in spike.overlaps]
    return float(max(errors))


@pytest.mark.parametrize(
    "numbers", [(0,), pytest.param(tuple(range(1, 21)), marks=pytest.mark.slow)]
)
def test_weights_are_as_far_off_as_they_say(numbers: tuple[int, ...]) -> None:
    wrong = []
    for number in numbers:
        model = theory.equivalent(draw(number), (100, 500, 3000)[number % 3])
        found = model.weights()
        assert found.solution is not None
        gap = off(found, finer(model, 2).weights())
        if gap > 10 * found.solution.error:
            wrong.append(f"{number}: {gap:.1e}, said {found.solution.error:.1e}")
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("question", ["kernel", "features"])
def test_features_are_as_far_off_as_they_say(
    question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = []
    for number in (0, 3, 6, 9):  # one type
        model = theory.equivalent(draw(number), (100, 500)[number % 2])
        found = getattr(model, question)()
        with monkeypatch.context() as patched:
            patched.setattr(spectra, "_LEVEL", 2)
            truth = getattr(finer(model, 2), question)()
        gap = off(found, truth)
        if gap > 10 * found.solution.error:
            wrong.append(f"{number}: {gap:.1e}, said {found.solution.error:.1e}")
    assert not wrong


def test_nodes_of_a_second_layer_are_not_left_out() -> None:
    """Spikes of a Gaussian second layer do not depend on how many nodes stand for it."""
    problem = gs.Problem(
        activation="tanh",
        teacher="tanh",
        width=0.5,
        steps=[gs.Step(samples=2, rate=1, exponent=0.5)],
        init=gs.Init(second_layer="gaussian"),
    )
    for d in (100, 1000):
        found = theory.weights(problem, d)
        assert found.solution is not None
        assert found.solution.error <= 1e-6


def test_large_networks_reach_the_closed_form() -> None:
    """Small steps at a large size: the outlier of §2, apart from terms of order 1/√d."""
    problem = draw(0, exponent=0.0)
    limit = theory.weights(problem)
    assert limit.solution is not None
    assert 0 < limit.solution.error <= 1e-9
    model = theory.equivalent(problem, 10**8).weights()
    assert model.solution is not None
    assert model.solution.error <= 1e-6
    assert isinstance(model.bulk, Law)
    assert isinstance(limit.bulk, Law)
    assert model.bulk.edge == pytest.approx(limit.bulk.edge, rel=1e-3)
    for found, true in zip(model.spikes, limit.spikes, strict=True):
        assert found.value == pytest.approx(true.value, rel=1e-3)


def test_gradient_says_its_error() -> None:
    for number in (0, 1):
        for d in (None, 200):
            found = theory.gradient(draw(number), d).solution
            assert found is not None
            assert 0 < found.error < 0.05
            assert math.isfinite(found.error)
