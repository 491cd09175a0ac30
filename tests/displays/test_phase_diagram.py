"""Phase diagrams and learned functions: what is drawn is what was solved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.displays import CriticalLine, LearnedFunctionDisplay, PhaseDiagramDisplay

SMALL = gs.Problem(
    activation="tanh",
    teacher="tanh",
    noise_variance=0.1,
    width=1.25,
    steps=[gs.Step(samples=3.0, rate=3.0)],
    readout=gs.Ridge(samples=3.0, penalty=0.01),
)
LARGE = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.0,
    steps=[gs.Step(samples=20.0, rate=2.0, exponent=0.5)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
    init=gs.Init(second_layer="constant"),
)


def test_map_and_lines() -> None:
    rates, widths = np.linspace(0.5, 8.0, 9), np.geomspace(0.2, 20.0, 7)
    display = PhaseDiagramDisplay.from_grid(
        SMALL,
        x="steps.0.rate",
        y="width",
        x_values=rates,
        y_values=widths,
        quantity="gain",
        lines=["critical rate", 0.05],
    )
    grid = gs.Grid(SMALL, {"width": widths, "steps.0.rate": rates})
    np.testing.assert_array_equal(display.values, theory.risk(grid).gain)
    critical, level = display.lines
    for rate, width in critical.pieces[0]:
        assert rate == pytest.approx(theory.critical_rate(SMALL.replace({"width": width})))
    for rate, width in level.pieces[0]:
        here = theory.risk(SMALL.replace({"steps.0.rate": rate, "width": width}))
        assert here.gain == pytest.approx(0.05, abs=1e-9)
    axes = display.ax_
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    assert axes.get_xlabel() == r"learning rate $\eta/N^e$"
    legend = axes.get_legend()
    assert legend is not None
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["spike leaves the bulk", "gain = 0.05"]
    drawn = [line.get_xydata() for line in axes.get_lines() if line.get_color() == "black"]
    assert any(np.array_equal(points, critical.pieces[0]) for points in drawn)


def test_signed_maps_are_centred_at_zero() -> None:
    display = PhaseDiagramDisplay.from_grid(
        LARGE,
        x="steps.0.samples",
        y="readout.samples",
        x_values=np.geomspace(1, 30, 6),
        y_values=np.geomspace(0.2, 5, 5),
        quantity="gain over floor",
        lines=["floor", "gain"],
    )
    mesh = display.ax_.collections[0]
    assert np.asarray(mesh.norm(np.array([0.0])))[0] == 0.5
    ticks = display.colorbar_.get_ticks()
    assert ticks.min() < 0 < ticks.max()
    assert 0.0 in ticks
    (line,) = display.lines[0].pieces
    floor = theory.bounds(LARGE)["linear"]
    step, readout = line[len(line) // 2]
    here = LARGE.replace({"steps.0.samples": step, "readout.samples": readout})
    assert theory.risk(here).test == pytest.approx(floor, abs=1e-9)
    assert display.lines[1].pieces == ()  # the step pays everywhere here
    legend = display.ax_.get_legend()
    assert legend is not None
    assert len(legend.get_texts()) == 1


def test_display_keeps_its_data_and_leaves_no_trace(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    display = PhaseDiagramDisplay(
        x=np.array([1.0, 2.0, 3.0]),
        y=np.array([1.0, 2.0]),
        values=np.array([[0.0, 1.0, np.nan], [1.0, 2.0, 3.0]]),
        lines=[CriticalLine("line", (np.array([[1.0, 1.0], [3.0, 2.0]]),))],
        x_label="x",
        y_label="y",
        label="value",
    )
    figure, axes = plt.subplots()
    assert display.plot(ax=axes).ax_ is axes
    assert display.figure_ is figure
    display.plot(width=3.25).save(tmp_path / "phase.pdf")
    assert display.figure_.get_size_inches()[0] == 3.25
    assert (tmp_path / "phase.pdf").stat().st_size > 1000
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("line", ["ceiling", None, True])
def test_unknown_lines(line: Any) -> None:
    with pytest.raises(gs.InvalidProblem, match="critical rate"):
        PhaseDiagramDisplay.from_grid(
            SMALL, x="steps.0.rate", y="width", x_values=[1, 2], y_values=[1, 2], lines=[line]
        )


def test_learned_function_is_drawn_with_its_band(tmp_path: Path) -> None:
    x = np.linspace(-2, 2, 5)
    exact = theory.learned_function(LARGE, along="teacher")
    runs = [
        simulation.run(LARGE, 40, s).learned_function(along="teacher", x=list(x)) for s in range(3)
    ]
    display = LearnedFunctionDisplay.from_answers(exact, runs)
    assert display.found is not None
    np.testing.assert_allclose(display.found, np.mean([run.mean for run in runs], axis=0))
    spread = np.std([run.mean for run in runs], axis=0, ddof=1) / np.sqrt(3)
    assert display.found_error is not None
    np.testing.assert_allclose(display.found_error, spread)
    lines = {line.get_label(): line for line in display.ax_.get_lines()}
    np.testing.assert_array_equal(lines["theory"].get_ydata(), exact.mean)
    np.testing.assert_array_equal(lines["teacher"].get_ydata(), exact.target)
    band = np.asarray(display.ax_.collections[0].get_paths()[0].vertices)
    assert band[:, 1].max() == pytest.approx(np.max(exact.mean + exact.band))
    assert "teacher" in display.ax_.get_xlabel()
    display.save(tmp_path / "learned.png")
    alone = LearnedFunctionDisplay.from_answers(exact, runs[0])
    np.testing.assert_array_equal(alone.found_error, runs[0].standard_error)
    assert LearnedFunctionDisplay.from_answers(exact).points is None
    with pytest.raises(gs.InvalidProblem, match='along "teacher"'):
        LearnedFunctionDisplay(
            exact, [simulation.run(LARGE, 40, 0).learned_function(along="spike")]
        )
    with pytest.raises(gs.InvalidProblem, match="same points"):
        LearnedFunctionDisplay(
            exact, [runs[0], simulation.run(LARGE, 40, 0).learned_function(along="teacher")]
        )
