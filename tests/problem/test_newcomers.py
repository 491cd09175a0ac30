"""What a newcomer writes in Python: an answer, or an error that says what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    steps=[gs.Step(samples=2.0, rate=3.0)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
)
GRID = gs.Grid(PROBLEM, {"width": [1.0, 2.0]})

MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "seeds as seed": (
        lambda: simulation.risk(PROBLEM, d=20, seed=[1, 2]),  # type: ignore[arg-type]
        gs.InvalidProblem,
        "seed = [1, 2]: must be a non-negative integer",
    ),
    "a matrix as width": (
        lambda: PROBLEM.replace(width=np.eye(2)),
        gs.InvalidProblem,
        "width = array([[1., 0.], [0., 1.]]): must be",
    ),
    "a short name": (
        lambda: theory.optimize(PROBLEM, over=["samples"]),
        gs.InvalidProblem,
        'did you mean "steps.0.samples" or "readout.samples"?',
    ),
    "lr": (
        lambda: PROBLEM.replace({"steps.0.lr": 2.0}),
        gs.InvalidProblem,
        'did you mean "steps.0.rate"?',
    ),
    "d as an axis": (lambda: gs.Grid(PROBLEM, {"d": [100]}), gs.InvalidProblem, "pass d"),
    "a cell too far": (lambda: GRID[5], IndexError, "on the axis width: the axis has 2 values"),
    "a quantity as cell": (lambda: theory.risk(PROBLEM)["test"], IndexError, "answer.test"),
    "a bound": (lambda: theory.bounds(PROBLEM)["lin"], KeyError, "there are linear"),
    "a question of the package": (
        lambda: gs.risk(PROBLEM),
        AttributeError,
        "there is giantsteps.theory.risk and giantsteps.simulation.risk",
    ),
    "an axis to draw along": (
        lambda: theory.risk(GRID).plot(x="rate"),
        gs.InvalidProblem,
        'must be one of "width"',
    ),
    "a file of data": (
        lambda: gs.Covariance.from_data("x.csv"),
        gs.InvalidProblem,
        "inputs = 'x.csv': must be an array of numbers",
    ),
    "two arguments": (
        lambda: gs.MultiIndex(pow, rank=2),  # type: ignore[arg-type]
        gs.InvalidProblem,
        "a function of arrays u of shape (…, 2), such as u[..., 0] * u[..., 1]",
    ),
    "rows of coordinates": (
        lambda: gs.MultiIndex(lambda x: x[0] * x[1], rank=2),
        gs.InvalidProblem,
        "a function of arrays u of shape (…, 2)",
    ),
    "a name as function": (
        lambda: gs.Function("tanh"),  # type: ignore[arg-type]
        gs.InvalidProblem,
        "given as it is, without Function",
    ),
    "a number as store": (
        lambda: gs.compare(PROBLEM, 20, store=3),  # type: ignore[arg-type]
        gs.InvalidProblem,
        "store = 3: must be the path of a file",
    ),
    "a word as progress": (
        lambda: gs.compare(PROBLEM, 20, seeds=2, progress="yes"),  # type: ignore[arg-type]
        gs.InvalidProblem,
        "progress = 'yes': must be true or false, or a function",
    ),
    "one number of penalties": (
        lambda: simulation.run(PROBLEM, 20, 0).risk(1),  # type: ignore[arg-type]
        gs.InvalidProblem,
        "readout.penalty = 1: must be varied over a sequence of values",
    ),
    "a question misspelled": (
        lambda: simulation.batch("rsik", PROBLEM, 20, [0]),
        gs.InvalidProblem,
        'did you mean "risk"?',
    ),
    "a folder as store": (lambda: gs.Sweep.from_store("."), gs.StoreError, "it is a folder"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake: str) -> None:
    if "draw" in mistake:
        pytest.importorskip("matplotlib")
    call, kind, needle = MISTAKES[mistake]
    with pytest.raises(kind) as caught:
        call()
    assert needle in str(caught.value)
    assert "\n" not in str(caught.value)


def test_misspelled_names_are_known_to_the_interpreter() -> None:
    with pytest.raises(AttributeError) as caught:
        gs.Problm  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("Problm", gs)  # prints "Did you mean"


def test_functions_of_numpy_have_names() -> None:
    assert PROBLEM.replace(activation=np.tanh) == PROBLEM
    assert PROBLEM.replace(activation=np.tanh).to_toml() == PROBLEM.to_toml()
    assert PROBLEM.replace(activation=np.arcsinh).to_data()["activation"] == "arcsinh"


def test_numbers_in_arrays_without_an_axis() -> None:
    assert PROBLEM.replace(width=np.array(1.5)) == PROBLEM
    assert theory.risk(PROBLEM, d=np.array(50)).d == 50  # type: ignore[arg-type]
    torch = pytest.importorskip("torch")
    assert PROBLEM.replace(width=torch.tensor(1.5)) == PROBLEM


def test_a_bad_store_is_refused_before_theory_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.sqlite").write_text("hello")
    asked: list[Any] = []
    ask: Any = asked.append
    for store in (tmp_path / "text.sqlite", tmp_path / "no" / "new.sqlite"):
        with pytest.raises(gs.StoreError):
            gs.compare(PROBLEM, 20, theory=ask, store=store)
    assert not asked


def test_axes_of_pandas_are_arrays() -> None:
    pandas = pytest.importorskip("pandas")
    assert gs.Grid(PROBLEM, {"width": pandas.Series([1.0, 2.0], index=[5, 6])}) == GRID
