"""Problems of random campaigns that once failed, one of each kind: what they must answer."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.answers import Risk
from giantsteps.laws import Law
from giantsteps.theory.model.given_coordinates import coordinates
from giantsteps.theory.model.given_weights import GivenFeatures
from giantsteps.theory.questions.risk import attempts


def problem(**changes: Any) -> gs.Problem:
    data: dict[str, Any] = {
        "activation": "tanh",
        "teacher": "sin",
        "noise_variance": 0.1,
        "width": 1.5,
        "steps": [{"samples": 2.0, "rate": 1.0, "exponent": 0.5}],
        "readout": {"samples": 2.0, "penalty": 0.1},
    }
    return gs.Problem.from_data({**data, **changes})


@pytest.mark.parametrize("width", [0.5, 2.0, 5.83])
@pytest.mark.parametrize("question", [theory.kernel, theory.features])
def test_spectra_of_a_linear_activation(question: Any, width: float) -> None:
    """Without a residual there is one part of the bulk, and an atom where the rank is d."""
    small = [{"samples": 3.26, "rate": 0.2, "exponent": 0.0}]
    found = question(problem(activation="identity", width=width, steps=small))
    assert len(found.bulk.support) == 1
    assert float(found.bulk.cdf(found.bulk.edge)) == pytest.approx(1.0, abs=1e-8)


def test_the_step_of_a_linear_activation_has_rank_one() -> None:
    """ΔW is a rank-one matrix: its operator norm is its Frobenius norm."""
    case = problem(activation="identity", width=0.25)
    moved = theory.movement(case, d=400)
    neurons, norm = case.at(400).neurons, 1.0 + math.sqrt(0.25)
    assert moved.spectral[0] * norm == pytest.approx(
        moved.weights[0] * math.sqrt(neurons), rel=1e-12
    )


OVERFLOWS = problem(
    activation="0.001*x + he3(x)",
    teacher={"name": "cube", "centered": True},
    width=0.00142,
    noise_variance=2.92,
    steps=[
        {"samples": 0.0351, "rate": 17200.0, "exponent": 0.5},
        {"samples": 1.47, "rate": 0.000283, "exponent": 0.5},
    ],
    readout={"samples": 11.6, "penalty": 0.38},
    init={
        "second_layer": {
            "law": "vocabulary",
            "values": [-1.0, 0.0, 1.0],
            "probabilities": [0.9, 0.05, 0.05],
        }
    },
)


@pytest.mark.parametrize(
    "question", [theory.risk, theory.degrees_of_freedom, theory.learned_function]
)
def test_numbers_that_overflow_are_no_answer(question: Any) -> None:
    with pytest.raises(gs.NotConverged, match=r"range of floating point|grow from step to step"):
        question(OVERFLOWS)


def test_a_sample_that_throws_neurons_far_away_asks_for_no_memory() -> None:
    """The panels of one such law would have taken 267 GiB."""
    steps = [
        {"samples": 0.00301, "rate": 403000.0, "exponent": 0.5},
        {"samples": 0.00301, "rate": 1.1, "exponent": 0.5, "batch": "previous"},
    ]
    case = problem(
        activation={"expression": "exp(x/2)", "centered": True},
        teacher={"name": "sign", "centered": True},
        steps=steps,
        readout={"samples": 0.000242, "penalty": 0.000625},
        init={"weights": "sphere", "second_layer": "gaussian"},
    )
    with pytest.raises(gs.NotConverged, match="moves a neuron by up to"):
        theory.risk(case)


def test_degrees_of_freedom_are_refined_or_refused() -> None:
    """The second resolution was an error estimate that nobody read: 2.5 for df₂ = −0.25."""
    far = problem(
        activation={"name": "he2", "centered": True},
        teacher={"name": "square", "centered": True},
        width=0.0558,
        noise_variance=0.0,
        steps=[
            {"samples": 2.0, "rate": 318000.0, "exponent": 0.5},
            {"samples": 0.00226, "rate": 10.3, "exponent": 0.1},
        ],
        readout={"samples": 0.948, "penalty": 0.315},
        init={
            "weights": "gaussian",
            "second_layer": {
                "law": "vocabulary",
                "values": [-1.0, 1.0],
                "probabilities": [0.9, 0.1],
            },
        },
    )
    with pytest.raises(gs.NotConverged, match="norms of neurons that vary so much"):
        theory.degrees_of_freedom(far, d=300)
    near = problem(steps=[{"samples": 2.0, "rate": 8.0, "exponent": 0.5}])
    found = theory.degrees_of_freedom(near)
    assert found.solution is not None
    assert found.solution.error < 1e-6
    assert 0 < found.df2 < found.df1 < 1


def test_a_search_steps_over_points_without_convergence(monkeypatch: pytest.MonkeyPatch) -> None:
    """An optimum is found where some of the points have no answer."""
    from giantsteps.theory.search import quantity

    whole = quantity.attempts  # type: ignore[attr-defined]
    none = gs.NotConverged("a test", 1.0, 1, "nothing")

    def some(problems: Any, *options: Any) -> Any:
        found = whole(problems, *options)
        return [none if case.readout.penalty > 1.0 else one for case, one in zip(problems, found)]

    monkeypatch.setattr(quantity, "attempts", some)
    best = theory.optimize(problem(steps=[{"samples": 2.0, "rate": 1.0, "exponent": 0.0}]))
    assert 0 < best.arguments["readout.penalty"] <= 1.0
    assert np.isfinite(best.value.test)


def test_a_learned_function_after_two_steps_takes_few_points() -> None:
    """Given one of two coordinates, one is left to average over: not a product of both."""
    from giantsteps.theory.model.learned import _around

    steps = [{"samples": 2.0, "rate": rate, "exponent": 0.5} for rate in (3.0, 2.0)]
    model = theory.equivalent(problem(activation={"name": "relu", "centered": True}, steps=steps))
    direction = np.eye(model.rank)[0]
    nodes, weights = _around(model, direction, 1)
    assert len(weights) < 150 < len(coordinates(model, 1).weights)
    np.testing.assert_allclose(nodes @ direction, 0.0, atol=1e-14)
    np.testing.assert_allclose((weights * nodes.T) @ nodes, np.diag([0.0, 1.0]), atol=1e-9)


def test_the_norm_of_a_step_with_types_that_no_network_has() -> None:
    """Gaussian second layers have nodes of mass 1e-13 with norms far beyond all others."""
    step = {"samples": 0.257, "rate": 0.0453, "exponent": 0.5}
    case = problem(
        activation="silu",
        teacher={"expression": "sin(2*x)", "centered": True},
        width=0.761,
        steps=[step],
        init={"second_layer": "gaussian"},
    )
    assert 0 < theory.movement(case, d=100).spectral[0] < 1


def test_a_second_layer_of_zeros_moves_nothing() -> None:
    """Whatever the steps, the network is the one that they found."""
    steps = [{"samples": 2.0, "rate": rate, "exponent": 0.2} for rate in (3.0, 2.0, 1.0)]
    zeros = {"second_layer": {"law": "constant", "value": 0.0}}
    few, many = (problem(steps=steps[:count], init=zeros) for count in (1, 3))
    assert theory.risk(many, d=500).test == pytest.approx(theory.risk(few, d=500).test, rel=1e-9)
    assert not theory.weights(many, d=500).spikes


@pytest.mark.parametrize(("neurons", "samples"), [(32, 160), (10, 190), (60, 30)])
def test_the_risk_of_given_weights_without_a_penalty(neurons: int, samples: int) -> None:
    """It is the limit of small penalties; the iteration used to end far from it."""
    random = np.random.default_rng(1)
    weights = random.standard_normal((50, neurons)) / math.sqrt(50)
    direction = np.linalg.qr(random.standard_normal((50, 1)))[0]
    none, small = (
        theory.risk_of_weights(
            weights,
            direction,
            problem(
                activation="he2",
                width=neurons / 50,
                readout={"samples": samples / 50, "penalty": penalty},
            ),
        )
        for penalty in (0.0, 1e-7)
    )
    assert none.test == pytest.approx(small.test, rel=1e-4)


def test_norms_that_do_not_fluctuate_after_steps_of_a_linear_activation() -> None:
    """Their variance is rounding, 1e-33: it must not fit anything (it took 4 % off the error)."""
    steps = [{"samples": 0.9, "rate": rate, "exponent": 0.0} for rate in (0.1, 1.3)]
    case = problem(activation="identity", width=4.0, steps=steps, init={"second_layer": "constant"})
    plain = theory.equivalent(case, d=1000, simplify="equal norms").risk().test
    assert theory.risk(case, d=1000).test == pytest.approx(plain, rel=1e-3)


def test_the_kernel_of_an_even_activation_after_a_step() -> None:
    """Its linear part is rounding, 1e-32: whether it has converged does not matter."""
    step = {"samples": 0.731, "rate": 0.0246, "exponent": 0.5}
    case = problem(
        activation="he2",
        teacher="tanh(2*x)",
        noise_variance=0.0,
        width=0.912,
        steps=[step],
        readout={"samples": 7.3, "penalty": 0.1},
        init={"weights": "sphere", "second_layer": {"law": "constant", "value": 0.5}},
    )
    bulk = theory.kernel(case, d=100).bulk
    assert isinstance(bulk, Law)
    assert float(bulk.cdf(bulk.edge)) == pytest.approx(1.0, abs=1e-5)


def test_a_second_layer_of_zero_moves_nothing() -> None:
    """Several steps had singular equations, an unscaled output a division by zero."""
    step = {"samples": 0.6, "rate": 0.5, "exponent": 0.5}
    still = {"law": "constant", "value": 0.0}
    case = problem(steps=[step, step], init={"second_layer": still})
    found = theory.trajectory(case)
    assert found.test is not None
    assert found.test == pytest.approx(np.full(3, found.test[0]), rel=1e-6)
    assert found.value[:, 0] == pytest.approx(np.full(3, found.value[0, 0]), rel=1e-6)
    unscaled = {"second_layer": still, "output": "unscaled"}
    small = problem(steps=[{**step, "exponent": 0.0}], init=unscaled)
    assert theory.risk(small, d=300).test == pytest.approx(
        theory.risk(small.replace({"init.output": "scaled"}), d=300).test, rel=1e-9
    )


def test_what_has_no_answer_leaves_no_trace_in_a_batch() -> None:
    """Without penalty there is none at n = N; the others are what they are alone, bit by bit."""
    case = problem(init={"second_layer": "constant"}, readout={"samples": 1.5, "penalty": 0.0})
    cases = [case.replace({"readout.samples": n}) for n in (0.5, 1.5, 3.0)]
    found = attempts(cases)
    assert isinstance(found[1], gs.NotCovered)
    for one, alone in zip(found[::2], cases[::2]):
        assert isinstance(one, Risk)
        assert one.test == theory.risk(alone).test
    steep = theory.crossing(case, level=0.4, bounds=(0.5, 4.0))
    assert len(steep.values) > 0
    assert np.all(np.isfinite(steep.values))


TWO = [
    {"samples": 1.5, "rate": 0.6, "exponent": 0.0},
    {"samples": 0.7, "rate": 0.9, "exponent": 0.0},
]
SPIKED = {"law": "spiked", "strength": 1.25, "alignment": 0.5}


@pytest.mark.parametrize("inputs", [None, SPIKED], ids=["isotropic", "spiked"])
def test_neurons_of_an_even_activation_lean_nowhere_after_any_step(inputs: Any) -> None:
    """The direction of leans that are rounding was normalised: norms of −10³⁴ came of it."""
    more = {} if inputs is None else {"inputs": inputs}
    case = problem(activation="centered(he2)", width=0.5, steps=TWO, **more)
    near = problem(activation="he2(x) + 1e-7*x", width=0.5, steps=TWO, **more)
    found, beside = theory.risk(case, d=300), theory.risk(near, d=300)
    assert (found.test, found.train) == pytest.approx((beside.test, beside.train), rel=1e-6)
    moves = theory.movement(case, d=300), theory.movement(near, d=300)
    for name in moves[0]._leaves:
        moved, close = (getattr(move, name) for move in moves)
        assert moved == pytest.approx(close, rel=1e-5, abs=1e-9)


def test_a_step_of_no_rate_moves_nothing_among_others() -> None:
    steps = [TWO[0], {**TWO[1], "rate": 0.0}, TWO[1]]
    moved, without = (theory.movement(problem(steps=s), d=300) for s in (steps, TWO))
    for name in moved._leaves:
        first, none, last = getattr(moved, name)
        assert none == 0.0
        assert (first, last) == pytest.approx(getattr(without, name), rel=1e-6)


def test_a_linear_part_that_is_exactly_none() -> None:
    """Its channel had no size: there was an answer where rounding left a little of it."""
    small = [{"samples": 0.113, "rate": 0.156, "exponent": 0.0, "decay": 0.176}]
    init = {"weights": "sphere", "second_layer": "constant"}
    case = problem(
        activation="centered(he2)",
        teacher="centered(sin(2*x))",
        width=6.36,
        steps=small,
        init=init,
        readout={"samples": 0.275, "penalty": 0.0},
    )
    tests = [
        theory.risk(case.replace({"noise_variance": noise}), d=1000).test
        for noise in (0.01, 0.01 * (1 + 1e-6), 0.01 * (1 + 2e-6))
    ]
    assert tests == pytest.approx([tests[0]] * 3, rel=1e-6)


def test_long_inputs_beside_a_mean_slope_that_is_rounding() -> None:
    """What they add to it was measured in units of it."""
    sizes = ((1.56, 0.0606), (0.174, 0.0104))
    case = problem(
        activation="centered(he2)",
        teacher="cube",
        width=0.513,
        steps=[
            {"samples": samples, "rate": rate, "exponent": 0.0, "loss": "logistic"}
            for samples, rate in sizes
        ],
        inputs={**SPIKED, "alignment": 0.529},
        readout={"samples": 0.449, "penalty": 0.00122},
    )
    noises = 0.1 * (1 + 1e-6 * np.arange(4))
    tests = [theory.risk(case.replace({"noise_variance": one}), d=300).test for one in noises]
    assert tests == pytest.approx([tests[0]] * 4, rel=1e-5)


def test_errors_of_few_given_neurons_take_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six cubic neurons: nodes far out, of no weight, kept a Krylov space growing for a minute."""
    case = problem(
        activation="he3",
        teacher="he4",
        width=0.112,
        steps=[],
        readout={"samples": 0.121, "penalty": 0.000251},
    )
    rounds = 0
    mixed = GivenFeatures.mixed

    def counted(self: GivenFeatures, weights: Any) -> Any:
        nonlocal rounds
        rounds += 1
        return mixed(self, weights)

    monkeypatch.setattr(GivenFeatures, "mixed", counted)
    random = np.random.default_rng(0)
    weights = random.standard_normal((50, case.at(50).neurons)) / math.sqrt(50)
    direction = np.linalg.qr(random.standard_normal((50, 1)))[0]
    found = theory.risk_of_weights(weights, direction, case)
    assert 0 < found.train < found.test
    assert rounds < 100


def test_a_resolution_spoilt_by_rounding_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolutions beside the spoilt one agree."""
    from giantsteps.theory.model import stacks

    large = problem(steps=[{"samples": 2.0, "rate": 2.0, "exponent": 0.5}])
    true = theory.risk(large).test
    calls: list[int] = []

    def spoilt(cells: Any, parts: Any) -> Any:
        found = stacks.solve(cells, parts)
        calls.append(len(cells))
        if len(calls) == 1:  # the first two resolutions: the second is spoilt
            readout = found.readouts[-1]
            assert readout is not None
            found.readouts[-1] = dataclasses.replace(readout, error=readout.error * 1e8)
        return found

    monkeypatch.setattr("giantsteps.theory.model.errors.solve", spoilt)
    assert theory.risk(large).test == pytest.approx(true, rel=1e-6)
    assert len(calls) > 1


def test_equations_of_too_many_channels_are_refused_at_once() -> None:
    problem = gs.Problem(
        activation=gs.centered("elu"), teacher=gs.centered("softplus"), width=1.88,
        noise_variance=0.1, readout=gs.Ridge(samples=0.851, penalty=0.00101),
        steps=[gs.Step(samples=2.32, rate=8.81, exponent=0.229, loss="huber"),
               gs.Step(samples=0.206, rate=0.365, exponent=0.139, loss="huber", decay=0.57),
               gs.Step(samples=0.114, rate=7.48, exponent=0.38, loss="huber")],
    )  # fmt: skip
    with pytest.raises(gs.NotConverged, match="after 0 iterations"):
        theory.degrees_of_freedom(problem, d=1000)
