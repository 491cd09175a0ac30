"""The law of a finite set of values."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from scipy import stats

from giantsteps.errors import InvalidProblem
from giantsteps.laws import EmpiricalLaw, MarchenkoPastur


def test_cdf_quantile_and_atoms_with_weights() -> None:
    law = EmpiricalLaw([3.0, 1.0, 1.0], [2.0, 1.0, 1.0])
    assert law.atoms == ((1.0, 0.5), (3.0, 0.5))
    assert law.edge == 3.0
    np.testing.assert_allclose(law.cdf([0.9, 1.0, 2.9, 3.0]), [0, 0.5, 0.5, 1])
    np.testing.assert_array_equal(law.quantile([0.0, 0.5, 0.51, 1.0]), [1, 1, 3, 3])
    assert law.expectation(lambda x: x**2) == pytest.approx(5.0)


def test_quantile_reaches_each_of_many_equal_values() -> None:
    values = np.arange(1, 8)
    np.testing.assert_array_equal(EmpiricalLaw(values).quantile(np.arange(1, 8) / 7), values)


def test_stieltjes_and_fractions() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.uniform(1, 2, 50), rng.uniform(size=50)
    law, w = EmpiricalLaw(x, w), w / w.sum()
    z = np.array([[0.5 + 0.1j, 3.0], [1.5 - 1j, -1.0]])
    np.testing.assert_allclose(law.stieltjes(z), np.sum(w / (x - z[..., None]), -1), rtol=1e-13)
    first, second = law.fractions(z)[1:]
    np.testing.assert_allclose(first, np.sum(w * x / (x - z[..., None]), -1), rtol=1e-13)
    np.testing.assert_allclose(second, np.sum(w * (x / (x - z[..., None])) ** 2, -1), rtol=1e-13)


def test_density_has_the_stated_bandwidth_and_mass_one() -> None:
    law = EmpiricalLaw([0.0], bandwidth=0.5)
    np.testing.assert_allclose(law.density([0.0, 1.0]), stats.norm(scale=0.5).pdf([0.0, 1.0]))
    rng = np.random.default_rng(1)
    law = EmpiricalLaw(rng.normal(size=400))
    grid = np.linspace(-8, 8, 4001)
    assert np.trapezoid(law.density(grid), grid) == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(law.density(0.3), stats.norm.pdf(0.3), rtol=0.1)
    assert law.bandwidth == pytest.approx(0.9 * 400**-0.2, rel=0.1)
    assert EmpiricalLaw([2.0, 2.0]).bandwidth > 0


def test_kolmogorov_smirnov_distance_against_scipy() -> None:
    law = MarchenkoPastur(0.5, "neurons")
    draws = law.sample(300, seed=3)
    exact = stats.kstest(draws, cast(Any, law.cdf)).statistic
    assert EmpiricalLaw(draws).ks_distance(law) == pytest.approx(exact, abs=1e-12)
    other = law.sample(200, seed=4) + 0.1
    exact = stats.ks_2samp(draws, other).statistic
    assert EmpiricalLaw(draws).ks_distance(EmpiricalLaw(other)) == pytest.approx(exact, abs=1e-12)


def test_distance_counts_the_atom_of_the_other_law() -> None:
    law = MarchenkoPastur(0.5, "inputs")  # half of its mass at 0
    values = np.concatenate([np.zeros(500), law.quantile(0.5 + (np.arange(500) + 0.5) / 1000)])
    assert EmpiricalLaw(values).ks_distance(law) < 1e-3
    assert EmpiricalLaw(values[500:]).ks_distance(law) == pytest.approx(0.5, abs=1e-3)


def test_samples_are_the_values() -> None:
    draws = EmpiricalLaw([1.0, 2.0], [1, 3]).sample(4000, seed=0)
    assert set(draws) == {1.0, 2.0}
    assert np.mean(draws == 2.0) == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize(
    ("values", "weights"), [([], None), ([np.nan], None), ([1.0], [-1.0]), ([1.0, 2.0], [1.0])]
)
def test_bad_values_are_refused(values: Any, weights: Any) -> None:
    with pytest.raises(InvalidProblem):
        EmpiricalLaw(values, weights)
    with pytest.raises(InvalidProblem, match="bandwidth"):
        EmpiricalLaw([1.0], bandwidth=0.0)
