"""Marchenko–Pastur: density, atoms, transforms, singular values, the generic machinery of Law."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
import pytest

from giantsteps.errors import InvalidProblem, NotConverged
from giantsteps.laws import EmpiricalLaw, MarchenkoPastur, SampleCovariance, SingularValues
from giantsteps.laws._panels import Panels

SIDES: tuple[tuple[Literal["inputs", "neurons"], float, float], ...] = (
    ("inputs", 1.0, 0.0),
    ("neurons", 0.7, 0.3),
)
LAWS = [
    MarchenkoPastur(width, side, scale=scale, shift=shift)
    for width in (0.2, 1.0, 1.25, 5.0)
    for side, scale, shift in SIDES
]


def identify(law: MarchenkoPastur) -> str:
    return f"{law.side}-{law.width}"


@pytest.mark.parametrize("law", LAWS, ids=identify)
def test_total_mass_and_moments(law: MarchenkoPastur) -> None:
    # E x = 1 (trace of W Wᵀ/d is β; of Wᵀ W/N is 1), E x² = that of free Poisson.
    mean = law.width if law.side == "inputs" else 1.0
    second = mean * (1 + law.width)
    assert law.expectation(np.ones_like) == pytest.approx(1, abs=1e-13)
    assert law.expectation(lambda x: (x - law.shift) / law.scale) == pytest.approx(mean, rel=1e-13)
    got = law.expectation(lambda x: ((x - law.shift) / law.scale) ** 2)
    assert got == pytest.approx(second, rel=1e-13)


@pytest.mark.parametrize("law", LAWS, ids=identify)
def test_stieltjes_transform_against_quadrature_and_density(law: MarchenkoPastur) -> None:
    for z in (-0.5 + 0j, 1.0 + 0.3j, law.edge + 0.1 + 0j, 2.0 - 0.2j):
        re = law.expectation(partial(lambda x, z: (1 / (x - z)).real, z=z))
        im = law.expectation(partial(lambda x, z: (1 / (x - z)).imag, z=z))
        assert law.stieltjes(z) == pytest.approx(re + 1j * im, rel=1e-10)
    x = np.linspace(*law.support[0], 50)[1:-1]
    np.testing.assert_allclose(law.stieltjes(x).imag / np.pi, law.density(x), rtol=1e-10)


@pytest.mark.parametrize("law", LAWS, ids=identify)
def test_fractions_against_quadrature(law: MarchenkoPastur) -> None:
    omega = np.array([-3.0, -0.01, law.edge + 0.5, law.edge + 1e4])
    zeroth, first, second = law.fractions(omega)
    for i, w in enumerate(omega):
        assert zeroth[i] == pytest.approx(
            law.expectation(partial(lambda t, w: 1 / (t - w), w=w)), rel=1e-9
        )
        assert first[i] == pytest.approx(
            law.expectation(partial(lambda t, w: t / (t - w), w=w)), rel=1e-9
        )
        exact = law.expectation(partial(lambda t, w: (t / (t - w)) ** 2, w=w))
        assert second[i] == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=identify)
def test_quantile_inverts_the_cdf(law: MarchenkoPastur) -> None:
    atom = sum(mass for _, mass in law.atoms)
    p = atom + (1 - atom) * np.linspace(0.001, 0.999, 200)
    np.testing.assert_allclose(law.cdf(law.quantile(p)), p, atol=1e-12)
    if atom:
        assert law.quantile(atom / 2) == law.shift
        below, at = law.cdf([law.shift - 1e-9, law.shift])
        assert below == 0
        assert at == pytest.approx(atom, abs=1e-14)
    assert law.quantile(1.0) == pytest.approx(law.edge, rel=1e-9)


@pytest.mark.parametrize("width", [0.2, 1.0, 1.25, 5.0])
def test_singular_values_are_those_of_both_gram_matrices(width: float) -> None:
    law = MarchenkoPastur(width, "inputs").singular_values()
    other = MarchenkoPastur(width, "neurons").singular_values()
    assert law.atoms == other.atoms == ()
    edges = (abs(1 - np.sqrt(width)), 1 + np.sqrt(width))
    np.testing.assert_allclose(law.support, [edges], atol=1e-12)
    x = np.linspace(*edges, 40)
    np.testing.assert_allclose(law.density(x), other.density(x), rtol=1e-12)
    np.testing.assert_allclose(law.cdf(x), other.cdf(x), atol=1e-13)
    np.testing.assert_allclose(law.cdf(law.quantile([0.1, 0.9])), [0.1, 0.9], atol=1e-12)


def test_quarter_circle_law_at_width_one() -> None:
    law = MarchenkoPastur(1.0).singular_values()
    x = np.linspace(1e-9, 2, 33)
    np.testing.assert_allclose(law.density(x), np.sqrt(4 - x**2) / np.pi, atol=1e-12)
    exact = (x * np.sqrt(4 - x**2) / 2 + 2 * np.arcsin(x / 2)) / np.pi
    np.testing.assert_allclose(law.cdf(x), exact, atol=1e-12)
    # The symmetrised law is the semicircle: ½(m(z) − m(−z)) = (−z + √(z²−4))/2.
    z = 0.7 + 0.4j
    odd = (law.stieltjes(z) - law.stieltjes(-z)) / 2
    semicircle = (-z + np.sqrt(z - 2) * np.sqrt(z + 2)) / 2
    assert odd == pytest.approx(semicircle, rel=1e-10)
    assert law.stieltjes(1.0).imag == pytest.approx(np.pi * law.density(1.0), rel=1e-10)
    assert law.stieltjes(1.0 - 0.1j) == pytest.approx(np.conj(law.stieltjes(1.0 + 0.1j)), rel=1e-12)


def test_distance_of_a_finite_matrix_shrinks_with_its_size() -> None:
    rng = np.random.default_rng(3)
    distances = []
    for d in (100, 400):
        weights = rng.normal(size=(d, 2 * d)) / np.sqrt(d)
        values = np.linalg.svd(weights, compute_uv=False)
        distances.append(EmpiricalLaw(values).ks_distance(MarchenkoPastur(2.0).singular_values()))
    assert distances[1] < 0.5 * distances[0] < 0.05


def test_samples_follow_the_law() -> None:
    law = MarchenkoPastur(0.4, "inputs")
    draws = law.sample((20, 1000), seed=7)
    assert draws.shape == (20, 1000)
    assert EmpiricalLaw(draws).ks_distance(law) < 1.95 / np.sqrt(draws.size)  # 0.1 % level
    np.testing.assert_array_equal(draws, law.sample((20, 1000), seed=7))


@pytest.mark.parametrize("width", [0.5, 1.0, 3.0])
def test_columns_of_two_variances(width: float) -> None:
    """W = Z C^{1/2}/√d: W Wᵀ is the sample covariance of population βc at ratio 1/β."""

    def of_variances(values: list[float], weights: list[float]) -> SingularValues:
        gram = SampleCovariance(EmpiricalLaw(width * np.array(values), weights), 1 / width)
        return SingularValues(gram, kept=min(1.0, 1 / gram.ratio))

    plain, exact = of_variances([1.0], [1.0]), MarchenkoPastur(width).singular_values()
    np.testing.assert_allclose(plain.support, exact.support, atol=1e-10)
    x = np.linspace(*exact.support[0], 30)[1:-1]
    np.testing.assert_allclose(plain.density(x), exact.density(x), rtol=1e-9)
    law = of_variances([0.5, 4.0], [0.7, 0.3])
    d, rng = 500, np.random.default_rng(11)
    n = round(width * d)
    scale = np.sqrt(np.repeat([0.5, 4.0], [round(0.7 * n), n - round(0.7 * n)]))
    values = np.linalg.svd(rng.normal(size=(d, n)) * scale / np.sqrt(d), compute_uv=False)
    assert EmpiricalLaw(values).ks_distance(law) < 0.01
    assert values[0] == pytest.approx(law.edge, rel=0.02)


def test_panels_integrate_algebraic_edges() -> None:
    panels = Panels.adapted(lambda x: x ** (-2 / 3) * (2 - x) ** 0.5, 0.0, 2.0)
    from scipy.special import beta

    assert panels.mass == pytest.approx(2 ** (5 / 6) * beta(1 / 3, 3 / 2), rel=1e-11)


def test_panels_refuse_noise() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(NotConverged):
        Panels.adapted(lambda x: rng.normal(size=x.shape), 0.0, 1.0)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"width": 0},
        {"width": 1.0, "scale": -1},
        {"width": 1, "shift": -1},
        {"width": 1, "side": "x"},
    ],
)
def test_bad_arguments_are_refused(kwargs: dict[str, Any]) -> None:
    with pytest.raises(InvalidProblem):
        MarchenkoPastur(**kwargs)
    with pytest.raises(InvalidProblem):
        MarchenkoPastur(1.0).quantile(1.5)
