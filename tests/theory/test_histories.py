"""Batches that are used by more than two steps (theory §7): limits, and networks."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import giantsteps as gs
from giantsteps import theory
from giantsteps.functions import as_function, as_teacher
from giantsteps.problem import SecondLayer
from giantsteps.theory.steps.several import history_model
from giantsteps.theory.steps.several.field import two_step_field
from giantsteps.theory.steps.several.histories import Neurons
from giantsteps.theory.steps.several.history_law import follow
from giantsteps.theory.steps.several.history_view import Course, View, sample_nodes
from giantsteps.theory.steps.several.reused import reused_steps

from .two_step_model import fresh_field

TWO = gs.Vocabulary([-1.0, 2.0], [0.5, 0.5])
READOUT = gs.Ridge(samples=3.0, penalty=1 / 30)
#: σ, σ*, second layer: odd, with a kink, with an output of its own.
SETTINGS = [("tanh", "sin", "constant"), ("centered", "sin", TWO), ("softplus", "x + x**2/4", TWO)]


def stepped(*steps: tuple[str, float], layer: Any = "constant", **others: Any) -> gs.Problem:
    """Steps (batch, rate) with exponent 1/2 unless said otherwise."""
    exponent = others.pop("exponent", 0.5)
    given: dict[str, Any] = {"activation": "tanh", "teacher": "sin", **others}
    return gs.Problem(
        noise_variance=0.05,
        width=1.0,
        steps=[gs.Step(samples=3.0, rate=r, exponent=exponent, batch=b) for b, r in steps],
        readout=READOUT,
        init=gs.Init(second_layer=layer),
        **given,
    )


def errors(answer: gs.Risk) -> list[float]:
    return [float(answer.test), float(answer.train)]


def course(
    problem: gs.Problem, batches: tuple[int, ...], rates: tuple[float, ...], level: int = 2
) -> Course:
    values, probabilities = problem.init.second_layer.types()
    neurons = Neurons(problem.activation, values, probabilities)
    samples = (3.0,) * (max(batches) + 1)
    link = problem.teacher.link  # type: ignore[attr-defined]
    return follow(neurons, link, 0.05, batches, samples, rates, level)


@pytest.mark.parametrize("reused", [False, True])
@pytest.mark.parametrize(("activation", "teacher", "layer"), SETTINGS)
def test_two_steps_are_those_of_the_closed_form(
    activation: str, teacher: str, layer: Any, reused: bool
) -> None:
    sigma = gs.centered("relu") if activation == "centered" else as_function(activation)
    problem = stepped(("fresh", 0.8), ("fresh", 0.6), layer=layer, activation=sigma)
    problem = problem.replace({"teacher": teacher})
    law: SecondLayer = problem.init.second_layer
    args, rates = (sigma, as_teacher(teacher), 0.05, law), (0.8, 0.6)
    field = two_step_field(*args, 3.0, rates) if reused else fresh_field(*args, (3.0, 3.0), rates)
    found = course(problem, (0, 0) if reused else (0, 1), (0.8, 0.6))
    lean = found.leans[-1]
    assert_allclose(lean @ lean.T, field.kernel, rtol=2e-3, atol=1e-3)
    assert_allclose(lean[:, 0], field.teacher[:, 0], rtol=2e-3)
    assert_allclose(found.covariance[:, -1, -1], field.variances, rtol=2e-3)


def test_covariances_along_the_spikes_are_those_of_two_steps() -> None:
    """Two ways to the same forms: what sums over a batch do one after the other, and this one."""
    problem = stepped(
        ("fresh", 0.8), ("previous", 0.9), layer=gs.Vocabulary([0.5, 1.5], [0.5, 0.5])
    ).replace({"activation": gs.centered("gelu"), "teacher": "x + (x**2 - 1)/2"})
    old, new = reused_steps(problem), history_model.remembered_steps(problem)
    strongest = np.eye(1, old.bulk.frame)[0], np.eye(1, new.bulk.frame)[0]
    assert_allclose(new.bulk.on(strongest[1]), old.bulk.on(strongest[0]), rtol=1e-2)
    assert new.bulk.on(strongest[1])[1] > 3 * new.bulk.totals[1]


def asymmetry(found: Course) -> float:
    """Of ⟨D_A, D_B⟩ in the third step, from what a sample adds to x·F_B."""
    link = as_function("x + (x**2 - 1)/2")
    nodes = sample_nodes(link, 0.05, found.sizes_seen, 0.0, 3)
    view = View.of(found, nodes, [0, 1, 2])
    mean, weights = view.answers[2].mean, nodes.weights
    added = view.remembered(3) - view.remembered(2)
    known = view.along()[: len(nodes.raw)]
    sums = mean @ ((nodes.raw + known) * weights).T
    gram = (mean @ (nodes.raw * weights).T) @ sums.T + (mean * weights) @ added.T
    return float(np.abs(gram - gram.T).max() / np.abs(gram).max())


def test_products_of_movements_do_not_depend_on_their_order() -> None:
    """⟨D_A, D_B⟩ = ⟨D_B, D_A⟩, which takes what all neurons answer to what a sample has added."""
    problem = stepped(("fresh", 0.8), layer=gs.Vocabulary([-1.0, 0.5, 2.0], [0.3, 0.4, 0.3]))
    problem = problem.replace({"teacher": "x + (x**2 - 1)/2"})
    found = course(problem, (0, 0, 0), (0.8, 0.6, 0.5), 3)
    assert asymmetry(found) < 0.015
    alone = tuple(
        {k: found.own[:, k, step + 1, None] * f for k in one}
        for step, (one, f) in enumerate(zip(found.shared, found.functions))
    )
    assert asymmetry(replace(found, shared=alone)) > 0.05


@pytest.mark.parametrize("layer", ["constant", TWO])
@pytest.mark.parametrize("still", [0, 1, 2])
def test_a_step_of_no_rate_is_none(layer: Any, still: int) -> None:
    rates = [0.8, 0.6]
    rates.insert(still, 0.0)
    three = stepped(*zip(("fresh", "previous", "previous"), rates), layer=layer)
    two = stepped(("fresh", 0.8), ("previous", 0.6), layer=layer)
    found, wanted = (theory.risk(problem, d=1000) for problem in (three, two))
    assert_allclose(errors(found), errors(wanted), rtol=3e-4)
    assert not found.exact


def test_a_fresh_step_of_no_rate_is_none() -> None:
    found = theory.risk(stepped(("fresh", 0.8), ("previous", 0.6), ("fresh", 0.0)), d=1000)
    wanted = theory.risk(stepped(("fresh", 0.8), ("previous", 0.6)), d=1000)
    assert_allclose(errors(found), errors(wanted), rtol=3e-4)


def test_small_rates_are_small_steps() -> None:
    """Steps of small rates are those whose output is followed to first order."""
    rate = 0.005
    names = ("fresh", "previous", "previous")
    large = stepped(*((name, rate) for name in names))
    small = stepped(*((name, rate * math.sqrt(1000)) for name in names), exponent=0.0)
    found, wanted = (theory.risk(problem, d=1000) for problem in (large, small))
    assert_allclose(errors(found), errors(wanted), rtol=1e-3)


def test_steps_on_one_batch_do_less_than_on_fresh_ones() -> None:
    used, fresh = (
        theory.risk(stepped(("fresh", 0.8), (batch, 0.8), (batch, 0.8)), d=1000)
        for batch in ("previous", "fresh")
    )
    assert used.test > 1.2 * fresh.test


def test_every_question_has_an_answer() -> None:
    problem = stepped(("fresh", 0.8), ("previous", 0.8), ("previous", 0.8))
    path = theory.trajectory(problem, d=1000)
    assert path.test is not None
    assert_allclose(path.test[-1], theory.risk(problem, d=1000).test, rtol=1e-9)
    (spike, *_) = theory.weights(problem, d=1000).spikes
    assert_allclose(spike.value, path.value[-1], rtol=1e-2)
    assert 0.75 < spike.overlaps["teacher"] < 0.85
    assert theory.kernel(problem, d=1000).spikes
    assert theory.features(problem, d=1000).spikes
    assert 0 < theory.degrees_of_freedom(problem, d=1000).df1 < 1


def test_what_is_not_covered() -> None:
    three = ("fresh", 0.6), ("previous", 0.6), ("previous", 0.6)
    curved = {"activation": gs.centered("gelu"), "teacher": "x + (x**2 - 1)/2"}
    own = {"activation": "relu", "teacher": "sin"}
    two = {"teacher": gs.MultiIndex("x0 + x0*x1", 2)}
    for others in (curved, own, two):
        with pytest.raises(gs.NotCovered, match="odd activation"):
            theory.risk(stepped(*three, **others), d=1000)
    with pytest.raises(gs.NotCovered, match="at most four steps"):
        theory.risk(stepped(*three, ("previous", 0.6), ("previous", 0.6)), d=1000)


def test_more_work_than_allowed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = stepped(("fresh", 0.61), ("previous", 0.6), ("previous", 0.6))
    monkeypatch.setattr(history_model, "MOST", 1e7)
    with pytest.raises(gs.NotConverged, match=r"used again: more than 0.01 .* fewer steps"):
        theory.risk(problem, d=1000)


def test_resolutions_that_share_their_steps_follow_them_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[Any, ...]] = []

    def counted(neurons: Neurons, *others: Any) -> Course:
        asked.append((neurons.values.tobytes(), others[-2]))
        return follow(neurons, *others)

    monkeypatch.setattr(history_model, "follow", counted)
    problem = stepped(("fresh", 0.59), ("previous", 0.6), ("previous", 0.6))
    found = theory.weights(problem, d=900)
    assert found.solution is not None
    assert 0 < found.solution.error < 1e-3  # by a finer resolution of what the samples see
    assert asked
    assert len(asked) == len(set(asked))


def test_steps_that_grow_without_end_are_refused_at_once() -> None:
    """The samples would have taken 22 TiB, tables of the activation minutes."""
    far = ("fresh", 0.4), ("previous", 0.3), ("fresh", 1.3), ("previous", 1.3)
    problem = stepped(*far, layer="gaussian", activation="x + (x**3 - 3*x)/5", teacher="tanh(2*x)")
    problem = problem.replace({f"steps.{s}.samples": 0.8 for s in range(4)})
    with pytest.raises(gs.NotConverged, match=r"nodes of samples .*smaller rates"):
        theory.risk(problem, d=1000)
    once = ("fresh", 1e5), ("previous", 0.3), ("previous", 0.3)
    with pytest.raises(gs.NotConverged, match=r"moves? (a neuron|neurons) by up to .*smaller rate"):
        theory.risk(stepped(*once, activation="x + (x**3 - 3*x)/50"), d=1000)


@pytest.mark.parametrize("level", [0, 4])
def test_a_product_of_nodes_is_pruned_on_the_way(level: int) -> None:
    sizes = np.array([0.4, 2.5, 0.1])
    found = sample_nodes(as_function("sin"), 0.05, sizes, 0.0, level)
    assert_allclose(found.raw[1:] ** 2 @ found.weights, 1.0, rtol=1e-12)
    assert found.raw[0] ** 2 @ found.weights == pytest.approx(1.0, rel=1e-2)
    many = np.full(9, 1e6)
    with pytest.raises(gs.NotConverged, match="nodes of samples of a batch"):
        sample_nodes(as_function("sin"), 0.05, many, 0.0, level)


def test_rare_samples_with_large_labels_are_not_left_out() -> None:
    """Most of tr Σ² is theirs; without them a step of no rate made errors 8 % larger."""
    steps = [gs.Step(samples=n, rate=r, exponent=0.5) for n, r in ((4.75, 0.442), (0.631, 0.601))]
    problem = gs.Problem(
        activation="sin",
        teacher="x + 0.3*he3(x)",
        noise_variance=0.1,
        width=1.76,
        steps=steps,
        readout=gs.Ridge(samples=5.96, penalty=0.284),
    )
    still = gs.Step(samples=0.631, rate=1e-6, exponent=0.5, batch="previous")
    more = problem.replace(steps=[*steps, still])
    assert theory.risk(more, d=300).test == pytest.approx(
        theory.risk(problem, d=300).test, rel=0.04
    )
