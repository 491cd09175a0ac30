"""The statistics of a comparison on synthetic samples: calibration, power, trend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy import stats

from giantsteps.campaign import (
    LEVEL,
    VERDICTS,
    decide,
    estimate,
    holm,
    mean_and_error,
    measure,
    seeds_to_resolve,
)
from giantsteps.campaign._statistics import _trend


def samples(seed: int, sizes: int, seeds: int, *shape: int, se: float = 0.005) -> NDArray[Any]:
    """Samples with mean 1 whose means over seeds have standard error ``se``."""
    rng = np.random.default_rng(seed)
    return 1 + se * np.sqrt(seeds) * rng.standard_normal((sizes, seeds, *shape))


def verdict(values: Any, theory: Any, sizes: Any, limit: float = 0.02, **options: Any) -> Any:
    return decide({"q": measure(values, theory, sizes, limit=limit, **options)})["q"].verdict


def worst(values: Any, theory: Any, sizes: Any, limit: float = 0.02) -> str:
    found = np.ravel(verdict(values, theory, sizes, limit))
    return str(max(found, key=VERDICTS.index))


# Means ----------------------------------------------------------------------------------------


def test_estimate_is_the_one_sample_t_test() -> None:
    values = np.random.default_rng(0).normal(2.0, 0.3, size=(12, 5))
    theory = np.linspace(1.8, 2.2, 5)
    found = estimate(values, theory)
    expected = stats.ttest_1samp(values, theory, axis=0)
    assert_allclose(found.t, expected.statistic)
    assert np.all(np.asarray(found.p_value) >= expected.pvalue * (1 - 1e-12))
    symmetric = np.concatenate([values - 2, 2 - values])  # about a theory without a sign to keep
    shifted = estimate(symmetric + 0.1, np.zeros(5))
    assert_allclose(shifted.p_value, stats.ttest_1samp(symmetric + 0.1, 0.0).pvalue, rtol=1e-9)
    assert_allclose(found.standard_error, values.std(axis=0, ddof=1) / np.sqrt(12))
    reach = stats.t.isf(stats.norm.sf(3), 11)
    assert_allclose(found.resolution, reach * found.standard_error / theory)
    assert list(np.asarray(found.seeds)) == [12] * 5


def test_missing_seeds_are_left_out() -> None:
    values = np.random.default_rng(1).normal(size=(6, 3))
    values[2:, 1] = values[1:, 2] = np.nan
    mean, error, count = mean_and_error(values)
    assert list(count) == [6, 2, 1]
    assert_allclose(mean, [values[:, 0].mean(), values[:2, 1].mean(), values[0, 2]])
    assert_allclose(error[1], values[:2, 1].std(ddof=1) / np.sqrt(2))
    assert np.isnan(error[2])
    found = estimate(values[:, 1:], np.zeros(2))  # two seeds have no skewness
    assert np.asarray(found.p_value)[0] == pytest.approx(
        stats.ttest_1samp(values[:2, 1], 0.0).pvalue
    )


def test_a_single_number_gives_floats() -> None:
    assert isinstance(estimate([1.0, 2.0, 4.0], 2.0).t, float)
    assert isinstance(verdict([[1.0, 2.0, 4.0]], [2.0], [10]), str)


def test_holm_is_that_of_its_definition() -> None:
    p = np.array([0.01, 0.04, 0.03, 0.005, np.nan])
    assert_allclose(holm(p), [0.03, 0.06, 0.06, 0.02, np.nan])
    assert holm([0.7])[0] == 0.7
    assert holm([]).size == 0


# A whole comparison ----------------------------------------------------------------------------


def noise(rng: np.random.Generator, law: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Positive numbers of mean one."""
    if law == "normal":
        return 1 + 0.01 * rng.standard_normal(shape)
    if law == "t3":
        return 1 + 0.01 * rng.standard_t(3, shape)
    sigma = float(law)
    return np.exp(sigma * rng.standard_normal(shape) - sigma**2 / 2)


def false_alarms(law: str, sizes: list[int], seeds: int, cells: int, repeats: int) -> float:
    """Share of comparisons that disagree somewhere, though the theory is right."""
    rng = np.random.default_rng([seeds, cells])
    alarms = 0
    for _ in range(repeats):
        values = noise(rng, law, (len(sizes), seeds, cells))
        alarms += worst(values, np.ones((len(sizes), cells)), sizes) == "disagree"
    return alarms / repeats


@pytest.mark.parametrize(
    ("law", "seeds", "cells", "sizes"),
    [
        ("normal", 2, 10, [500]),
        ("normal", 20, 50, [500]),
        ("normal", 5, 10, [250, 500, 1000]),
        ("t3", 5, 10, [500]),
        ("0.2", 20, 10, [500]),
        ("0.5", 5, 10, [500]),
        ("0.5", 10, 50, [500]),  # 11 % without allowance for skewness
        ("0.5", 20, 1, [500]),
    ],
)
def test_false_alarms_of_a_whole_comparison_are_rare(
    law: str, seeds: int, cells: int, sizes: list[int]
) -> None:
    """At most 1 % of comparisons disagree anywhere, within three errors."""
    repeats = 500
    found = false_alarms(law, sizes, seeds, cells, repeats)
    assert found <= LEVEL + 3 * np.sqrt(LEVEL / repeats)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "t3", "0.1", "0.2", "0.3", "0.5"])
@pytest.mark.parametrize("cells", [1, 50])
@pytest.mark.parametrize("seeds", [2, 3, 5, 10, 20, 40])
def test_false_alarms_are_rare_whatever_the_noise(seeds: int, cells: int, law: str) -> None:
    repeats = 2000
    assert false_alarms(law, [500], seeds, cells, repeats) <= LEVEL + 3 * np.sqrt(LEVEL / repeats)


@pytest.mark.parametrize("sign", [1, -1])
def test_skewness_makes_gaps_less_surprising_on_the_side_without_the_tail(sign: int) -> None:
    tailed = np.array([-1.0, -0.9, -0.8, -0.5, 0.2, 3.0])[:, None] * sign
    for side in (1, -1):
        values = tailed + side * 2.0
        plain = stats.ttest_1samp(values, 0.0).pvalue
        allowed = estimate(values, np.zeros(1)).p_value
        assert (allowed > 1.5 * plain) if side == -sign else allowed == pytest.approx(plain)


def test_positive_numbers_are_taken_to_be_lognormal_at_least() -> None:
    values = np.array([0.8, 1.2])[:, None]  # two seeds: s/mean = 0.28, no skewness of their own
    t = (1 - 2.0) / 0.2
    b = 0.2 / 1.0
    expected = 2 * stats.t.sf(np.log1p(2 * b * abs(t)) / (2 * b), 1)
    assert estimate(values, [2.0]).p_value == pytest.approx(expected)
    assert estimate(-values, [-2.0]).p_value == pytest.approx(expected)
    assert estimate(values, [0.5]).p_value == pytest.approx(2 * stats.t.sf(2.5, 1))


@pytest.mark.parametrize("seeds", [3, 10])
def test_a_theory_that_is_far_too_large_is_found(seeds: int) -> None:
    """The allowance does not hide an error by a factor, however skewed the samples are."""
    rng = np.random.default_rng(seeds)
    found = [verdict(noise(rng, "0.15", (1, seeds, 1)), [[10.0]], [500])[0] for _ in range(100)]
    assert found.count("disagree") >= 80


@pytest.mark.parametrize("seeds", [5, 20])
@pytest.mark.parametrize("power", [1.0, 0.5])
def test_gaps_that_close_raise_no_alarm(seeds: int, power: float) -> None:
    sizes = np.array([250, 500, 1000])
    closing = 0.05 * (250 / sizes) ** power
    alarms = [
        worst(samples(number, 3, seeds, 10) + closing[:, None, None], np.ones((3, 10)), sizes)
        for number in range(500)
    ]
    assert alarms.count("disagree") <= 5 + 3 * np.sqrt(5)


@pytest.mark.parametrize(
    ("seeds", "cells", "gap"),
    [(2, 1, 3.0), (5, 1, 0.06), (5, 100, 0.25), (20, 1, 0.03), (20, 10, 0.035), (20, 100, 0.04)],
)
def test_a_gap_is_found(seeds: int, cells: int, gap: float) -> None:
    """A gap in one cell of many, of standard error 0.5 %, is found in nine of ten comparisons."""
    theory = np.ones((1, cells))
    found = 0
    for number in range(200):
        values = samples(number, 1, seeds, cells)
        values[..., 0] += gap
        verdicts = verdict(values, theory, [500])
        found += verdicts[0] == "disagree"
    assert found >= 180


def test_the_number_of_quantities_counts_as_that_of_cells() -> None:
    values, theory = samples(3, 1, 20, 1), np.ones((1, 1))
    found = estimate(values[0], theory[0])
    values += found.standard_error * (3.1 - found.t)  # p = 0.6 % for itself
    alone = decide({"a": measure(values, theory, [9], limit=0.1)})
    many = {str(n): measure(samples(n, 1, 20, 1), theory, [9], limit=0.1) for n in range(10)}
    among = decide(many | {"a": measure(values, theory, [9], limit=0.1)})
    assert alone["a"].verdict[0] == "disagree"
    assert among["a"].verdict[0] == "agree"


# Verdicts of single numbers --------------------------------------------------------------------


def test_a_bias_of_five_percent_is_found_at_a_resolution_of_two() -> None:
    found = measure(samples(2, 1, 20, 50, se=0.02 / 3.5), np.full((1, 50), 1.05), [100], limit=0.03)
    assert np.all(decide({"q": found})["q"].verdict == "disagree")
    assert np.median(found.largest.resolution) == pytest.approx(0.02, rel=0.1)


def test_what_is_not_resolved_does_not_agree() -> None:
    values, theory = samples(3, 1, 20, 200, se=0.02), np.ones((1, 200))
    assert np.mean(verdict(values, theory, [100]) == "unresolved") > 0.98
    assert np.mean(verdict(values, theory, [100], limit=0.14) == "agree") > 0.98


def test_two_seeds_that_are_close_by_chance_do_not_agree() -> None:
    values = samples(4, 1, 2, 2000, se=0.02)
    assert np.mean(verdict(values, np.ones((1, 2000)), [100]) == "agree") < 0.01


def test_trend_is_exact_for_a_gap_of_its_form() -> None:
    sizes = [200, 500, 1500]
    for power in (1.0, 0.5):
        gaps = 0.3 - 40 / np.array(sizes) ** power
        assert_allclose(_trend(sizes, power) @ gaps, [0.3, -40 / 200**power])


def test_a_gap_that_falls_as_one_over_d_is_finite_size() -> None:
    sizes = [250, 500, 1000]
    values = samples(4, 3, 20, 200, se=0.002) + (20 / np.array(sizes))[:, None, None]
    found = decide({"q": measure(values, np.ones((3, 200)), sizes, limit=0.03)})["q"]
    assert np.mean(found.verdict == "finite size") > 0.95
    assert not np.any(found.verdict == "disagree")
    assert found.extrapolated is not None
    assert np.mean(found.extrapolated.mean) == pytest.approx(1, abs=2e-3)


def test_a_gap_that_falls_is_not_explained_when_a_single_size_is_known() -> None:
    values = samples(4, 1, 20, 50, se=0.002) + 0.02
    assert np.mean(verdict(values, np.ones((1, 50)), [500]) == "disagree") > 0.9


def test_a_bias_is_not_taken_for_a_finite_size() -> None:
    sizes = [500, 1000]
    constant = verdict(1.05 * samples(5, 2, 20, 50, se=0.002), np.ones((2, 50)), sizes)
    assert np.mean(constant == "disagree") > 0.95
    falling = np.array([0.07, 0.066])[:, None, None] + samples(6, 2, 20, 50, se=0.002)
    assert np.mean(verdict(falling, np.ones((2, 50)), sizes) == "disagree") > 0.95


def test_a_gap_whose_trend_is_open_is_unresolved() -> None:
    sizes = np.array([500, 600])
    values = samples(7, 2, 20, 50, se=0.004) + (40 / sizes)[:, None, None]
    found = verdict(values, np.ones((2, 50)), sizes)
    assert np.mean(found == "unresolved") > 0.9
    assert not np.any(found == "finite size")


def test_draws_shared_between_sizes_do_no_harm() -> None:
    cells = 20_000
    shared = samples(8, 1, 10, cells)
    both = np.concatenate([shared, shared + samples(9, 1, 10, cells, se=1e-4) - 1])
    extrapolated = measure(both, np.ones((2, cells)), [500, 1000], limit=0.02).extrapolated
    assert extrapolated is not None
    rare = 2 * stats.t.sf(3, 9)
    assert np.mean(np.abs(extrapolated.t) > 3) < rare + 4 * np.sqrt(rare / cells)


def test_cells_without_a_finite_prediction_have_no_verdict() -> None:
    found = measure(samples(10, 1, 5, 3), [[1.0, np.nan, np.inf]], [100], limit=0.1)
    assert list(decide({"q": found})["q"].verdict) == ["agree", "", ""]
    assert np.isnan(np.asarray(found.p_value)[1:]).all()


def test_a_deterministic_quantity_needs_equality_up_to_rounding() -> None:
    values = np.ones((1, 4, 3))
    values[0, :, 2] *= 1 + 1e-15
    assert list(verdict(values, [[1.0, 1.5, 1.0]], [10])) == ["agree", "disagree", "agree"]


def test_a_number_that_is_zero_is_not_resolved_relative_to_itself() -> None:
    values = samples(11, 1, 20, 2) - [1, 0]
    found = decide({"q": measure(values, [[1e-17, 1.0]], [10], limit=0.02)})["q"]
    assert list(found.verdict) == ["agree", "agree"]
    assert np.isnan(np.asarray(found.largest.resolution)[0])
    assert verdict(values[..., :1] + 0.1, [[0.0]], [10])[0] == "disagree"


def test_advice_leaves_out_what_is_zero() -> None:
    values = samples(12, 1, 20, 2, se=0.02) - [1, 0]
    found = decide({"q": measure(values, [[1e-17, 1.0]], [10], limit=0.02)})["q"]
    assert found.verdict[1] == "unresolved"
    seeds = seeds_to_resolve(found)
    assert 100 < seeds < 400
    more = samples(13, 1, round(2 * seeds), 2, se=0.02 * np.sqrt(20 / (2 * seeds))) - [1, 0]
    assert verdict(more, [[1e-17, 1.0]], [10])[1] == "agree"
    assert seeds_to_resolve(decide({"q": measure(more, [[0.0, 1.0]], [1], limit=0.02)})["q"]) == 0
