"""Batches that are multiplied: several steps of neurons of one type (theory §7)."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import giantsteps as gs
from giantsteps.theory.solver.bulk import Batch, Bulk, Stage
from giantsteps.theory.solver.chain import Chain, dyson_at
from giantsteps.theory.solver.dyson import Directions
from giantsteps.theory.solver.packing import packing
from giantsteps.theory.solver.special import Forms
from giantsteps.theory.steps.several.chain import chain_of
from giantsteps.theory.steps.several.covariance import covariance_of_state, operators_on
from giantsteps.theory.steps.several.model import trained_by
from giantsteps.theory.steps.several.spectrum import spectrum_of

RNG = np.random.default_rng(11)
NODES, WEIGHTS = 4, np.array([0.1, 0.3, 0.2, 0.4])
#: Of the batches: n/d, what is left, M (the second has none), noise, coordinates on the teacher.
SIZES, KEPT, TURNS = (2.0, 1.5, 3.0), (0.9, 1.0, 1.0), (True, False, True)
BENT = 0.4 * RNG.normal(size=(3, 3, NODES)) * np.array(TURNS)[:, None, None]  # (batch, type, node)
NOISE = 0.5 * RNG.normal(size=(3, 3, NODES)) ** 2
MEANS = 0.7 * RNG.normal(size=(3, NODES))
SUMS = RNG.normal(size=(3, NODES))
CHANNELS = RNG.normal(size=(3, 2))
#: X, and the strengths of the types.
X, STRENGTHS = np.array([[1.3, 0.2], [0.2, 0.9]]), np.array([0.5, 0.7, 0.4])


class Case:
    """Types and channels, with one vector of each batch, the second with what is left of the
    first, and last the teacher; the first is under the G of the last batch, for each type.
    """

    def __init__(self, types: int, rank: int, functions: np.ndarray | None = None) -> None:
        self.types, self.rank = types, rank
        self.links = None if functions is None else np.stack([functions, functions])[None]
        self.channels = CHANNELS[:types, :rank] if rank > 1 else np.ones((types, 1))
        self.x, self.p = X[:rank, :rank], STRENGTHS[:types]
        self.place = (*range(1 + types, 1 + 2 * types), 0, 0, 0)
        if functions is not None:
            self.place = (0,) * len(self.place)
        self.frame = types + 3

    def __str__(self) -> str:
        return f"{self.types}-{self.rank}-{0 if self.links is None else self.links.shape[3]}"

    def bulk(self) -> Bulk:
        one, stages, batches = np.ones((1, 1)), [], []
        for number in range(3):
            turned = BENT[number, : self.types * TURNS[number]]
            batches.append(
                Batch(
                    samples=np.array([SIZES[number]]),
                    weights=WEIGHTS[None],
                    first=(MEANS[number] * WEIGHTS)[None, None],
                    second=((MEANS[number] ** 2 + 0.8) * WEIGHTS)[None, None, None],
                    linear=NOISE[number, : self.types][None],
                    factors=turned[None],
                    kept=np.array([KEPT[number]]),
                    links=self.links,
                )
            )
            carry, sums = np.zeros((number + 2, number + 1)), np.zeros((number + 2, NODES))
            carry[:number, :number], carry[-1, -1] = np.eye(number), 1.0
            sums[number] = SUMS[number]
            frame, place = np.eye(number + 1)[None, -1:], (0,) * (number + 2)
            if number == 2:
                vectors = [0] * self.types + [1, 2, 3]
                carry, sums, place = carry[vectors], sums[vectors], self.place
            stages.append(Stage(frame=frame, carry=carry[None], sums=sums[None], place=place))
        return Bulk(
            shares=one, inverse=one, scales=one, diagonal=one[None],
            coefficients=np.column_stack([np.zeros(self.types), np.eye(self.types)])[None],
            batches=tuple(batches), stages=tuple(stages), external=np.ones((1, 1, 1, 1)),
            special=np.eye(self.frame)[None],
        )  # fmt: skip

    def solved(self, x: np.ndarray, p: np.ndarray) -> Chain:
        outer = self.channels[:, :, None] * self.channels[:, None]
        strengths = np.concatenate([0.0 * outer[:1], p[:, None, None] * outer])
        found = dyson_at(
            self.bulk(), x[None], strengths[None], np.zeros((1, 0, 0)), self.channels[None]
        )
        assert isinstance(found, Chain)
        found = replace(found, active=found.alone())
        for _ in range(100):
            found = replace(found, active=(found.image + found.active) / 2)
        return found

    def drawn(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        """Σ_t, (T, d, d), and the vectors as the types see them, (T, F, d)."""
        found = np.tile(np.eye(d), (self.types, 1, 1))
        vectors = []
        for number, (size, kept) in enumerate(zip(SIZES, KEPT)):
            node = np.repeat(np.arange(NODES), np.round(WEIGHTS * size * d).astype(int))
            x = RNG.normal(size=(len(node), d))
            x[:, 0] = MEANS[number, node] + np.sqrt(0.8) * x[:, 0]
            vectors.append(x.T @ SUMS[number, node] / len(x))
            turns = []
            for t in range(self.types):
                turn = kept * np.eye(d)
                if TURNS[number]:
                    turn += summed(x, BENT[number, t, node])
                found[t] = turn @ found[t] @ turn + summed(x, NOISE[number, t, node])
                turns.append(turn)
        plain = np.stack([*vectors[1:], np.eye(d)[0]])
        seen = np.zeros((self.types, self.frame, d))
        for t, turn in enumerate(turns):
            seen[t, t], seen[t, self.types :] = turn @ vectors[0], plain
        return found, seen


def summed(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.asarray((x * values[:, None]).T @ x / len(x))


PLAIN = [Case(1, 1), Case(2, 2), Case(3, 2), Case(2, 1)]
CASES = pytest.mark.parametrize("case", PLAIN, ids=str)
#: Orthonormal functions of three types.
FUNCTIONS = np.linalg.qr(RNG.normal(size=(3, 3)))[0]


@CASES
def test_traces_and_forms_are_those_of_matrices(case: Case) -> None:
    dyson, d = case.solved(case.x, case.p), 400
    u, types = case.channels, case.types
    forms = Forms(dyson).values[0]
    # Vectors of a type are seen by its channels alone, and the others by those of every type.
    own = np.diag([*(True,) * types, *(False,) * 3]).any(axis=1)
    seen, forces, given = [], [], []
    for _ in range(8):
        covariances, vectors = case.drawn(d)
        matrix = np.kron(case.x, np.eye(d))
        for t in range(types):
            matrix += case.p[t] * np.kron(np.outer(u[t], u[t]), covariances[t])
        inverse = np.linalg.inv(matrix).reshape(case.rank, d, case.rank, d)
        seen.append(np.einsum("aibi->ab", inverse) / d)
        sides = np.einsum("ta,aibj,sb->tisj", u, inverse, u)
        forces.append([np.sum(covariances[t] * sides[t, :, t]) / d for t in range(types)])
        given.append(np.einsum("tfi,tisj,sgj->tfsg", vectors, sides, vectors))
    assert_allclose(np.mean(seen, axis=0), dyson.traces[0, 0], rtol=0.004)
    assert_allclose(np.mean(forces, axis=0), dyson.forces[0], rtol=0.004)
    known = np.einsum("ta,fagb,sb->tfsg", u, forms, u)
    mean, error = np.mean(given, axis=0), np.std(given, axis=0) / np.sqrt(8)
    for t in range(types):
        for s in range(types):
            left, right = (~own | (np.arange(case.frame) == one) for one in (t, s))
            part = (t, left, s), np.ix_(left, right)
            gap = np.abs(mean[t, :, s] - known[t, :, s])[part[1]]
            assert (gap <= 4 * error[t, :, s][part[1]] + 0.002).all()


@pytest.mark.parametrize("case", [*PLAIN, Case(3, 2, FUNCTIONS[:, :2])], ids=str)
def test_responses_are_derivatives(case: Case) -> None:
    dyson, step = case.solved(case.x, case.p), 1e-5
    force = RNG.normal(size=(1, case.frame * case.rank))
    packed = packing(case.rank)
    pairs = packed.pack(case.channels[:, :, None] * case.channels[:, None])

    def along(x: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, float]:
        ends = []
        for sign in (1, -1):
            moved = case.solved(case.x + sign * step * x, case.p + sign * step * p)
            values = Forms(moved).values.reshape(force.shape[1], -1)
            traces = packed.pack(moved.traces[0, 0]) * packed.count
            found = np.append(traces, moved.forces[0])
            ends.append((found, (force @ values @ force.T).item()))
        return (ends[0][0] - ends[1][0]) / (2 * step), (ends[0][1] - ends[1][1]) / (2 * step)

    size = len(packed)
    # From the entries of P_t to p_t.
    types = np.zeros((case.types, dyson.layout.parameters))
    for t, pair in enumerate(pairs):
        types[t, (2 + t) * size : (3 + t) * size] = pair
    few = np.concatenate([np.eye(size, types.shape[1]), types])
    hessian = dyson.response(Directions(size, types.T[None]))[0][0]
    slopes = Forms(dyson).slopes(force)[0]
    slopes = few @ (packed.pack(slopes) * packed.count).ravel()
    units = [(one, 0 * case.p) for one in packed.unpack(np.eye(size))]
    units += [(0 * case.x, one) for one in np.eye(case.types)]
    for place, unit in enumerate(units):
        traces, form = along(*unit)
        assert_allclose(hessian[place], traces, rtol=1e-5, atol=1e-8)
        assert_allclose(-slopes[place], form, rtol=1e-5, atol=1e-8)


def test_functions_of_the_types_stand_for_the_types() -> None:
    own, others = (one.solved(X, STRENGTHS) for one in (Case(3, 2), Case(3, 2, FUNCTIONS)))
    assert_allclose(others.traces, own.traces, rtol=1e-12)
    every = own.layout.parameters
    units = Directions(every, np.zeros((1, every, 0)))
    responses = [one.response(units)[0] for one in (own, others)]
    assert_allclose(responses[1], responses[0], rtol=1e-10, atol=1e-12)
    values = [Forms(one).values[:, 3:, :, 3:] for one in (own, others)]  # as they are on x
    assert_allclose(values[1], values[0], rtol=1e-12, atol=1e-13)


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
        {"init.second_layer": gs.Vocabulary([-1.0, 2.0], [0.6, 0.4])},
        {"init.second_layer": gs.Vocabulary([-1.0, 0.0, 2.0], [0.4, 0.2, 0.4])},
    ],
)
def test_products_have_the_forms_that_were_derived_step_by_step(changes: dict[str, Any]) -> None:
    problem = PROBLEM.replace(changes)
    for state in trained_by(problem, SPECTRUM, np.inf, 2)[1:]:
        bulk = covariance_of_state(state, SPECTRUM, 1e-3)
        found = operators_on(bulk, state.directions + state.teachers)
        if bulk.excess is not None:
            found = found + bulk.excess
        # Nodes with weights below 1e-9 are left out, and vectors made orthonormal in two ways.
        atol = 1e-7 if len(state.values) == 1 else 1e-6
        assert_allclose(found, state.forms, rtol=1e-6, atol=atol)
        # No other part of the traces is left than leans that count as bulk.
        assert_allclose(bulk.coefficients[:, 0], (state.weak**2).sum(axis=1), atol=1e-7)
        if not changes:
            assert np.abs(state.forms - state.represented).max() > 0.01  # sums do not


def test_second_moments_are_those_of_matrices() -> None:
    case, law = Case(2, 2), gs.Vocabulary([-1.0, 2.0], [0.6, 0.4])
    state = trained_by(PROBLEM.replace({"init.second_layer": law}), SPECTRUM, np.inf, 2)[-1]
    laws = zip(state.records, SIZES, BENT, NOISE, KEPT)
    records = tuple(
        replace(record, samples=size, weights=WEIGHTS, bent=bent[:2], noise=noise[:2], kept=kept)
        for record, size, bent, noise, kept in laws
    )
    stages = covariance_of_state(state, SPECTRUM, 1e-3).stages
    found = chain_of(replace(state, records=records), np.eye(1)[:, None], stages)
    gram = np.zeros((3, 3))
    for _ in range(8):
        operators = np.concatenate([np.eye(300)[None], case.drawn(300)[0]])
        gram += np.tensordot(operators, operators, axes=([1, 2], [1, 2])) / 300 / 8
    assert_allclose(found.gram, gram, rtol=0.02)
    assert_allclose(found.totals, state.totals)
