"""Degrees of freedom of the readout: what defines them, and independent routes."""

from __future__ import annotations

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.functions import MultiIndex
from giantsteps.gaussian import moments
from giantsteps.laws import MarchenkoPastur

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.5,
    steps=[gs.Step(samples=4.0, rate=1.0, exponent=0.5)],
    readout=gs.Ridge(samples=3.0, penalty=0.1),
)


def test_traces_of_the_population() -> None:
    """df₁ and df₂ as averages over the law of Σ = μ₁²WᵀW + μ₂²."""
    found = theory.degrees_of_freedom(PROBLEM.untrained())
    sigma, law = moments(PROBLEM.activation), MarchenkoPastur(PROBLEM.width)
    x = np.linspace(*law.support[0], 400_001)[1:-1]
    # WWᵀ has d eigenvalues, Σ N of them: those missing are at μ₂².
    weight = law.density(x) * (x[1] - x[0]) / PROBLEM.width
    t = np.append(sigma.linear**2 * x + sigma.residual_variance, sigma.residual_variance)
    weight = np.append(weight, 1.0 - weight.sum())
    ratio = PROBLEM.require_readout().samples / PROBLEM.width
    part = t / (t + found.kappa)
    assert found.df1 == pytest.approx(weight @ part / ratio, rel=1e-6)
    assert found.df2 == pytest.approx(weight @ part**2 / ratio, rel=1e-6)
    assert found.kappa * (1 - found.df1) == pytest.approx(0.1, rel=1e-12)


@pytest.mark.parametrize("d", [None, 400])
@pytest.mark.parametrize("law", ["gaussian", "constant"])
def test_definitions_after_a_large_step(d: int | None, law: str) -> None:
    """κ(1 − df₁) = λ and dκ/dλ = 1/(1 − df₂), by differences."""
    problem = PROBLEM.replace({"init.second_layer": law})
    found = theory.degrees_of_freedom(problem, d)
    assert found.kappa * (1 - found.df1) == pytest.approx(0.1, rel=1e-12)
    up, down = (
        theory.degrees_of_freedom(problem.replace({"readout.penalty": 0.1 + h}), d).kappa
        for h in (1e-5, -1e-5)
    )
    assert 1 / (1 - found.df2) == pytest.approx((up - down) / 2e-5, rel=1e-8)
    assert 0 < found.df2 < found.hat_square < found.df1 < 1


def test_small_steps_leave_no_trace() -> None:
    small = PROBLEM.replace({"steps.0.exponent": 0.0})
    limit = theory.degrees_of_freedom(small)
    model = theory.degrees_of_freedom(small, d=10**9)
    start = theory.degrees_of_freedom(small.untrained())
    for name in ("kappa", "df1", "df2"):
        assert getattr(limit, name) == getattr(start, name)
        assert getattr(model, name) == pytest.approx(getattr(limit, name), rel=1e-7)
    risk = theory.risk(small)
    assert risk.train / risk.test_noisy == pytest.approx((1 - limit.df1) ** 2, rel=1e-10)
    pair = small.replace({"teacher": MultiIndex("x0 * x1", 2)})
    assert theory.degrees_of_freedom(pair).df1 == limit.df1


def test_without_penalty() -> None:
    grid = gs.Grid(PROBLEM.replace({"readout.penalty": 0.0}), {"readout.samples": [0.5, 3.0]})
    for target in (grid, grid.replace({"steps.0.exponent": 0.0})):
        found = theory.degrees_of_freedom(target)
        assert found.df1 == pytest.approx([1.0, 0.5], abs=1e-6)
        df2, kappa = np.asarray(found.df2), np.asarray(found.kappa)
        assert df2[1] == pytest.approx(0.5, abs=1e-6)
        assert 0 < df2[0] < 1
        assert kappa[0] > 0.01
        assert kappa[1] == pytest.approx(0.0, abs=1e-8)
