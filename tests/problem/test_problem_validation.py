"""Every invalid field is refused with its path, its value and what is allowed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import InvalidProblem

NO_NUMBER = [
    math.nan,
    math.inf,
    -math.inf,
    True,
    np.True_,
    "1",
    None,
    [1.0],
    np.array([1.0]),
    1j,
    10**400,
]
NOT_POSITIVE = [0, -1.0, 0.0, -0.0, np.float64(-2), *NO_NUMBER]
NEGATIVE = [-1e-300, -1, *NO_NUMBER]

STEP: dict[str, Any] = {"samples": 2.0, "rate": 1.0}
BASE: dict[str, Any] = {
    "activation": "tanh",
    "teacher": "sin",
    "width": 1.5,
    "steps": [STEP, {**STEP, "batch": "previous"}],
    "readout": {"samples": 2.0, "penalty": 0.1},
}

INVALID = [
    *[("width", value) for value in NOT_POSITIVE],
    *[("noise_variance", value) for value in NEGATIVE],
    *[("steps.0.samples", value) for value in NOT_POSITIVE],
    *[("steps.0.rate", value) for value in NEGATIVE],
    *[("steps.0.exponent", value) for value in [0.5000001, 1, 2, *NEGATIVE]],
    *[("steps.0.batch", value) for value in ["Fresh", "new", "", None, 1, True, ["fresh"]]],
    *[("readout.samples", value) for value in NOT_POSITIVE],
    *[("readout.penalty", value) for value in NEGATIVE],
    *[("init.weights", value) for value in ["normal", "", None, 1, "constant"]],
    *[("init.second_layer", value) for value in ["normal", "", None, 1, 1.0, ["gaussian"]]],
    ("activation", "tanhh"),
    ("activation", ""),
    ("activation", 1.0),
    ("activation", None),
    ("activation", "exp(x**2/4)"),
    ("activation", "2"),
    ("activation", "log(x)"),
    ("teacher", "tanhh"),
    ("teacher", 3),
    ("teacher", None),
    ("teacher", "exp(x**2/4)"),
    ("teacher", "0*x"),
    ("steps", None),
    ("steps", "fresh"),
    ("steps", 1),
    ("steps.0", None),
    ("steps.0", 1.0),
    ("steps.0", "fresh"),
    ("readout", 1.0),
    ("readout", "ridge"),
    ("init", None),
    ("init", "sphere"),
]


@pytest.mark.parametrize(("path", "value"), INVALID)
def test_replace_names_field_value_and_what_is_allowed(path: str, value: object) -> None:
    problem = gs.Problem(**BASE)
    with pytest.raises(InvalidProblem) as caught:
        problem.replace({path: value})
    assert caught.value.field == path
    assert path in str(caught.value)
    assert "must be" in str(caught.value)
    if path not in ("activation", "teacher"):  # there the value may be shown as a Function
        assert caught.value.value is value
    assert caught.value.allowed


@pytest.mark.parametrize(("path", "value"), INVALID)
def test_data_is_refused_like_replace(path: str, value: object) -> None:
    data = gs.Problem(**BASE).to_data()
    target: object = data
    *parents, last = path.split(".")
    for name in parents:
        target = target[int(name) if name.isdigit() else name]  # type: ignore[index]
    target[int(last) if last.isdigit() else last] = value  # type: ignore[index]
    with pytest.raises(InvalidProblem) as caught:
        gs.Problem.from_data(data)
    assert caught.value.field == path


@pytest.mark.parametrize(
    ("part", "fields"),
    [
        (gs.Step, {"samples": -1, "rate": 1}),
        (gs.Step, {"samples": 1, "rate": 1, "exponent": 0.6}),
        (gs.Ridge, {"samples": 1, "penalty": math.nan}),
        (gs.Init, {"weights": "uniform"}),
    ],
)
def test_parts_validate_themselves(part: type, fields: dict[str, object]) -> None:
    with pytest.raises(InvalidProblem) as caught:
        part(**fields)
    assert caught.value.field in fields


def test_the_step_object_is_no_sequence_of_steps() -> None:
    with pytest.raises(InvalidProblem, match=r"steps.*list of steps"):
        gs.Problem(activation="tanh", teacher="sin", width=1, steps=gs.Step(**STEP))  # type: ignore[arg-type]


def test_the_first_step_has_no_previous_batch() -> None:
    with pytest.raises(InvalidProblem, match=r"steps\.0\.batch") as caught:
        gs.Problem(**{**BASE, "steps": [{**STEP, "batch": "previous"}]})
    assert caught.value.value == "previous"


def test_a_reused_batch_has_the_samples_of_the_previous_step() -> None:
    steps = [gs.Step(**STEP), gs.Step(samples=3.0, rate=1.0, batch="previous")]
    with pytest.raises(InvalidProblem, match=r"steps\.1\.samples = 3\.0: must be 2\.0"):
        gs.Problem(**{**BASE, "steps": steps})


def test_a_third_step_follows_the_second() -> None:
    again = {**STEP, "batch": "previous"}
    assert len(gs.Problem(**{**BASE, "steps": [STEP, again, again]}).steps) == 3
    with pytest.raises(InvalidProblem, match=r"steps\.2\.samples"):
        gs.Problem(**{**BASE, "steps": [STEP, {**STEP, "samples": 5}, again]})


@pytest.mark.parametrize("activation", ["sign", "sign(sin(3*x))"])
def test_a_jump_is_refused_only_where_steps_are_taken(activation: str) -> None:
    with pytest.raises(InvalidProblem, match=r"activation.*continuous when steps are taken"):
        gs.Problem(**{**BASE, "activation": activation})
    assert gs.Problem(**{**BASE, "activation": activation, "steps": []}).steps == ()
    assert gs.Problem(**{**BASE, "teacher": activation}).steps


def test_the_slope_has_a_variance_where_steps_are_taken() -> None:
    with pytest.raises(InvalidProblem, match=r"activation.*square-integrable derivative"):
        gs.Problem(**{**BASE, "activation": "sqrt(abs(x))"})
    assert gs.Problem(**{**BASE, "activation": "sqrt(abs(x))", "steps": []})
    for activation in ("identity", "relu", "x*log(abs(x))", "exp(x**2/5)", np.arctan):
        assert gs.Problem(**{**BASE, "activation": activation})


def test_a_teacher_with_a_mean_is_no_error_of_the_problem() -> None:
    assert gs.Problem(**{**BASE, "teacher": "relu"}) != gs.Problem(**BASE)


@pytest.mark.parametrize(
    ("data", "field", "hint"),
    [
        ({"widht": 1.0}, "widht", "width"),
        ({"steps": [{**STEP, "rates": 1.0}]}, "steps.0.rates", "rate"),
        ({"readout": {"samples": 1, "penalty": 1, "penaltys": 2}}, "readout.penaltys", "penalty"),
        ({"init": {"weigths": "sphere"}}, "init.weigths", "weights"),
        ({"init": {"second_layer": {"law": "constnat"}}}, "init.second_layer.law", "constant"),
        (
            {"init": {"second_layer": {"law": "constant", "valeu": 1}}},
            "init.second_layer.valeu",
            "value",
        ),
    ],
)
def test_unknown_keys_are_refused_with_a_suggestion(
    data: dict[str, object], field: str, hint: str
) -> None:
    with pytest.raises(InvalidProblem, match=f'did you mean "{hint}"') as caught:
        gs.Problem.from_data({**BASE, **data})
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"activation": "tanh", "teacher": "sin"}, "width"),
        ({**BASE, "steps": [{"samples": 1.0}]}, "steps.0.rate"),
        ({**BASE, "readout": {"samples": 1.0}}, "readout.penalty"),
        ({**BASE, "init": {"second_layer": {}}}, "init.second_layer.law"),
        ({**BASE, "init": {"second_layer": "vocabulary"}}, "init.second_layer.values"),
        ([], "Problem"),
        ("tanh", "Problem"),
    ],
)
def test_missing_keys_are_named(data: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidProblem) as caught:
        gs.Problem.from_data(data)
    assert caught.value.field == field


@pytest.mark.parametrize("value", [2, 2.0, np.int64(2), np.float32(2), np.float64(2), Fraction(2)])
def test_every_kind_of_number_is_one_float(value: float) -> None:
    problem = gs.Problem(**{**BASE, "width": value})
    assert type(problem.width) is float
    assert problem == gs.Problem(**{**BASE, "width": 2.0})
    assert hash(problem) == hash(gs.Problem(**{**BASE, "width": 2.0}))
    assert problem.content_hash == gs.Problem(**{**BASE, "width": 2.0}).content_hash


def test_rate_and_penalty_may_be_zero_whatever_its_sign() -> None:
    changes = {"steps.0.rate": -0.0, "readout.penalty": -0.0, "noise_variance": -0.0}
    problem = gs.Problem(**BASE).replace(changes)
    zero = gs.Problem(**BASE).replace(dict.fromkeys(changes, 0))
    assert problem == zero
    assert problem.content_hash == zero.content_hash


def test_problems_cannot_be_changed() -> None:
    problem = gs.Problem(**BASE)
    with pytest.raises(AttributeError):
        problem.width = 2.0  # type: ignore[misc]


def test_a_question_that_needs_a_readout_says_so() -> None:
    problem = gs.Problem(**{**BASE, "readout": None})
    with pytest.raises(InvalidProblem, match="must be given for this question: Ridge"):
        problem.require_readout()
    assert gs.Problem(**BASE).require_readout() == gs.Ridge(samples=2, penalty=0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gs.Problem(activaton="tanh", teacher="sin", width=1), 'did you mean "activation"'),  # type: ignore[call-arg]
        (lambda: gs.Problem("tanh", "sin", 1.0), "given by name: activation=..., teacher=..."),  # type: ignore[call-arg]
        (lambda: gs.Step(samples=2, lr=0.1), 'did you mean "rate"'),  # type: ignore[call-arg]
        (lambda: gs.Step(2, 3), "arguments of Step = (2, 3)"),  # type: ignore[call-arg]
        (lambda: gs.Ridge(samples=2, alpha=0.1), 'did you mean "penalty"'),  # type: ignore[call-arg]
        (lambda: gs.PowerLaw(exponant=1.0), 'did you mean "exponent"'),  # type: ignore[call-arg]
    ],
)
def test_names_that_are_no_fields(make: Callable[[], object], message: str) -> None:
    with pytest.raises(gs.errors.InvalidProblem, match=re.escape(message)):
        make()
