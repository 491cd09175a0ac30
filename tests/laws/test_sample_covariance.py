"""Generalised Marchenko–Pastur laws and the kernel bulk, against independent routes."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from giantsteps.errors import InvalidProblem
from giantsteps.laws import EmpiricalLaw, KernelBulk, MarchenkoPastur, SampleCovariance


def random_bulks(count: int, seed: int) -> list[KernelBulk]:
    """Settings over four orders of magnitude, with the degenerate ones mixed in."""
    rng = np.random.default_rng(seed)
    bulks = []
    for i in range(count):
        width, samples = np.exp(rng.uniform(-3, 3, 2))
        linear, residual = 10 ** rng.uniform(-2, 0.5, 2)
        if i % 5 == 0:
            samples = width * (1 + rng.normal() * 10 ** rng.uniform(-14, -2))
        if i % 7 == 0:
            width = 1 + rng.normal() * 10 ** rng.uniform(-14, -2)
        if i % 11 == 0:
            residual = 0.0
        if i % 13 == 1:
            linear = 0.0
        bulks.append(KernelBulk(width=width, samples=samples, linear=linear, residual=residual))
    return bulks


def quartic_density(bulk: KernelBulk, x: float) -> float:
    """Independent route: eliminate g₂ and pick the root of a quartic in s, ω = μ₂² − μ₁² s.

    (Γ−1)ω − ω² g₂/μ₁² = x with β s g₂² + (s + 1 − β) g₂ − 1 = 0.
    """
    scale, shift, ratio, width = bulk.linear**2, bulk.residual**2, bulk.ratio, bulk.width
    omega = np.polynomial.Polynomial([shift, -scale])
    s = np.polynomial.Polynomial([0.0, 1.0])
    numerator = scale * ((ratio - 1) * omega - x)  # = ω² g₂
    quartic = width * s * numerator**2 + (s + (1 - width)) * numerator * omega**2 - omega**4
    candidates = []
    for root in quartic.roots():
        w = omega(root)
        if w.imag <= 1e-9 * abs(w):
            continue
        trace = numerator(root) / w**2
        if trace.imag > 0:  # g₂(s) = ∫ dμ/(x + s) with Im s < 0
            candidates.append((-1 / (ratio * w)).imag / np.pi)
    assert len(candidates) == 1
    return candidates[0]


@pytest.mark.parametrize(
    "bulk", random_bulks(60, seed=2), ids=lambda b: f"{b.width:.2g}-{b.ratio:.2g}"
)
def test_mass_mean_and_variance(bulk: KernelBulk) -> None:
    mean = bulk.linear**2 + bulk.residual**2
    assert bulk.expectation(np.ones_like) == pytest.approx(1, abs=1e-9)
    assert bulk.expectation(lambda x: x) == pytest.approx(mean, rel=1e-10)
    # n⁻¹ E tr(N⁻¹ZΣZᵀ)² = (∫t)² + Γ∫t².
    second = mean**2 * (1 + bulk.ratio) + bulk.ratio * bulk.linear**4 * bulk.width
    assert bulk.expectation(lambda x: x**2) == pytest.approx(second, rel=1e-10)


@pytest.mark.parametrize(
    ("width", "samples", "linear", "residual"),
    [(1.25, 1.5, 0.6, 0.4), (5.0, 0.7, 0.9, 0.3), (0.2, 2.0, 0.5, 0.8), (4.0, 30.0, 1.0, 0.3)],
)
def test_density_by_the_quartic(
    width: float, samples: float, linear: float, residual: float
) -> None:
    bulk = KernelBulk(width=width, samples=samples, linear=linear, residual=residual)
    for lower, upper in bulk.support:
        x = lower + (upper - lower) * np.linspace(0.001, 0.999, 31)
        exact = [quartic_density(bulk, point) for point in x]
        np.testing.assert_allclose(bulk.density(x), exact, rtol=1e-8, atol=1e-8)
    assert np.all(bulk.density([bulk.edge + 0.1, -1.0]) == 0)


@pytest.mark.parametrize("ratio", [0.3, 1.0, 4.0])
def test_edges_are_extrema_of_the_map_by_quadrature(ratio: float) -> None:
    population = MarchenkoPastur(0.6, "neurons", scale=0.5, shift=0.4)
    bulk = SampleCovariance(population, ratio)

    def image(w: float) -> float:
        return ratio * w + w * population.expectation(lambda t: t / (w - t))

    top = population.edge
    found = minimize_scalar(
        lambda u: image(top + np.exp(u)), bounds=(-6, 4), method="bounded", options={"xatol": 1e-9}
    )
    assert bulk.edge == pytest.approx(found.fun, abs=1e-10)
    bottom = population.support[0][0]
    found = minimize_scalar(
        lambda u: -image(bottom - np.exp(u)),
        bounds=(-6, 4),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert bulk.support[0][0] == pytest.approx(-found.fun, abs=1e-10)


def test_a_bulk_that_splits_and_one_that_has_just_closed() -> None:
    # H = ½δ₁ + ½δ_t: the gap of K opens where min over the gap of ∫t²/(t−ω)² crosses Γ.
    def law(ratio: float) -> SampleCovariance:
        return SampleCovariance(EmpiricalLaw([1.0, 10.0]), ratio)

    # minimum of ½/(1−ω)² + ½·100/(10−ω)²: with A = ½, B = 50, (A^{1/3} + B^{1/3})³/9².
    critical = (0.5 ** (1 / 3) + 50 ** (1 / 3)) ** 3 / 81
    open_, closed = law(critical * (1 + 1e-6)), law(critical * (1 - 1e-6))
    assert len(open_.support) == 2
    assert len(closed.support) == 1
    gap = open_.support[1][0] - open_.support[0][1]
    assert 0 < gap < 1e-7
    for bulk in (open_, closed, law(0.2), law(20.0)):
        assert bulk.expectation(np.ones_like) == pytest.approx(1, abs=1e-9)
        assert bulk.expectation(lambda x: x) == pytest.approx(5.5, rel=1e-10)
    # Each part carries half of the N nonzero eigenvalues.
    left = open_.cdf(0.5 * (open_.support[0][1] + open_.support[1][0]))
    assert left - open_.cdf(0.0) == pytest.approx(0.5 / open_.ratio, abs=1e-9)


def test_gap_of_the_population_splits_the_kernel_bulk() -> None:
    bulk = KernelBulk(width=4.0, samples=60.0, linear=1.0, residual=0.2)
    assert len(bulk.support) == 2
    ((place, mass),) = bulk.atoms
    assert place == 0.0
    assert mass == pytest.approx(1 - 4 / 60)
    between = 0.5 * (bulk.support[0][1] + bulk.support[1][0])
    # Above the gap sit the d spectral directions of Wᵀ W out of n eigenvalues.
    assert 1 - bulk.cdf(between) == pytest.approx(1 / 60, abs=1e-9)
    exact = bulk.expectation(lambda x: 1 / (x - between))
    assert bulk.stieltjes(between) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("samples", [0.5, 1.25, 3.0])
def test_stieltjes_transform_off_the_axis_and_outside_the_support(samples: float) -> None:
    bulk = KernelBulk(width=1.25, samples=samples, linear=0.6, residual=0.5)
    for z in (1.0 + 0.2j, 0.3 - 0.4j, -1.0 + 0j, bulk.edge * 1.01 + 0j, 100.0 + 1j, 1e-3j):
        re = bulk.expectation(partial(lambda x, z: (1 / (x - z)).real, z=z))
        im = bulk.expectation(partial(lambda x, z: (1 / (x - z)).imag, z=z))
        assert bulk.stieltjes(z) == pytest.approx(re + 1j * im, rel=1e-9)


def test_solver_reports_residual_and_keeps_to_the_upper_half_plane() -> None:
    bulk = KernelBulk(width=1.25, samples=1.5, linear=0.6, residual=0.5)
    lower, upper = bulk.support[0]
    x = lower + (upper - lower) * np.concatenate([np.linspace(0, 1, 400), [1e-13, 1 - 1e-13]])
    solution = bulk.solve(x[(x > lower) & (x < upper)])
    assert np.all(solution.omega.imag > 0)
    assert solution.residual < 1e-13
    assert 0 < solution.iterations < 200
    slope = np.diff(bulk.density(upper - np.array([1e-8, 4e-8])))  # a square-root edge
    assert slope / bulk.density(upper - 1e-8) == pytest.approx(1.0, rel=1e-3)


def test_a_thousand_points_in_fifty_milliseconds() -> None:
    # Time of this process: other work on the machine does not count.
    bulk = KernelBulk(width=1.25, samples=1.5, linear=0.6, residual=0.5)
    x = np.linspace(*bulk.support[0], 1000)
    times = []
    for _ in range(5):
        start = time.process_time()
        bulk.density(x)
        times.append(time.process_time() - start)
    assert min(times) < 0.05


def test_spike_map_is_the_inverse_of_the_transform() -> None:
    bulk = KernelBulk(width=1.25, samples=1.5, linear=0.6, residual=0.5)
    tau = bulk.critical_spike * np.array([1.01, 1.5, 4.0])
    np.testing.assert_allclose(bulk.stieltjes(bulk.spike(tau)), -1 / (bulk.ratio * tau), rtol=1e-9)
    step = 1e-5 * tau
    slope = (bulk.spike(tau + step) - bulk.spike(tau - step)) / (2 * step)
    np.testing.assert_allclose(bulk.spike_slope(tau), slope, rtol=1e-5)
    assert bulk.spike(bulk.critical_spike) == pytest.approx(bulk.edge)
    assert bulk.spike_slope(bulk.critical_spike) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("width", "samples"), [(0.5, 1.0), (2.0, 0.8)])
def test_distance_of_a_finite_gaussian_kernel_shrinks(width: float, samples: float) -> None:
    bulk = KernelBulk(width=width, samples=samples, linear=0.8, residual=0.4)
    rng = np.random.default_rng(4)
    distances = []
    for d in (100, 400):
        n, p = round(samples * d), round(width * d)
        weights = rng.normal(size=(d, p)) / np.sqrt(d)
        features = 0.8 * rng.normal(size=(n, d)) @ weights + 0.4 * rng.normal(size=(n, p))
        values = np.linalg.svd(features / np.sqrt(p), compute_uv=False)
        distances.append(EmpiricalLaw(values).ks_distance(bulk.singular_values()))
    assert distances[1] < 0.5 * distances[0]
    assert distances[1] < 0.02


def test_singular_values_of_linear_features_keep_their_true_zeros() -> None:
    # μ₂ = 0, N > d: the features have rank d, fewer than min(n, N).
    bulk = KernelBulk(width=4.0, samples=2.0, linear=1.0, residual=0.0)
    law = bulk.singular_values()
    for atoms in (bulk.atoms, law.atoms):
        ((place, mass),) = atoms
        assert place == 0.0
        assert mass == pytest.approx(0.5)
    assert (
        KernelBulk(width=4.0, samples=8.0, linear=1.0, residual=0.1).singular_values().atoms == ()
    )


def test_equality_and_bad_arguments() -> None:
    kwargs = {"width": 1.0, "samples": 2.0, "linear": 0.5, "residual": 0.5}
    assert KernelBulk(**kwargs) == KernelBulk(**kwargs)
    assert len({KernelBulk(**kwargs), KernelBulk(**kwargs)}) == 1
    assert KernelBulk(**kwargs) != KernelBulk(**(kwargs | {"width": 2.0}))
    for bad in ({"width": -1.0}, {"samples": np.inf}, {"linear": 0.0, "residual": 0.0}):
        with pytest.raises(InvalidProblem):
            KernelBulk(**(kwargs | bad))
    with pytest.raises(InvalidProblem, match="population"):
        SampleCovariance(EmpiricalLaw([-1.0, 1.0]), 1.0)
    with pytest.raises(InvalidProblem, match="population"):
        SampleCovariance(EmpiricalLaw([0.0]), 1.0)
