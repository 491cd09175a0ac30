"""Grids: order, cells, validation up front, equality and hashes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import giantsteps as gs
from giantsteps import InvalidProblem

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    steps=[gs.Step(samples=2.0, rate=3.0), gs.Step(samples=2.0, rate=1.0, batch="previous")],
    readout=gs.Ridge(samples=3.0, penalty=0.1),
)
AXES: dict[str, Any] = {
    "readout.samples": [0.5, 1, 2],
    "activation": ["tanh", "erf"],
    "steps.1.rate": (0, 7),
}
GRID = gs.Grid(PROBLEM, AXES)


def test_dimensions_are_in_the_order_of_the_mapping() -> None:
    assert GRID.dims == ("readout.samples", "activation", "steps.1.rate")
    assert GRID.shape == (3, 2, 2)
    assert GRID.size == len(GRID) == 12
    assert GRID.ndim == 3


def test_cells_are_the_problem_with_the_values_of_the_cell() -> None:
    cells = GRID.problems()
    assert cells.shape == GRID.shape
    for (i, j, k), cell in np.ndenumerate(cells):
        values = {path: AXES[path][n] for path, n in zip(AXES, (i, j, k), strict=True)}
        assert cell == PROBLEM.replace(values)
        assert GRID[i, j, k] == cell
    assert list(GRID) == list(cells.flat)
    assert GRID.problems() is cells
    with pytest.raises(ValueError, match="read-only"):
        cells[0, 0, 0] = None


def test_coordinates_are_numbers_or_texts() -> None:
    coords = GRID.coords
    assert coords["readout.samples"].tolist() == [0.5, 1.0, 2.0]
    assert coords["readout.samples"].dtype == np.float64
    assert coords["activation"].tolist() == ["tanh", "erf"]
    assert coords["activation"].dtype.kind == "U"
    other = gs.Grid(
        PROBLEM,
        {
            "init.second_layer": [
                "gaussian",
                gs.Constant(),
                gs.Constant(2),
                gs.Vocabulary([1], [1]),
            ],
            "teacher": ["sin", "2*x", np.arctan],
            "steps.1.batch": ["fresh", "previous"],
            "readout": [None, gs.Ridge(samples=1, penalty=1)],
        },
    )
    assert other.coords["init.second_layer"].tolist()[:3] == [
        "gaussian",
        "constant",
        "Constant(value=2.0)",
    ]
    assert other.coords["teacher"].tolist()[:2] == ["sin", "2*x"]
    assert other.coords["steps.1.batch"].tolist() == ["fresh", "previous"]
    assert other.coords["readout"].tolist()[0] == "None"


def test_indexing_takes_parts() -> None:
    row = GRID[1]
    assert isinstance(row, gs.Grid)
    assert row.dims == ("activation", "steps.1.rate")
    assert row[1, 0] == GRID[1, 1, 0]
    part = GRID[::-1, 0, -1]
    assert isinstance(part, gs.Grid)
    assert [p.readout.samples for p in part] == [2.0, 1.0, 0.5]  # type: ignore[union-attr]
    assert part[0] == GRID[2, 0, 1]
    assert GRID[()] == GRID
    assert isinstance(GRID[np.int64(0), 0, 0], gs.Problem)
    with pytest.raises(IndexError):
        GRID[3, 0, 0]
    with pytest.raises(IndexError):
        GRID[0, 0, 0, 0]
    with pytest.raises(TypeError):
        GRID["width"]


def test_a_grid_without_axes_holds_one_problem() -> None:
    grid = gs.Grid(PROBLEM, {})
    assert grid.shape == ()
    assert grid.size == 1
    assert grid.problems().shape == ()
    assert grid.problems()[()] == PROBLEM
    assert list(grid) == [PROBLEM]
    assert grid[()] == PROBLEM


def test_a_sweep_over_a_reused_batch_moves_both_steps() -> None:
    grid = gs.Grid(PROBLEM, {"steps.0.samples": [1, 5, 20]})
    assert [[step.samples for step in cell.steps] for cell in grid] == [[1, 1], [5, 5], [20, 20]]


@pytest.mark.parametrize(
    ("axes", "field", "value"),
    [
        ({"readout.samples": [1.0, -2.0]}, "readout.samples", -2.0),
        ({"steps.0.exponent": [0.0, 0.5, 0.75]}, "steps.0.exponent", 0.75),
        ({"width": [1.0], "readout.penalty": [0.1, float("nan")]}, "readout.penalty", None),
        ({"width": ["1.0"]}, "width", "1.0"),
        ({"activation": ["tanh", "tahn"]}, "activation", "tahn"),
        ({"activation": ["tanh", "sign"]}, "activation", None),
        ({"init.weights": ["sphere", "cube"]}, "init.weights", "cube"),
        ({"width": []}, "width", None),
        ({"width": np.array([])}, "width", None),
        ({"width": np.ones((2, 2))}, "width", None),
        ({"width": np.array(1.0)}, "width", None),
        ({"width": 1.0}, "width", 1.0),
        ({"activation": "tanh"}, "activation", "tanh"),
        ({"width": {1.0: 2.0}}, "width", None),
        ({"width": (x for x in [1.0])}, "width", None),
        ({"widht": [1.0]}, "path", "widht"),
        ({"steps.0": [{"samples": 2, "rate": 1}], "steps.0.rate": [1]}, "path", "steps.0.rate"),
        ({"steps.1.samples": [2.0, 3.0]}, "steps.1.samples", 3.0),
        ([("width", [1.0])], "axes", None),
        (None, "axes", None),
    ],
)
def test_every_value_is_validated_up_front(axes: object, field: str, value: object) -> None:
    with pytest.raises(InvalidProblem) as caught:
        gs.Grid(PROBLEM, axes)  # type: ignore[arg-type]
    assert caught.value.field == field
    if value is not None:
        assert caught.value.value == value


def test_combinations_are_validated_up_front() -> None:
    fresh = PROBLEM.replace({"steps.1.batch": "fresh"})
    with pytest.raises(InvalidProblem, match=r"steps\.1\.samples = 3\.0"):
        gs.Grid(fresh, {"steps.1.batch": ["fresh", "previous"], "steps.1.samples": [2.0, 3.0]})
    with pytest.raises(InvalidProblem, match=r"continuous when steps are taken"):
        gs.Grid(PROBLEM, {"steps": [[], PROBLEM.steps], "activation": ["tanh", "sign"]})
    # what fails with the base but not in any cell is no error
    assert gs.Grid(fresh, {"steps.0.samples": [4], "steps.1.samples": [4]}).size == 1
    assert gs.Grid(PROBLEM, {"steps": [[]], "activation": ["sign"]}).size == 1


def test_the_base_is_a_problem() -> None:
    with pytest.raises(InvalidProblem, match="problem"):
        gs.Grid({"width": 1}, {})  # type: ignore[arg-type]


def test_grids_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        GRID.problem = PROBLEM


def test_equality_and_hashes_are_by_cells() -> None:
    same = gs.Grid(PROBLEM, {path: np.array(values) for path, values in AXES.items()})
    assert same == GRID
    assert hash(same) == hash(GRID)
    assert same.content_hash == GRID.content_hash
    elsewhere = gs.Grid(PROBLEM.replace({"readout.samples": 77}), AXES)
    assert elsewhere == GRID
    assert elsewhere.content_hash == GRID.content_hash
    turned = gs.Grid(PROBLEM, dict(reversed(AXES.items())))
    others = [
        turned,
        gs.Grid(PROBLEM, {**AXES, "steps.1.rate": [0, 8]}),
        gs.Grid(PROBLEM, {**AXES, "steps.1.rate": [7, 0]}),
        gs.Grid(PROBLEM.replace({"width": 2}), AXES),
        gs.Grid(PROBLEM, {}),
    ]
    for other in others:
        assert other != GRID
    assert len({grid.content_hash for grid in [GRID, *others]}) == 6
    assert gs.Grid(PROBLEM, {}).content_hash != PROBLEM.content_hash
    assert GRID != PROBLEM


def test_replace_moves_the_base_and_keeps_the_axes() -> None:
    moved = GRID.replace({"width": 2.0})
    assert moved.dims == GRID.dims
    assert moved[0, 0, 0] == GRID[0, 0, 0].replace({"width": 2.0})
    with pytest.raises(InvalidProblem, match="axes of the grid"):
        GRID.replace({"activation": "relu"})
    with pytest.raises(InvalidProblem, match="is given too"):
        GRID.replace({"readout": None})


@settings(max_examples=25, deadline=None)
@given(
    samples=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=4),
    penalties=st.lists(st.floats(0, 10), min_size=1, max_size=3),
)
def test_round_trips(samples: list[float], penalties: list[float]) -> None:
    grid = gs.Grid(
        PROBLEM,
        {
            "readout.penalty": penalties,
            "init.second_layer": ["constant", gs.Vocabulary([1, 2], [0.5, 0.5])],
            "activation": ["tanh", gs.centered("relu")],
            "readout.samples": samples,
        },
    )
    for copy in (
        gs.Grid.from_toml(grid.to_toml()),
        gs.Grid.from_json(grid.to_json()),
        gs.Grid.from_data(grid.to_data()),
        pickle.loads(pickle.dumps(grid)),
    ):
        assert copy == grid
        assert copy.dims == grid.dims
        assert copy.content_hash == grid.content_hash


def test_files_with_unknown_keys_are_refused() -> None:
    data = GRID.to_data()
    with pytest.raises(InvalidProblem, match='did you mean "vary"'):
        gs.Grid.from_data({"problem": data["problem"], "varry": {}})
    with pytest.raises(InvalidProblem, match="problem"):
        gs.Grid.from_data({"vary": {}})
    with pytest.raises(InvalidProblem, match="grid"):
        gs.Grid.from_data([])  # type: ignore[arg-type]
    with pytest.raises(InvalidProblem, match="TOML has no word"):
        gs.Grid(PROBLEM, {"readout": [None]}).to_toml()


def test_the_repr_names_the_axes() -> None:
    assert "'readout.samples': [0.5, 1.0, 2.0]" in repr(GRID)
    assert "'activation': ['tanh', 'erf']" in repr(GRID)


def test_cells_share_their_parts_and_are_those_of_replace() -> None:
    grid = gs.Grid(PROBLEM, {"steps.0.samples": [1.0, 4.0], "readout.penalty": [0.1, 0.2, 0.3]})
    for (i, j), cell in np.ndenumerate(grid.problems()):
        values = {"steps.0.samples": [1.0, 4.0][i], "readout.penalty": [0.1, 0.2, 0.3][j]}
        assert cell == PROBLEM.replace(values)
        assert cell.steps[1].samples == values["steps.0.samples"]  # the same batch again
    cells = grid.problems()
    assert cells[0, 1].steps[1] is cells[0, 2].steps[1]
    assert cells[0, 1].readout is cells[1, 1].readout
