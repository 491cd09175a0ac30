"""What a reused batch sees: the order of alignment, found independently from the field."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.functions import as_function, as_teacher
from giantsteps.theory.steps.several.field import two_step_field

from .two_step_model import fresh_field

BENT = gs.centered("tanh(x) + 0.5*tanh(x)**2")
SLANTED = "he2(x)/2 + he3(x)/12**0.5"
LAW = gs.Constant(1.5)


def problem(activation: gs.Function | str, teacher: Any, noise: float = 0.0) -> gs.Problem:
    return gs.Problem(
        activation=activation,
        teacher=teacher,
        noise_variance=noise,
        width=1.0,
        steps=[
            gs.Step(samples=4.0, rate=1.0),
            gs.Step(samples=4.0, rate=1.0, batch="previous"),
        ],
        init=gs.Init(second_layer=LAW),
    )


def pull(
    activation: gs.Function | str,
    teacher: Any,
    rate: float,
    reused: bool = True,
) -> float:
    """The largest component of the second step along the teacher, E[u g_A] A."""
    law, rates = (as_function(activation), as_teacher(teacher), 0.0, LAW), (rate, 1.0)
    field = two_step_field(*law, 4.0, rates) if reused else fresh_field(*law, (4.0, 4.0), rates)
    return np.abs(field.teacher).max()


CASES = [
    ("tanh", "sin", 0),
    (BENT, SLANTED, 1),
    (BENT, "he3", 2),
    ("tanh", "he3", 2),
    ("tanh", SLANTED, 2),
    (gs.centered("relu"), SLANTED, 1),
    (BENT, gs.MultiIndex("he2(x0)*x1/2 + he2(x1)/2", 2), 2),
    (BENT, gs.MultiIndex("he2(x0)*x1/2 + he2(x0)/2", 2), 1),
]


@pytest.mark.parametrize(("activation", "teacher", "order"), CASES)
def test_order_of_alignment_is_that_of_the_field(
    activation: gs.Function | str, teacher: Any, order: int
) -> None:
    assert theory.reuse_exponent(problem(activation, teacher)) == order
    small, smaller = (pull(activation, teacher, rate) for rate in (0.004, 0.002))
    assert abs(np.log2(small / smaller) - order) < 0.1


@pytest.mark.parametrize("teacher", ["he2", "abs(x) - (2/pi)**0.5"])
@pytest.mark.parametrize("activation", ["tanh", BENT, gs.centered("relu")])
def test_even_teachers_never_align(activation: gs.Function | str, teacher: Any) -> None:
    assert theory.reuse_exponent(problem(activation, teacher, noise=0.2)) is None
    assert pull(activation, teacher, 0.5) < 1e-10


def test_a_fresh_batch_sees_no_more_than_the_first() -> None:
    assert pull(BENT, SLANTED, 0.5, reused=False) < 1e-8
    assert pull(BENT, SLANTED, 0.5) > 0.05


def test_noise_does_not_change_the_order() -> None:
    assert theory.reuse_exponent(problem(BENT, SLANTED, noise=0.5)) == 1
    assert theory.reuse_exponent(problem("tanh", "he3", noise=0.5)) == 2
