"""The displays of two steps: what they draw, and that they keep their data."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.displays import SINGLE, OutlierMapDisplay, ReuseDisplay

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.0,
    steps=[
        gs.Step(samples=2.0, rate=1.0, exponent=0.5),
        gs.Step(samples=2.0, rate=1.0, exponent=0.5, batch="previous"),
    ],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
    init=gs.Init(second_layer="constant"),
)


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    plt.close("all")


def test_map_of_outliers() -> None:
    first, second = np.linspace(0, 0.45, 10), np.linspace(0, 0.5, 11)
    grid = gs.Grid(PROBLEM, {"steps.1.exponent": second, "steps.0.exponent": first})
    gaussian = grid.replace({"init.second_layer": "gaussian"})
    display = OutlierMapDisplay(theory.outlier_count(gaussian)).plot()
    assert display.figure_.get_size_inches()[0] == SINGLE
    shown = display.ax_.collections[0].get_array()
    assert shown is not None
    assert shown.shape == (11, 10)  # rows are the second exponent
    assert shown[-1, -1] == 6
    assert shown[0, 0] == 1
    # tanh: lines of k = 2, 4, 6, 8, 10, ending where e₂ = k(1/2 − e₁).
    ends = {
        tuple(np.round(np.asarray(line.get_xydata())[-1], 9)) for line in display.ax_.get_lines()
    }
    assert {(0.45, 0.1), (0.45, 0.2)} <= ends
    with pytest.raises(gs.InvalidProblem, match="over a grid"):
        OutlierMapDisplay(theory.outlier_count(PROBLEM))


def test_fresh_against_reused() -> None:
    samples = [2.0, 4.0]
    comparisons = {}
    for name, batch in (("fresh", "fresh"), ("reused", "previous")):
        pairs = []
        for alpha in samples:
            problem = PROBLEM.replace({"steps.1.batch": "fresh"}).replace(
                {"steps.0.samples": alpha, "steps.1.samples": alpha}
            )
            problem = problem.replace({"steps.1.batch": batch})
            risk, weights = (
                gs.compare(problem, 50, seeds=2, question=question)
                for question in ("risk", "weights")
            )
            pairs.append((risk, weights))
        comparisons[name] = pairs
    curves = {name: [(2.0, 0.2, 0.5), (3.0, 0.18, 0.6), (4.0, 0.16, 0.7)] for name in comparisons}
    display = ReuseDisplay.from_comparisons(samples, comparisons, curves).plot()
    assert [series.label for series in display.risk] == ["fresh", "reused"]
    assert display.risk[0].curve_x.tolist() == [2.0, 3.0, 4.0]
    expected = comparisons["reused"][1][1]["spikes.0.overlap"].largest
    assert display.overlap[1].mean[1] == pytest.approx(float(expected.mean))
    assert len(display.axes_) == 2
