"""The statistics of a comparison on synthetic samples: calibration, power, trend."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from giantsteps.comparison._stats import _trend, chance, combined_p_value, estimate, judge

CELLS = 20_000


def normal(seed, sizes, seeds, cells=CELLS, se=0.005):
    """Samples with mean 1 whose means over seeds have standard error ``se``."""
    rng = np.random.default_rng(seed)
    return 1 + se * np.sqrt(seeds) * rng.standard_normal((sizes, seeds, cells))


def fraction(verdicts, verdict):
    return np.mean(verdicts == verdict)


def test_estimate_is_the_one_sample_t_test():
    samples = np.random.default_rng(0).normal(2.0, 0.3, size=(12, 5))
    theory = np.linspace(1.8, 2.2, 5)
    found = estimate(samples, theory)
    expected = stats.ttest_1samp(samples, theory, axis=0)
    assert_allclose(found.t, expected.statistic)
    assert_allclose(found.p_value, expected.pvalue)
    assert_allclose(found.standard_error, samples.std(axis=0, ddof=1) / np.sqrt(12))
    assert_allclose(found.resolution, 3 * found.standard_error / theory)


def test_a_single_number_gives_floats():
    found = estimate([1.0, 2.0, 4.0], 2.0)
    assert isinstance(found.t, float)
    assert isinstance(judge([[1.0, 2.0, 4.0]], [2.0], [10], limit=0.02).verdict, str)


@pytest.mark.parametrize("seeds", [3, 5, 20])
def test_under_the_null_gaps_beyond_three_have_the_rate_of_student(seeds):
    verdict = judge(normal(1, 1, seeds), np.ones((1, CELLS)), [100], limit=np.inf).verdict
    expected = 2 * stats.t.sf(3, seeds - 1)
    assert chance(seeds) == pytest.approx(expected)
    error = np.sqrt(expected / CELLS)
    assert fraction(verdict, "disagree") == pytest.approx(expected, abs=4 * error)
    assert fraction(verdict, "agree") == pytest.approx(1 - expected, abs=4 * error)


def test_a_bias_of_five_percent_is_found_at_a_resolution_of_two():
    samples = normal(2, 1, 20, se=0.02 / 3)
    biased = judge(samples, np.full((1, CELLS), 1.05), [100], limit=0.03)
    assert fraction(biased.verdict, "disagree") > 0.995
    assert np.median(biased.largest.resolution) == pytest.approx(0.02, rel=0.1)


def test_what_is_not_resolved_does_not_agree():
    samples, theory = normal(3, 1, 20, se=0.02), np.ones((1, CELLS))
    verdict = judge(samples, theory, [100], limit=0.02).verdict
    assert fraction(verdict, "agree") < 1e-3
    assert fraction(verdict, "unresolved") > 0.98
    assert fraction(judge(samples, theory, [100], limit=0.12).verdict, "agree") > 0.98


def test_trend_is_exact_for_a_gap_of_its_form():
    sizes = [200, 500, 1500]
    for power in (1.0, 0.5):
        gaps = 0.3 - 40 / np.array(sizes) ** power
        assert_allclose(_trend(sizes, power) @ gaps, [0.3, -40 / 200**power])


def test_a_gap_that_falls_as_one_over_d_is_finite_size():
    sizes = np.array([250, 500, 1000])
    samples = normal(4, 3, 20, se=0.003) + (20 / sizes)[:, None, None]
    agreement = judge(samples, np.ones((3, CELLS)), sizes, limit=0.03)
    assert fraction(agreement.verdict, "finite size") > 0.95
    assert fraction(agreement.verdict, "disagree") < 0.02
    assert np.mean(agreement.extrapolated.mean) == pytest.approx(1, abs=2e-4)


def test_a_gap_that_falls_is_not_explained_when_a_single_size_is_known():
    samples = normal(4, 1, 20, se=0.003) + 0.02
    assert (
        fraction(judge(samples, np.ones((1, CELLS)), [500], limit=0.02).verdict, "disagree") > 0.9
    )


def test_a_bias_is_not_taken_for_a_finite_size():
    sizes = [500, 1000]
    constant = judge(1.05 * normal(5, 2, 20), np.ones((2, CELLS)), sizes, limit=0.02)
    assert fraction(constant.verdict, "disagree") > 0.95
    assert fraction(constant.verdict, "finite size") < 0.01
    falling = np.array([0.07, 0.066])[:, None, None] + normal(6, 2, 20, se=0.002)
    verdict = judge(falling, np.ones((2, CELLS)), sizes, limit=0.02).verdict
    assert fraction(verdict, "disagree") > 0.99


def test_a_trend_that_is_not_resolved_is_not_called_finite_size():
    sizes = np.array([500, 600])
    samples = normal(7, 2, 20, se=0.004) + (40 / sizes)[:, None, None]
    verdict = judge(samples, np.ones((2, CELLS)), sizes, limit=0.02).verdict
    assert fraction(verdict, "finite size") < 0.02


def test_draws_shared_between_sizes_do_no_harm():
    shared = normal(8, 1, 10)
    samples = np.concatenate([shared, shared + normal(9, 1, 10, se=1e-4) - 1])
    extrapolated = judge(samples, np.ones((2, CELLS)), [500, 1000], limit=0.02).extrapolated
    beyond = np.mean(np.abs(extrapolated.t) > 3)
    assert beyond == pytest.approx(chance(10), abs=4 * np.sqrt(chance(10) / CELLS))


def test_cells_without_a_finite_prediction_have_no_verdict():
    samples = normal(10, 1, 5, cells=3)
    agreement = judge(samples, [[1.0, np.nan, np.inf]], [100], limit=0.1)
    assert list(agreement.verdict) == ["agree", "", ""]
    assert np.isnan(agreement.p_value[1:]).all()


def test_a_deterministic_quantity_needs_equality():
    samples = np.ones((1, 4, 2))
    assert list(judge(samples, [[1.0, 1.5]], [10], limit=0.02).verdict) == ["agree", "disagree"]


def test_one_scale_for_a_quantity_that_vanishes():
    samples = normal(11, 1, 20, cells=1) - 1
    assert judge(samples, [[0.0]], [10], limit=0.02).verdict[0] == "unresolved"
    assert judge(samples, [[0.0]], [10], limit=0.02, scale=[[1.0]]).verdict[0] == "agree"


@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
def test_many_cells_raise_no_false_alarm(correlation):
    rng = np.random.default_rng(12)
    repeats, cells, level = 4000, 60, chance(20)
    common, own = rng.standard_normal((repeats, 1)), rng.standard_normal((repeats, cells))
    z = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    combined = np.array([combined_p_value(p) for p in 2 * stats.norm.sf(np.abs(z))])
    assert np.mean(combined < level) < 1.6 * level + 4 * np.sqrt(level / repeats)


def test_many_cells_hide_neither_one_clear_gap_nor_a_common_one():
    p = np.random.default_rng(13).uniform(size=60)
    assert combined_p_value(p) > chance(20)
    assert combined_p_value([*p, 1e-6]) < chance(20)
    assert combined_p_value(np.full(60, 2 * stats.norm.sf(3.5))) < chance(20)
    assert combined_p_value([*p, 2 * stats.norm.sf(3.1)]) > chance(20)
    assert combined_p_value([np.nan, 0.5]) == pytest.approx(0.5)
