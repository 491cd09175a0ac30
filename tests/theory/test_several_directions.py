"""Teachers of several directions: those that have one in truth, rotations, and refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import giantsteps as gs
from giantsteps import theory
from giantsteps.theory.steps.several.multi_index import SeveralDirections

from .two_step_model import two_steps


def problem(
    teacher: Any,
    *rates: float,
    batch: str = "fresh",
    exponent: float = 0.5,
    law: gs.Vocabulary | str = "constant",
) -> gs.Problem:
    steps = [gs.Step(samples=3.0, rate=rate, exponent=exponent) for rate in rates[:1]]
    steps += [gs.Step(samples=3.0, rate=r, exponent=exponent, batch=batch) for r in rates[1:]]
    return gs.Problem(
        activation="tanh",
        teacher=teacher,
        noise_variance=0.1,
        width=1.2,
        steps=steps,
        readout=gs.Ridge(samples=2.0, penalty=0.1),
        init=gs.Init(second_layer=law),
    )


DISGUISED = [gs.MultiIndex("sin(x0)", 2), gs.MultiIndex("sin(0.6*x0 + 0.8*x1)", 2)]


@pytest.mark.parametrize("teacher", DISGUISED)
@pytest.mark.parametrize(("rates", "batch"), [((1.5, 1.0), "fresh"), ((1.5, 1.0), "previous")])
@pytest.mark.parametrize("law", ["constant", gs.Vocabulary([-1.0, 0.5, 2.0], [0.3, 0.3, 0.4])])
def test_one_direction_in_disguise(
    teacher: Any, rates: tuple[float, ...], batch: str, law: gs.Vocabulary | str
) -> None:
    """Teachers of several directions have an isotropic bulk and equal norms; so has `two_steps`."""
    plain = problem("sin", *rates, batch=batch, law=law)
    hidden = problem(teacher, *rates, batch=batch, law=law)
    for d in (None, 800):
        model, found = two_steps(plain, d), theory.risk(hidden, d=d)
        expected = model.risk()
        assert_allclose(found.test, expected.test, rtol=2e-5)
        assert_allclose(found.train, expected.train, rtol=2e-5)
        assert found.initial is not None
        assert_allclose(found.initial.test, theory.risk(plain.untrained(), d=d).test, rtol=1e-8)
        assert found.by_degree is None


@pytest.mark.parametrize("teacher", DISGUISED)
@pytest.mark.parametrize("rates", [(1.5,), (1.5, 1.0)])
@pytest.mark.parametrize(("exponent", "d"), [(0.5, None), (0.5, 800), (0.3, 800)])
def test_weights_of_one_direction_in_disguise(
    teacher: Any, rates: tuple[float, ...], exponent: float, d: int | None
) -> None:
    plain, hidden = (problem(t, *rates, exponent=exponent) for t in ("sin", teacher))
    model = two_steps(plain, d)
    for one, other in zip(model.weights().spikes, theory.weights(hidden, d=d).spikes, strict=True):
        assert_allclose(other.value, one.value, rtol=1e-6)
        assert_allclose(other.overlap, one.overlap, atol=1e-5)


@pytest.mark.parametrize("teacher", DISGUISED)
def test_one_step_of_every_size(teacher: Any) -> None:
    for exponent, d in ((0.0, None), (0.0, 700), (0.3, 700), (0.5, None)):
        plain = problem("sin", 1.5, exponent=exponent)
        hidden = problem(teacher, 1.5, exponent=exponent)
        if exponent == 0 and d is None:
            expected = theory.risk(plain).test
        else:
            model = theory.equivalent(plain, d, simplify="isotropic bulk")
            model = replace(
                model, pull=None, finer=None
            )  # teachers of several directions feel none
            expected = model.risk().test
        assert_allclose(theory.risk(hidden, d=d).test, expected, rtol=2e-5)


def test_three_directions() -> None:
    """A sum of three functions is learned as far as the one it has a step for."""
    teacher = gs.MultiIndex("sin(x0) + 0.3*he2(x1) + 0.2*he3(x2)", 3)
    model = theory.equivalent(problem(teacher, 1.5), 600)
    assert isinstance(model, SeveralDirections)
    assert model.rank == 3
    answer = theory.risk(problem(teacher, 1.5), d=600)
    assert answer.initial is not None
    out_of_reach = 0.3**2 * 2 + 0.2**2 * 6
    assert out_of_reach < answer.test < answer.initial.test
    with pytest.raises(gs.NotCovered, match="rank three or less"):
        theory.risk(problem(gs.MultiIndex("sin(x0) + x1*x2*x3", 4), 1.5), d=600)


def test_several_small_steps() -> None:
    hidden, plain = (problem(teacher, 1.0, 1.0, exponent=0.0) for teacher in (DISGUISED[1], "sin"))
    assert_allclose(theory.risk(hidden).test, theory.risk(plain).test, rtol=1e-8)
    assert_allclose(theory.risk(hidden, d=900).test, two_steps(plain, 900).risk().test, rtol=2e-5)
    more = {"steps": [gs.Step(samples=3.0, rate=1.5)] * 3}
    three = hidden.replace(more)
    (spike,), (expected,) = (theory.weights(p.replace(more), d=900).spikes for p in (hidden, plain))
    assert_allclose(spike.value, expected.value, rtol=1e-8)
    assert_allclose(spike.overlap, expected.overlap, rtol=1e-8)
    with pytest.raises(gs.NotCovered, match="those of two steps"):
        theory.risk(three, d=900)


def test_questions_about_one_direction_are_refused() -> None:
    asked = problem(DISGUISED[0], 1.0, exponent=0.0)
    for question in (theory.kernel, theory.bounds, theory.learned_function):
        with pytest.raises(gs.NotCovered, match="several directions"):
            question(asked)
    uncentred = problem(gs.MultiIndex("relu(x0) + x1", 2), 1.0)
    with pytest.raises(gs.NotCovered, match="teacher must have mean zero"):
        theory.risk(uncentred, d=500)


def test_a_model_must_know_all_directions() -> None:
    with pytest.raises(gs.InvalidProblem, match="orthonormal"):
        SeveralDirections(
            activation="tanh",  # type: ignore[arg-type]
            teacher=gs.MultiIndex("x0*x1", 2),
            width=1.0,
            spikes=np.zeros((1, 1)),
            overlap=np.zeros(1),
            bulk=1.0,  # type: ignore[arg-type]
            directions=np.array([[1.0], [0.0]]),
            last=np.array([0.0, 0.5]),
        )


def test_each_direction_of_a_staircase_in_its_step() -> None:
    """Networks at d = 500 have .901(2) and .683(4) after two steps; the bulk here is isotropic."""
    problem = gs.Problem(
        activation=gs.centered("relu"),
        teacher=gs.MultiIndex("x0 + x0*x1", rank=2),
        width=1.5,
        steps=[gs.Step(samples=8, rate=1, exponent=0.5)] * 2,
    )
    one, two = (theory.weights(problem.replace(steps=problem.steps[:t]), 500) for t in (1, 2))
    assert [sum(spike.overlaps["x1"] for spike in w.spikes) for w in (one, two)] == pytest.approx(
        [0.0, 0.683], abs=0.03
    )
    assert sum(spike.overlaps["x0"] for spike in two.spikes) == pytest.approx(0.901, abs=0.007)
    for spike in two.spikes:
        each = spike.overlaps["x0"] + spike.overlaps["x1"]
        assert each == pytest.approx(spike.overlaps["teacher"], abs=1e-9)
