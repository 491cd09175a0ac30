"""Quadratures of the equivalent model: second layer, coordinates, and what they leave out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import giantsteps as gs
from giantsteps import theory
from giantsteps.theory.model.errors import refine
from giantsteps.theory.model.rules import graded_rule, mapped_rule, octave
from giantsteps.theory.model.stacks import solve_cells
from giantsteps.theory.solver.newton import solve_state
from giantsteps.theory.solver.readout import read_out
from giantsteps.theory.solver.state import Equations


def given(
    activation: gs.Function | str = "tanh", second_layer: Any = "gaussian", **more: Any
) -> gs.Problem:
    return gs.Problem(
        activation=activation,
        teacher="sin",
        noise_variance=0.05,
        width=1.5,
        steps=[gs.Step(samples=2.0, rate=1.3, exponent=0.5)],
        readout=gs.Ridge(samples=2.0, penalty=0.1),
        init=gs.Init(second_layer=second_layer),
        **more,
    )


@pytest.mark.parametrize("steepness", [1 / 64, 0.5, 4.0, 64.0])
def test_mapped_rule_sees_all_scales(steepness: float) -> None:
    """Functions of Saz for sizes S from small to one, as a step of the steepness a makes them."""
    rule, truth = mapped_rule(24, steepness), graded_rule(4, min(1.0 / steepness, 4.25))
    assert_allclose(rule.weights.sum(), 1.0, rtol=1e-14)
    assert_allclose(rule.nodes, -rule.nodes[::-1])
    for size in (0.1, 0.3, 1.0):

        def function(z: np.ndarray, scale: float = size * steepness) -> np.ndarray:
            return (scale * z) ** 2 / (1.0 + (scale * z) ** 2)

        assert_allclose(
            rule.mean(function(rule.nodes)), truth.mean(function(truth.nodes)), rtol=1e-7
        )


def test_close_problems_share_their_nodes() -> None:
    assert octave(0.9) == octave(1.1) == 1.0
    assert octave(0.0) > 0


def test_odd_activation_has_one_sign_of_types() -> None:
    """Neurons with −A and −w are those with A and w: two signs are one type."""
    signs = gs.Vocabulary([-1.0, 1.0], [0.5, 0.5])
    model = theory.equivalent(given(second_layer=signs), d=500)
    assert len(model.probabilities) == 1
    plain, two = (theory.risk(given(second_layer=law), d=500) for law in ("constant", signs))
    assert_allclose(two.test, plain.test, rtol=1e-12)
    assert_allclose(two.train, plain.train, rtol=1e-12)
    gaussian = theory.equivalent(given(), d=500)
    assert gaussian.second_layer is not None
    assert np.all(gaussian.second_layer > 0)
    assert_allclose(gaussian.probabilities @ gaussian.second_layer**2, 1.0, rtol=1e-9)
    both = theory.equivalent(given("x + 0.3*(x**2 - 1)"), d=500)
    assert both.second_layer is not None
    assert both.second_layer.min() < 0


def test_each_resolution_has_a_channel_more() -> None:
    """Or the change from one to the next would not show what the channels leave out."""
    problem = given(gs.centered("relu"))
    model = theory.equivalent(problem, d=500)
    readout = problem.require_readout(500)
    refined = refine([(model, readout)])
    (alone,) = solve_cells([(model, readout)], 4)
    found = refined.readouts[0]
    assert found is not None
    error = abs(found.error[0] / alone.error[0] - 1)
    assert error <= 10 * refined.error[0] <= 1e-6
    system = model.at_level(2).system([readout], 2)
    assert system.with_rank(7).decomposed[2][0] == 7
    assert system.with_rank(10**6).decomposed[2][0] < system.probabilities.shape[1] + 1


def test_nodes_without_weight_change_nothing() -> None:
    problem = given(gs.centered("relu"), "constant")
    model, readout = theory.equivalent(problem, d=500), problem.require_readout(500)
    coarse, fine = (model.at_level(level).system([readout], level) for level in (1, 2))
    wider = coarse.padded(fine)
    assert wider.shape == fine.shape != coarse.shape
    found = [read_out(solve_state(Equations(s), s.penalty).state) for s in (coarse, wider)]
    assert_allclose(found[1].error, found[0].error, rtol=1e-12)
    assert_allclose(found[1].train, found[0].train, rtol=1e-12)
    assert_allclose(found[1].fit[:, : found[0].fit.shape[1]], found[0].fit, rtol=1e-10)
