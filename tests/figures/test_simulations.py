"""What figures remember: nothing is simulated twice, and nothing that was done is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from giantsteps import simulation
from giantsteps.campaign import Store
from giantsteps.errors import GiantstepsError, InvalidProblem
from giantsteps.figures import FIGURES
from giantsteps.figures._networks import leading_vectors, risk_of_its_weights, spiked_ridge
from giantsteps.figures._simulations import Measured, Simulations
from giantsteps.problem import Grid, Problem, Ridge, Step
from giantsteps.theory import risk_of_weights

pytest.importorskip("matplotlib")

#: One figure of each kind, small: errors, a spectrum with vectors, a learned function, what is
#: computed from given weights, and draws of a model.
SMALL: dict[str, dict[str, Any]] = {
    "ba2022-samples": {"d": 30, "seeds": 2, "samples": (0.5, 2.0), "fine": 3, "rates": (1.0,)},
    "ba2022-kernel": {"d": 60, "seeds": 2},
    "cui2024-1": {"d": 40, "seeds": 2, "batches": (2.0,)},
    "ba2022-steps": {"d": 30, "seeds": 2, "samples": (0.75, 2.0), "steps": (0, 1)},
    "cui2024-4": {"d": 30, "seeds": 2, "spikes": (1.0,), "samples": (0.5, 2.0), "fine": 3},
    "moniri2026-overlap": {"d": 60, "seeds": 2, "rates": (3.0,), "fine": 1},
}

PROBLEM = Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    steps=[Step(samples=3.0, rate=2.0)],
    readout=Ridge(samples=2.0, penalty=0.1),
)


@pytest.mark.parametrize("name", SMALL)
def test_a_second_run_in_paper_form_computes_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spy_on: Any
) -> None:
    make = FIGURES[name].make
    make("paper", tmp_path, formats=("svg",), **SMALL[name])
    before = (tmp_path / f"{name}.csv").read_bytes()
    spy = spy_on(monkeypatch, most=0)
    make("paper", tmp_path, formats=("svg",), **SMALL[name])
    assert (tmp_path / f"{name}.csv").read_bytes() == before
    assert not spy.devices


@pytest.mark.parametrize("name", SMALL)
def test_one_that_was_interrupted_goes_on(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spy_on: Any
) -> None:
    make = FIGURES[name].make
    monkeypatch.setattr("giantsteps.campaign._jobs.NETWORKS", {"cpu": 1, "gpu": 1})
    with monkeypatch.context() as patch:
        spy = spy_on(patch)
        make("paper", tmp_path / "whole", formats=(), **SMALL[name])
        whole = len(spy.devices)
    stop = whole // 2
    with monkeypatch.context() as patch:
        spy_on(patch, most=stop)
        with pytest.raises(KeyboardInterrupt):
            make("paper", tmp_path, formats=(), **SMALL[name])
    with Store(tmp_path / f"{name}.sqlite") as store:
        assert store.status(), "what was done is kept"
    with monkeypatch.context() as patch:
        spy = spy_on(patch)
        make("paper", tmp_path, formats=(), **SMALL[name])
    # A network that was at work when it was stopped, or one that had not been asked about before
    # its steps, may be drawn once more.
    assert len(spy.devices) <= whole - stop + 2
    csv = f"{name}.csv"
    assert (tmp_path / csv).read_bytes() == (tmp_path / "whole" / csv).read_bytes()


@pytest.mark.slow
def test_another_device_finds_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spy_on: Any
) -> None:
    """Random numbers are those of the host, so that a store serves every device."""
    pytest.importorskip("torch")
    for name, settings in SMALL.items():
        FIGURES[name].make("paper", tmp_path, formats=(), device="torch", **settings)
        there = FIGURES[name].make("smoke", tmp_path, formats=(), **settings)
        with monkeypatch.context() as patch:
            spy = spy_on(patch, most=0)
            here = FIGURES[name].make("paper", tmp_path, formats=(), **settings)
        assert not spy.devices
        for one, two in zip(here.draft.rows, there.draft.rows, strict=True):
            assert one["y"] == pytest.approx(two["y"], rel=1e-6, abs=1e-9, nan_ok=True)


def test_workers_give_the_same_numbers(tmp_path: Path) -> None:
    """Other processes find what a figure computes by itself."""
    settings = SMALL["cui2024-4"]
    FIGURES["cui2024-4"].make("smoke", tmp_path / "1", formats=(), **settings)
    FIGURES["cui2024-4"].make("smoke", tmp_path / "2", formats=(), workers=2, **settings)
    one, two = (tmp_path / number / "cui2024-4.csv" for number in "12")
    assert one.read_bytes() == two.read_bytes()


# The numbers themselves -----------------------------------------------------------------------


def test_leaves_over_a_grid_and_spectra(tmp_path: Path) -> None:
    simulations = Simulations(store=tmp_path / "figure.sqlite")
    grid = Grid(PROBLEM, {"steps.0.rate": [1.0, 4.0]})
    options = {"top": 2, "bulk": False}
    overlaps = simulations.measure(grid, "weights.overlap.teacher", d=40, seeds=3, **options)
    spectra = simulations.answers("features", PROBLEM, d=40, seeds=2, top=3)
    assert not simulations.store.exists(), "nothing runs before it is read"
    assert overlaps.samples.shape == (2, 2, 3)
    for index, cell in enumerate(grid):
        for seed in range(3):
            spikes = simulation.weights(cell, d=40, seed=seed, top=2).spikes
            assert overlaps.samples[index, :, seed] == pytest.approx([s.overlap for s in spikes])
    for seed, found in enumerate(spectra.value):
        wanted = simulation.features(PROBLEM, d=40, seed=seed, top=3)
        assert found.matrix == wanted.matrix
        assert found.d == wanted.d
        assert found.bulk.values == pytest.approx(wanted.bulk.values)  # type: ignore[union-attr]
        for one, two in zip(found.spikes, wanted.spikes, strict=True):
            assert one.degree == two.degree
            assert dict(one.overlaps) == pytest.approx(two.overlaps)
            assert one.value == pytest.approx(two.value)


def test_leading_vectors_are_those_of_the_features() -> None:
    found = leading_vectors(PROBLEM, 50, 1, device=None, top=2)
    arrays = simulation.run(PROBLEM, 50, 1).arrays
    left = np.linalg.svd(arrays["Phi"], full_matrices=False)[0][:, :2] * np.sqrt(len(arrays["y"]))
    signs = np.sign(np.sum(left * found["vectors"], axis=0))
    assert found["vectors"] * signs == pytest.approx(left, abs=1e-8)
    assert found["labels"] == pytest.approx(arrays["y"])
    b = arrays["b"]
    assert found["projection"] == pytest.approx(arrays["X"] @ b / np.linalg.norm(b))


def test_the_risk_of_its_weights_is_that_of_the_trained_ones() -> None:
    found = risk_of_its_weights(PROBLEM, 40, 2, device=None, samples=[0.75, 2.0])
    arrays = simulation.run(PROBLEM, 40, 2).arrays
    for alpha, test in zip((0.75, 2.0), found["test"], strict=True):
        cell = PROBLEM.replace({"readout.samples": alpha})
        assert test == risk_of_weights(arrays["W1"], arrays["beta"], cell).test
    before = risk_of_weights(arrays["W0"], arrays["beta"], PROBLEM.untrained()).test
    assert found["test"][1] != pytest.approx(before, rel=0.01)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_spiked_ridge_is_ridge_on_spiked_features(alpha: float) -> None:
    problem = Problem(activation="sin", teacher="sign", width=1.0)
    d, penalty, spike = 40, 0.1 / alpha, 1.5
    options: dict[str, Any] = {"spike": spike, "readouts": [(alpha, penalty), (alpha, 1.0)]}
    found = spiked_ridge(problem, d, 3, device=None, **options)["test"]
    rng = np.random.default_rng(3)
    weights = rng.standard_normal((d, d))
    weights /= np.linalg.norm(weights, axis=0)
    weights[0] += spike
    n = round(alpha * d)
    x = rng.standard_normal((n + 4 * d, d))
    phi, y = np.sin(x @ weights) / np.sqrt(d), np.sign(x[:, 0])
    for test, value in zip(found, (penalty, 1.0), strict=True):
        gram = phi[:n].T @ phi[:n] + n * value / d * np.eye(d)
        a = np.linalg.solve(gram, phi[:n].T @ y[:n])
        assert test == pytest.approx(np.mean((phi[n:] @ a - y[n:]) ** 2), rel=1e-9)


def test_measured_over_seeds() -> None:
    found = Measured.of([[1.0, 3.0], [2.0, 2.0]])
    assert found.mean == pytest.approx([2.0, 2.0])
    assert found.standard_error == pytest.approx([1.0, 0.0])
    assert found.map(lambda s: s.sum(axis=0)).mean == pytest.approx(4.0)
    assert Measured.stack([found, found])[:, 0].mean == pytest.approx([2.0, 2.0])
    assert Measured.of([[5.0]]).standard_error == pytest.approx([0.0])


def test_a_failed_network_is_an_error_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any, **options: Any) -> Any:
        raise InvalidProblem("weights", None, "better luck")

    def ask() -> Any:
        simulations = Simulations(store=tmp_path / "figure.sqlite")
        return simulations.measure(PROBLEM, "risk.test", d=30, seeds=2).samples

    with monkeypatch.context() as patch:
        patch.setattr(simulation.Run, "risk", broken)
        with pytest.raises(GiantstepsError, match=r"2 networks failed.*better luck"):
            ask()
    assert np.all(ask() > 0)
