"""Answers at the edge: columns, CSV, pandas, xarray, and without them."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import giantsteps as gs
from giantsteps.answers import Bounds, LearnedFunction, Risk, Spectrum, Spike

PROBLEM = gs.Problem(
    activation="tanh", teacher="sin", width=1.5, readout=gs.Ridge(samples=2.0, penalty=0.1)
)
GRID = gs.Grid(PROBLEM, {"activation": ["tanh", "erf"], "width": [1.0, 2.0, 3.0]})
VALUES = np.arange(6.0).reshape(2, 3) / 7
DEGREES = np.arange(12.0).reshape(2, 3, 2)
LIMIT: dict[str, Any] = {"source": "limit", "exact": True}


def risk() -> Risk:
    start = Risk(problem=GRID, **LIMIT, test=VALUES + 1, train=VALUES)
    return Risk(problem=GRID, **LIMIT, test=VALUES, train=-VALUES, by_degree=DEGREES, initial=start)


def test_columns_are_tidy() -> None:
    table = risk().to_columns()
    assert list(table) == [
        "activation",
        "width",
        "d",
        "source",
        "test",
        "train",
        "by_degree.0",
        "by_degree.1",
        "initial.test",
        "initial.train",
    ]
    assert table["activation"] == ["tanh"] * 3 + ["erf"] * 3
    assert table["width"] == [1.0, 2.0, 3.0] * 2
    assert table["test"] == list(VALUES.ravel())
    assert table["by_degree.1"] == [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]
    assert table["initial.test"] == list(VALUES.ravel() + 1)


def test_a_single_problem_is_one_row() -> None:
    table = Risk(problem=PROBLEM, d=50, source="simulation", exact=True, test=0.5, train=0.25)
    assert table.to_columns() == {
        "d": [50],
        "source": ["simulation"],
        "test": [0.5],
        "train": [0.25],
    }


def test_csv_keeps_every_digit_and_needs_no_pandas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "xarray", None)
    path = tmp_path / "risk.csv"
    risk().to_csv(path)
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["test"]) for row in rows] == list(VALUES.ravel())
    assert {row["d"] for row in rows} == {""}
    assert b"\r" not in path.read_bytes()


@pytest.mark.parametrize(("method", "module"), [("to_frame", "pandas"), ("to_xarray", "xarray")])
def test_a_missing_package_is_named_with_its_extra(
    method: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf'{module}: pip install "giantsteps\[sweep\]"'):
        getattr(risk(), method)()


def test_frame() -> None:
    frame = risk().to_frame()
    assert frame.shape == (6, 10)
    picked = frame[(frame.activation == "erf") & (frame.width == 2.0)]
    assert picked["test"].item() == VALUES[1, 1]


def test_xarray() -> None:
    dataset = risk().to_xarray()
    assert dict(dataset.sizes) == {"activation": 2, "width": 3, "degree": 2}
    assert dataset["test"].sel(activation="erf", width=3.0).item() == VALUES[1, 2]
    assert_array_equal(dataset["initial.test"], VALUES + 1)
    assert dataset.attrs["source"] == "limit"


def test_one_row_for_each_spike_that_a_cell_has() -> None:
    second = np.where(VALUES > 0.5, 1.5, np.nan)
    spikes = (
        Spike(value=VALUES + 2, overlaps={"monomial": VALUES}, degree=1),
        Spike(value=second, overlaps={"second_layer_power": VALUES / 2}, degree=3),
    )
    spectrum = Spectrum(problem=GRID, **LIMIT, bulk=None, spikes=spikes)
    frame = spectrum.to_frame()
    assert isinstance(spectrum.count, np.ndarray)
    assert len(frame) == 6 + np.sum(VALUES > 0.5) == spectrum.count.sum()
    last = frame.iloc[-1]
    assert (last["spike"], last["value"], last["degree"]) == (1, 1.5, 3)
    assert last["overlap.second_layer_power"] == VALUES[1, 2] / 2
    assert np.isnan(last["overlap.monomial"])
    assert spectrum.to_xarray()["value"].dims == ("activation", "width", "spike")


def test_no_spikes_no_rows() -> None:
    empty = Spectrum(problem=PROBLEM, **LIMIT, bulk=None)
    assert all(column == [] for column in empty.to_columns().values())
    assert len(empty.to_frame()) == 0


def test_one_row_for_each_point_of_a_learned_function() -> None:
    x = np.array([-1.0, 0.5])
    learned = LearnedFunction(
        problem=GRID, **LIMIT, x=x, mean=DEGREES, band=DEGREES / 2, along="teacher"
    )
    table = learned.to_columns()
    assert len(table["mean"]) == 12
    assert table["x"] == [-1.0, 0.5] * 6
    assert table["mean"] == list(DEGREES.ravel())
    assert learned.to_xarray()["band"].sel(x=0.5, width=1.0, activation="tanh").item() == 0.5


def test_named_bounds_are_columns() -> None:
    table = Bounds(problem=PROBLEM, **LIMIT, floors={"linear": 0.2}).to_columns()
    assert table["floors.linear"] == [0.2]
