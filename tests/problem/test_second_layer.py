"""Laws of the second layer: what they sample is what their types say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

import giantsteps as gs
from giantsteps import InvalidProblem
from giantsteps.problem import SecondLayer, as_second_layer

LAWS: list[SecondLayer] = [
    gs.Gaussian(),
    gs.Constant(),
    gs.Constant(-2.0),
    gs.Constant(0.0),
    gs.Vocabulary([-1, 1], [0.5, 0.5]),
    gs.Vocabulary([2.0, 0.0, -1.0], [0.25, 0.5, 0.25]),
    gs.Vocabulary([1, 2, 3], [0.5, 0.5, 0.0]),
]


@pytest.mark.parametrize("law", LAWS)
def test_moments_are_those_of_the_types(law: SecondLayer) -> None:
    values, probabilities = law.types()
    assert values.shape == probabilities.shape
    assert values.ndim == 1
    assert np.all(probabilities > 0)
    assert math.isclose(probabilities.sum(), 1.0, rel_tol=1e-14)
    assert law.mean == pytest.approx(probabilities @ values, abs=1e-14)
    assert law.second_moment == pytest.approx(probabilities @ values**2, rel=1e-6)


@pytest.mark.parametrize("law", LAWS)
def test_samples_follow_the_types(law: SecondLayer) -> None:
    size = 20_000
    sample = law.sample(np.random.default_rng(7), size)
    assert sample.shape == (size,)
    assert sample.dtype == np.float64
    spread = math.sqrt(max(law.second_moment - law.mean**2, 0))
    assert abs(sample.mean() - law.mean) <= 4 * spread / math.sqrt(size)
    if math.isfinite(law.distinct_nonzero):
        values, probabilities = law.types()
        counts = np.array([(sample == value).sum() for value in values])
        assert counts.sum() == size
        deviation = np.abs(counts - size * probabilities)
        assert np.all(deviation <= 4 * np.sqrt(size * probabilities * (1 - probabilities)) + 1e-9)
        assert np.count_nonzero(np.unique(sample)) == law.distinct_nonzero
    else:
        assert stats.kstest(sample, "norm").pvalue > 1e-3


@pytest.mark.parametrize("law", LAWS)
def test_the_first_draws_do_not_depend_on_the_size(law: SecondLayer) -> None:
    long = law.sample(np.random.default_rng(3), 100)
    assert np.array_equal(law.sample(np.random.default_rng(3), 40), long[:40])


def test_gaussian_types_integrate_functions_with_a_kink_at_zero() -> None:
    values, probabilities = gs.Gaussian().types()
    assert values.size == 40
    assert np.all(np.abs(values) < 6)
    assert np.array_equal(values, -values[::-1])

    def mean(f: object) -> float:
        right = integrate.quad(lambda x: f(x) * stats.norm.pdf(x), 0, 40, epsabs=1e-13)[0]  # type: ignore[operator]
        left = integrate.quad(lambda x: f(x) * stats.norm.pdf(x), -40, 0, epsabs=1e-13)[0]  # type: ignore[operator]
        return left + right

    for f in (np.tanh, np.abs, lambda x: np.maximum(x, 0) ** 2, lambda x: 1 / (1 + x**2)):
        # the tails beyond 6 hold 7e-8 of the second moment
        assert probabilities @ f(values) == pytest.approx(mean(f), abs=2e-7)
    finer = gs.Gaussian().types(nodes=30)
    assert finer[0].size == 60
    assert finer[1] @ finer[0] ** 2 == pytest.approx(probabilities @ values**2, rel=1e-12)


def test_types_are_nobody_elses() -> None:
    values, _ = gs.Gaussian().types()
    values[:] = 0
    assert gs.Gaussian().types()[0][-1] > 5


@pytest.mark.parametrize(
    ("law", "count"),
    [
        (gs.Gaussian(), math.inf),
        (gs.Constant(), 1),
        (gs.Constant(0), 0),
        (gs.Vocabulary([1, -1], [0.5, 0.5]), 2),
        (gs.Vocabulary([1, -1], [0.4, 0.6]), 2),
        (gs.Vocabulary([0, 1], [0.5, 0.5]), 1),
        (gs.Vocabulary([-1, 1, 2], [0.5, 0.5, 0]), 2),
    ],
)
def test_number_of_values(law: SecondLayer, count: float) -> None:
    assert law.distinct_nonzero == count


def test_the_order_of_a_vocabulary_does_not_matter() -> None:
    first = gs.Vocabulary([1, -1], [0.25, 0.75])
    second = gs.Vocabulary(np.array([-1.0, 1.0]), (0.75, 0.25))
    assert first == second
    assert hash(first) == hash(second)
    assert first != gs.Vocabulary([1, -1], [0.75, 0.25])


@pytest.mark.parametrize("law", LAWS)
def test_laws_round_trip(law: SecondLayer) -> None:
    assert as_second_layer(law.to_data()) == law
    assert as_second_layer(law) is law


@pytest.mark.parametrize(
    ("spec", "law"),
    [
        ("gaussian", gs.Gaussian()),
        ("constant", gs.Constant(1.0)),
        ({"law": "constant", "value": 2}, gs.Constant(2.0)),
        (
            {"law": "vocabulary", "values": [1, 2], "probabilities": [0.5, 0.5]},
            gs.Vocabulary([1, 2], [0.5, 0.5]),
        ),
    ],
)
def test_names_and_tables(spec: object, law: SecondLayer) -> None:
    assert as_second_layer(spec) == law


@pytest.mark.parametrize(
    ("values", "probabilities", "field"),
    [
        ([1, 2], [0.5, 0.4], "probabilities"),
        ([1, 2], [0.5, 0.5000001], "probabilities"),
        ([1, 2], [1.5, -0.5], "probabilities.0"),
        ([1, 2], [-0.5, 1.5], "probabilities.0"),
        ([1, 2], [math.nan, 1], "probabilities.0"),
        ([1, 2], [1.0], "probabilities"),
        ([1, 2], 0.5, "probabilities"),
        ([1, 2], None, "probabilities"),
        ([1, 2], "55", "probabilities"),
        ([1, 2], ["0.5", "0.5"], "probabilities.0"),
        ([1, 1], [0.5, 0.5], "values"),
        ([0.0, -0.0], [0.5, 0.5], "values"),
        ([], [], "values"),
        (1.0, [1.0], "values"),
        ("12", [0.5, 0.5], "values"),
        (np.ones((2, 1)), [0.5, 0.5], "values"),
        ([1, math.inf], [0.5, 0.5], "values.1"),
        ([1, True], [0.5, 0.5], "values.1"),
    ],
)
def test_invalid_vocabularies(values: object, probabilities: object, field: str) -> None:
    with pytest.raises(InvalidProblem) as caught:
        gs.Vocabulary(values, probabilities)  # type: ignore[arg-type]
    assert caught.value.field == field
    spec = {"law": "vocabulary", "values": values, "probabilities": probabilities}
    with pytest.raises(InvalidProblem) as caught:
        gs.Problem(activation="tanh", teacher="sin", width=1, init={"second_layer": spec})
    assert caught.value.field == f"init.second_layer.{field}"


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", None, True])
def test_invalid_constants(value: object) -> None:
    with pytest.raises(InvalidProblem) as caught:
        gs.Constant(value)  # type: ignore[arg-type]
    assert caught.value.field == "value"
