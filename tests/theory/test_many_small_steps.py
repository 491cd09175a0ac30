"""Many small steps add up to one: sums, the linear dynamics at finite width, and limits."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from numpy.testing import assert_allclose

import giantsteps as gs
from giantsteps import theory
from giantsteps.gaussian import moments
from giantsteps.laws import outlier
from giantsteps.theory.steps.first import first_step
from giantsteps.theory.steps.several.small import (
    _drift,
    _wishart,
    many_small_steps,
)
from giantsteps.theory.steps.several.summed import first_batch_alignment, summed

from .two_step_model import two_steps

Batch = Literal["fresh", "previous"]


def problem(
    rates: list[float], batches: list[Batch], *, samples: float = 2.0, activation: str = "tanh"
) -> gs.Problem:
    steps = [
        gs.Step(samples=samples, rate=rate, batch=batch) for rate, batch in zip(rates, batches)
    ]
    return gs.Problem(
        activation=activation,
        teacher="sin",
        noise_variance=0.1,
        width=1.2,
        steps=steps,
        readout=gs.Ridge(samples=2.0, penalty=0.1),
    )


def fresh(count: int, rate: float = 1.0) -> gs.Problem:
    return problem([rate] * count, ["fresh"] * count)


def reused(count: int, rate: float = 1.0) -> gs.Problem:
    again: list[Batch] = ["previous"] * (count - 1)
    return problem([rate] * count, ["fresh", *again])


def test_equal_fresh_steps_are_one_step_on_all_samples() -> None:
    whole = fresh(4).replace({"steps": [gs.Step(samples=8.0, rate=4.0)]})
    assert summed(fresh(4)) == whole
    assert theory.risk(fresh(4)).test == theory.risk(whole).test
    spike, one = theory.weights(fresh(4)).spikes[0], theory.weights(whole).spikes[0]
    assert (spike.value, spike.overlap) == (one.value, one.overlap)
    # b of the first step is one of four batches, not their mean.
    assert spike.overlaps["gradient"] < one.overlaps["gradient"]


def test_a_batch_that_is_used_again_is_one_step_on_it() -> None:
    whole = reused(4).replace({"steps": [gs.Step(samples=2.0, rate=4.0)]})
    assert summed(reused(4)) == whole
    assert_allclose(first_batch_alignment(reused(4)), 1.0)


def test_mixed_batches_by_vectors() -> None:
    """‖B‖, ⟨B, β*⟩ and ⟨B, b⟩ of drawn batches."""
    asked = problem([1.0, 0.5, 2.0, 0.3], ["fresh", "previous", "fresh", "previous"])
    rng = np.random.default_rng(0)
    d, n = 2000, 4000
    batches = []
    for _ in range(2):
        x = rng.standard_normal((n, d))
        y = np.sin(x[:, 0]) + np.sqrt(0.1) * rng.standard_normal(n)
        batches.append(x.T @ y / n)
    total = 1.5 * batches[0] + 2.3 * batches[1]
    step = first_step(summed(asked))
    assert_allclose(total @ total, 3.8**2 * step.norm_squared, rtol=0.05)
    assert_allclose(total[0] ** 2 / (total @ total), step.alignment, rtol=0.05)
    cosine = (total @ batches[0]) ** 2 / (total @ total) / (batches[0] @ batches[0])
    assert_allclose(cosine, first_batch_alignment(asked), rtol=0.05)


@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.5])
def test_moments_of_wishart_matrices(ratio: float) -> None:
    nodes, weights = _wishart(ratio, 4)
    moments = [weights @ nodes**k for k in range(4)]
    assert_allclose(moments, [1, 1, 1 + ratio, 1 + 3 * ratio + ratio**2], rtol=1e-12)


def test_drift_is_that_of_the_linear_dynamics() -> None:
    """B, the lengths and what is left of the first output, from matrices written out."""
    asked = problem([2.0] * 5, ["fresh", "previous", "fresh", "previous", "previous"])
    d = 400
    neurons, sigma = asked.at(d).neurons, moments(asked.activation)
    pace, linear = 1 / np.sqrt(neurons), sigma.linear**2
    found = []
    for seed in range(9):
        rng = np.random.default_rng(seed)
        total, growth, output = np.zeros(d), 0.0, np.zeros(d)
        output[1] = 1.0  # the first output, a direction of its own
        for rates in ([2.0, 2.0], [2.0] * 3):
            x = rng.standard_normal((2 * d, d))
            y = np.sin(x[:, 0]) + np.sqrt(0.1) * rng.standard_normal(2 * d)
            r, kept = y - pace * linear * x @ total, np.zeros(2 * d)
            memory = x @ output
            change, forgotten = np.zeros(d), np.zeros(d)
            for rate in rates:
                change += rate * x.T @ r / len(x)
                forgotten += rate * x.T @ memory / len(x)
                kept += rate * r
                kernel = linear * x @ (x.T @ np.stack([r, memory], axis=1)) / len(x)
                kernel += sigma.derivative_variance / 2.0 * np.stack([r, memory], axis=1)
                r, memory = r - rate * pace * kernel[:, 0], memory - rate * pace * kernel[:, 1]
            total += change
            output -= pace * linear * forgotten
            growth += float(kept @ kept) / len(x) / 2.0
        found.append([total[0], total @ total, growth, output[1]])
    drift = _drift(asked, d)
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / 3
    expected = np.array([drift.along, drift.square, drift.growth, drift.memory])
    assert np.all(3 * error < 0.06 * np.abs(expected))
    assert np.all(np.abs(mean - expected) < 4 * error + 0.01 * np.abs(expected))
    # The feedback matters at this width: without it the numbers are far away.
    free = summed(asked)
    assert drift.square < 0.9 * free.steps[0].rate ** 2 * first_step(free).norm_squared


@pytest.mark.parametrize("steps", [fresh(6), reused(6)])
def test_finite_width_tends_to_the_limit(steps: gs.Problem) -> None:
    limit = float(theory.risk(steps).test)
    gaps = [abs(float(theory.risk(steps, d=d).test) - limit) for d in (10**4, 10**6, 10**8)]
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2]
    assert gaps[2] < 1e-4 * limit
    spike, far = theory.weights(steps).spikes[0], theory.weights(steps, d=10**10).spikes[0]
    assert_allclose(far.value, spike.value, rtol=1e-4)
    for name, overlap in spike.overlaps.items():
        assert_allclose(far.overlaps[name], overlap, rtol=1e-3)


@pytest.mark.parametrize("steps", [fresh(2), reused(2)])
def test_two_small_steps_by_the_field_of_two_steps(steps: gs.Problem) -> None:
    """The linear dynamics and theory §7 agree to first order in the movement."""
    steps = steps.replace({"init.second_layer": gs.Vocabulary([-1.0, 2.0], [0.5, 0.5])})
    for d in (10**4, 10**6):
        linear, full = many_small_steps(steps, d), two_steps(steps, d)
        movement = 1 / np.sqrt(1.2 * d)
        assert_allclose(linear.spikes[:, 0], full.spikes[:, 0], rtol=10 * movement**2 + 1e-7)
        assert_allclose(linear.overlap[0], full.overlap[0], rtol=10 * movement**2 + 1e-7)


def test_spike_without_memory_effects_is_the_map_of_one() -> None:
    (spike,) = theory.weights(fresh(6), 10**12).spikes
    step = first_step(summed(fresh(6)))
    value, left, right, _ = outlier(step.strength, 1.2)
    assert_allclose(spike.value, value, rtol=1e-5)
    assert_allclose(spike.overlaps["second_layer"], right, rtol=1e-5)
    assert_allclose(spike.overlap, left * step.alignment, rtol=1e-5)


def test_no_spike_below_the_threshold() -> None:
    assert theory.weights(fresh(2, rate=0.1)).spikes == ()
    assert theory.weights(fresh(2, rate=0.1), d=1000).spikes == ()
    assert theory.weights(fresh(3, rate=0.0), d=1000).spikes == ()


def test_steps_of_rate_zero_are_none() -> None:
    assert_allclose(
        theory.risk(fresh(3, rate=0.0), d=1000).test,
        theory.risk(fresh(1, rate=0.0)).test,
        rtol=1e-6,
    )
