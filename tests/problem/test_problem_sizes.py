"""Ratios and integers: at, realised, from_sizes, learning rates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import giantsteps as gs
from giantsteps import InvalidProblem
from giantsteps.problem import Sizes

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    steps=[gs.Step(samples=2.0, rate=3.0, exponent=0.5), gs.Step(samples=0.7, rate=1.0)],
    readout=gs.Ridge(samples=0.333, penalty=0.1),
)


def test_sizes_are_rounded() -> None:
    assert PROBLEM.at(100) == Sizes(d=100, neurons=150, step_samples=(200, 70), samples=33)
    assert PROBLEM.untrained().replace({"readout": None}).at(10) == Sizes(
        d=10, neurons=15, step_samples=(), samples=None
    )


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("width", "width"),
        ("steps.1.samples", "steps.1.samples"),
        ("readout.samples", "readout.samples"),
    ],
)
def test_a_size_below_one_is_refused(path: str, field: str) -> None:
    small = PROBLEM.replace({path: 0.004})
    assert small.at(1000)
    with pytest.raises(InvalidProblem, match="d = 100") as caught:
        small.at(100)
    assert caught.value.field == field


@pytest.mark.parametrize("d", [0, -3, 2.0, True, "100", None, float("nan")])
def test_the_dimension_is_a_positive_integer(d: object) -> None:
    with pytest.raises(InvalidProblem) as caught:
        PROBLEM.at(d)  # type: ignore[arg-type]
    assert caught.value.field == "d"


@given(d=st.integers(3, 5000), width=st.floats(0.2, 20), samples=st.floats(0.2, 50))
def test_realised_ratios_give_the_same_integers(d: int, width: float, samples: float) -> None:
    problem = PROBLEM.replace({"width": width, "steps.1.samples": samples})
    sizes, realised = problem.at(d), problem.realised(d)
    assert realised.at(d) == sizes
    assert realised.width == sizes.neurons / d
    assert realised.steps[1].samples == sizes.step_samples[1] / d
    assert realised.readout is not None
    assert realised.readout.samples == sizes.samples / d  # type: ignore[operator]
    assert realised.realised(d) == realised


@given(
    d=st.integers(1, 5000),
    neurons=st.integers(1, 10**5),
    step=st.integers(1, 10**6),
    samples=st.integers(1, 10**6),
)
def test_from_sizes_is_the_inverse_of_at(d: int, neurons: int, step: int, samples: int) -> None:
    problem = gs.Problem.from_sizes(
        d=d,
        neurons=neurons,
        step_samples=[step, step],
        samples=samples,
        activation="tanh",
        teacher="sin",
        noise_variance=0.1,
        steps=[{"rate": 1.0, "exponent": 0.5}, gs.Step(samples=9, rate=2.0, batch="fresh")],
        readout={"penalty": 0.1},
    )
    assert problem.at(d) == Sizes(d=d, neurons=neurons, step_samples=(step, step), samples=samples)
    assert problem.steps[1].rate == 2.0
    assert problem.noise_variance == 0.1


SIZES = {"d": 10, "neurons": 10, "activation": "tanh", "teacher": "sin"}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"d": 0}, "d"),
        ({"neurons": 1.5}, "neurons"),
        ({"step_samples": [1, 2], "steps": [{"rate": 1}]}, "step_samples"),
        ({"step_samples": 5, "steps": [{"rate": 1}]}, "step_samples"),
        ({"step_samples": [0], "steps": [{"rate": 1}]}, "step_samples.0"),
        ({"step_samples": [1], "steps": [{"rate": 1, "samples": 1}]}, "steps.0"),
        ({"step_samples": [1], "steps": [{"rate": -1}]}, "steps.0.rate"),
        ({"samples": 10}, "samples"),
        ({"readout": {"penalty": 1}}, "samples"),
        ({"samples": 10, "readout": {"penalty": -1}}, "readout.penalty"),
    ],
)
def test_from_sizes_refuses(fields: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidProblem) as caught:
        gs.Problem.from_sizes(**{**SIZES, **fields})  # type: ignore[arg-type]
    assert caught.value.field == field


def test_the_learning_rate_grows_with_the_width() -> None:
    assert PROBLEM.steps[0].learning_rate(400) == 60.0
    assert PROBLEM.steps[1].learning_rate(400) == 1.0


def test_untrained_takes_no_steps() -> None:
    assert PROBLEM.untrained().steps == ()
    assert PROBLEM.untrained().replace({"steps": PROBLEM.steps}) == PROBLEM
