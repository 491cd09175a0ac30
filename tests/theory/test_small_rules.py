"""Steps by other losses and rules: closed forms of small steps, spectra, directions of overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import giantsteps as gs
from giantsteps import simulation, theory


def one(
    exponent: float = 0.0, teacher: str = "sign", layer: Any = "gaussian", **step: Any
) -> gs.Problem:
    return gs.Problem(
        activation="tanh",
        teacher=teacher,
        noise_variance=0.0 if teacher == "sign" else 0.3,
        width=1.5,
        steps=[gs.Step(samples=2.0, exponent=exponent, **{"rate": 2.0} | step)],
        readout=gs.Ridge(samples=2.0, penalty=0.1),
        init=gs.Init(second_layer=layer),
    )


@pytest.mark.parametrize(
    ("loss", "teacher"),
    [("logistic", "sign"), ("hinge", "sign"), ("huber", "x + 0.5*(x**2 - 1)")],
)
def test_limits_of_small_steps_know_the_loss(loss: str, teacher: str) -> None:
    """The closed forms meet the model of §5, which has the law of the residuals."""
    problem = one(teacher=teacher, loss=loss)
    limit, size = theory.risk(problem), theory.risk(problem, d=20_000)
    assert_allclose(limit.test, size.test, rtol=4e-4)
    assert_allclose(limit.train, size.train, rtol=4e-4)
    other = theory.risk(problem.replace({"steps.0.loss": "squared"})).test
    changed = bool(abs(float(other) - float(limit.test)) > 1e-3)
    assert changed == (loss != "hinge")  # whose residual at 0 is y


@pytest.mark.agreement
def test_first_gradient_of_a_loss() -> None:
    problem = one(teacher="x + 0.5*(x**2 - 1)", loss="huber")
    found = theory.gradient(problem, d=300)
    networks = [simulation.gradient(problem, d=300, seed=seed) for seed in range(16)]
    for name in ("spike_norm", "residual_frobenius_norm"):
        values = np.array([getattr(network, name) for network in networks])
        error = values.std(ddof=1) / 4 + 0.004 * values.mean()
        assert abs(getattr(found, name) - values.mean()) < 3 * error


def test_critical_rate_scales_with_the_residual() -> None:
    """At the start the logistic loss sees y/2."""
    squared, logistic = (theory.critical_rate(one(loss=loss)) for loss in ("squared", "logistic"))
    assert_allclose(logistic, 2 * squared, rtol=1e-12)


@pytest.mark.agreement
@pytest.mark.parametrize("layer", ["gaussian", gs.Vocabulary([-1.0, 1.0], [0.5, 0.5])])
def test_directions_after_a_sign_step(layer: Any) -> None:
    """The gradient, the second layer and the teacher are none of them the step's own direction."""
    problem = one(0.5, "tanh", layer, rule="sign", rate=1.0)
    found = theory.weights(problem, d=300).spikes[0]
    networks = [simulation.weights(problem, d=300, seed=seed).spikes[0] for seed in range(12)]
    for name, limit in {"gradient": 0.9, "second_layer": 0.7, "teacher": 0.6}.items():
        values = np.array([network.overlaps[name] for network in networks])
        error = values.std(ddof=1) / np.sqrt(12) + 0.005
        assert abs(found.overlaps[name] - values.mean()) < 3 * error
        assert found.overlaps[name] < limit or (name == "second_layer" and layer != "gaussian")


@pytest.mark.agreement
@pytest.mark.parametrize("rule", ["sign", "normalized", "adam"])
def test_spectra_of_other_small_steps(rule: str) -> None:
    problem = one(0.0, "tanh", rule=rule, rate=8.0)
    found = theory.features(problem, d=200).spikes[0]
    networks = [simulation.features(problem, d=200, seed=seed).spikes[0] for seed in range(8)]
    for part in ("value", "overlap"):
        values = np.array([getattr(network, part) for network in networks])
        error = values.std(ddof=1) / np.sqrt(8) + 0.006 * values.mean()  # and 1/d
        assert abs(getattr(found, part) - values.mean()) < 3 * error
    assert found.overlaps["second_layer_power"] > (0.55 if rule != "normalized" else 0.9)
    assert theory.kernel(problem, d=200).spikes[0].value > 1
