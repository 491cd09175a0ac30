"""Crossings, critical rates and level curves, each by an independent route."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

import giantsteps as gs
from giantsteps import theory
from giantsteps.functions import MultiIndex
from giantsteps.theory.search.level_curves import _chains

SMALL = gs.Problem(
    activation="tanh",
    teacher="tanh",
    noise_variance=0.1,
    width=1.25,
    steps=[gs.Step(samples=3.0, rate=3.0)],
    readout=gs.Ridge(samples=3.0, penalty=1e-4),
)
LARGE = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.0,
    steps=[gs.Step(samples=20.0, rate=3.0, exponent=0.5)],
    readout=gs.Ridge(samples=1.0, penalty=0.1),
    init=gs.Init(second_layer="constant"),
)


def error(problem: gs.Problem, path: str, value: Any, d: int | None = None) -> float:
    return float(theory.risk(problem.replace({path: float(value)}), d).test)


# Crossings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "bracket"),
    [("readout.samples", (0.1, 3.0)), ("steps.0.rate", (1.0, 3.0)), ("readout.penalty", (1e-4, 1))],
)
def test_crossing_of_the_floor(path: str, bracket: tuple[float, float]) -> None:
    floor = float(theory.bounds(LARGE)["linear"])
    wanted = brentq(lambda x: error(LARGE, path, x) - floor, *bracket, xtol=1e-13, rtol=1e-14)
    found = theory.crossing(LARGE, along=path)
    assert found.count == 1
    assert found.level == pytest.approx(floor, abs=1e-15)
    assert found.value == pytest.approx(wanted, rel=1e-9)
    assert f"at {path}" in found.statement


def test_every_crossing_is_found() -> None:
    """The error passes a level on both sides of its peak at n = N."""
    found = theory.crossing(SMALL, level=0.6)
    assert found.count == 2
    assert found.values[0] < SMALL.width < found.values[1]
    for value in found.values:
        assert error(SMALL, "readout.samples", value) == pytest.approx(0.6, abs=1e-10)


def test_a_peak_between_the_points_of_the_scan() -> None:
    peak = minimize_scalar(
        lambda x: -error(SMALL, "readout.samples", x), bounds=(1.0, 1.5), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    found = theory.crossing(SMALL, level=-peak.fun - 1e-4)
    assert found.count == 2
    assert found.values[0] < peak.x < found.values[1]
    assert found.values[1] - found.values[0] < 0.05
    above = theory.crossing(SMALL, level=-peak.fun + 1e-6)
    assert above.count == 0


def test_no_crossing_is_said() -> None:
    found = theory.crossing(SMALL, level=50.0)
    assert np.isnan(found.value)
    assert found.values.shape == (0,)
    assert found.statement == "test stays below 50 for readout.samples in [0.1, 100]"
    assert "stays above" in theory.crossing(LARGE, level=1e-6, along="readout.penalty").statement
    assert found.to_columns()["values"] == []


def test_other_quantities() -> None:
    gain = theory.crossing(SMALL, along="steps.0.rate", quantity="gain", level=0.02)
    answer = theory.risk(SMALL.replace({"steps.0.rate": gain.value}))
    assert answer.gain == pytest.approx(0.02, abs=1e-11)
    same = theory.crossing(LARGE, along="steps.0.rate", quantity="gain over floor", level=0.0)
    assert same.value == pytest.approx(theory.crossing(LARGE, along="steps.0.rate").value)


def test_a_grid_is_its_cells() -> None:
    grid = gs.Grid(LARGE, {"steps.0.rate": [0.5, 2.0, 3.0], "width": [1.0, 2.0]})
    found = theory.crossing(grid, bounds=(0.05, 20.0))
    assert np.shape(found.value) == grid.shape
    for index in ((0, 0), (1, 0), (2, 1)):
        alone = theory.crossing(grid[index], bounds=(0.05, 20.0))
        np.testing.assert_equal(found[index].value, alone.value)
    assert np.isnan(np.asarray(found.value)[0, 0])  # a small rate never pays
    assert found.statement.startswith("test crosses its level in 4 of 6 cells")
    assert len(found.to_columns()["values"]) == np.sum(found.count)
    assert "nan" not in found[0, 0].statement
    assert found[0, 0].statement == theory.crossing(grid[0, 0], bounds=(0.05, 20.0)).statement


def test_between_whole_sizes() -> None:
    d = 60
    found = theory.crossing(LARGE, along="readout.samples", d=d, bounds=(0.1, 4.0))
    below, above = np.floor(found.value * d) / d, np.ceil(found.value * d) / d
    low, high = (error(LARGE, "readout.samples", x, d) - found.level for x in (below, above))
    assert low > 0 > high
    part = (found.value - below) / (above - below)
    assert (1 - part) * low + part * high == pytest.approx(0.0, abs=1e-12)


def test_tanh_beats_the_floor_of_tanh_with_many_samples() -> None:
    problem = LARGE.replace({"teacher": "tanh", "readout.penalty": 1e-2, "steps.0.rate": 2.0})
    found = theory.crossing(problem, bounds=(0.5, 200.0))
    assert found.count == 1
    assert error(problem, "readout.samples", 2 * found.value) < found.level


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"level": "ceiling"}, "floor"),
        ({"level": np.nan}, "finite"),
        ({"level": "floor", "quantity": "train"}, "test"),
        ({"quantity": "tests", "level": 0.1}, "one of"),
        ({"along": "teacher"}, "number"),
        ({"bounds": (3, 1)}, "lower < upper"),
    ],
)
def test_refusals(change: dict[str, Any], words: str) -> None:
    with pytest.raises(gs.InvalidProblem, match=words):
        theory.crossing(SMALL, **change)


# The critical rate ----------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["gaussian", "constant", gs.Vocabulary((-1, 2), (0.5, 0.5))])
@pytest.mark.parametrize("width", [0.3, 1.25, 4.0])
def test_spikes_appear_at_the_critical_rate(law: str | gs.Vocabulary, width: float) -> None:
    problem = SMALL.replace({"width": width, "init.second_layer": law})
    rate = theory.critical_rate(problem)
    for factor, count in ((1 - 1e-10, 0), (1 + 1e-10, 1)):
        spectrum = theory.weights(problem.replace({"steps.0.rate": factor * rate}))
        assert spectrum.count == count


def test_critical_rate_in_numbers() -> None:
    """θ₁ = η μ₁ ‖b‖ = β^{1/4} with moments by quadrature."""
    z, w = np.polynomial.hermite_e.hermegauss(120)
    w = w / w.sum()
    slope, square = w @ (z * np.tanh(z)), w @ np.tanh(z) ** 2
    length = np.sqrt(slope**2 + (square + 0.1) / 3.0)
    assert theory.critical_rate(SMALL) == pytest.approx(1.25**0.25 / (slope * length), rel=1e-10)
    crossing = theory.crossing(
        SMALL, along="steps.0.rate", quantity="rate over critical", level=1.0
    )
    assert crossing.value == pytest.approx(theory.critical_rate(SMALL), rel=1e-10)


@pytest.mark.parametrize(
    "change",
    [{}, {"activation": "erf", "width": 0.5, "init.second_layer": "gaussian"},
     {"steps.0.loss": "logistic", "teacher": "sign", "noise_variance": 0.0}],
)  # fmt: skip
def test_at_a_size_the_spike_appears_at_the_critical_rate(change: dict[str, Any]) -> None:
    problem = SMALL.replace(change)
    rate = theory.critical_rate(problem, d=200)
    for factor, count in ((0.99, 0), (1.01, 1)):
        assert (
            theory.weights(problem.replace({"steps.0.rate": factor * rate}), d=200).count == count
        )
    assert theory.critical_rate(problem, d=10**8) == pytest.approx(
        theory.critical_rate(problem), rel=1e-3
    )


def test_the_pull_of_the_initial_output_in_numbers() -> None:
    """η²κ² + (1 − ηε)² + η²ε²/α₀ = 1 + √β, κ from the limit and ε = μ₁²E ℓ''/√N."""
    z, w = np.polynomial.hermite_e.hermegauss(120)
    slope = (w / w.sum()) @ (z * np.tanh(z))
    signs = {"teacher": "sign", "noise_variance": 0.0}
    for loss, share in (("squared", 1.0), ("logistic", 0.25), ("hinge", 0.0)):
        problem = SMALL.replace({"steps.0.loss": loss, **signs})
        kappa = 1.25**0.25 / theory.critical_rate(problem)
        rate, pull = theory.critical_rate(problem, d=400), share * slope**2 / np.sqrt(500)
        left = (rate * kappa) ** 2 + (1 - rate * pull) ** 2 + (rate * pull) ** 2 / 3.0
        assert left == pytest.approx(1 + np.sqrt(1.25), rel=1e-8)


def test_critical_rate_of_other_settings() -> None:
    even = SMALL.replace({"activation": "he2"})
    assert theory.critical_rate(even) == np.inf
    grid = gs.Grid(SMALL, {"width": [1.0, 16.0], "steps.0.rate": [1.0, 5.0]})
    rates = np.asarray(theory.critical_rate(grid))
    assert rates.shape == (2, 2)
    assert rates[1] == pytest.approx(2 * rates[0])
    assert rates[:, 0] == pytest.approx(rates[:, 1])
    sized = theory.critical_rate(SMALL.replace({"steps.0.exponent": 0.5}), d=400)
    assert sized == pytest.approx(theory.critical_rate(SMALL, d=400) / np.sqrt(500))
    with pytest.raises(gs.NotCovered, match="every positive rate"):
        theory.critical_rate(LARGE)
    with pytest.raises(gs.NotCovered, match="no step"):
        theory.critical_rate(SMALL.untrained())
    pair = SMALL.replace({"teacher": MultiIndex("x0 + x1", 2)})
    spectrum = theory.weights(pair.replace({"steps.0.rate": 1.001 * theory.critical_rate(pair)}))
    assert spectrum.count == 1


# Level curves ---------------------------------------------------------------------------------


def test_points_of_a_level_curve_are_solved() -> None:
    grid = gs.Grid(
        SMALL, {"steps.0.rate": np.linspace(0.5, 8, 6), "width": np.geomspace(0.3, 4, 5)}
    )
    (curve,) = theory.level_curves(grid, "gain", 0.05)
    for rate, width in curve:
        here = theory.risk(SMALL.replace({"steps.0.rate": rate, "width": width}))
        assert here.gain == pytest.approx(0.05, abs=1e-9)
    # The curve and a crossing through it are the same points.
    width = grid.coords["width"][1]
    (point,) = [rate for rate, w in curve if abs(w - width) < 1e-12]
    found = theory.crossing(
        SMALL.replace({"width": width}), "steps.0.rate", 0.05, "gain", bounds=(0.5, 8.0)
    )
    assert point == pytest.approx(found.value, rel=1e-9)
    assert theory.level_curves(grid, "gain", 5.0) == ()


def test_critical_line_is_the_critical_rate() -> None:
    grid = gs.Grid(SMALL, {"steps.0.rate": [0.5, 3.0, 9.0], "width": np.geomspace(0.1, 20, 7)})
    (curve,) = theory.level_curves(grid, "rate over critical", 1.0)
    for rate, width in curve:
        assert rate == pytest.approx(
            theory.critical_rate(SMALL.replace({"width": width})), rel=1e-9
        )


@pytest.mark.parametrize(
    ("function", "closed", "open_"),
    [
        (lambda x, y: x**2 + y**2 - 1, 1, 0),
        (lambda x, y: x * y - 0.1, 0, 2),
        (lambda x, y: (x**2 + y**2 - 0.4) * (x**2 + y**2 - 2), 2, 0),
        (lambda x, y: np.sin(5 * x) - y, 0, 1),
    ],
)
def test_topology(function: Callable[..., NDArray[np.float64]], closed: int, open_: int) -> None:
    x = np.linspace(-1.6, 1.63, 40)
    values = function(*np.meshgrid(x, x, indexing="ij"))
    chains = list(_chains(values))
    assert sum(chain[0] == chain[-1] for chain in chains) == closed
    assert sum(chain[0] != chain[-1] for chain in chains) == open_
    assert sum(len(chain) for chain in chains) >= np.sum(np.diff(np.sign(values), axis=0) != 0)
    holes = values.copy()
    holes[20, 20] = np.nan
    assert all(np.isfinite([holes[a], holes[b]]).all() for c in _chains(holes) for a, b in c)


def test_level_curves_need_a_plane() -> None:
    with pytest.raises(gs.InvalidProblem, match="two numeric"):
        theory.level_curves(gs.Grid(SMALL, {"width": [1.0, 2.0]}))
    with pytest.raises(gs.InvalidProblem, match="increasing"):
        theory.level_curves(gs.Grid(SMALL, {"width": [2.0, 1.0], "steps.0.rate": [1.0, 2.0]}))
