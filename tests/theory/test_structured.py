"""Inputs with a covariance: what follows from it, and that the identity is isotropic."""

from __future__ import annotations

import math

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.gaussian import coordinate_rule
from giantsteps.theory.steps.structured import structured_step

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.5,
    steps=[gs.Step(samples=4.0, rate=1.0, exponent=0.5)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
    init=gs.Init(second_layer="constant"),
)


@pytest.mark.parametrize("exponent", [0.0, 0.5])
@pytest.mark.parametrize("law", ["constant", "gaussian"])
def test_close_to_the_identity_it_is_the_isotropic_model(exponent: float, law: str) -> None:
    """What norms go with beside b is left out: 3e-6 for tanh."""
    steps = [{"samples": 4.0, "rate": 1.5, "exponent": exponent}]
    problem = PROBLEM.replace({"steps": steps, "init.second_layer": law})
    near = problem.replace(inputs=gs.Covariance((1.0, 1.0 + 1e-13), (0.5, 0.5)))
    ours, plain = structured_step(near, 500), theory.equivalent(problem, 500)
    assert ours.overlap == pytest.approx(plain.overlap, rel=1e-11)
    assert ours.risk().test == pytest.approx(plain.risk().test, rel=1e-5)
    assert ours.risk().train == pytest.approx(plain.risk().train, rel=1e-5)


def test_the_identity_is_isotropic() -> None:
    plain = theory.risk(PROBLEM, 500)
    for law in (gs.Covariance((2.0,), (1.0,)), gs.PowerLaw(0.0)):
        same = theory.risk(PROBLEM.replace(inputs=law), 500)
        assert (same.test, same.train) == pytest.approx((plain.test, plain.train), rel=1e-10)


def test_long_inputs_have_another_mean_slope() -> None:
    """E_w σ'(⟨w, x⟩) depends on ‖x‖, so that b shrinks where an eigenvalue is large."""
    d, count = 80, 400_000
    law = gs.SpikedCovariance(7.0, 0.02)
    steps = [{"samples": 1e6, "rate": 1.0, "exponent": 0.5}]  # b without noise
    problem = PROBLEM.replace(inputs=law, steps=steps)
    eigenvalues, _, teacher = law.directions(d=d)
    heavy = int(np.argmax(eigenvalues))
    large, small = float(eigenvalues[heavy]), float(eigenvalues[1 - heavy])
    share = float(teacher[heavy])
    rng = np.random.default_rng(3)
    z = rng.standard_normal((count, 2))
    rest = rng.chisquare(d - 2, count) * small
    squared = (large * z[:, 0] ** 2 + small * z[:, 1] ** 2 + rest) / d
    rule = coordinate_rule(1, nodes=40)
    grid = np.linspace(0.2, 12.0, 400)
    slope = (1 - np.tanh(np.sqrt(grid)[:, None] * rule.nodes[:, 0]) ** 2) @ rule.weights
    slopes = np.interp(squared, grid, slope)
    along = np.array([math.sqrt(share), math.sqrt(1 - share)])
    seen = (np.sin(z @ along) * slopes) @ z / count
    moved = np.array([large, small]) * seen

    def overlap(vector: np.ndarray) -> float:
        return float(vector @ along / np.linalg.norm(vector))

    model = structured_step(problem, d)
    without = overlap(np.array([large, small]) * along)
    assert abs(without - overlap(moved)) > 1e-2
    assert float(model.overlap[0]) == pytest.approx(overlap(moved), abs=2e-3)
