"""Optima against brute force, at bounds, under budgets, over grids."""

from __future__ import annotations

import dataclasses
import pickle
import time
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory

SMALL = gs.Problem(
    activation="tanh",
    teacher="tanh",
    noise_variance=0.1,
    width=1.25,
    steps=[gs.Step(samples=3.0, rate=3.0)],
    readout=gs.Ridge(samples=3.0, penalty=0.05),
)
LARGE = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.5,
    steps=[gs.Step(samples=2.0, rate=1.0, exponent=0.5)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
    init=gs.Init(second_layer="constant"),
)


def brute_force(problem: gs.Problem, path: str, values: np.ndarray, d: int | None = None) -> float:
    """The smallest error on a grid, refined once around its lowest point."""
    coarse = np.asarray(theory.risk(gs.Grid(problem, {path: values}), d).test)
    best = int(np.argmin(coarse))
    low, high = values[[max(best - 1, 0), min(best + 1, len(values) - 1)]]
    near = gs.Grid(problem, {path: np.linspace(low, high, 101)})
    fine = np.asarray(theory.risk(near, d).test)
    return min(coarse.min(), fine.min())


@pytest.mark.parametrize(
    ("problem", "path", "values", "d"),
    [
        (SMALL, "readout.penalty", np.geomspace(1e-6, 1e4, 200), None),
        (LARGE, "readout.penalty", np.geomspace(1e-6, 1e4, 120), None),
        (LARGE, "readout.penalty", np.geomspace(1e-6, 1e4, 120), 1000),
        (LARGE, "steps.0.rate", np.geomspace(1e-3, 10, 60), None),
        (SMALL, "width", np.geomspace(0.1, 10, 200), None),
    ],
)
def test_one_field_against_brute_force(
    problem: gs.Problem, path: str, values: np.ndarray, d: int | None
) -> None:
    found = theory.optimize(problem, over=(path,), d=d)
    best = brute_force(problem, path, values, d)
    assert found.value.test <= best + 1e-12
    assert found.value.test == pytest.approx(best, abs=1e-6)
    assert found.value == theory.risk(found.best, d)
    assert not found.at_bound[path]
    # A minimum: the error rises on both sides.
    for factor in (0.999, 1.001):
        aside = problem.replace({path: factor * found.arguments[path]})
        assert theory.risk(aside, d).test > found.value.test


def test_the_lower_of_two_valleys() -> None:
    """Without regularisation the error has a peak at n = N; the lower side wins, whichever."""
    problem = SMALL.replace({"readout.penalty": 1e-5, "noise_variance": 0.02})
    for bounds in ((0.2, 1.9), (0.5, 3.0)):
        values = np.geomspace(*bounds, 400)
        errors = np.asarray(theory.risk(gs.Grid(problem, {"readout.samples": values})).test)
        inside = np.flatnonzero(np.diff(np.sign(np.diff(errors))) < 0)
        assert inside.size == 1  # a peak
        found = theory.optimize(
            problem, over=("readout.samples",), bounds={"readout.samples": bounds}
        )
        assert found.value.test <= errors.min() + 1e-9
        assert found.value.test == pytest.approx(errors.min(), abs=1e-4)


def test_bounds_are_reported() -> None:
    found = theory.optimize(SMALL, over=("steps.0.rate",))
    assert found.at_bound == {"steps.0.rate": True}
    assert found.sides["steps.0.rate"] == 1
    assert found.arguments["steps.0.rate"] == 100.0
    low = theory.optimize(SMALL, bounds={"readout.penalty": (0.5, 3.0)})
    assert low.sides["readout.penalty"] == -1
    assert low.arguments["readout.penalty"] == 0.5


def test_bounds_that_start_at_zero() -> None:
    """The best penalty of a noiseless linear teacher with many samples is none."""
    problem = gs.Problem(
        activation="tanh",
        teacher="identity",
        width=3.0,
        readout=gs.Ridge(samples=8.0, penalty=1.0),
    )
    found = theory.optimize(problem, bounds={"readout.penalty": (0.0, 10.0)})
    best = brute_force(problem, "readout.penalty", np.linspace(0.0, 0.5, 301))
    assert found.value.test == pytest.approx(best, abs=1e-6)
    shares = theory.optimize(SMALL, over=("steps.0.rate",), bounds={"steps.0.rate": (0.0, 4.0)})
    assert shares.arguments["steps.0.rate"] == pytest.approx(4.0)


def test_two_fields() -> None:
    over = ("steps.0.rate", "readout.penalty")
    found = theory.optimize(LARGE, over=over)
    rate, penalty = (found.arguments[path] for path in over)
    near = {
        "steps.0.rate": rate * np.linspace(0.97, 1.03, 13),
        "readout.penalty": penalty * np.linspace(0.94, 1.06, 13),
    }
    around = np.asarray(theory.risk(gs.Grid(LARGE, near)).test)
    assert found.value.test <= around.min() + 1e-10
    far = {over[0]: np.geomspace(0.05, 8, 16), over[1]: np.geomspace(1e-4, 1e2, 31)}
    assert found.value.test <= np.min(theory.risk(gs.Grid(LARGE, far)).test)
    # Better than one after the other from the start.
    alone = theory.optimize(LARGE, over=over[:1])
    assert found.value.test < alone.value.test


def test_split_of_a_budget() -> None:
    problem, budget = LARGE, 4.0
    found = theory.optimize(problem, over=("steps.0.samples",), budget=budget)
    assert sum(found.arguments.values()) == pytest.approx(budget, abs=1e-12)
    assert set(found.arguments) == {"steps.0.samples", "readout.samples"}

    def error(step: float) -> float:
        changed = {"steps.0.samples": step, "readout.samples": budget - step}
        return float(theory.risk(problem.replace(changed)).test)

    best = found.arguments["steps.0.samples"]
    coarse = [error(step) for step in np.linspace(0.2, 3.8, 13)]
    fine = [error(step) for step in best + np.linspace(-0.06, 0.06, 7)]
    assert found.value.test <= min(coarse + fine) + 1e-12
    assert found.value.test == pytest.approx(min(fine), abs=1e-6)
    jointly = theory.optimize(
        problem, over=("steps.0.samples", "readout.samples", "readout.penalty"), budget=budget
    )
    assert jointly.value.test < found.value.test


def test_sizes_are_whole_numbers_at_finite_d() -> None:
    found = theory.optimize(LARGE, over=("steps.0.samples",), budget=4.0, d=50)
    step, rest = (round(50 * float(x), 9) for x in found.arguments.values())
    assert (step.is_integer(), rest.is_integer(), step + rest) == (True, True, 200)

    def error(step: float) -> float:
        changed = {"steps.0.samples": step / 50, "readout.samples": 4.0 - step / 50}
        return float(theory.risk(LARGE.replace(changed), 50).test)

    assert found.value.test == pytest.approx(min(map(error, range(20, 190, 9))), abs=1e-4)


def test_a_reused_batch_costs_nothing() -> None:
    steps = [
        gs.Step(samples=2.0, rate=0.5, exponent=0.5),
        gs.Step(samples=2.0, rate=0.5, exponent=0.5, batch="previous"),
    ]
    problem = LARGE.replace({"steps": steps})
    found = theory.optimize(
        problem, over=("steps.0.samples",), budget=4.0, bounds={"steps.0.samples": (1.0, 2.0)}
    )
    assert sum(found.arguments.values()) == pytest.approx(4.0)
    assert 1.0 <= found.arguments["steps.0.samples"] <= 2.0
    assert found.best.steps[1].samples == found.best.steps[0].samples


def test_a_grid_is_its_cells() -> None:
    grid = gs.Grid(LARGE, {"readout.samples": [0.5, 1.5, 4.0], "noise_variance": [0.0, 0.3]})
    found = theory.optimize(grid)
    penalty, test = found.arguments["readout.penalty"], found.value.test
    assert isinstance(penalty, np.ndarray)
    assert isinstance(test, np.ndarray)
    assert penalty.shape == test.shape == grid.shape
    at_bound = found.at_bound["readout.penalty"]
    assert isinstance(at_bound, np.ndarray)
    assert at_bound.shape == grid.shape
    for index in ((0, 0), (2, 1)):
        alone = theory.optimize(grid[index])
        cell = found[index]
        assert cell.arguments == alone.arguments
        assert cell.value.test == alone.value.test
        assert cell.solution == alone.solution
        assert found.best[index] == alone.best
    assert np.all(np.diff(found.value.test, axis=0) < 0)
    table = found.to_columns()
    assert table["arguments.readout.penalty"] == penalty.ravel().tolist()
    assert table["test"] == test.ravel().tolist()
    assert pickle.loads(pickle.dumps(found)) == found
    assert "readout.penalty" in repr(found)


def test_a_learning_curve_at_the_best_penalty_takes_seconds() -> None:
    grid = gs.Grid(LARGE, {"readout.samples": np.linspace(0.2, 4.0, 30)})
    start = time.process_time()
    curve = theory.optimize(grid)
    assert time.process_time() - start < 2.0
    fixed = theory.risk(grid).test
    assert np.all(curve.value.test <= fixed)
    assert np.all(np.diff(curve.value.test) < 0)  # no peak at n = N
    assert np.any(np.diff(theory.risk(grid.replace({"readout.penalty": 1e-5})).test) > 0)


def test_where_the_theory_has_no_answer_the_search_goes_on() -> None:
    """The exponents between two steps of the staircase have no limit: they are left out."""
    problem = SMALL.replace({"activation": gs.centered("relu"), "steps.0.rate": 1.0})
    with pytest.raises(gs.NotCovered):
        theory.risk(problem.replace({"steps.0.exponent": 0.25}))
    found = theory.optimize(
        problem, over=("steps.0.exponent",), bounds={"steps.0.exponent": (0.05, 0.45)}
    )
    for exponent in (0.1, 0.3, 0.4):
        here = theory.risk(problem.replace({"steps.0.exponent": exponent})).test
        assert found.value.test <= here + 1e-12


def test_an_error_that_is_infinite_everywhere() -> None:
    problem = SMALL.replace({"readout.penalty": 0.0, "readout.samples": SMALL.width})
    with pytest.raises(gs.NotCovered, match=r"readout\.penalty > 0"):
        theory.optimize(problem, over=("steps.0.rate",))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"over": ()}, "over"),
        ({"over": 3}, "over"),
        ({"over": ("readout.penalty", "readout.penalty")}, "over"),
        ({"over": ("readout.penaltie",)}, "readout.penalty"),
        ({"over": ("activation",)}, "number"),
        ({"over": ("noise_variance",)}, "no natural range"),
        ({"bounds": {"readout.penalty": (1.0, 0.1)}}, "lower < upper"),
        ({"bounds": {"readout.penalty": 3}}, "pair"),
        ({"bounds": {"steps.0.rate": (0.1, 1)}}, "for a field that is searched"),
        ({"budget": 4.0}, "samples of a step"),
        ({"budget": -1.0, "over": ("steps.0.samples",)}, "positive"),
        (
            {"budget": 2.0, "over": ("steps.0.samples",), "bounds": {"steps.0.samples": (1, 3)}},
            "inside",
        ),
    ],
)
def test_refusals(change: dict[str, Any], words: str) -> None:
    with pytest.raises(gs.InvalidProblem, match=words):
        theory.optimize(SMALL, **change)


def test_an_axis_of_the_grid_is_not_searched() -> None:
    grid = gs.Grid(SMALL, {"readout.penalty": [0.1, 0.2]})
    with pytest.raises(gs.InvalidProblem, match="the grid varies this one"):
        theory.optimize(grid)
    with pytest.raises(gs.InvalidProblem, match="Problem or a Grid"):
        theory.optimize("tanh")  # type: ignore[arg-type]
    with pytest.raises(gs.InvalidProblem, match="readout"):
        theory.optimize(SMALL.replace({"readout": None}), over=("steps.0.rate",))


def test_no_point_that_was_seen_is_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that ends somewhere else than in its lowest point answers with that point."""
    from giantsteps.theory.search.walk import minima

    true = theory.optimize(SMALL)

    def astray(brackets: Any, evaluate: Any, tolerance: float) -> Any:
        found = minima(brackets, evaluate, tolerance)
        ends = [(b.points[-1], b.values[-1]) for b in brackets]
        return [
            dataclasses.replace(f, point=np.array([x]), value=value)
            for f, (x, value) in zip(found, ends)
        ]

    monkeypatch.setattr("giantsteps.theory.search.optimize.minima", astray)
    again = theory.optimize(SMALL)
    assert again.value.test == pytest.approx(true.value.test, rel=1e-9)
