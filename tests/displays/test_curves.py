"""``answer.plot()``: every answer with an axis draws itself."""

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.displays import ComparisonDisplay

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    steps=[gs.Step(samples=2, rate=4)],
    readout=gs.Ridge(samples=2, penalty=0.1),
)
GRID = gs.Grid(PROBLEM, {"readout.samples": [1.0, 2.0, 4.0], "steps.0.rate": [3.0, 4.0]})


def test_theory_is_drawn_as_lines() -> None:
    answer = theory.risk(GRID)
    display = answer.plot()
    assert isinstance(display, ComparisonDisplay)
    assert [series.label for series in display.series] == ["3", "4"]
    np.testing.assert_array_equal(display.series[1].curve, np.asarray(answer.test)[:, 1])
    other = answer.plot(x="steps.0.rate", quantity="initial.test")
    assert isinstance(other, ComparisonDisplay)
    assert other.ax_.get_ylabel() == "test error $R_0$"
    assert len(other.series) == 3


def test_a_simulation_is_drawn_as_markers() -> None:
    answer = simulation.risk(GRID, d=30, seed=0, test_samples=200)
    display = answer.plot()
    assert isinstance(display, ComparisonDisplay)
    np.testing.assert_array_equal(display.series[0].mean, np.asarray(answer.test)[:, 0])
    assert np.isnan(display.series[0].curve).all()


def test_axes_of_the_answers_own() -> None:
    path = simulation.trajectory(PROBLEM, d=30, seed=0).plot(quantity="test")
    assert isinstance(path, ComparisonDisplay)
    assert path.ax_.get_xlabel()
    function = theory.learned_function(PROBLEM, d=100)
    assert type(function.plot()).__name__ == "LearnedFunctionDisplay"
    spectrum = theory.weights(PROBLEM)
    assert type(spectrum.plot()).__name__ == "SpectrumDisplay"
    along = theory.weights(gs.Grid(PROBLEM, {"steps.0.rate": [3.0, 4.0, 5.0]})).plot()
    assert isinstance(along, ComparisonDisplay)
    assert "singular value" in along.ax_.get_ylabel()


def test_optima_over_a_grid() -> None:
    best = theory.optimize(gs.Grid(PROBLEM, {"readout.samples": [1.0, 2.0]}))
    display = best.plot()
    assert isinstance(display, ComparisonDisplay)
    np.testing.assert_array_equal(display.series[0].curve, best.value.test)
    penalty = best.plot(quantity="arguments.readout.penalty")
    assert isinstance(penalty, ComparisonDisplay)
    assert penalty.ax_.get_ylabel() == r"best ridge penalty $\lambda$"
    np.testing.assert_array_equal(penalty.series[0].curve, best.arguments["readout.penalty"])


def test_what_has_no_axis_says_so() -> None:
    with pytest.raises(gs.InvalidProblem, match="ask about a Grid"):
        theory.risk(PROBLEM).plot(quantity="test")
    with pytest.raises(gs.InvalidProblem, match=r'one of "readout\.samples", "steps\.0\.rate"'):
        theory.risk(GRID).plot(x="width")
    with pytest.raises(gs.InvalidProblem, match='did you mean "test"'):
        theory.risk(GRID).plot(quantity="tset")
    with pytest.raises(gs.InvalidProblem, match="ask about a Grid"):
        theory.crossing(PROBLEM, "readout.samples", 0.16).plot()
    with pytest.raises(gs.InvalidProblem, match="drawn with its theory"):
        simulation.weights(PROBLEM, d=30, seed=0).plot()


@pytest.mark.parametrize(("count", "named"), [(8, 8), (21, 21), (60, 24)])
def test_many_curves_leave_room_for_the_axes(count: int, named: int) -> None:
    widths = np.linspace(1.0, 2.0, count)
    grid = gs.Grid(PROBLEM, {"readout.samples": [1.0, 2.0], "width": widths})
    display = theory.risk(grid).plot()
    assert isinstance(display, ComparisonDisplay)
    figure = display.figure_
    figure.draw_without_rendering()
    legend = display.ax_.get_legend() or figure.legends[0]
    assert len(legend.get_texts()) == named
    assert figure.get_size_inches()[0] == pytest.approx(3.25)
    assert display.ax_.get_position().width > 0.5
    label = display.ax_.xaxis.label.get_window_extent()
    place = legend.get_window_extent()
    assert not place.overlaps(label)
    assert figure.bbox.containsx(place.x0)
    assert figure.bbox.containsx(place.x1)
    assert figure.bbox.containsy(place.y0)
    assert figure.bbox.containsy(place.y1)
