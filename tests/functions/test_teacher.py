"""Teachers: rank, shapes, data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from giantsteps.errors import InvalidProblem
from giantsteps.functions import SingleIndex, Teacher, as_function, as_teacher, centered


def test_a_link_function_is_a_teacher_of_rank_one() -> None:
    teacher = as_teacher("sin")
    assert isinstance(teacher, Teacher)
    assert teacher == SingleIndex(as_function("sin")) == SingleIndex("sin")  # type: ignore[arg-type]
    assert hash(teacher) == hash(as_teacher("sin(x)"))
    assert teacher.rank == 1
    assert teacher.link == as_function("sin")
    u = np.linspace(-1, 1, 6).reshape(2, 3, 1)
    np.testing.assert_array_equal(teacher(u), np.sin(u[..., 0]))
    assert teacher(torch.ones(4, 1)).shape == (4,)


def test_projections_of_another_rank_are_refused() -> None:
    for shape in ((), (3,), (3, 2)):
        with pytest.raises(InvalidProblem, match="shape"):
            as_teacher("sin")(np.ones(shape))


@pytest.mark.parametrize("spec", ["he3", "sign(x)", {"name": "relu", "centered": True}])
def test_data_round_trip_of_teachers(spec: Any) -> None:
    teacher = as_teacher(spec)
    assert as_teacher(teacher.to_data()) == teacher
    assert as_teacher(teacher) is teacher


def test_functions_and_callables_are_links() -> None:
    relu, tanh = as_teacher(centered("relu")), as_teacher(np.tanh)
    assert isinstance(relu, SingleIndex)
    assert isinstance(tanh, SingleIndex)
    assert relu.link == centered("relu")
    assert tanh.link(0.3) == np.tanh(0.3)


def test_a_teacher_of_higher_rank_fits_the_protocol() -> None:
    class Product:
        rank = 2

        def __call__(self, u: Any) -> Any:
            return u[..., 0] * u[..., 1]

        def to_data(self) -> dict[str, Any]:
            return {"product": 2}

    teacher = Product()
    assert as_teacher(teacher) is teacher


@pytest.mark.parametrize("spec", [3, None, "nothing", {"link": "sin"}])
def test_bad_teachers_name_the_field(spec: Any) -> None:
    with pytest.raises(InvalidProblem, match="teacher"):
        as_teacher(spec)
