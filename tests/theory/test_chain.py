"""Batches that are multiplied: several steps of neurons of one type (theory §7)."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import giantsteps as gs
from giantsteps.theory.solver.bulk import Batch, Bulk, Stage
from giantsteps.theory.solver.dyson import Dyson
from giantsteps.theory.solver.special import Forms
from giantsteps.theory.steps.several.chain import chain_of
from giantsteps.theory.steps.several.covariance import covariance_of_state, operators_on
from giantsteps.theory.steps.several.model import trained_by
from giantsteps.theory.steps.several.spectrum import spectrum_of

RNG = np.random.default_rng(11)
NODES, WEIGHTS = 4, np.array([0.1, 0.3, 0.2, 0.4])
#: Of the batches: n/d, what is left, M (the second has none), noise, coordinates on the teacher.
SIZES, KEPT, TURNS = (2.0, 1.5, 3.0), (0.9, 1.0, 1.0), (True, False, True)
BENT = 0.4 * RNG.normal(size=(3, NODES)) * np.array(TURNS)[:, None]
NOISE = 0.5 * RNG.normal(size=(3, NODES)) ** 2
MEANS = 0.7 * RNG.normal(size=(3, NODES))
#: Vectors: one of each batch, the second with what is left of the first; last the teacher.
SUMS = RNG.normal(size=(3, NODES))
PLACE = (2, 0, 0, 0)  # the sum of the first batch is under the G of the last
X, STRENGTHS = np.full((1, 1, 1), 1.3), np.array([0.2, 0.5, 0.7, 0.4, 0.9]).reshape(1, 5, 1, 1)


def bulk() -> Bulk:
    one, stages, batches = np.ones((1, 1)), [], []
    for number in range(3):
        batches.append(
            Batch(
                samples=np.array([SIZES[number]]),
                weights=WEIGHTS[None],
                first=(MEANS[number] * WEIGHTS)[None, None],
                second=((MEANS[number] ** 2 + 0.8) * WEIGHTS)[None, None, None],
                linear=NOISE[number][None, None],
                factors=BENT[number][None, None][:, : int(TURNS[number])],
                kept=np.array([KEPT[number]]),
            )
        )
        carry, sums = np.zeros((number + 2, number + 1)), np.zeros((number + 2, NODES))
        carry[:number, :number], carry[-1, -1] = np.eye(number), 1.0
        sums[number] = SUMS[number]
        frame = np.eye(number + 1)[None, -1:]
        place = (*PLACE[: number + 1], 0)
        stages.append(Stage(frame=frame, carry=carry[None], sums=sums[None], place=place))
    return Bulk(
        shares=one, inverse=one, scales=one, diagonal=one[None], coefficients=np.ones((1, 1, 5)),
        batches=tuple(batches), stages=tuple(stages), external=np.ones((1, 1, 1, 1)),
        special=np.eye(4)[None],
    )  # fmt: skip


def solved(x: np.ndarray, strengths: np.ndarray) -> Dyson:
    bare = Dyson(bulk(), x, strengths, np.zeros((1, 0, 0)))
    found = replace(bare, active=bare.alone())
    for _ in range(100):
        found = replace(found, active=(found.image + found.active) / 2)
    return found


def summed(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.asarray((x * values[:, None]).T @ x / len(x))


def drawn(d: int) -> tuple[list[np.ndarray], np.ndarray]:
    """The operators (identity, noise of each batch, the product) and the vectors."""
    operators: list[np.ndarray] = []
    vectors, product = [], np.eye(d)
    for number, (size, kept) in enumerate(zip(SIZES, KEPT)):
        node = np.repeat(np.arange(NODES), np.round(WEIGHTS * size * d).astype(int))
        x = RNG.normal(size=(len(node), d))
        x[:, 0] = MEANS[number, node] + np.sqrt(0.8) * x[:, 0]
        turn = kept * np.eye(d)
        if TURNS[number]:
            turn += summed(x, BENT[number, node])
        operators = [turn @ one @ turn for one in operators]
        product = turn @ product @ turn
        operators.append(summed(x, NOISE[number, node]))
        vectors.append(x.T @ SUMS[number, node] / len(x))
    vectors[0] = turn @ vectors[0]
    return [np.eye(d), *operators, product], np.stack([*vectors, np.eye(d)[0]])


def test_traces_and_forms_are_those_of_matrices() -> None:
    dyson = solved(X, STRENGTHS)
    traces, forms = dyson.traces[0, :, 0, 0], Forms(dyson).values[0, :, 0, :, 0]
    seen, given = [], []
    for _ in range(8):
        operators, vectors = drawn(400)
        inverse = np.linalg.inv(1.3 * np.eye(400) + np.tensordot(STRENGTHS.ravel(), operators, 1))
        seen.append([np.sum(inverse * one) / 400 for one in [np.eye(400), *operators]])
        given.append(vectors @ inverse @ vectors.T)
    assert_allclose(np.mean(seen, axis=0), traces, rtol=0.004)
    error = np.std(given, axis=0) / np.sqrt(8)
    assert (np.abs(np.mean(given, axis=0) - forms) <= 4 * error + 0.002).all()


def test_responses_are_derivatives() -> None:
    dyson, step, force = solved(X, STRENGTHS), 1e-5, RNG.normal(size=(1, 4))

    def along(place: int) -> tuple[np.ndarray, float]:
        ends = []
        for sign in (1, -1):
            x, strengths = X.copy(), STRENGTHS.copy()
            (x if place == 0 else strengths[:, place - 1]).flat[0] += sign * step
            moved = solved(x, strengths)
            ends.append(
                (moved.traces[0, :, 0, 0], force @ Forms(moved).values[0, :, 0, :, 0] @ force.T)
            )
        return (ends[0][0] - ends[1][0]) / (2 * step), (ends[0][1] - ends[1][1]).item() / (2 * step)

    slopes = Forms(dyson).slopes(force)[0, :, 0, 0]
    for place in range(6):
        traces, form = along(place)
        assert_allclose(dyson.hessian[0, place], traces, rtol=1e-5, atol=1e-8)
        assert_allclose(-slopes[place], form, rtol=1e-5, atol=1e-8)


PROBLEM = gs.Problem(
    activation="softplus",
    teacher="x + 0.5*(x**2 - 1)",
    width=0.8,
    steps=[gs.Step(samples=s, rate=r) for s, r in ((3.4, 0.55), (2.0, 0.4), (3.6, 0.41))],
    readout=gs.Ridge(samples=4.0, penalty=0.02),
    init=gs.Init(second_layer="constant"),
)
SPECTRUM = spectrum_of(PROBLEM, None)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation": "tanh", "teacher": "sin"},
        {"activation": gs.centered("relu"), "teacher": gs.MultiIndex("tanh(x0) + 0.5*x0*x1", 2)},
        {"steps": [gs.Step(samples=2.0, rate=0.5, decay=0.1)] * 2},
    ],
)
def test_products_have_the_forms_that_were_derived_step_by_step(changes: dict[str, Any]) -> None:
    problem = PROBLEM.replace(changes)
    for state in trained_by(problem, SPECTRUM, np.inf, 2)[1:]:
        bulk = covariance_of_state(state, SPECTRUM, 1e-3)
        found = operators_on(bulk, state.directions + state.teachers)
        assert_allclose(found, state.forms, rtol=1e-6, atol=1e-7)
        assert abs(bulk.coefficients[0, 0]) < 1e-7  # no other part of the trace is left
        if not changes:
            assert np.abs(state.forms - state.represented).max() > 0.01  # sums do not


def test_second_moments_are_those_of_matrices() -> None:
    state = trained_by(PROBLEM, SPECTRUM, np.inf, 2)[-1]
    records = tuple(
        replace(
            record, samples=size, weights=WEIGHTS, bent=bent[None], noise=noise[None], kept=kept
        )
        for record, size, bent, noise, kept in zip(state.records, SIZES, BENT, NOISE, KEPT)
    )
    found = chain_of(replace(state, records=records), np.eye(1)[:, None], bulk().stages)
    gram = np.zeros_like(found.gram)
    for _ in range(8):
        operators, _ = drawn(300)
        gram += np.tensordot(operators, operators, axes=([1, 2], [1, 2])) / 300 / 8
    assert_allclose(found.gram, gram, rtol=0.02)
    assert_allclose(found.totals, state.totals)
