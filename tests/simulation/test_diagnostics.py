"""Diagnostics of runs against matrices written out, and against theory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.functions import MultiIndex, SingleIndex
from giantsteps.gaussian import moments
from giantsteps.simulation._bias_variance import _decompose, _errors
from giantsteps.theory.steps.first import first_step

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.5,
    steps=[gs.Step(samples=4.0, rate=1.0, exponent=0.5)],
    readout=gs.Ridge(samples=3.0, penalty=0.1),
)


# Degrees of freedom ---------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [0.7, 3.0])
def test_degrees_of_freedom_are_traces_of_the_hat_matrix(samples: float) -> None:
    problem = PROBLEM.replace({"readout.samples": samples})
    run = simulation.run(problem, 60, seed=0)
    found = run.degrees_of_freedom()
    features, n, neurons = run.arrays["Phi"], run.sizes.samples, run.sizes.neurons
    assert n is not None
    kernel, shift = features @ features.T, 0.1 * n / neurons
    hat = kernel @ np.linalg.inv(kernel + shift * np.eye(n))
    assert found.df1 == pytest.approx(np.trace(hat) / n, rel=1e-9)
    assert found.hat_square == pytest.approx(np.trace(hat @ hat) / n, rel=1e-8)
    assert found.kappa == pytest.approx(0.1 / (1 - found.df1), rel=1e-12)


def test_df2_is_the_derivative_of_the_effective_penalty() -> None:
    up, down = (
        simulation.degrees_of_freedom(PROBLEM.replace({"readout.penalty": 0.1 + h}), 60).kappa
        for h in (1e-5, -1e-5)
    )
    found = simulation.degrees_of_freedom(PROBLEM, 60)
    assert 1 / (1 - found.df2) == pytest.approx((up - down) / 2e-5, rel=1e-7)


def test_degrees_of_freedom_without_penalty() -> None:
    grid = gs.Grid(PROBLEM.replace({"readout.penalty": 0.0}), {"readout.samples": [0.5, 3.0]})
    found = simulation.degrees_of_freedom(grid, 60)
    kappa, df2 = np.asarray(found.kappa), np.asarray(found.df2)
    assert found.df1 == pytest.approx([1.0, 0.5])
    assert df2[1] == pytest.approx(0.5)
    assert kappa[1] == 0.0
    tiny = simulation.degrees_of_freedom(grid.replace({"readout.penalty": 1e-7}), 60)
    assert np.asarray(tiny.kappa)[0] == pytest.approx(kappa[0], rel=1e-4)
    assert np.asarray(tiny.df2)[0] == pytest.approx(df2[0], rel=1e-4)


@pytest.mark.agreement
@pytest.mark.parametrize(
    "changes",
    [{}, {"steps.0.exponent": 0.0}, {"readout.samples": 1.0, "init.second_layer": "constant"}],
)
def test_degrees_of_freedom_of_networks(changes: dict[str, Any]) -> None:
    """κ, df₁ and df₂ of networks, resolved to 1 %; what is left falls as 1/d."""
    problem, d, seeds = PROBLEM.replace(changes), 200, 5
    exact = theory.degrees_of_freedom(problem, d)
    runs = [simulation.degrees_of_freedom(problem, d, seed) for seed in range(seeds)]
    for name in ("kappa", "df1", "df2"):
        values, wanted = [getattr(run, name) for run in runs], getattr(exact, name)
        error = np.std(values, ddof=1) / math.sqrt(seeds)
        assert 3 * error / wanted < 0.01
        assert np.mean(values) == pytest.approx(wanted, rel=0.01)


# Alignments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("samples", "device"), [(0.7, "cpu"), (3.0, "cpu"), (0.7, "torch"), (3.0, "torch")]
)
def test_kernel_alignment(samples: float, device: str) -> None:
    problem = PROBLEM.replace({"readout.samples": samples})
    run = simulation.run(problem, 40, seed=1, device=device)
    host = simulation.run(problem, 40, seed=1)
    y, features = host.arrays["y"], host.arrays["Phi"]
    kernel = features @ features.T
    wanted = y @ kernel @ y / (np.linalg.norm(kernel) * (y @ y))
    assert run.kernel_alignment() == pytest.approx(wanted, rel=1e-10)
    x, weights = host.arrays["X"], host.arrays["W1"]
    slopes = 1 - np.tanh(x @ weights) ** 2
    tangent = (x @ x.T / 40) * (slopes @ slopes.T / 60)
    wanted = y @ tangent @ y / (np.linalg.norm(tangent) * (y @ y))
    assert run.kernel_alignment(kind="tangent") == pytest.approx(wanted, rel=1e-10)
    with pytest.raises(gs.InvalidProblem, match="kind"):
        run.kernel_alignment(kind="both")  # type: ignore[arg-type]


@pytest.mark.agreement
def test_a_small_step_aligns_the_kernel() -> None:
    """⟨K, yyᵀ⟩ and ‖K‖_F of Gaussian-equivalent features, in closed form."""
    problem = PROBLEM.replace({"steps.0.exponent": 0.0, "steps.0.rate": 3.0})
    d, seeds = 200, 48
    step = first_step(problem)
    assert isinstance(problem.teacher, SingleIndex)
    sigma, teacher = moments(problem.activation), moments(problem.teacher.link)
    width, ratio = problem.width, 2.0
    labels = teacher.second_moment + 0.05
    spiked = width + step.strength**2 * step.alignment
    inner = ratio * sigma.linear**2 * teacher.linear**2 * spiked + labels * sigma.second_moment
    square = sigma.second_moment**2 * (1 + ratio) + ratio * width * sigma.linear**4
    wanted = inner / labels / math.sqrt(square * 3 * d)
    found = [simulation.run(problem, d, seed).kernel_alignment() for seed in range(seeds)]
    error = np.std(found, ddof=1) / math.sqrt(seeds)
    assert 3 * error / wanted < 0.05
    assert abs(np.mean(found) - wanted) < 3 * error
    untrained = [simulation.run(problem.untrained(), d, s).kernel_alignment() for s in range(4)]
    assert np.mean(untrained) < 0.8 * np.mean(found)


def test_neuron_alignments() -> None:
    run = simulation.run(PROBLEM, 50, seed=0)
    weights, beta = run.arrays["W1"], run.arrays["beta"][:, 0]
    wanted = beta @ weights / np.linalg.norm(weights, axis=0)
    np.testing.assert_allclose(run.neuron_alignments(), wanted, atol=1e-12)
    # Neurons turn towards the teacher by the sign of their second layer, random ones do not.
    assert np.corrcoef(run.neuron_alignments(), run.arrays["a"])[0, 1] > 0.7
    before = run.after(0).neuron_alignments()
    assert abs(np.corrcoef(before, run.arrays["a"])[0, 1]) < 0.4
    assert np.std(before) == pytest.approx(1 / math.sqrt(50), rel=0.2)
    pair = PROBLEM.replace({"teacher": MultiIndex("x0 + x1", 2)})
    assert simulation.run(pair, 50, seed=0).neuron_alignments().shape == (75, 2)
    data = gs.Data(run.arrays["X"][:140], run.arrays["y"][:140])
    own = PROBLEM.replace({"steps.0.samples": 1.0, "readout.samples": 1.0})
    with pytest.raises(gs.InvalidProblem, match="no known teacher"):
        simulation.run(own, data=data).neuron_alignments()


# Bias and variance ----------------------------------------------------------------------------


def test_bias_and_variance_of_known_errors() -> None:
    """Errors a + b_s: bias a², variance Var b, unbiased, and the sum is exact."""
    rng = np.random.default_rng(0)
    common, own = rng.standard_normal(20_000), rng.standard_normal((40, 20_000))
    errors = 0.7 * common + 0.5 * own + 0.3 * rng.standard_normal((40, 1))
    found = _decompose(errors)
    assert found["bias"] + found["variance"] == pytest.approx(np.mean(errors**2), rel=1e-12)
    assert found["bias"] == pytest.approx(0.49, abs=4 * found["bias_error"])
    assert found["variance"] == pytest.approx(0.25 + 0.09, abs=4 * found["variance_error"])
    assert found["test_error"] == pytest.approx(
        np.std(np.mean(errors**2, axis=1), ddof=1) / math.sqrt(40), rel=1e-9
    )


@pytest.mark.parametrize("teacher", ["sin", MultiIndex("x0 + x1 * x2", 3)])
def test_all_networks_have_the_first_teacher(teacher: str | MultiIndex) -> None:
    """By hand: the labels of each seed's own inputs, from the first seed's teacher."""
    problem = PROBLEM.replace({"teacher": teacher, "noise_variance": 0.0})
    first, other = (simulation.run(problem, 30, seed) for seed in (0, 1))
    taught = other.taught_by(first).arrays
    np.testing.assert_array_equal(taught["beta"], first.arrays["beta"])
    np.testing.assert_array_equal(taught["X0"], other.arrays["X0"])
    np.testing.assert_array_equal(taught["y0"], problem.teacher(taught["X0"] @ taught["beta"]))
    np.testing.assert_array_equal(taught["W0"], other.arrays["W0"])


def test_noise_of_the_labels_is_variance() -> None:
    """A linear fit of noisy labels: the bias stays, the variance grows by Δ df₂/(1 − df₂).

    One draw of the noise a network resolves the growth to 15 %: it is all of it or none.
    """
    problem, d = PROBLEM.untrained().replace({"noise_variance": 0.0}), 100
    grid = gs.Grid(problem, {"noise_variance": [0.0, 1.0]})
    found = simulation.bias_variance(grid, d, 24, test_samples=2000)
    assert found.seeds == 24
    bias, bias_error = np.asarray(found.bias), np.asarray(found.bias_error)
    variance, variance_error = np.asarray(found.variance), np.asarray(found.variance_error)
    assert bias[1] == pytest.approx(bias[0], abs=3 * bias_error[1])
    df2 = theory.degrees_of_freedom(problem, d).df2
    grown = variance[1] - variance[0]
    assert grown == pytest.approx(df2 / (1 - df2), abs=3 * variance_error[1])
    assert 3 * variance_error[1] / grown < 0.15
    np.testing.assert_allclose(found.bias + found.variance, found.test, rtol=1e-12)
    # Points are those of the first seed, whose network is that of `risk`.
    noisy = grid[1]
    assert isinstance(noisy, gs.Problem)
    first, other = (simulation.run(noisy, d, seed, test_samples=2000) for seed in (0, 1))
    other = other.taught_by(first)
    assert np.mean(_errors(first, first) ** 2) == pytest.approx(first.risk().test, rel=1e-10)
    assert np.mean(_errors(first, other) ** 2) == pytest.approx(other.risk().test, rel=0.1)


def test_bias_variance_refusals() -> None:
    with pytest.raises(gs.InvalidProblem, match="three different seeds"):
        simulation.bias_variance(PROBLEM, 30, 2)
    with pytest.raises(gs.InvalidProblem, match="three different seeds"):
        simulation.bias_variance(PROBLEM, 30, [1, 1, 2])
    with pytest.raises(gs.InvalidProblem, match="number of points"):
        simulation.bias_variance(PROBLEM, 30, 3, test_samples="exact")
    with pytest.raises(gs.InvalidProblem, match="readout"):
        simulation.bias_variance(PROBLEM.replace({"readout": None}), 30, 3)
