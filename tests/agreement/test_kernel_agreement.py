"""Kernel and features after a small step: theory = simulation (theory §3).

What a network of finite size draws at random (the length of the step, the overlap of b with W₀
and β*, the lengths of X̃b and of W₀a) moves its spike; each of these has a known limit, so they
serve as control variates. What is left falls as 1/d and is extrapolated from two sizes.
Resolution, three standard errors over |theory|, is asserted: 2 % for values, 5 % for overlaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Chebyshev
from numpy.polynomial.chebyshev import chebpts1

import giantsteps as gs
from giantsteps import simulation
from giantsteps.functions import SingleIndex
from giantsteps.gaussian import moments
from giantsteps.laws import KernelBulk
from giantsteps.problem import Vocabulary
from giantsteps.theory import features, kernel
from giantsteps.theory.steps import kernel_small
from giantsteps.theory.steps.first import FirstStep, first_step
from giantsteps.theory.steps.spiked_population import SpikedPopulation

pytestmark = pytest.mark.agreement

SIGNS = Vocabulary((-1.0, 1.0), (0.5, 0.5))
QUANTITIES = ("value", "labels", "monomial", "second_layer_power")
RESOLUTION = np.array([0.02, 0.05, 0.05, 0.05])

#: For each width and size: strengths, quantities and controls of all seeds.
Drawn = dict[tuple[float, int], list[np.ndarray]]


def problem(width: float, rate: float) -> gs.Problem:
    """Large labels and a small rate: theory sees their product, the pull of f₀ only the rate."""
    return gs.Problem(
        activation="tanh",
        teacher="8*tanh(x)",
        noise_variance=3.0,
        width=width,
        steps=[gs.Step(samples=4.0, rate=rate)],
        readout=gs.Ridge(samples=4.0, penalty=0.1),
        init=gs.Init(second_layer=SIGNS),
    )


#: Width: problem and number of seeds.
CASES = {
    0.3: (problem(0.3, 0.6), 110),
    1.25: (problem(1.25, 0.9), 70),
    3.0: (problem(3.0, 1.1), 50),
}
SIZES = (100, 250)


def predict(p: gs.Problem, d: int) -> list[float]:
    """The limit, at the ratios of this size."""
    sized = p.realised(d)
    (eigenvalue,), (singular_value,) = kernel(sized).spikes, features(sized).spikes
    overlaps = singular_value.overlaps.values()
    return [float(x) for x in (eigenvalue.value, eigenvalue.overlaps["labels"], *overlaps)]


def draw(p: gs.Problem, d: int, seed: int) -> tuple[float, list[float], list[float]]:
    """Relative strength of the step, the four quantities, and the control variates."""
    run = simulation.run(p, d, seed)
    assert run.sizes.samples is not None
    assert isinstance(p.teacher, SingleIndex)
    (eigenvalue,), (singular_value,) = run.kernel(top=1).spikes, run.features(top=1).spikes
    b, weights = np.asarray(run.trained.direction), np.asarray(run.network.weights())
    a, teacher = np.asarray(run.network.second_layer), np.asarray(run.network.teacher).ravel()
    inputs, labels = (np.asarray(x) for x in run.network.readout_batch(0, run.sizes.samples))
    step, link = first_step(p.realised(d)), moments(p.teacher.link)
    strength = np.linalg.norm(b) / math.sqrt(step.norm_squared)
    b, a = b / np.linalg.norm(b), a / np.linalg.norm(a)
    variance = link.second_moment + p.noise_variance
    controls = [
        np.mean((inputs @ b) ** 2) - 1,
        np.sum((weights.T @ b) ** 2) / p.realised(d).width - 1,
        np.sum((weights @ a) ** 2) - 1,
        b @ weights @ a,
        teacher @ weights @ a,
        np.mean(labels**2) / variance - 1,
        np.mean(labels * (inputs @ teacher)) / link.linear - 1,
        (b @ teacher) ** 2 / step.alignment - 1,
    ]
    found = [eigenvalue.value, eigenvalue.overlap, *singular_value.overlaps.values()]
    return float(strength), [float(x) for x in found], controls


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    """For each width and size: strengths, quantities and controls of all seeds."""
    return {
        (width, d): [np.array(x) for x in zip(*(draw(p, d, seed) for seed in range(seeds)))]
        for width, (p, seeds) in CASES.items()
        for d in SIZES
    }


def compare(drawn: Drawn, width: float) -> tuple[np.ndarray, np.ndarray]:
    """log(simulation/theory) at d → ∞ and its standard error, for each quantity."""
    p, _ = CASES[width]
    at_size = []
    for d in SIZES:
        strength, quantities, controls = drawn[width, d]
        middle, half = (strength.max() + strength.min()) / 2, np.ptp(strength) / 2
        rates = middle + half * chebpts1(9)
        table = [predict(p.replace({"steps.0.rate": p.steps[0].rate * float(r)}), d) for r in rates]
        theory = [Chebyshev.fit(rates, np.log(column), 8)(strength) for column in zip(*table)]
        design = np.column_stack([np.ones(len(strength)), controls])
        gaps = np.log(quantities) - np.transpose(theory)
        fitted = np.linalg.lstsq(design, gaps, rcond=None)[0]
        left = np.sum((gaps - design @ fitted) ** 2, axis=0) / (len(design) - design.shape[1])
        error = np.sqrt(np.linalg.inv(design.T @ design)[0, 0] * left)
        at_size.append((fitted[0], error))
    (small, small_error), (large, large_error) = at_size
    w = SIZES[1] / (SIZES[1] - SIZES[0])  # of the larger size
    gap = w * large - (w - 1) * small
    return gap, np.hypot(w * large_error, (w - 1) * small_error)


@pytest.mark.parametrize("width", CASES)
def test_theory_is_simulation(drawn: Drawn, width: float) -> None:
    gap, error = compare(drawn, width)
    assert np.all(3 * error <= RESOLUTION), dict(zip(QUANTITIES, 3 * error))
    assert np.all(np.abs(gap / error) <= 3), dict(zip(QUANTITIES, gap / error))


def test_a_weak_spike_at_its_size() -> None:
    """At d = 200 the right vector is further from the second layer than in the limit, by a tenth.

    The pull of f₀ and the batch's own terms, of order d^{-1/2}: theory §5d has them.
    """
    d, seeds = 200, 130
    p = gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.05,
        width=0.5,
        steps=[gs.Step(samples=4.0, rate=4.0)],
        readout=gs.Ridge(samples=2.0, penalty=0.1),
    )
    spectra = [simulation.features(p, d, seed, top=1, bulk=False) for seed in range(seeds)]
    found = np.array([s.spikes[0].overlaps["second_layer_power"] for s in spectra], dtype=float)
    mean, error = found.mean(), found.std(ddof=1) / math.sqrt(seeds)
    limit, model = (
        answer.spikes[0].overlaps["second_layer_power"] for answer in (features(p), features(p, d))
    )
    assert 3 * error <= 0.05 * model
    assert abs(mean - model) <= 3 * error
    assert limit - mean > 3 * error


def _larger(function: Callable[..., Any], factor: float) -> Callable[..., Any]:
    return lambda *args: factor * function(*args)


def _break_strength(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = SpikedPopulation._terms
    monkeypatch.setattr(
        SpikedPopulation,
        "_terms",
        lambda self, tau: (1.05 * terms(self, tau)[0], terms(self, tau)[1]),
    )


def _break_map(monkeypatch: pytest.MonkeyPatch) -> None:
    spike = KernelBulk.spike
    monkeypatch.setattr(
        KernelBulk, "spike", lambda self, tau: spike(self, tau) + 0.05 * self.ratio * tau
    )


def _break_slope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KernelBulk, "spike_slope", _larger(KernelBulk.spike_slope, 1.05))


def _break_alignment(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(p: gs.Problem) -> FirstStep:
        step = first_step(p)
        return type(step)(**(vars(step) | {"alignment": 1.05 * step.alignment}))

    monkeypatch.setattr(kernel_small, "first_step", wrong)


@pytest.mark.parametrize(
    ("mutate", "quantity"),
    [
        (_break_strength, "value"),
        (_break_map, "value"),
        (_break_slope, "monomial"),
        (_break_slope, "second_layer_power"),
        (_break_alignment, "labels"),
    ],
)
def test_a_term_that_is_five_per_cent_off_is_seen(
    drawn: Drawn,
    monkeypatch: pytest.MonkeyPatch,
    mutate: Callable[[pytest.MonkeyPatch], None],
    quantity: str,
) -> None:
    mutate(monkeypatch)
    gap, error = compare(drawn, 1.25)
    number = QUANTITIES.index(quantity)
    assert abs(gap[number]) > 3 * error[number]


@pytest.mark.parametrize(
    ("activation", "init"),
    [
        ("relu", gs.Init(second_layer="constant")),
        ("relu", gs.Init(second_layer="gaussian", weights="sphere")),
        ("1 + x + 0.1*(x**4 - 6*x**2 + 3)", gs.Init(second_layer="gaussian")),
    ],
)
def test_outlier_of_a_mean(activation: gs.Function | str, init: gs.Init) -> None:
    """Right to o(1) at order n, what the step adds to it included.

    0.2 % of the outlier are left for what the initial output pulls, N^{-1/2}, and for 1/d.
    """
    d, seeds = 200, 24
    p = gs.Problem(
        activation=activation,
        teacher="tanh",
        noise_variance=0.1,
        width=1.2,
        steps=[gs.Step(samples=2.0, rate=2.0)],
        readout=gs.Ridge(samples=1.5, penalty=0.1),
        init=init,
    )
    spectra = [simulation.kernel(p, d, seed, top=1) for seed in range(seeds)]
    initial = [spectrum.initial for spectrum in spectra if spectrum.initial is not None]
    assert len(initial) == seeds
    after = np.array([spectrum.spikes[0].value for spectrum in spectra], dtype=float)
    added = after - np.array([spectrum.spikes[0].value for spectrum in initial], dtype=float)
    theory = kernel(p, d)
    assert theory.initial is not None
    before = theory.initial.spikes[0].value
    for measured, expected, resolution in (
        (after, theory.spikes[0].value, 0.02 * before),
        (added, theory.spikes[0].value - before, 0.02 * before),
    ):
        error = measured.std(ddof=1) / math.sqrt(seeds)
        assert 3 * error <= resolution
        assert abs(measured.mean() - expected) <= 3 * error + 0.002 * before
