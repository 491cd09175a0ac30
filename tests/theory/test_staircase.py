"""Which spikes a step grows: levels, activations, laws of the second layer (theory §6)."""

from typing import Any

import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.theory.steps.staircase.degrees import NO_COEFFICIENT, NO_STEP, NO_VALUE

SIGNS = gs.Vocabulary([-1, 1], [0.5, 0.5])
EVERY_DEGREE = "0.3*(x**2 - 1) + x + 0.1*(x**3 - 3*x) + 0.02*(x**4 - 6*x**2 + 3)"


def problem(
    exponent: float,
    activation: gs.Function | str = "tanh",
    second_layer: gs.Vocabulary | str = "gaussian",
    teacher: Any = "sin",
    rate: float = 1.0,
) -> gs.Problem:
    return gs.Problem(
        activation=activation,
        teacher=teacher,
        width=1.0,
        steps=[gs.Step(samples=2, rate=rate, exponent=exponent)],
        init=gs.Init(second_layer=second_layer),
    )


def degrees(*args: Any, **kwargs: Any) -> tuple[int, ...]:
    return tuple(spike.degree for spike in theory.staircase(problem(*args, **kwargs)).spikes)


@pytest.mark.parametrize(
    ("exponent", "activation", "second_layer", "expected"),
    [
        (0.1, "tanh", "gaussian", (1,)),
        (0.3, "tanh", "gaussian", (1,)),
        (0.37, "tanh", "gaussian", (1, 3)),
        (0.45, "tanh", "gaussian", (1, 3, 5, 7, 9)),
        (0.1, EVERY_DEGREE, "gaussian", (1,)),
        (0.29, EVERY_DEGREE, "gaussian", (1, 2)),
        (0.37, EVERY_DEGREE, "gaussian", (1, 2, 3)),
        (0.39, EVERY_DEGREE, "gaussian", (1, 2, 3, 4)),
        (0.47, EVERY_DEGREE, "gaussian", (1, 2, 3, 4)),
        # a constant second layer has room for one
        (0.39, EVERY_DEGREE, "constant", (1,)),
        (0.37, "tanh", "constant", (1,)),
        # A = ±1: odd powers are one vector, even powers another
        (0.39, EVERY_DEGREE, SIGNS, (1, 2)),
        (0.45, "tanh", SIGNS, (1,)),
        (0.39, "x + 0.1*(x**4 - 6*x**2 + 3)", SIGNS, (1, 4)),
        # zero is a value that no power sees
        (0.39, EVERY_DEGREE, gs.Vocabulary([0, 2], [0.5, 0.5]), (1,)),
        (0.39, EVERY_DEGREE, gs.Vocabulary([-1, 0, 2], [0.2, 0.5, 0.3]), (1, 2)),
        (0.39, EVERY_DEGREE, gs.Vocabulary([1, 2, 3], [0.2, 0.5, 0.3]), (1, 2, 3)),
        (0.45, "tanh", gs.Vocabulary([-2, -1, 1, 2], [0.25] * 4), (1, 3)),
        # the mean of an activation is a spike that takes the constant vector
        (0.29, "relu", "gaussian", (0, 1, 2)),
        (0.39, "relu", "gaussian", (0, 1, 2, 4)),
        (0.29, "relu", "constant", (0,)),
        (0.29, "relu", SIGNS, (0, 1)),
        (0.29, "relu", gs.Vocabulary([0, 1], [0.5, 0.5]), (0, 1)),
        (0.29, gs.centered("relu"), SIGNS, (1, 2)),
        # no first degree, no direction
        (0.3, "x**2 - 1", "gaussian", ()),
        (0.3, EVERY_DEGREE, gs.Constant(0.0), ()),
    ],
)
def test_degrees(
    exponent: float,
    activation: gs.Function | str,
    second_layer: gs.Vocabulary | str,
    expected: tuple[int, ...],
) -> None:
    assert degrees(exponent, activation, second_layer) == expected


def test_a_step_that_does_not_move_grows_nothing() -> None:
    answer = theory.staircase(problem(0.3, rate=0.0))
    assert answer.spikes == ()
    assert set(answer.missing.values()) == {NO_STEP}


def test_what_is_missing_and_why() -> None:
    missing = theory.staircase(problem(0.37, activation="tanh", second_layer="constant")).missing
    assert missing == {2: NO_COEFFICIENT, 3: NO_VALUE}


@pytest.mark.parametrize("exponent", [0.05, 0.3, 0.37, 0.42])
def test_level_interval_and_sizes(exponent: float) -> None:
    answer = theory.staircase(problem(exponent, activation=EVERY_DEGREE))
    lower, upper = answer.interval
    assert lower < exponent < upper
    assert not answer.boundary
    assert answer.marginal is None
    sizes = [spike.exponent for spike in answer.spikes]
    assert sizes == sorted(sizes, reverse=True)
    assert min(sizes) > 0
    # the next power would be bounded: its size at the end of the interval is N^0
    assert 0.5 - (answer.level + 1) * (0.5 - upper) == pytest.approx(0, abs=1e-12)
    assert answer.above == answer.below


def test_a_boundary_with_its_spike() -> None:
    answer = theory.staircase(problem(0.25, activation=EVERY_DEGREE))
    assert (answer.level, answer.boundary, answer.interval) == (2, True, (0.25, 1 / 3))
    assert (answer.below, answer.above) == ((1,), (1, 2))
    assert answer.marginal is not None
    assert answer.marginal.degree == 2
    assert answer.marginal.exponent == 0
    assert "bounded, diverges above" in str(answer)


def test_a_boundary_without_its_spike() -> None:
    answer = theory.staircase(problem(0.25, activation="tanh"))
    assert answer.boundary
    assert answer.marginal is None
    assert answer.below == answer.above == (1,)


def test_exponent_zero_is_the_threshold_of_degree_one() -> None:
    answer = theory.staircase(problem(0.0))
    assert answer.marginal is not None
    assert (answer.spikes, answer.marginal.degree) == ((), 1)


@pytest.mark.parametrize(
    ("exponent", "activation", "teacher", "expected"),
    [
        (0.1, EVERY_DEGREE, "x + x**2 - 1", (1,)),
        (0.3, EVERY_DEGREE, "x + x**2 - 1", (1, 2)),
        (0.37, "tanh", "x + x**2 - 1", (1,)),
        (0.37, "tanh", "sin", (1, 3)),
        (0.37, EVERY_DEGREE, "sin", (1, 3)),
        (0.37, EVERY_DEGREE, "x**2 - 1", ()),  # the step does not see an even teacher
        # z⁴ alone has a quadratic part
        (0.39, "x + 0.1*(x**4 - 6*x**2 + 3)", "x + x**2 - 1", (1, 2)),
    ],
)
def test_learnable_degrees(
    exponent: float, activation: gs.Function | str, teacher: Any, expected: tuple[int, ...]
) -> None:
    answer = theory.staircase(problem(exponent, activation=activation, teacher=teacher))
    assert answer.learnable == expected


def test_lengthening() -> None:
    # κ₀ = E y² Var σ'/(α₀ μ₁² ‖b‖²), ‖b‖² = μ₁*² + E y²/α₀; relu: μ₁ = 1/2, Var σ' = 1/4.
    answer = theory.staircase(problem(0.3, activation="relu", teacher="x"))
    assert answer.lengthening == pytest.approx((1 / 2) / (1 + 1 / 2), rel=1e-12)
    assert answer.alignment == pytest.approx(1 / (1 + 1 / 2), rel=1e-12)
    assert answer.citation.startswith("@")


@pytest.mark.parametrize(
    "bad",
    [
        problem(0.3).replace({"steps": ()}),
        problem(0.5),
        problem(0.3).replace({"steps": [gs.Step(samples=1, rate=1)] * 2}),
        problem(0.4999),
    ],
)
def test_off_the_staircase(bad: gs.Problem) -> None:
    with pytest.raises(gs.NotCovered):
        theory.staircase(bad)


def test_powers_that_mix_are_refused() -> None:
    law = gs.Vocabulary([-1, 0.5, 1, 2], [0.2, 0.3, 0.3, 0.2])
    assert degrees(0.37, "relu", law) == (0, 1, 2)
    with pytest.raises(gs.NotCovered, match="mix"):
        theory.staircase(problem(0.39, "relu", law))
    assert degrees(0.39, gs.centered("relu"), law) == (1, 2, 4)
