"""Figures of a sweep: the right numbers on the right axes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.displays import ComparisonDisplay, HeatMapDisplay
from giantsteps.errors import InvalidProblem

VARY = {"readout.samples": [1.0, 2.0, 3.0], "steps.0.rate": [0.5, 4.0]}


@pytest.fixture(autouse=True)
def no_window() -> None:
    mpl.use("Agg")


@pytest.fixture
def done(make: Callable[..., gs.Sweep]) -> gs.Sweep:
    sweep = make(vary=VARY, d=[12, 20], questions=["risk", "weights"])
    assert sweep.run(executor="serial").complete
    return sweep


def test_curves_show_means_and_lines_of_theory(done: gs.Sweep, tmp_path: Path) -> None:
    display = done.plot(at={"d": 20})
    assert isinstance(display, ComparisonDisplay)
    data = done.to_xarray().sel(d=20)
    after = [one for one in display.series if not one.before]
    assert [one.label for one in after] == ["0.5", "4"]
    for one, rate in zip(after, [0.5, 4.0]):
        here = data.sel({"steps.0.rate": rate})
        np.testing.assert_array_equal(one.x, [1.0, 2.0, 3.0])
        np.testing.assert_array_equal(one.mean, here["risk.test.mean"])
        np.testing.assert_array_equal(one.standard_error, here["risk.test.standard_error"])
        assert one.curve_x.size == 50
        fine = done.grid.problem.replace({"steps.0.rate": rate, "readout.samples": one.curve_x[7]})
        assert one.curve[7] == theory.risk(fine, d=20).test
    (before,) = [one for one in display.series if one.before]  # both rates start alike
    np.testing.assert_array_equal(before.mean, data["risk.initial.test.mean"][:, 0])
    display.save(tmp_path / "curves.pdf")
    assert (tmp_path / "curves.pdf").stat().st_size > 5000


def test_lines_of_the_grid_itself(done: gs.Sweep) -> None:
    display = done.plot(at={"d": 12}, points=0)
    assert isinstance(display, ComparisonDisplay)
    data = done.to_xarray().sel(d=12)
    np.testing.assert_array_equal(display.series[1].curve, data["risk.test.theory"][:, 1])


def test_other_axes_and_quantities(done: gs.Sweep) -> None:
    along_d = done.plot("d", quantity="risk.gain", at={"readout.samples": 2.0})
    assert isinstance(along_d, ComparisonDisplay)
    data = done.to_xarray()
    np.testing.assert_array_equal(along_d.series[0].x, [12, 20])
    expected = data["risk.gain.mean"].sel({"readout.samples": 2.0, "steps.0.rate": 0.5})
    np.testing.assert_array_equal(along_d.series[0].mean, expected)
    spikes = done.plot("steps.0.rate", quantity="weights.spikes.0.value", at={"d": 20}, points=8)
    assert isinstance(spikes, ComparisonDisplay)
    after = [one for one in spikes.series if not one.before]
    assert len(after) == 1  # weights do not see the readout
    np.testing.assert_array_equal(after[0].mean, data["weights.value.mean"].sel(d=20)[0, :, 0])
    assert np.nanmax(after[0].curve) > 2
    assert spikes.y_label == "largest singular value $s_{1}(W)$"
    assert spikes.ax_.get_title() == "$d$ = 20"
    with pytest.raises(InvalidProblem, match="one of the values of d: 12, 20"):
        done.plot("steps.0.rate", at={"d": 300})


def test_maps_have_theory_beside_simulation(done: gs.Sweep, tmp_path: Path) -> None:
    display = done.plot("steps.0.rate", "readout.samples", at={"d": 12})
    assert isinstance(display, HeatMapDisplay)
    data = done.to_xarray().sel(d=12)
    assert list(display.panels) == ["theory", "simulation"]
    np.testing.assert_array_equal(display.panels["theory"], data["risk.test.theory"])
    np.testing.assert_array_equal(display.panels["simulation"], data["risk.test.mean"])
    assert isinstance(display.ax_, list)
    assert len(display.ax_) == 2
    meshes = [ax.collections[0] for ax in display.ax_]
    assert meshes[0].get_clim() == meshes[1].get_clim()
    display.save(tmp_path / "map.png")
    alone = display.plot(ax=mpl.pyplot.subplots()[1])
    assert not isinstance(alone.ax_, list)
    assert alone.ax_.get_title() == "simulation"


def test_axes_out_of_order_and_over_decades(make: Callable[..., gs.Sweep]) -> None:
    vary = {"readout.penalty": [10.0, 0.01, 0.1], "readout.samples": [1.0, 2.0]}
    sweep = make(vary=vary)
    sweep.run(executor="serial")
    display = sweep.plot("readout.penalty", "readout.samples")
    assert isinstance(display, HeatMapDisplay)
    np.testing.assert_array_equal(display.x, [0.01, 0.1, 10.0])
    mean = sweep.to_xarray()["risk.test.mean"].isel(d=0).values
    np.testing.assert_array_equal(display.panels["simulation"], mean[[1, 2, 0]].T)
    assert isinstance(display.ax_, list)
    assert display.ax_[0].get_xscale() == "log"
    curves = sweep.plot("readout.penalty")
    assert isinstance(curves, ComparisonDisplay)
    assert curves.ax_.get_xscale() == "log"
    assert (np.diff(curves.series[0].curve_x) > 0).all()


def test_without_theory_and_without_simulation(make: Callable[..., gs.Sweep]) -> None:
    simulated = make(store="a.sqlite", sources=["simulation"])
    simulated.run(executor="serial")
    curves = simulated.plot()
    assert isinstance(curves, ComparisonDisplay)
    assert np.isnan(curves.series[0].curve).all()
    panels = simulated.plot("steps.0.rate", "readout.samples")
    assert isinstance(panels, HeatMapDisplay)
    assert list(panels.panels) == ["simulation"]
    limit = make(store="b.sqlite", sources=["limit"])
    limit.run(executor="serial")
    curves = limit.plot()
    assert isinstance(curves, ComparisonDisplay)
    assert np.isfinite(curves.series[0].curve).all()
    panels = limit.plot("steps.0.rate", "readout.samples")
    assert isinstance(panels, HeatMapDisplay)
    assert list(panels.panels) == ["theory"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"x": "widht"}, "x"),
        ({"x": "readout.samples", "y": "readout.samples"}, "y"),
        ({"x": "readout.samples", "y": "steps.0.rate"}, "at"),  # two sizes d
        ({"quantity": "risk.tset"}, "quantity"),
        ({"at": {"widht": 1}}, "at"),
        ({"at": {"d": "large"}}, "at"),
    ],
)
def test_what_cannot_be_drawn_is_named(
    done: gs.Sweep, arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidProblem) as caught:
        done.plot(**arguments)
    assert caught.value.field == field


def test_nothing_to_draw(make: Callable[..., gs.Sweep]) -> None:
    sweep = make()
    sweep.store.parent.mkdir(exist_ok=True)
    sweep.run(executor="serial")
    other = make(vary={"width": [2.0, 3.0]})
    with pytest.raises(InvalidProblem, match="run before it is drawn"):
        other.plot()


def test_axes_of_names_are_held_by_name(make: Callable[..., gs.Sweep]) -> None:
    sweep = make(vary={"readout.samples": [1.0, 2.0], "activation": ["tanh", "erf"]})
    sweep.run(executor="serial")
    display = sweep.plot(at={"activation": "erf"})
    assert isinstance(display, ComparisonDisplay)
    (one,) = [one for one in display.series if not one.before]
    mean = sweep.to_xarray()["risk.test.mean"].sel(activation="erf", d=12)
    np.testing.assert_array_equal(one.mean, mean)
    with pytest.raises(InvalidProblem, match="tanh"):
        sweep.plot(at={"activation": "relu"})
