"""Inputs with a covariance: laws, labels, teachers, whitening, preconditioned steps."""

from __future__ import annotations

import math

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation
from giantsteps.functions import MultiIndex
from giantsteps.problem import Inputs

LAWS: list[Inputs] = [
    gs.Covariance((0.3, 1.7), (0.5, 0.5), (0.2, 0.8)),
    gs.PowerLaw(0.4, 0.3),
    gs.SpikedCovariance(4, 0.6),
]
PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.1,
    width=1.5,
    steps=[gs.Step(samples=3.0, rate=1.0, exponent=0.5)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
)


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("teacher", ["sin", MultiIndex("x0 * x1", 2)])
def test_covariance_of_inputs_and_norm_of_teachers(law: Inputs, teacher: object) -> None:
    problem = PROBLEM.replace(inputs=law, teacher=teacher)
    run = simulation.run(problem, 60, 3, test_samples=40_000)
    variances, beta = law.variances(60), run.arrays["beta"]
    x = run.arrays["X_test"]
    error = np.sqrt(2 / len(x)) * variances
    assert np.all(np.abs(x.var(axis=0) - variances) < 4.5 * error)
    products = beta.T @ (variances[:, None] * beta)
    np.testing.assert_allclose(products, np.eye(beta.shape[1]), atol=1e-12)
    labels = problem.teacher(x @ beta)
    np.testing.assert_allclose(run.arrays["f_test"], labels, atol=1e-13)
    for name in "0":  # batches of the steps and of the readout follow the same law
        spread = (run.arrays[f"X{name}"] / np.sqrt(variances)).var()
        assert abs(spread - 1) < 5 * np.sqrt(2 / (180 * 60))


def test_shares_of_a_teacher_are_exact() -> None:
    for seed in range(3):
        law = LAWS[0]
        beta = simulation.run(PROBLEM.replace(inputs=law), 60, seed).arrays["beta"][:, 0]
        squares = beta**2 / np.sum(beta**2)
        np.testing.assert_allclose([squares[:30].sum(), squares[30:].sum()], (0.2, 0.8))
        beta = simulation.run(PROBLEM.replace(inputs=LAWS[2]), 60, seed).arrays["beta"][:, 0]
        assert beta[0] ** 2 / np.sum(beta**2) == pytest.approx(0.6)
        several = PROBLEM.replace(inputs=LAWS[2], teacher=MultiIndex("x0 * x1", 2))
        beta = simulation.run(several, 200, seed).arrays["beta"]
        assert beta[0, 0] ** 2 / np.sum(beta[:, 0] ** 2) == pytest.approx(0.6)
        assert beta[0, 1] ** 2 < 0.1
    law = gs.PowerLaw(0.4, 0.3)
    beta = simulation.run(PROBLEM.replace(inputs=law), 60, 0).arrays["beta"][:, 0]
    squares = beta**2 * np.arange(1, 61) ** 0.3
    np.testing.assert_allclose(squares, squares.mean())
    assert 10 < np.sum(beta > 0) < 50


@pytest.mark.parametrize(
    "law", [gs.Covariance((1,), (1,)), gs.PowerLaw(0), gs.SpikedCovariance(0, 0.0)]
)
def test_no_structure_is_the_isotropic_run(law: Inputs) -> None:
    expected = simulation.risk(PROBLEM, 50, 0, test_samples=500)
    found = simulation.risk(PROBLEM.replace(inputs=law), 50, 0, test_samples=500)
    if not isinstance(law, gs.SpikedCovariance):  # whose teacher has no share of the spike
        assert found.test == pytest.approx(expected.test, rel=1e-12)
    assert law.isotropic


def test_whitening_turns_a_preconditioned_step_into_an_isotropic_one() -> None:
    """With w' = Σ^{1/2}w, a step preconditioned by Σ^{-1} is the isotropic step from w'."""
    problem = PROBLEM.replace({"inputs": LAWS[0], "steps.0.precondition": 1.0})
    run = simulation.run(problem, 60, 0)
    root = np.sqrt(LAWS[0].variances(60))[:, None]
    w, a = run.arrays["W0"] * root, run.arrays["a"]
    x, y = run.arrays["X0"] / root.T, run.arrays["y0"]
    f = np.tanh(x @ w) @ a / math.sqrt(90)
    update = x.T @ ((y - f)[:, None] * a * (1 - np.tanh(x @ w) ** 2)) / len(y)
    expected = w + math.sqrt(90) * update
    np.testing.assert_allclose(run.arrays["W1"] * root, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_a_preconditioner_is_a_power_of_the_covariance(power: float) -> None:
    law = gs.PowerLaw(0.6)
    plain, turned = (
        simulation.run(PROBLEM.replace({"inputs": law, "steps.0.precondition": p}), 60, 0)
        for p in (0.0, power)
    )
    moved = [run.arrays["W1"] - run.arrays["W0"] for run in (plain, turned)]
    scale = law.variances(60)[:, None] ** -power
    np.testing.assert_allclose(moved[1], scale * moved[0], rtol=0, atol=1e-12)
    same = [  # a positive factor for each coordinate has no sign
        simulation.run(
            PROBLEM.replace({"inputs": law, "steps.0.precondition": p, "steps.0.rule": "sign"}),
            60,
            0,
        ).arrays["W1"]
        for p in (0.0, power)
    ]
    np.testing.assert_array_equal(*same)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_the_exact_risk_is_that_over_points(law: Inputs) -> None:
    problem = PROBLEM.replace(inputs=law)
    exact = simulation.risk(problem, 60, 1, test_samples="exact")
    sampled = simulation.risk(problem, 60, 1, test_samples=100_000)
    assert sampled.standard_error is not None
    assert exact.by_degree is not None
    assert sampled.by_degree is not None
    assert np.abs(sampled.test - exact.test) < 3.5 * sampled.standard_error
    assert sampled.standard_error < 0.02 * exact.test
    atol = 0.02 * float(exact.test)
    np.testing.assert_allclose(exact.by_degree, sampled.by_degree, atol=atol)


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("along", ["teacher", "spike"])
def test_the_learned_function_is_a_conditional_mean(law: Inputs, along: str) -> None:
    """Against the regression of f̂ on ⟨u, x⟩ over test points, in bins."""
    problem = PROBLEM.replace(inputs=law)
    run = simulation.run(problem, 60, 1, test_samples=60_000)
    direction = run.arrays["beta"][:, 0] if along == "teacher" else run.arrays["b"]
    if along == "spike" and direction @ (law.variances(60) * run.arrays["beta"][:, 0]) < 0:
        direction = -direction
    x = run.arrays["X_test"]
    k = x @ direction / np.sqrt(np.sum(law.variances(60) * direction**2))
    phi, y = run.arrays["Phi"], run.arrays["y"]
    coefficients = np.linalg.solve(phi.T @ phi + 120 * 0.1 / 90 * np.eye(90), phi.T @ y)
    predicted = np.tanh(x @ run.arrays["W1"]) @ coefficients / math.sqrt(90)
    found = run.learned_function(along=along, x=[-1.0, 0.0, 1.0], draws=4096)
    assert found.standard_error is not None
    for point, mean, error in zip((-1.0, 0.0, 1.0), found.mean, found.standard_error):
        near = np.abs(k - point) < 0.05
        noise = math.hypot(predicted[near].std() / math.sqrt(near.sum()), error)
        assert abs(predicted[near].mean() - mean) < 4.5 * noise
    assert np.linalg.norm(run.neuron_alignments()) < math.sqrt(90)


def test_every_question_takes_structured_inputs() -> None:
    problem = PROBLEM.replace(inputs=gs.PowerLaw(0.5), teacher="sign")
    spectra = ("weights", "kernel", "features")
    for question in (*spectra, "gradient", "degrees_of_freedom", "movement", "trajectory"):
        assert getattr(simulation, question)(problem, 60, 0).source == "simulation"
    assert simulation.bias_variance(problem, 40, 4, test_samples=200).seeds == 4
    overlap = simulation.weights(problem, 200, 0).spikes[0].overlaps["teacher"]
    assert 0.1 < overlap <= 1


def test_laws_of_entries_compose_with_a_covariance() -> None:
    problem = PROBLEM.replace(inputs=LAWS[0])
    x = simulation.run(problem, 40, 0, inputs="rademacher").arrays["X"]
    np.testing.assert_allclose(np.abs(x), np.sqrt(LAWS[0].variances(40)) + 0 * x)
