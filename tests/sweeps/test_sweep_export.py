"""Exports: every number at its place, means beside theory, files that read back."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import giantsteps as gs
from giantsteps.campaign import Store
from giantsteps.errors import InvalidProblem

SOURCES = ["limit", "finite width", "simulation"]


@pytest.fixture
def done(make: Callable[..., gs.Sweep]) -> gs.Sweep:
    vary = {"readout.samples": [1.0, 2.0], "steps.0.rate": [0.5, 3.0]}
    both = ["risk", "weights"]
    sweep = make(vary=vary, questions=both, sources=SOURCES, d=[12, 20], seeds=[3, 1, 8, 5])
    assert sweep.run(executor="serial").complete
    return sweep


def test_every_number_is_at_its_place(done: gs.Sweep) -> None:
    data = done.to_xarray()
    assert dict(data.sizes) | {"degree": 5, "spike": 4} == dict(data.sizes)
    assert data["risk.test"].dims == ("readout.samples", "steps.0.rate", "d", "seed")
    axes = [data[dim].values for dim in data["risk.test"].dims]
    for samples, rate, d, seed in itertools.product(*axes):
        cell = done.grid.problem.replace({"readout.samples": samples, "steps.0.rate": rate})
        here = {"readout.samples": samples, "steps.0.rate": rate, "d": d, "seed": seed}
        stored = done.values("risk", cell, int(d), int(seed))
        before = done.values("risk", cell.untrained(), int(d), int(seed))
        spikes = done.values("weights", cell, int(d), int(seed))
        assert data["risk.test"].sel(here) == stored["test"]
        assert data["risk.initial.test"].sel(here) == before["test"]
        assert data["risk.gain"].sel(here) == before["test"] - stored["test"]
        np.testing.assert_array_equal(data["risk.by_degree"].sel(here), stored["by_degree"])
        np.testing.assert_array_equal(data["weights.value"].sel(here), spikes["value"])
        del here["seed"]
        finite, limit = done.values("risk", cell, int(d)), done.values("risk", cell)
        assert data["risk.test.theory"].sel(here) == finite["test"]
        gain = finite["initial.test"] - finite["test"]
        assert data["risk.gain.theory"].sel(here) == gain
        del here["d"]
        assert data["risk.train.limit"].sel(here) == limit["train"]


def test_statistics_over_the_seeds(done: gs.Sweep) -> None:
    data = done.to_xarray()
    samples, theory = data["risk.test"].values, data["risk.test.theory"].values
    mean, error = samples.mean(-1), samples.std(-1, ddof=1) / 2
    np.testing.assert_allclose(data["risk.test.mean"], mean, rtol=1e-14)
    np.testing.assert_allclose(data["risk.test.standard_error"], error, rtol=1e-12)
    np.testing.assert_allclose(data["risk.test.t"], (mean - theory) / error, rtol=1e-9)
    assert (data["risk.test.seeds"] == 4).all()
    assert "risk.standard_error.mean" not in data
    spikes = data["weights.value.theory"]
    predicted = np.isfinite(spikes.values)
    assert predicted.any()
    np.testing.assert_array_equal(np.isfinite(data["weights.value.t"].values), predicted)


def test_cells_that_are_not_done_are_left_out(make: Callable[..., gs.Sweep]) -> None:
    make(seeds=1).run(executor="serial")
    sweep = make(seeds=3)
    with Store(sweep.store, write=True) as store:
        store.remember("x", "{}", 0.0)
    data = sweep.to_xarray()
    assert np.isfinite(data["risk.test"].sel(seed=0)).all()
    assert np.isnan(data["risk.test"].sel(seed=[1, 2])).all()
    assert (data["risk.test.seeds"] == 1).all()
    np.testing.assert_array_equal(data["risk.test.mean"], data["risk.test"].sel(seed=0))
    assert np.isnan(data["risk.test.standard_error"]).all()
    assert np.isnan(data["risk.test.t"]).all()


def test_against_the_limit_where_theory_was_not_asked_at_d(make: Callable[..., gs.Sweep]) -> None:
    sweep = make(sources=["limit", "simulation"])
    sweep.run(executor="serial")
    data = sweep.to_xarray()
    expected = (data["risk.test.mean"] - data["risk.test.limit"]) / data["risk.test.standard_error"]
    np.testing.assert_allclose(data["risk.test.t"], expected.transpose(*data["risk.test.t"].dims))


def test_tidy_tables(done: gs.Sweep) -> None:
    frame, summary, data = done.to_frame(), done.summary(), done.to_xarray()
    assert len(frame) == 2 * 2 * 2 * 4
    row: Any = frame[
        (frame["readout.samples"] == 2)
        & (frame["steps.0.rate"] == 0.5)
        & (frame["d"] == 20)
        & (frame["seed"] == 8)
    ].squeeze()
    here = {"readout.samples": 2.0, "steps.0.rate": 0.5, "d": 20}
    assert row["risk.test"] == data["risk.test"].sel(here | {"seed": 8})
    assert (
        row["weights.spikes.1.overlaps.teacher"]
        == data["weights.overlap.teacher"].sel(here | {"seed": 8})[1]
    )
    assert list(summary.columns) == [
        "readout.samples", "steps.0.rate", "d", "quantity", "mean", "standard_error", "seeds",
        "theory", "limit", "t", "verdict",
    ]  # fmt: skip
    mask = (summary["readout.samples"] == 2) & (summary["steps.0.rate"] == 0.5)
    for quantity, name, place in (
        ("risk.test", "risk.test", {}),
        ("risk.initial.train", "risk.initial.train", {}),
        ("weights.spikes.0.value", "weights.value", {"spike": 0}),
    ):
        row = summary[mask & (summary["d"] == 20) & (summary["quantity"] == quantity)].squeeze()
        for part in ("mean", "standard_error", "theory", "t"):
            value = data[f"{name}.{part}"].sel(here).isel(place).item()
            np.testing.assert_equal(row[part], value)
        limit = data[f"{name}.limit"].sel({k: here[k] for k in list(here)[:2]}).isel(place)
        np.testing.assert_equal(row["limit"], limit.item())


@pytest.mark.parametrize("kind", ["nc", "parquet", "csv"])
def test_files_read_back(done: gs.Sweep, tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"out.{kind}"
    done.export(file)
    if kind == "nc":
        with xr.open_dataset(file) as data:
            xr.testing.assert_equal(data.load(), done.to_xarray())
            assert data.attrs["references"]
        return
    readers: dict[str, Callable[..., pd.DataFrame]]
    readers = {"parquet": pd.read_parquet, "csv": pd.read_csv}
    read = readers[kind]
    pd.testing.assert_frame_equal(read(file), done.to_frame(), check_exact=True)
    done.export(file, summary=True)
    pd.testing.assert_frame_equal(
        read(file).astype({"quantity": str}),
        done.summary().astype({"quantity": str}),
        check_exact=True,
    )


def test_unknown_kinds_of_files_are_refused(done: gs.Sweep, tmp_path: Path) -> None:
    with pytest.raises(InvalidProblem, match=r"\.nc, \.parquet or \.csv"):
        done.export(tmp_path / "out.xlsx")


def test_spectra_of_several_sizes(done: gs.Sweep, tmp_path: Path) -> None:
    data = done.to_xarray(spectra=True)
    bulk: Any = data["weights.bulk"]
    assert bulk.sizes["order"] == 20
    assert (np.isfinite(bulk).sum("order") == bulk["d"]).all()
    assert "weights.bulk" not in done.to_xarray()
    done.export(tmp_path / "s.nc", spectra=True)
    with xr.open_dataset(tmp_path / "s.nc") as file:
        xr.testing.assert_equal(file["weights.bulk"], bulk)


def test_theory_alone(make: Callable[..., gs.Sweep]) -> None:
    sweep = make(sources=["limit"], questions=["risk", "bounds"])
    assert sweep.run(executor="serial").complete
    data = sweep.to_xarray()
    assert set(data["risk.test.limit"].dims) == {"readout.samples", "steps.0.rate"}
    frame = sweep.to_frame()
    assert list(frame.columns)[-1] == "limit"
    assert len(frame) == 4 * frame["quantity"].nunique()


def test_points_of_an_axis_are_its_coordinates(make: Callable[..., gs.Sweep]) -> None:
    sweep = make(questions={"learned_function": {"along": "teacher"}}, sources=["simulation"])
    assert sweep.run(executor="serial").complete
    data = sweep.to_xarray()
    assert data["learned_function.mean"].dims[-1] == "x"
    np.testing.assert_array_equal(data["x"], np.linspace(-3, 3, 61))


def test_an_axis_of_names(make: Callable[..., gs.Sweep]) -> None:
    sweep = make(vary={"activation": ["tanh", "erf"]})
    sweep.run(executor="serial")
    data = sweep.to_xarray()
    assert data["activation"].values.tolist() == ["tanh", "erf"]
    assert sweep.to_frame()["activation"].tolist() == ["tanh"] * 3 + ["erf"] * 3


def test_a_single_problem(problem: gs.Problem, tmp_path: Path) -> None:
    options = {"test_samples": 50}
    sweep = gs.Sweep(grid=problem, d=12, seeds=2, options=options, store=tmp_path / "s.sqlite")
    assert sweep.run(executor="serial").complete
    assert sweep.to_xarray()["risk.test"].dims == ("d", "seed")
    assert len(sweep.to_frame()) == 2
    assert set(sweep.summary()["d"]) == {12}
