"""Two steps on one batch: covariance, norms and errors (theory §7)."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import giantsteps as gs
from giantsteps import theory
from giantsteps.theory.steps.one import neuron_law
from giantsteps.theory.steps.several.field import respond, two_step_field
from giantsteps.theory.steps.several.reused_norms import reused_norms
from giantsteps.theory.steps.several.sample_law import sample_law
from giantsteps.theory.steps.several.samples import Samples
from giantsteps.theory.steps.several.traces import gram_of_batch, trace_of_product

CUBIC, QUADRATIC = "x + (x**3 - 3*x)/6", "x + 0.5*(x**2 - 1)"


def large(
    activation: gs.Function | str,
    teacher: Any,
    rates: tuple[float, ...],
    samples: float,
    **others: Any,
) -> gs.Problem:
    """Large steps on one batch."""
    steps = [
        gs.Step(samples=samples, rate=rate, exponent=0.5, batch="previous" if number else "fresh")
        for number, rate in enumerate(rates)
    ]
    given = {"noise_variance": 0.1, "width": 1.0} | others
    return gs.Problem(activation=activation, teacher=teacher, steps=steps, **given)


@pytest.mark.parametrize(
    ("activation", "teacher", "rate", "close"),
    [
        ("tanh", "sin", 1.5, 1e-4),
        ("erf", CUBIC, 0.6, 1e-4),
        (gs.centered("gelu"), QUADRATIC, 1.2, 1e-4),
    ],
)
def test_norms_without_a_second_step_are_those_of_one(
    activation: gs.Function | str, teacher: Any, rate: float, close: float
) -> None:
    problem = large(activation, teacher, (rate,), 3.0, init=gs.Init(second_layer="constant"))
    one = neuron_law(problem, np.array([rate]))
    law = sample_law(problem.teacher, 0.1, 3.0)
    samples = Samples.of(law, law.label + 0.0 * law.mass, 1e-12)
    bulk = one.covariance()
    found = reused_norms(
        problem.activation, samples, np.ones(1), (rate, 0.0), bulk.totals, np.zeros(1)
    )
    norms = one.norms(gaussian=True)
    spread = 2 * (bulk.modes**2).sum(axis=1) + found.spread
    assert_allclose(spread, norms.spread[0], rtol=close)
    assert_allclose(found.growth, norms.growth[1], rtol=1e-5)
    # Along b̂: the stretch of the lean, and the covariance with the weights.
    unit = (samples.label / one.length)[None]
    assert_allclose(samples.inner(found.stretch, unit)[0, 0], norms.stretch[1, 0, 0], atol=1e-5)
    powers = samples.label ** np.arange(1, 4)[:, None] / np.array([[one.length], [1.0], [1.0]])
    loadings = np.delete(norms.loadings[0, 0, :4], 1)
    assert_allclose(
        samples.inner(found.linear + found.own, unit),
        samples.inner((loadings @ powers)[None], unit),
        atol=1e-4,
    )


def test_inner_products_of_sums_are_those_of_the_field() -> None:
    problem = large(
        "tanh",
        "sin",
        (0.8, 0.5),
        3.0,
        init=gs.Init(second_layer=gs.Vocabulary([-1, 2], [0.5, 0.5])),
    )
    rates = (0.8, 0.5)
    args = problem.activation, problem.teacher, 0.1, problem.init.second_layer
    field = two_step_field(*args, 3.0, rates)
    law = sample_law(problem.teacher, 0.1, 3.0)
    response, residual = respond(problem.activation, law, field.values, field.probabilities, 0.8)
    samples = Samples.of(law, residual, 1e-12)
    linear = 0.8 * 0.6057055 * samples.label
    lean = field.values[:, None] * (linear + 0.5 * samples.residual * samples.take(response.slope))
    assert_allclose(samples.inner(lean, lean), field.kernel, rtol=1e-5)
    first, _ = samples.coordinates()
    assert_allclose(lean @ first[0], field.teacher[:, 0], rtol=1e-6)


def test_traces_of_products_over_one_batch() -> None:
    rng = np.random.default_rng(3)
    d, alpha = 300, 2.0
    n = int(alpha * d)
    x = rng.standard_normal((n, d))
    kinds = rng.integers(0, 3, n)
    functions = np.array([[1.0, -0.5, 0.3], [0.2, 1.0, -1.0], [0.7, 0.1, 0.4]])
    weights = np.bincount(kinds) / n
    sums = [x.T @ (f[kinds][:, None] * x) / n for f in functions]
    for word in [(0,), (0, 1), (0, 1, 2), (0, 1, 0, 1), (0, 2, 1, 2)]:
        product = np.linalg.multi_dot([np.eye(d), *(sums[k] for k in word)]) if word else np.eye(d)
        wanted = np.trace(product) / d
        found = trace_of_product([functions[k] for k in word], weights, alpha)
        assert found == pytest.approx(wanted, abs=0.02)
    gram = gram_of_batch(functions[:1], functions[1:], weights, alpha)
    assert gram.shape == (5, 5)
    pair = sums[1] @ sums[2] + sums[2] @ sums[1]
    assert gram[3, 0] == pytest.approx(np.trace(pair) / d, abs=0.03)
    assert gram[3, 3] == pytest.approx(np.trace(pair @ pair) / d, rel=0.05)


#: Test and training error of 1000–2000 networks at d = 1000, with their standard errors.
NETWORKS = [
    (
        large(gs.centered("gelu"), QUADRATIC, (0.8, 0.96), 3.78, noise_variance=0.05, width=1.89,
              readout=gs.Ridge(samples=3.97, penalty=0.16),
              init=gs.Init(second_layer=gs.Vocabulary([0.5, 1.5], [0.5, 0.5]))),
        (0.32084, 0.00037), (0.20518, 0.00027),
    ),
    (
        large("tanh", "sin", (1, 1), 4, noise_variance=0.02,
              readout=gs.Ridge(samples=3, penalty=0.1 / 3),
              init=gs.Init(second_layer="constant")),
        (0.08125, 0.00007), (0.05897, 0.00008),
    ),
    (
        large(gs.centered("relu"), "sin", (1, 0.5), 2, width=1.5,
              readout=gs.Ridge(samples=2, penalty=0.1),
              init=gs.Init(second_layer="constant")),
        (0.23483, 0.00020), (0.11143, 0.00013),
    ),
    (
        large("erf", CUBIC, (0.6, 1), 3, width=1.3, readout=gs.Ridge(samples=3, penalty=0.1 / 3),
              init=gs.Init(second_layer="constant")),
        (0.41953, 0.00058), (0.29909, 0.00087),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "test", "train"), NETWORKS)
def test_errors_of_networks(
    problem: gs.Problem, test: tuple[float, float], train: tuple[float, float]
) -> None:
    risk = theory.risk(problem, 1000)
    assert risk.test == pytest.approx(test[0], abs=0.005 * test[0] + 3 * test[1])
    assert risk.train == pytest.approx(train[0], abs=0.005 * train[0] + 3 * train[1])


def test_without_the_covariance_the_error_of_an_even_problem_is_far_off() -> None:
    problem, test, _ = NETWORKS[0]
    plain = theory.equivalent(problem, 1000, simplify="isotropic bulk")
    found = float(plain.risk(problem.realised(1000).readout).test)
    assert abs(found / test[0] - 1) > 0.05
