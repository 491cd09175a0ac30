"""One model, one answer: ``theory.X(problem, d)`` is ``theory.equivalent(problem, d).X()``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.answers import Answer, Spectrum
from giantsteps.laws import Law

CONSTANT = gs.Init(second_layer="constant")
TWO_VARIANCES = gs.Covariance(eigenvalues=(0.3, 1.7), weights=(0.5, 0.5))


def problem(
    *rates: float, activation: str = "tanh", exponent: float = 0.0, **fields: Any
) -> gs.Problem:
    """A problem with so many fresh steps."""
    return gs.Problem(
        activation=activation,
        teacher="sin",
        noise_variance=0.05,
        width=1.5,
        steps=[gs.Step(samples=4, rate=rate, exponent=exponent) for rate in rates],
        readout=gs.Ridge(samples=2, penalty=0.1),
        **fields,
    )


def again(rate: float, count: int) -> gs.Problem:
    """Small steps on one batch."""
    step: dict[str, Any] = {"samples": 4, "rate": rate}
    steps = [gs.Step(**step), *[gs.Step(**step, batch="previous")] * (count - 1)]
    return problem().replace({"steps": steps})


PROBLEMS = {
    "no step": problem(),
    "no step, a mean": problem(activation="relu"),
    "no step, no mean, a second degree": problem(activation="0.5*x + x**2 - 1"),
    "no step, two variances": problem(inputs=TWO_VARIANCES),
    "small": problem(5.0),
    "small, a mean": problem(3.0, activation="relu", init=CONSTANT),
    "small, even": problem(3.0, activation="x**2 - 1"),
    "small, two variances": problem(3.0, inputs=TWO_VARIANCES),
    "small, unscaled": problem(3.0, init=gs.Init(output="unscaled")),
    "between": problem(1.0, exponent=0.25),
    "large": problem(1.0, exponent=0.5, init=CONSTANT),
    "two small": problem(4.0, 4.0),
    "three small on one batch": again(2.0, 3),
    "two large": problem(0.7, 0.7, exponent=0.5, init=CONSTANT),
}
QUESTIONS = ("risk", "weights", "kernel", "features", "learned_function", "degrees_of_freedom")


def told(answer: Answer) -> dict[str, Any]:
    """Numbers, edges, and what the answer says of itself."""
    numbers = {name: np.asarray(values) for name, (_, values) in answer._variables().items()}
    for name, spectrum in (("", answer), ("initial.", getattr(answer, "initial", None))):
        if isinstance(spectrum, Spectrum):
            assert isinstance(spectrum.bulk, Law)
            numbers[f"{name}edge"] = np.asarray(spectrum.bulk.edge)
            if name:
                numbers |= {
                    f"{name}{k}": np.asarray(v) for k, v in told(spectrum)["numbers"].items()
                }
    names = ("problem", "d", "source", "exact", "violated")
    return {"numbers": numbers, **{name: getattr(answer, name) for name in names}}


@pytest.mark.parametrize("d", [None, 200])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_question_has_one_answer(name: str, d: int | None) -> None:
    asked = PROBLEMS[name]
    try:
        model = theory.equivalent(asked, d)
    except gs.NotCovered:
        assert d is None
        return
    for question in QUESTIONS:
        if d is None and question in ("kernel", "features"):
            continue  # limits of their own, without a model
        # Without a step there is no spike to look along.
        along = {"along": "teacher"} if question == "learned_function" and not asked.steps else {}
        mine = told(getattr(theory, question)(asked, d, **along))
        other = told(getattr(model, question)(**along))
        numbers, expected = mine.pop("numbers"), other.pop("numbers")
        assert mine == other, question
        assert numbers.keys() == expected.keys(), question
        for key, value in numbers.items():
            np.testing.assert_allclose(value, expected[key], rtol=1e-11, atol=1e-13, err_msg=key)


@pytest.mark.parametrize("d", [None, 200])
def test_what_has_no_spike_has_none_to_look_along(d: int | None) -> None:
    with pytest.raises(gs.InvalidProblem, match="without a step there is no spike"):
        theory.learned_function(problem(), d)
    with pytest.raises(gs.InvalidProblem, match="without a step there is no spike"):
        theory.equivalent(problem(), d).learned_function()


def test_limits_before_the_steps_are_those_of_every_size() -> None:
    """Random features see neither the second layer nor the mean, whatever the inputs."""
    for asked in (problem(activation="relu"), problem(activation="relu", inputs=TWO_VARIANCES)):
        for question in ("risk", "degrees_of_freedom"):
            ask = getattr(theory, question)
            limit, sized = told(ask(asked))["numbers"], told(ask(asked, 1000))["numbers"]
            for key, value in limit.items():
                np.testing.assert_allclose(sized[key], value, rtol=1e-9, err_msg=key)


def test_one_problem_at_a_time_is_said_of_a_grid() -> None:
    grid = gs.Grid(problem(1.0, exponent=0.3), {"noise_variance": [0.05, 0.2]})
    weights, teacher = np.eye(60)[:40], np.eye(40)[0]
    asks: list[Callable[[Any], Any]] = [
        theory.equivalent,
        theory.staircase,
        theory.reuse_exponent,
        lambda cells: theory.risk_of_weights(weights, teacher, cells),
    ]
    for ask in asks:
        with pytest.raises(gs.InvalidProblem, match=r"a (single )?Problem"):
            ask(grid)
