"""`compare` as a campaign: parallel, kept, resumed, and with every option checked first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.campaign import Store
from giantsteps.errors import GiantstepsError, InvalidProblem, StoreError

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.5,
    steps=[gs.Step(samples=4, rate=10)],
    readout=gs.Ridge(samples=2, penalty=0.1),
)
GRID = gs.Grid(PROBLEM, {"readout.samples": [1.0, 2.0], "steps.0.rate": [2.0, 10.0]})


def direct(question: str, quantity: str, **options: Any) -> float:
    """The mean over seeds without a campaign."""
    ask = getattr(simulation, question)
    found = []
    for seed in range(3):
        value: Any = ask(PROBLEM, d=30, seed=seed, **options)
        for part in quantity.split("."):
            value = value[int(part)] if isinstance(value, tuple) else getattr(value, part)
        found.append(value)
    return float(np.mean(found))


@pytest.mark.parametrize(
    ("question", "quantity"),
    [
        ("risk", "test"),
        ("risk", "gain"),
        ("risk", "initial.train"),
        ("risk", "test_noisy"),
        ("weights", "spikes.0.value"),
        ("weights", "spikes.0.overlap"),
        ("kernel", "spikes.0.overlap"),
        ("gradient", "ratio"),
        ("degrees_of_freedom", "df1"),
    ],
)
def test_numbers_are_those_of_the_networks(question: str, quantity: str) -> None:
    found = gs.compare(PROBLEM, 30, seeds=3, question=question, quantities=quantity)
    assert found.quantities == (quantity,)
    assert found[quantity].largest.mean == pytest.approx(direct(question, quantity), rel=1e-9)


def test_an_array_is_compared_entry_by_entry() -> None:
    found = gs.compare(PROBLEM, 30, seeds=3, question="learned_function", along="teacher")
    points = theory.learned_function(PROBLEM, 30, along="teacher").x
    assert found["mean"].verdict.shape == points.shape
    table = found.to_columns()
    assert table["x"] == list(points)
    runs = [simulation.learned_function(PROBLEM, 30, s, along="teacher").mean for s in range(3)]
    np.testing.assert_allclose(table["simulation"], np.mean(runs, axis=0), rtol=1e-9, atol=1e-12)
    grid = gs.Grid(PROBLEM, {"width": [1.0, 1.5]})
    over = gs.compare(grid, 30, seeds=2, question="learned_function")
    assert np.shape(over["mean"].largest.t) == (2, points.size)
    one = gs.compare(PROBLEM, 30, seeds=2, quantities=["by_degree", "by_degree.1"])
    assert one["by_degree.1"].largest.mean == np.asarray(one["by_degree"].largest.mean)[1]
    assert len(one.to_columns()["t"]) == np.size(one["by_degree"].largest.mean) + 1


def test_workers_and_a_store_change_no_number(tmp_path: Path) -> None:
    alone = gs.compare(GRID, [20, 30], seeds=6)
    shared = gs.compare(GRID, [20, 30], seeds=6, workers=2, store=tmp_path / "networks.sqlite")
    for name in alone.quantities:
        for one, two in zip(alone[name].by_size, shared[name].by_size):
            np.testing.assert_allclose(one.mean, two.mean, rtol=1e-9)


def test_what_was_stopped_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("giantsteps.campaign._run.SAVE", 0.0)
    monkeypatch.setattr("giantsteps.campaign._jobs.NETWORKS", {"cpu": 1, "gpu": 1})
    store = tmp_path / "networks.sqlite"

    def stop(done: int, failed: int, total: int) -> None:
        if done >= 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gs.compare(PROBLEM, 30, seeds=8, store=store, progress=stop)
    seen: list[tuple[int, int, int]] = []
    found = gs.compare(PROBLEM, 30, seeds=8, store=store, progress=lambda *n: seen.append(n))
    assert 6 <= seen[0][0] < 16
    assert seen[-1] == (16, 0, 16)  # before and after the step
    assert found["test"].largest.mean == gs.compare(PROBLEM, 30, seeds=8)["test"].largest.mean
    seen.clear()
    gs.compare(PROBLEM, 30, seeds=10, store=store, progress=lambda *n: seen.append(n))
    assert (seen[0], seen[-1]) == ((16, 0, 20), (20, 0, 20))


def test_a_sweep_finds_the_networks_of_a_comparison(tmp_path: Path) -> None:
    store = tmp_path / "shared.sqlite"
    gs.compare(GRID, 20, seeds=3, store=store)
    sweep = gs.Sweep(grid=GRID, d=20, seeds=3, store=store, sources=["simulation"])
    assert sweep.status().complete
    with Store(store) as opened:
        assert len(opened.status()) == len(sweep.addresses)


def test_a_store_that_is_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a store")
    with pytest.raises(StoreError, match="a file of another kind"):
        gs.compare(PROBLEM, 20, seeds=2, store=file)
    assert file.read_text() == "not a store"


def test_a_network_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(simulation.Run, "risk", broken)
    with pytest.raises(GiantstepsError, match="networks failed: ZeroDivisionError: by zero"):
        gs.compare(PROBLEM, 20, seeds=2)


def own(problem: Any, *, d: int, seed: int) -> Any:
    return simulation.risk(problem, d=d, seed=seed)


def test_a_simulation_of_ones_own_runs_on_workers_too(tmp_path: Path) -> None:
    alone = gs.compare(PROBLEM, 20, seeds=3)
    shared = gs.compare(PROBLEM, 20, seeds=3, simulation=simulation.risk, workers=2)
    assert shared["gain"].largest.mean == pytest.approx(alone["gain"].largest.mean, rel=1e-9)
    with pytest.raises(InvalidProblem, match="a function of a module"):
        gs.compare(PROBLEM, 20, seeds=3, simulation=lambda *a, **k: own(*a, **k), workers=2)
    with pytest.raises(InvalidProblem, match="nobody could tell when it changes"):
        gs.compare(PROBLEM, 20, seeds=3, simulation=own, store=tmp_path / "s.sqlite")


def test_data_of_ones_own_can_be_compared_but_not_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((4000, 20))
    data = gs.Data(inputs, inputs[:, 0], inputs[:500], inputs[:500, 0])
    found = gs.compare(PROBLEM, 20, seeds=2, data=data, quantities="train")
    assert np.isfinite(found["train"].largest.mean)
    with pytest.raises(InvalidProblem, match="None with this data"):
        gs.compare(PROBLEM, 20, seeds=2, data=data, store=tmp_path / "s.sqlite")


@pytest.mark.parametrize(
    ("options", "field", "hint"),
    [
        ({"test_sample": 50}, "test_sample", 'did you mean "test_samples"'),
        ({"kind": "tangent"}, "kind", "only simulation takes it"),
        ({"quantities": "tset"}, "quantities", 'did you mean "test"'),
        ({"quantities": ()}, "quantities", "names of numbers"),
        ({"quantities": [3]}, "quantities", "names of numbers"),
        ({"question": "bounds"}, "question", "only theory answers"),
        ({"question": "tangent_risk"}, "question", "only simulation answers"),
        ({"question": "weights", "quantities": "spikes.7.value"}, "quantities", "spikes.0.value"),
        ({"workers": 0}, "workers", ">= 1"),
        ({"device": "gpu"}, "device", "cuda"),
        ({"memory": "lots"}, "memory", "GB"),
        ({"time_limit": -1.0}, "time_limit", "positive number"),
    ],
)
def test_options_are_checked_in_words(options: dict[str, Any], field: str, hint: str) -> None:
    with pytest.raises(InvalidProblem) as caught:
        gs.compare(PROBLEM, 20, seeds=2, **options)
    assert caught.value.field == field
    assert hint in str(caught.value)
