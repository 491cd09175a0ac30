"""Inputs of another law than the Gaussian one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.simulation._engine._memory import BLOCK


def make(**changes: object) -> gs.Problem:
    problem = gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.1,
        width=0.6,
        steps=[gs.Step(samples=2.0, rate=1.5)],
        readout=gs.Ridge(samples=3.0, penalty=0.5),
    )
    return problem.replace(changes)


def stretched(rng: np.random.Generator, rows: int, d: int) -> np.ndarray:
    """Covariance I, but a random length: universality does not hold."""
    return rng.standard_normal((rows, d)) * np.sqrt(rng.chisquare(3, (rows, 1)) / 3)


@pytest.mark.agreement
@pytest.mark.parametrize(
    ("inputs", "seeds", "universal"), [("rademacher", 80, True), (stretched, 10, False)]
)
def test_universality(inputs: object, seeds: int, universal: bool) -> None:
    d, problem = 250, make()
    expected = theory.risk(problem, d=d).test
    options: dict[str, Any] = {"inputs": inputs, "test_samples": 4000}
    found = [float(simulation.risk(problem, d, seed, **options).test) for seed in range(seeds)]
    error = np.std(found, ddof=1) / np.sqrt(seeds)
    t = (np.mean(found) - expected) / error
    if universal:
        assert 3 * error / expected <= 0.02
        assert abs(t) <= 3
    else:
        assert abs(t) > 4


def test_signs_are_fair_and_independent() -> None:
    run = simulation.run(make(), 50, seed=0, inputs="rademacher")
    x, y, x_test = run.arrays["X0"], run.arrays["y0"], run.arrays["X_test"]
    assert set(np.unique(x)) == {-1.0, 1.0}
    assert abs(x_test.mean()) < 4 / np.sqrt(x_test.size)
    covariance = x_test.T @ x_test / len(x_test) - np.eye(50)
    assert np.max(np.abs(covariance)) < 5 / np.sqrt(len(x_test))
    # the teacher's labels of these inputs, with the noise of the Gaussian run
    gaussian = simulation.run(make(), 50, seed=0)
    beta = gaussian.arrays["beta"][:, 0]
    np.testing.assert_array_equal(run.arrays["beta"][:, 0], beta)
    np.testing.assert_array_equal(run.arrays["W0"], gaussian.arrays["W0"])
    noise = gaussian.arrays["y0"] - np.sin(gaussian.arrays["X0"] @ beta)
    np.testing.assert_allclose(y - np.sin(x @ beta), noise, atol=1e-13)


@pytest.mark.parametrize("inputs", ["rademacher", stretched])
def test_blocks_are_nested(inputs: object) -> None:
    def rows(samples: int) -> np.ndarray:
        problem = make(**{"readout.samples": samples / 20})
        return simulation.run(problem, 20, seed=0, inputs=inputs).arrays["X"]

    longest = rows(2 * BLOCK + 7)
    for samples in (5, BLOCK, BLOCK + 1):
        np.testing.assert_array_equal(rows(samples), longest[:samples])


def test_a_callable_changes_the_inputs_alone() -> None:
    def normal(rng: np.random.Generator, rows: int, d: int) -> np.ndarray:
        return rng.standard_normal((rows, d))

    for dtype in ("float64", "float32"):
        given = simulation.run(make(), 40, 0, inputs=normal, dtype=dtype)
        default = simulation.run(make(), 40, 0, dtype=dtype)
        for name in ("W0", "a", "beta"):
            np.testing.assert_array_equal(given.arrays[name], default.arrays[name])
        for name in ("X0", "X", "X_test"):
            found = given.arrays[name]
            assert found.dtype == dtype
            assert not np.array_equal(found, default.arrays[name])
            assert abs(found.var() - 1) < 5 * np.sqrt(2 / found.size)


@pytest.mark.parametrize("inputs", ["normal", None, 3, ["gaussian"]])
def test_refused_laws(inputs: object) -> None:
    with pytest.raises(gs.InvalidProblem, match=r"inputs = .*'rademacher'"):
        simulation.run(make(), 30, 0, inputs=inputs)


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (lambda rng, rows, d: np.ones((rows, d - 1)), "of shape"),
        (lambda rng, rows, d: np.full((rows, d), np.nan), "not finite"),
    ],
)
def test_refused_draws(law: object, message: str) -> None:
    with pytest.raises(gs.InvalidProblem, match=rf"inputs = .*{message}"):
        simulation.risk(make(), 30, 0, inputs=law)


def test_no_exact_expectation_over_another_law() -> None:
    with pytest.raises(gs.InvalidProblem, match="Gaussian inputs"):
        simulation.run(make(), 30, 0, inputs="rademacher", test_samples="exact")
