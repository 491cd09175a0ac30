"""The display of a comparison: what it draws, at which size, and that it leaves no trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.lines import Line2D
from numpy.testing import assert_allclose

import giantsteps as gs
from giantsteps import theory as exact
from giantsteps.answers import LearnedFunction, Risk
from giantsteps.displays import ComparisonDisplay
from giantsteps.displays._style import colours, label

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    steps=[gs.Step(samples=2.0, rate=1.0)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
)
SAMPLES = np.linspace(0.5, 3.0, 6)
GRID = gs.Grid(PROBLEM, {"readout.samples": SAMPLES, "steps.0.samples": [1.0, 4.0]})


def theory(problem: Any, d: int | None = None) -> Risk:
    """Falls with the readout's samples; the start does not see the samples of the step."""
    common: dict[str, Any] = {"problem": problem, "d": d, "source": "limit", "exact": True}
    if not getattr(problem, "dims", ()):
        initial = Risk(**common, test=0.3, train=0.3)
        return Risk(**common, test=0.2, train=0.2, initial=initial)
    x = problem.coords["readout.samples"][:, None]
    step = problem.coords["steps.0.samples"]
    start = 0.5 / (1 + x) + 0 * step
    initial = Risk(**common, test=start, train=start)
    return Risk(**common, test=start / (1 + step), train=start, initial=initial)


def simulation(problem: Any, *, d: int, seed: int) -> Risk:
    rng = np.random.default_rng([seed, d])
    exact = theory(problem)
    assert exact.initial is not None
    noise = 1 + 0.02 * rng.standard_normal(exact.shape)
    common: dict[str, Any] = {"problem": problem, "d": d, "source": "simulation", "exact": True}
    initial = Risk(**common, test=exact.initial.test * noise, train=exact.train)
    return Risk(**common, test=exact.test * noise, train=exact.train * noise, initial=initial)


@pytest.fixture
def comparison() -> gs.Comparison:
    return gs.compare(GRID, 100, seeds=5, theory=theory, simulation=simulation)


def test_theory_is_lines_and_simulation_markers_with_error_bars(comparison: gs.Comparison) -> None:
    display = comparison.plot(x="readout.samples", floor=0.05)
    after = [series for series in display.series if not series.before]
    assert [series.label for series in after] == ["1", "4"]
    lines = display.ax_.get_lines()
    curve = next(line for line in lines if line.get_linestyle() == "-")
    assert_allclose(curve.get_ydata(), comparison["test"].largest.theory[:, 0])
    bars = display.ax_.containers
    assert len(bars) == len(display.series) == 3
    assert_allclose(bars[1].lines[0].get_ydata(), comparison["test"].largest.mean[:, 1])
    segment = bars[1].lines[2][0].get_segments()[0]
    error = comparison["test"].largest.standard_error[0, 1]
    assert_allclose(segment[1, 1] - segment[0, 1], 6 * error)
    dashed = next(line for line in lines if np.all(np.asarray(line.get_ydata()) == 0.05))
    assert dashed.get_linestyle() == "--"


def test_a_start_that_all_curves_share_is_drawn_once(comparison: gs.Comparison) -> None:
    display = comparison.plot(x="readout.samples")
    assert sum(series.before for series in display.series) == 1
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["1", "4", "before the step"]
    assert not any(series.before for series in comparison.plot(before=False).series)


def test_each_start_is_drawn_where_they_differ(comparison: gs.Comparison) -> None:
    display = comparison.plot(x="steps.0.samples")
    assert sum(series.before for series in display.series) == SAMPLES.size


def test_labels_and_size_are_those_of_a_paper(comparison: gs.Comparison, tmp_path: Path) -> None:
    display = comparison.plot()
    assert display.ax_.get_xlabel() == r"readout samples $\alpha = n/d$"
    assert display.ax_.get_ylabel() == r"test error $R$"
    assert display.figure_.get_figwidth() == 3.25
    assert display.ax_.xaxis.label.get_fontsize() == 8
    display.save(tmp_path / "figure.pdf")
    written = (tmp_path / "figure.pdf").read_bytes()
    assert b"/Type3" not in written
    assert b"/FontFile2" in written
    assert comparison.plot(width=6.75).figure_.get_figwidth() == 6.75


def test_settings_of_matplotlib_come_back(comparison: gs.Comparison, tmp_path: Path) -> None:
    before = matplotlib.rcParams.copy()
    comparison.plot().save(tmp_path / "figure.png")
    assert matplotlib.rcParams == before


def test_it_draws_on_given_axes_and_again(comparison: gs.Comparison) -> None:
    figure, (left, right) = plt.subplots(1, 2)
    display = comparison.plot(ax=left, quantity="train")
    assert display.ax_ is left
    assert display.figure_ is figure
    display.plot(ax=right)
    assert len(right.containers) == len(left.containers)


def test_a_finer_curve(comparison: gs.Comparison) -> None:
    fine = gs.Grid(PROBLEM, dict(GRID.axes) | {"readout.samples": np.linspace(0.5, 3, 50)})
    display = comparison.plot(curve=theory(fine))
    assert display.series[0].curve.shape == display.series[0].curve_x.shape == (50,)
    assert display.series[0].x.shape == (6,)


def test_several_sizes_of_one_problem() -> None:
    comparison = gs.compare(PROBLEM, [50, 100], seeds=3, theory=theory, simulation=simulation)
    display = comparison.plot()
    assert_allclose(display.series[0].x, [50, 100])
    assert display.ax_.get_xlabel() == "input dimension $d$"


def test_points_stand_at_the_ratios_that_networks_have() -> None:
    grid = gs.Grid(PROBLEM, {"readout.samples": [1.0, 1.55, 2.0]})
    after, before = gs.compare(grid, 30, seeds=2, test_samples=50).plot(points=40).series
    for drawn in (after.x, after.curve_x):
        assert_allclose(30 * drawn, np.round(30 * drawn))
    for series in (after, before):  # no steps where the number of samples jumps
        x, where = np.unique(series.curve_x, return_index=True)
        slopes = np.diff(series.curve[where]) / np.diff(x)
        assert (np.diff(slopes) > 0).all()


def test_an_answer_is_drawn_in_words_and_without_markers_for_theory() -> None:
    steps = [gs.Step(samples=2.0, rate=1.0)] * 2
    display = exact.trajectory(PROBLEM.replace(steps=steps), d=30).plot()
    assert isinstance(display, ComparisonDisplay)
    assert display.ax_.get_xlabel() == "number of steps $t$"
    assert display.ax_.get_ylabel() == "test error $R$"
    legend = display.ax_.get_legend()
    assert legend is not None
    (handle,) = legend.legend_handles
    assert isinstance(handle, Line2D)
    assert handle.get_marker() == ""
    low, high = display.ax_.get_xlim()
    ticks = [tick for tick in display.ax_.get_xticks() if low <= tick <= high]
    assert ticks == [0, 1, 2]


def test_several_sizes_of_a_grid_are_all_drawn() -> None:
    comparison = gs.compare(GRID, [50, 100], seeds=3, theory=theory, simulation=simulation)
    after = [series for series in comparison.plot().series if not series.before]
    batches = GRID.coords["steps.0.samples"]
    assert len(after) == 2 * len(batches)
    found = {series.label: series for series in after}
    for size, d in enumerate((50, 100)):
        label = rf"$\alpha_0$ = {batches[0]:g}, $d$ = {d}"
        assert_allclose(found[label].mean, np.asarray(comparison["test"].by_size[size].mean)[:, 0])


def test_a_learned_function_is_drawn_along_its_axis() -> None:
    comparison = gs.compare(PROBLEM, 30, seeds=2, question="learned_function")
    display = comparison.plot()
    answer = comparison.theory[0]
    assert isinstance(answer, LearnedFunction)
    assert_allclose(display.series[0].x, answer.x)
    assert_allclose(display.series[0].curve, answer.mean)
    assert display.ax_.get_ylabel() == "learned function, mean"


@pytest.mark.parametrize("options", [{"x": "width"}, {"x": "d"}, {"quantity": "loss"}])
def test_what_cannot_be_drawn_is_named(comparison: gs.Comparison, options: dict[str, Any]) -> None:
    with pytest.raises(gs.InvalidProblem, match=next(iter(options))):
        comparison.plot(**options)


def test_one_problem_at_one_size_cannot_be_drawn() -> None:
    comparison = gs.compare(PROBLEM, 50, seeds=3, theory=theory, simulation=simulation)
    with pytest.raises(gs.InvalidProblem, match="compare a Grid"):
        comparison.plot()


def test_the_display_can_be_made_by_hand() -> None:
    display = ComparisonDisplay(series=[], x_label="x", y_label="y")
    assert display.series == []


def test_labels_and_colours() -> None:
    assert label("steps.1.samples") == r"step samples $\alpha_0 = n_0/d$ (2)"
    assert label("anything.else") == "anything.else"
    assert len(set(colours(6))) == 6
    assert len(set(colours(12))) == 12
