"""Teachers of several directions: those that have one in truth, rotations, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.steps.several import fresh
from giantsteps.theory.steps.several.view import sample_nodes


def near(found: Any, expected: Any, *, rtol: float = 1e-7) -> None:
    assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=rtol)


def problem(
    teacher: Any,
    *rates: float,
    batch: str = "fresh",
    exponent: float = 0.5,
    law: gs.Vocabulary | str = "constant",
    activation: Any = "tanh",
) -> gs.Problem:
    steps = [gs.Step(samples=3.0, rate=rate, exponent=exponent) for rate in rates[:1]]
    steps += [gs.Step(samples=3.0, rate=r, exponent=exponent, batch=batch) for r in rates[1:]]
    return gs.Problem(
        activation=activation,
        teacher=teacher,
        noise_variance=0.1,
        width=1.2,
        steps=steps,
        readout=gs.Ridge(samples=2.0, penalty=0.1),
        init=gs.Init(second_layer=law),
    )


TURNED = gs.MultiIndex("sin(0.6*x0 + 0.8*x1)", 2)
RELU = gs.centered("relu")
THREE_VALUES = gs.Vocabulary([-1.0, 0.5, 2.0], [0.3, 0.3, 0.4])


@pytest.mark.parametrize(
    ("teacher", "rates", "law", "activation", "exponent", "d"),
    [
        (gs.MultiIndex("sin(x0)", 2), (1.5,), "constant", "tanh", 0.5, 800),
        (TURNED, (1.5,), "constant", RELU, 0.5, None),
        (TURNED, (1.5,), "constant", "tanh", 0.3, 700),
        (TURNED, (1.5,), "constant", "tanh", 0.0, None),
        (TURNED, (1.5, 1.0), "constant", RELU, 0.5, 800),
        (TURNED, (1.5, 1.0), THREE_VALUES, "tanh", 0.5, None),
        (TURNED, (1.0, 0.5, 0.7), "gaussian", RELU, 0.5, 800),
        (TURNED, (1.0, 0.5, 0.7), "constant", RELU, 0.3, 800),
        (gs.MultiIndex("sin(0.6*x0 + 0.8*x2)", 3), (1.0, 0.7), "gaussian", "tanh", 0.5, 800),
    ],
)
def test_one_direction_in_disguise(
    teacher: Any,
    rates: Any,
    law: Any,
    activation: Any,
    exponent: float,
    d: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same equations with a direction that nothing depends on, and turned."""
    # Batches of later steps have quadratures of their own: the same for both here.
    monkeypatch.setattr(
        fresh, "remembered_nodes", lambda trained, *given: sample_nodes(trained.rank, *given)
    )
    plain, hidden = (
        problem(t, *rates, law=law, activation=activation, exponent=exponent)
        for t in ("sin", teacher)
    )
    expected, found = theory.risk(plain, d), theory.risk(hidden, d)
    close = 2e-9 if len(rates) == 1 else 2e-6
    near([found.test, found.train], [expected.test, expected.train], rtol=close)
    assert found.initial is not None
    assert expected.initial is not None
    near(found.initial.test, expected.initial.test, rtol=1e-8)
    assert found.by_degree is None


def test_every_question_of_one_direction_in_disguise() -> None:
    plain, hidden = (problem(t, 1.0, 0.7) for t in ("sin", TURNED))

    def both(question: Any, *path: Any, **options: Any) -> tuple[Any, Any]:
        found = []
        for asked in (hidden, plain):
            value = question(asked, 800, **options)
            for part in path:
                value = value[part] if isinstance(part, int) else getattr(value, part)
            found.append(value)
        return found[0], found[1]

    other, one = both(theory.weights, "spikes", 0)
    near([other.value, other.overlap], [one.value, one.overlap], rtol=1e-4)
    near(other.overlaps["x0"], 0.36 * one.overlap, rtol=0.02)
    other, one = both(theory.kernel, "spikes", 0)
    near([other.value, other.overlaps["labels"]], [one.value, one.overlaps["labels"]], rtol=1e-4)
    near(*both(theory.learned_function, "mean", x=[-1.0, 2.0]), rtol=1e-4)
    near(*both(theory.learned_function, "target", x=[-1.0, 2.0]), rtol=1e-6)
    near(*both(theory.degrees_of_freedom, "df1"), rtol=1e-6)
    near(*both(theory.movement, "output"), rtol=1e-6)
    near(*both(theory.trajectory, "test"), rtol=2e-5)


@pytest.mark.parametrize("rates", [(), (1.0,), (1.5, 0.5)])
def test_small_steps_see_the_linear_part(rates: Any) -> None:
    plain, hidden = (problem(t, *rates, exponent=0.0) for t in ("sin", TURNED))
    near(theory.risk(hidden).test, theory.risk(plain).test, rtol=1e-9)
    whole = theory.learned_function(plain, along="teacher", x=[1.0])
    for name, share in (("x0", 0.6), ("x1", 0.8)):
        found = theory.learned_function(hidden, along=name, x=[1.0])
        near(found.mean, share * whole.mean, rtol=1e-9)
        near(found.target, np.sin(share) * np.exp((share**2 - 1) / 2), rtol=1e-9)
    if rates:
        near(theory.gradient(hidden).spike_norm, theory.gradient(plain).spike_norm)
        one, other = (theory.features(p, 800).spikes for p in (plain, hidden))
        near([spike.value for spike in other], [spike.value for spike in one])


def test_bounds_of_one_direction_in_disguise() -> None:
    expected, found = (theory.bounds(problem(t, 1.5)) for t in ("sin", TURNED))
    for name in ("linear", "optimal penalty"):
        near(found.floors[name], expected.floors[name], rtol=1e-8)
    near(found.ceilings["infinite penalty"], expected.ceilings["infinite penalty"])
    near(found.terms["tau"], expected.terms["tau"], rtol=1e-6)
    near(found.arguments["tau"], abs(float(expected.arguments["tau"])), rtol=1e-3)


def test_several_small_steps_on_one_batch() -> None:
    plain, hidden = (
        problem(t, 1.0, 1.0, 0.5, exponent=0.0, batch="previous") for t in ("sin", TURNED)
    )
    near(theory.risk(hidden, 900).test, theory.risk(plain, 900).test, rtol=1e-9)


def test_a_reused_batch_has_an_isotropic_bulk() -> None:
    plain, hidden = (problem(t, 1.5, 1.0, batch="previous") for t in ("sin", TURNED))
    expected = theory.equivalent(plain, 800, simplify="isotropic bulk").risk()
    found = theory.risk(hidden, 800)
    near(found.test, expected.test, rtol=1e-6)
    assert not found.exact


def test_three_directions() -> None:
    """A sum of three functions is learned as far as the one it has a step for."""
    teacher = gs.MultiIndex("sin(x0) + 0.3*he2(x1) + 0.2*he3(x2)", 3)
    model = theory.equivalent(problem(teacher, 1.5), 600)
    assert (model.rank, model.cosines.shape) == (1, (3, 1))
    answer = theory.risk(problem(teacher, 1.5), d=600)
    assert answer.initial is not None
    out_of_reach = 0.3**2 * 2 + 0.2**2 * 6
    assert out_of_reach < answer.test < answer.initial.test
    with pytest.raises(gs.NotCovered, match="rank three or less"):
        theory.risk(problem(gs.MultiIndex("sin(x0) + x1*x2*x3", 4), 1.5), d=600)


def test_wrong_signs_of_two_directions() -> None:
    """Of a teacher sign(x0) in disguise, through the quadrature of the other direction."""
    hidden = gs.MultiIndex("sign(0.6*x0 + 0.8*x1)", 2)
    expected, found = (theory.risk(problem(t, 1.0), 500) for t in ("sign", hidden))
    assert expected.classification_error is not None
    assert found.classification_error == pytest.approx(expected.classification_error, rel=0.02)


def test_what_is_not_covered() -> None:
    for change in ({"steps.0.rule": "sign"}, {"init.output": "unscaled"}):
        with pytest.raises(gs.NotCovered, match="several directions"):
            theory.risk(problem(TURNED, 1.0).replace(change), d=500)
    with pytest.raises(gs.NotCovered, match="rank-one teacher"):
        theory.training_loss(problem(TURNED, 1.0, exponent=0.0))
    for ask in (theory.learned_function, simulation.learned_function):
        with pytest.raises(gs.InvalidProblem, match='"x1"'):
            ask(problem(TURNED, 1.0), 100, along="x2")


def test_a_model_must_know_all_directions() -> None:
    with pytest.raises(gs.InvalidProblem, match="a row for each direction"):
        SpikedFeatures(
            activation="tanh",
            teacher=gs.MultiIndex("x0*x1", 2),
            width=1.0,
            spikes=np.zeros((1, 1)),
            overlap=np.zeros(1),
            bulk=1.0,
        )


def test_each_direction_of_a_staircase_in_its_step() -> None:
    """Networks at d = 500 have .901(2) and .683(4) after two steps."""
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
