"""Teachers of several directions: values, equality, files, refusals."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose

import giantsteps as gs
from giantsteps.functions import as_teacher

U = np.random.default_rng(0).standard_normal((7, 3, 2))


@pytest.mark.parametrize("namespace", ["numpy", "torch", "array_api_strict"])
def test_values_in_every_namespace(namespace: str) -> None:
    teacher = gs.MultiIndex("tanh(x0) + he2(x1)*max(x0, 0) - 2", 2)
    expected = np.tanh(U[..., 0]) + (U[..., 1] ** 2 - 1) * np.maximum(U[..., 0], 0) - 2
    if namespace == "torch":
        torch = pytest.importorskip("torch")
        found = teacher(torch.asarray(U)).numpy()
    elif namespace == "array_api_strict":
        found = np.asarray(teacher(array_api_strict.asarray(U)))
    else:
        found = teacher(U)
    assert_allclose(found, expected, rtol=1e-14, atol=1e-14)


def test_equality_is_that_of_expressions() -> None:
    one, same = gs.MultiIndex("x0*x1+tanh( x0 )", 2), gs.MultiIndex("x0*x1 + tanh(x0)", 2)
    assert one == same
    assert hash(one) == hash(same)
    assert one != gs.MultiIndex("x0*x1 + tanh(x0)", 3)
    assert one != gs.MultiIndex("x0*x1 + tanh(x0)", 2, centered=True)
    product = lambda u: u[..., 0] * u[..., 1]  # noqa: E731
    assert gs.MultiIndex(product, 2) == gs.MultiIndex(product, 2)
    assert_allclose(gs.MultiIndex(product, 2)(U), U[..., 0] * U[..., 1])


def test_centred_teachers_have_mean_zero() -> None:
    teacher = gs.MultiIndex("relu(x0) + he2(x1) + x1**2", 2, centered=True)
    plain = gs.MultiIndex("relu(x0) + he2(x1) + x1**2", 2)
    mean = (plain(U) - teacher(U)).ravel()
    assert_allclose(mean, 1 / np.sqrt(2 * np.pi) + 1, rtol=1e-12)


def test_files() -> None:
    teacher = gs.MultiIndex("sin(x0) + 0.5*x0*x1", 2, centered=True)
    problem = gs.Problem(activation="tanh", teacher=teacher, width=1.0)
    assert gs.Problem.from_toml(problem.to_toml()) == problem
    assert gs.Problem.from_json(problem.to_json()) == problem
    assert problem.teacher.to_data() == {
        "expression": "sin(x0) + 0.5*x0*x1",
        "rank": 2,
        "centered": True,
    }
    assert as_teacher({"expression": "x0 + x1", "rank": 2}) == gs.MultiIndex("x0 + x1", 2)
    with pytest.raises(gs.InvalidProblem, match="to be saved"):
        gs.MultiIndex(lambda u: u[..., 0], 2).to_data()


@pytest.mark.parametrize(
    ("arguments", "needle"),
    [
        (("tanh(x2)", 2), "so x2 needs a larger rank"),
        (("x0 +", 2), "syntax error"),
        (("x0", 1), "from 2 to 4"),
        (("x0", 2.0), "from 2 to 4"),
        (("3", 2), "not constant"),
        (("log(x0)", 2), "finite wherever"),
        (("centered(relu(x0))", 2), "centered=True"),
        ((7, 2), "or a callable"),
        (("x0 + x1", 2, 1), "true or false"),
    ],
)
def test_refusals(arguments: tuple[Any, ...], needle: str) -> None:
    with pytest.raises(gs.InvalidProblem) as error:
        gs.MultiIndex(*arguments)
    assert needle in str(error.value)


def test_refused_data_and_shapes() -> None:
    with pytest.raises(gs.InvalidProblem, match="expression"):
        as_teacher({"rank": 2, "name": "tanh"})
    with pytest.raises(gs.InvalidProblem, match="shape"):
        gs.MultiIndex("x0 + x1", 2)(np.zeros((4, 3)))
