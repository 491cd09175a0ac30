"""What the tour and the gallery say, held against theory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.explorer._requests import Ask
from giantsteps.explorer._states import DEFAULT, GALLERY, TOUR
from giantsteps.figures import FIGURES

STOPS = {stop.title: stop for stop in TOUR}


def curve(title: str, values: Any) -> Any:
    stop = STOPS[title]
    return theory.risk(gs.Grid(stop.problem, {stop.view["x"]: values}), d=stop.view.get("d"))


def floor(problem: gs.Problem) -> float:
    return theory.bounds(problem.replace({"steps": DEFAULT.steps}))["linear"]


def test_there_are_eight_stops() -> None:
    assert len(TOUR) == 8


def test_a_spike_appears_between_the_first_two_stops() -> None:
    assert theory.weights(STOPS["What a spike is"].problem).count == 1
    hidden = STOPS["When it appears"].problem
    assert theory.weights(hidden).count == 0
    assert 2.0 < theory.critical_rate(hidden) < 6.0
    fewer = {"steps.0.samples": 2.0}
    assert theory.critical_rate(hidden.replace(fewer)) < theory.critical_rate(hidden)
    large = STOPS["What a spike is"].problem
    (many,), (few,) = (theory.weights(p).spikes for p in (large, large.replace(fewer)))
    assert few.overlaps["teacher"] < many.overlaps["teacher"]


def test_the_floor_is_not_passed_by_a_small_step_and_is_by_a_giant_one() -> None:
    samples = [1.0, 6.0, 20.0, 1000.0]
    small, giant = curve("The floor", samples), curve("Passing it", samples)
    below = floor(DEFAULT)
    assert np.all(small.test > below)
    assert np.all(small.test < small.initial.test)
    assert giant.test[1] < below


def test_the_staircase_falls_below_the_floor_after_one_quarter() -> None:
    test = curve("The staircase", [0.2, 0.25, 0.35, 0.4]).test
    below = 1.0  # the quadratic part of the teacher
    assert test[0] > test[1] > below
    assert np.all(test[2:] < 0.6 * below)


def test_the_readout_peaks_at_as_many_samples_as_neurons() -> None:
    width = STOPS["Readouts"].problem.width
    test = curve("Readouts", [0.5 * width, width, 2 * width]).test
    assert test[1] > 2 * max(test[0], test[2])
    penalised = STOPS["Readouts"].problem.replace({"readout.penalty": 0.3})
    axes = {"readout.samples": [0.5 * width, width, 2 * width]}
    mild = np.asarray(theory.risk(gs.Grid(penalised, axes)).test)
    assert mild[0] > mild[1] > mild[2]  # no peak
    assert theory.risk(penalised.replace({"readout.penalty": 30.0})).test > 1.2 * mild[1]


def test_a_second_step_helps_and_a_large_one_overshoots() -> None:
    test = curve("Two steps", [0.05, 1.0, 10.0]).test
    assert test[1] < test[0]
    assert test[2] > test[1]


def test_a_reused_batch_sees_the_teacher_and_a_fresh_one_does_not() -> None:
    reused = STOPS["Reuse"].problem
    fresh = reused.replace({"steps.1.batch": "fresh"})
    (seen,), (unseen,) = (theory.weights(problem).spikes for problem in (reused, fresh))
    assert seen.overlaps["teacher"] > 0.1
    assert np.abs(unseen.overlaps["teacher"]) < 1e-9


@pytest.mark.parametrize("start", GALLERY, ids=lambda start: start.title)
def test_a_starting_point_is_a_state_of_the_page(start: Any) -> None:
    paths = start.problem.paths()
    plane = start.view.get("plane", {})
    for path in (start.view["x"], plane.get("x", "width"), plane.get("y", "width")):
        assert path in paths
    assert start.figure == "" or start.figure in FIGURES
    body = {"question": "risk", "problem": start.problem.to_data(), "d": start.view.get("d")}
    assert Ask.read(body).target == start.problem
