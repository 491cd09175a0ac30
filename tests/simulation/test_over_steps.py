"""Several steps: movement, trajectory, the readout on the last batch, what is kept."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation
from giantsteps.functions import MultiIndex
from giantsteps.simulation._cost import fits_memory, peak_bytes
from giantsteps.simulation._engine._memory import BLOCK, OVERHEAD

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.1,
    width=1.5,
    steps=[
        gs.Step(samples=3.0, rate=1.0, exponent=0.5),
        gs.Step(samples=2.0, rate=0.5, exponent=0.5, rule="sign", decay=0.2),
        gs.Step(samples=2.0, rate=2.0, exponent=0.25, batch="previous"),
    ],
    readout=gs.Ridge(samples=2.5, penalty=0.1),
)


# Movement -------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["scaled", "unscaled"])
def test_movement_by_hand(output: str) -> None:
    problem = PROBLEM.replace({"init.output": output})
    run = simulation.run(problem, 40, 0, test_samples=5000)
    found = run.movement()
    np.testing.assert_array_equal(found.step, [1, 2, 3])
    x, a = run.arrays["X_test"], run.arrays["a"]
    scale = 60**-0.5 if output == "scaled" else 1.0
    for number in range(3):
        before, after = run.arrays[f"W{number}"], run.arrays[f"W{number + 1}"]
        moved = after - before
        assert found.weights[number] == pytest.approx(
            np.linalg.norm(moved) / np.linalg.norm(before), rel=1e-10
        )
        assert found.spectral[number] == pytest.approx(
            np.linalg.norm(moved, 2) / np.linalg.norm(before, 2), rel=1e-8
        )
        assert found.preactivations[number] == pytest.approx(
            math.sqrt(np.mean((x @ moved) ** 2)), rel=1e-10
        )
        old, new = np.tanh(x @ before), np.tanh(x @ after)
        assert found.features[number] == pytest.approx(
            np.linalg.norm(new - old) / np.linalg.norm(old), rel=1e-10
        )
        change = scale * (new - old) @ a
        assert found.output[number] == pytest.approx(math.sqrt(np.mean(change**2)), rel=1e-10)


def test_movement_over_grids_devices_and_tables() -> None:
    pytest.importorskip("torch")
    grid = gs.Grid(PROBLEM, {"steps": [PROBLEM.steps, PROBLEM.steps[:1]], "width": [1.0, 2.0]})
    found = simulation.movement(grid, 40, 0, test_samples=500)
    assert found.weights.shape == (2, 2, 3)
    assert np.isnan(found.weights[1, :, 1:]).all()  # one step where others take three
    alone = simulation.movement(grid[0, 1], 40, 0, test_samples=500, device="torch")
    np.testing.assert_allclose(found.features[0, 1], alone.features, rtol=1e-10)
    assert found[0, 1].output.tolist() == found.output[0, 1].tolist()
    table = alone.to_columns()
    assert table["step"] == [1.0, 2.0, 3.0]
    assert table["features"] == alone.features.tolist()
    with pytest.raises(gs.InvalidProblem, match="at least one step"):
        simulation.movement(PROBLEM.untrained(), 40, 0)
    with pytest.raises(gs.InvalidProblem, match="a number of points"):
        simulation.movement(PROBLEM, 40, 0, test_samples="exact")


# Trajectory -----------------------------------------------------------------------------------


@pytest.mark.parametrize("short", [False, True])
def test_a_trajectory_is_the_runs_that_stop_early(short: bool) -> None:
    problem = PROBLEM.replace({"readout.samples": 4.0})
    run = simulation.run(problem, 60, 1)
    # Room for the readout of one first layer, not of all four.
    cells = {240: (0.1,)}
    least = peak_bytes(run, cells, 1) + OVERHEAD + BLOCK * run.budget.row_bytes(60, 90)
    options: dict[str, Any] = {"test_samples": 2000, "memory": least + 1000 if short else None}
    run = simulation.run(problem, 60, 1, **options)
    assert fits_memory(run, cells, 4) != short
    path = simulation.trajectory(problem, 60, 1, top=3, **options)
    np.testing.assert_array_equal(path.step, [0, 1, 2, 3])
    assert path.overlap is not None
    assert path.test is not None
    assert path.train is not None
    assert path.value.shape == path.overlap.shape == (4, 3)
    for number in range(4):
        stopped = run.after(number)
        risk, spikes = stopped.risk(), stopped.weights(top=3).spikes
        assert path.test[number] == pytest.approx(risk.test, rel=1e-10)
        assert path.train[number] == pytest.approx(risk.train, rel=1e-10)
        values = np.array([s.value for s in spikes])
        np.testing.assert_allclose(path.value[number], values, rtol=1e-9)
        overlaps = np.array([s.overlaps["teacher"] for s in spikes])
        np.testing.assert_allclose(path.overlap[number], overlaps, rtol=1e-6, atol=1e-9)


def test_trajectories_without_readout_or_teacher() -> None:
    bare = simulation.trajectory(PROBLEM.replace(readout=None), 40, 0)
    assert bare.test is None
    assert bare.train is None
    assert bare.value.shape == (4, 1)
    several = PROBLEM.replace(teacher=MultiIndex("x0 * x1", 2), noise_variance=0.0)
    overlap = simulation.trajectory(several, 40, 0, test_samples=200).overlap
    assert overlap is not None
    assert np.all(overlap <= 1 + 1e-12)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((600, 40))
    data = gs.Data(x, np.sin(x[:, 0]), x[:50], np.sin(x[:50, 0]))
    found = simulation.trajectory(PROBLEM, data=data)
    assert found.overlap is None
    assert not found.exact
    with pytest.raises(gs.InvalidProblem, match="top = 0"):
        simulation.trajectory(PROBLEM, 40, 0, top=0)


def test_steps_hold_one_network_at_a_time() -> None:
    """Ten steps take no more memory than one."""
    problem = PROBLEM.replace(
        {"steps": [gs.Step(samples=2, rate=0.1)], "readout": None, "width": 2.0}
    )
    peaks = []
    for count in (1, 10):
        run = simulation.run(problem.replace(steps=list(problem.steps) * count), 500, 0)
        tracemalloc.start()
        run.trained  # noqa: B018
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.02 * peaks[0]


# The readout on the last batch ----------------------------------------------------------------


def test_a_readout_on_the_last_batch_by_hand() -> None:
    problem = PROBLEM.replace({"readout.samples": 2.0, "readout.batch": "previous"})
    run = simulation.run(problem, 40, 0, test_samples=2000)
    np.testing.assert_array_equal(run.arrays["X"], run.arrays["X2"])
    np.testing.assert_array_equal(run.arrays["X"], run.arrays["X1"])  # which step three reuses
    x, y, w = run.arrays["X1"], run.arrays["y1"], run.arrays["W3"]
    phi = np.tanh(x @ w) / math.sqrt(60)
    a = np.linalg.solve(phi.T @ phi + 80 * 0.1 / 60 * np.eye(60), phi.T @ y)
    risk = run.risk()
    assert risk.train == pytest.approx(np.mean((y - phi @ a) ** 2), rel=1e-10)
    predicted = np.tanh(run.arrays["X_test"] @ w) @ a / math.sqrt(60)
    assert risk.test == pytest.approx(np.mean((predicted - run.arrays["f_test"]) ** 2), rel=1e-10)
    # Before the steps: the same samples.
    phi = np.tanh(x @ run.arrays["W0"]) / math.sqrt(60)
    a = np.linalg.solve(phi.T @ phi + 80 * 0.1 / 60 * np.eye(60), phi.T @ y)
    assert risk.initial is not None
    assert risk.initial.train == pytest.approx(np.mean((y - phi @ a) ** 2), rel=1e-10)
    together = run.risk(initial=True).initial
    assert together is not None
    assert together.train == pytest.approx(risk.initial.train, rel=1e-10)
    grid = gs.Grid(problem, {"readout.penalty": [0.1, 1.0], "steps.0.rate": [0.5, 1.0]})
    over = simulation.risk(grid, 40, 0, test_samples=2000)
    assert over.initial is not None
    assert np.asarray(over.test)[0, 1] == pytest.approx(risk.test, rel=1e-10)
    assert np.asarray(over.initial.train)[0, 0] == pytest.approx(risk.initial.train, rel=1e-10)
    assert simulation.kernel(problem, 40, 0).spikes[0].value > 0


def test_data_need_no_rows_for_a_readout_on_the_last_batch() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((80, 20))
    data = gs.Data(x, np.sin(x[:, 0]), x, np.sin(x[:, 0]))
    step = gs.Step(samples=4.0, rate=1.0)
    fresh = PROBLEM.replace({"steps": [step], "readout.samples": 4.0})
    with pytest.raises(gs.InvalidProblem, match="160 rows"):
        simulation.risk(fresh, data=data)
    run = simulation.run(fresh.replace({"readout.batch": "previous"}), data=data)
    np.testing.assert_array_equal(run.arrays["X"], x)
    assert run.risk().test > 0


def test_one_batch_used_twice_is_overfitted() -> None:
    """What it is for: features that saw the labels fit them better, and predict worse."""
    fresh = PROBLEM.replace({"steps": PROBLEM.steps[:1], "readout.samples": 3.0})
    twice = fresh.replace({"readout.batch": "previous"})
    risks = [
        simulation.batch("risk", problem, 150, range(24), test_samples=2000)
        for problem in (fresh, twice)
    ]
    for name, sign in (("train", -1), ("test", 1)):
        once, again = ([getattr(risk, name) for risk in several] for several in risks)
        change = sign * (np.array(again) - np.array(once))
        assert change.mean() > 4 * change.std(ddof=1) / math.sqrt(24)


# What answers say -----------------------------------------------------------------------------


def test_classification_errors() -> None:
    problem = PROBLEM.replace(teacher="sign")
    run = simulation.run(problem, 60, 0, test_samples=3000)
    phi, y = run.arrays["Phi"], run.arrays["y"]
    a = np.linalg.solve(phi.T @ phi + 150 * 0.1 / 90 * np.eye(90), phi.T @ y)
    predicted = np.tanh(run.arrays["X_test"] @ run.arrays["W3"]) @ a
    wrong = np.mean(np.sign(predicted) != run.arrays["f_test"])
    assert run.risk().classification_error == wrong
    initial = run.risk().initial
    assert initial is not None
    assert initial.classification_error is not None
    assert initial.classification_error > wrong
    assert run.risk(kind="tangent").classification_error is not None
    grid = gs.Grid(problem, {"readout.penalty": [0.1, 1.0]})
    over = simulation.risk(grid, 60, 0, test_samples=3000)
    assert np.asarray(over.classification_error)[0] == wrong
    assert simulation.risk(PROBLEM, 60, 0, test_samples=100).classification_error is None
    two = PROBLEM.replace(teacher=MultiIndex("sign(x0 * x1)", 2), noise_variance=0.0)
    error = simulation.risk(two, 60, 0, test_samples=2000).classification_error
    assert error is not None
    assert 0.2 < error < 0.6


def test_small_networks_carry_a_warning() -> None:
    assert simulation.risk(PROBLEM, 30, 0, test_samples=100).violated == ()
    small = simulation.risk(PROBLEM, 20, 0, test_samples=100)
    assert "about 30 (here 20)" in small.violated[0]
    assert small.initial is not None
    assert small.initial.violated == small.violated
    for question in ("weights", "gradient", "trajectory", "movement"):
        assert getattr(simulation, question)(PROBLEM, 20, 0).violated
