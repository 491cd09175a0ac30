"""Spectra of the equivalent model: their limits, and laws that are laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.answers import Spectrum
from giantsteps.errors import InvalidProblem, NotConverged, NotCovered
from giantsteps.gaussian import moments
from giantsteps.laws import KernelBulk, Law, MarchenkoPastur, outlier
from giantsteps.problem import Ridge
from giantsteps.theory import NeuronCovariance, SpikedFeatures, equivalent
from giantsteps.theory.model import spectra
from giantsteps.theory.model.fewer_nodes import on_fewer_nodes
from giantsteps.theory.model.kernel_spectrum import KernelSpectrum
from giantsteps.theory.model.weight_spectrum import WeightSpectrum
from giantsteps.theory.solver.state import State
from giantsteps.theory.solver.work import Work
from giantsteps.theory.steps.first import first_step

SAMPLES, D = 1.5, 10**13  # what the initial output pulls is of order η̃, 1e-6


def problem(rate: float, exponent: float, **changes: object) -> gs.Problem:
    fields = {
        "activation": "tanh",
        "teacher": "sin",
        "noise_variance": 0.1,
        "width": 1.2,
        "steps": [gs.Step(samples=2.0, rate=rate, exponent=exponent)],
        "init": gs.Init(second_layer="constant"),
        **changes,
    }
    return gs.Problem(**fields)  # type: ignore[arg-type]


def bulk_of(spectrum: Spectrum) -> Law:
    """The law of the bulk of one spectrum."""
    assert isinstance(spectrum.bulk, Law)
    return spectrum.bulk


@pytest.fixture(scope="module")
def small() -> SpikedFeatures:
    return equivalent(problem(4.0, 0.0), D)


def test_small_steps_have_the_kernel_of_gaussian_equivalence(small: SpikedFeatures) -> None:
    sigma = moments(small.activation)
    bulk = KernelBulk(width=1.2, samples=SAMPLES, linear=sigma.linear, residual=sigma.residual)
    found = small.kernel(SAMPLES)
    found_bulk = bulk_of(found)
    np.testing.assert_allclose(found_bulk.support, bulk.support, rtol=1e-6)
    assert found_bulk.atoms[0][1] == pytest.approx(bulk.atoms[0][1], rel=1e-9)
    x = np.linspace(*bulk.support[0], 9)[1:-1]
    np.testing.assert_allclose(found_bulk.density(x), bulk.density(x), rtol=1e-5)
    np.testing.assert_allclose(found_bulk.cdf(x), bulk.cdf(x), atol=1e-7)
    z = np.array([0.3 + 0.2j, 5.0 + 1e-3j])
    np.testing.assert_allclose(found_bulk.stieltjes(z), bulk.stieltjes(z), rtol=1e-6)
    # theory §3: the spike of Σ and where Λ puts it, and its overlap with the labels.
    first = first_step(problem(4.0, 0.0))
    value, left, _, _ = outlier(first.strength, 1.2)
    tau = sigma.linear**2 * float(value) ** 2 + sigma.residual_variance
    (spike,) = found.spikes
    # Spectra are computed at one coarse resolution, good to 1e-6 in values and 2e-5 in overlaps.
    assert spike.value == pytest.approx(float(bulk.spike(tau)), rel=2e-6)
    teacher = moments(small.link)
    aligned = teacher.linear**2 * sigma.linear**2 * float(value) ** 2 * first.alignment
    step = 1e-5 * tau
    slope = float(bulk.spike(tau + step) - bulk.spike(tau - step)) / (2 * step)
    wanted = aligned * float(left) / tau / (teacher.second_moment + 0.1)
    assert spike.overlap == pytest.approx(wanted * slope / (SAMPLES / 1.2), rel=2e-5)


def test_features_are_the_roots_of_the_kernel(small: SpikedFeatures) -> None:
    kernel, features = small.kernel(SAMPLES), small.features(SAMPLES)
    assert features.spikes[0].value ** 2 == pytest.approx(kernel.spikes[0].value, rel=1e-12)
    assert features.spikes[0].degree == 1
    assert set(features.spikes[0].overlaps) == {"monomial", "second_layer_power"}
    assert bulk_of(features).atoms == ()
    np.testing.assert_allclose(
        np.square(bulk_of(features).support), bulk_of(kernel).support, rtol=1e-12
    )


def test_small_steps_have_the_weights_of_the_rank_one_deformation(small: SpikedFeatures) -> None:
    first = first_step(problem(4.0, 0.0))
    value, left, right, _ = (float(part) for part in outlier(first.strength, 1.2))
    found = small.weights()
    (spike,) = found.spikes
    assert spike.value == pytest.approx(value, rel=1e-6)
    assert spike.overlaps["gradient"] == pytest.approx(left, rel=1e-5)
    assert spike.overlaps["teacher"] == pytest.approx(first.alignment * left, rel=1e-5)
    assert spike.overlaps["second_layer"] == pytest.approx(right, rel=1e-5)
    bulk = MarchenkoPastur(1.2).singular_values()
    np.testing.assert_allclose(bulk_of(found).support, bulk.support, rtol=1e-5)
    x = np.linspace(0.3, 1.9, 7)
    np.testing.assert_allclose(bulk_of(found).cdf(x), bulk.cdf(x), atol=1e-6)


def test_large_steps_deform_the_bulk_of_the_weights() -> None:
    found = equivalent(problem(2.0, 0.5, width=1.0), 1000).weights()
    assert 2.05 < bulk_of(found).edge < 2.2  # 2 without the step
    assert found.spikes[0].value > 10


def test_column_variances_alone_are_a_sample_covariance() -> None:
    # β = 1, two kinds of columns: z(x) = 1/x + βE[c/(1−cx)] bounds the bulk at z'(x) = 0.
    c, weight = np.array([1.0, 3.0]), np.array([0.7, 0.3])
    spectrum = WeightSpectrum(
        width=1.0,
        neurons=1e4,
        probabilities=weight,
        spikes=np.zeros((2, 1)),
        bulk=NeuronCovariance.isotropic(c, 1),
    )
    x = np.linspace(1e-3, 1 / 3 - 1e-3, 200_001)
    z = 1 / x + (weight[:, None] * c[:, None] / (1 - c[:, None] * x)).sum(axis=0)
    assert spectrum.law.edge == pytest.approx(z.min(), rel=1e-6)


@pytest.mark.parametrize("width", [0.5, 1.0, 2.0])
def test_law_of_plain_weights(width: float) -> None:
    """From its equations alone: Marchenko and Pastur's, by edges, density, masses and quantiles."""
    wanted = MarchenkoPastur(width)
    found = WeightSpectrum(
        width=width,
        neurons=1e4,
        probabilities=np.ones(1),
        spikes=np.zeros((1, 1)),
        bulk=NeuronCovariance.isotropic([1.0], 1),
    ).law
    np.testing.assert_allclose(found.support, wanted.support, rtol=1e-8, atol=1e-8)
    (lower, upper) = wanted.support[0]
    x = np.linspace(lower + 0.05, upper - 0.05, 11)
    np.testing.assert_allclose(found.density(x), wanted.density(x), rtol=1e-6)
    np.testing.assert_allclose(found.cdf(x), wanted.cdf(x), atol=1e-7)
    p = np.array([0.55, 0.7, 0.9, 0.999])
    np.testing.assert_allclose(found.quantile(p), wanted.quantile(p), rtol=1e-6)
    assert found.cdf(10.0) == pytest.approx(1.0, abs=1e-8)


def test_bulk_has_the_mass_and_the_mean_of_the_features() -> None:
    for law in ("constant", gs.Vocabulary((-1.0, 2.0), (0.5, 0.5))):
        model = equivalent(problem(1.0, 0.5, init=gs.Init(second_layer=law)), 800)
        spectrum = KernelSpectrum(model.system([Ridge(samples=SAMPLES, penalty=1.0)]))
        pieces = spectrum.bulk._pieces
        assert sum(piece.series[0] * np.pi for piece in pieces) == pytest.approx(0.8, abs=1e-7)
        assert spectrum.bulk.expectation(lambda x: x) == pytest.approx(spectrum.scale, rel=1e-5)
        beside = [np.nextafter(upper, 0.0) for _, upper in spectrum.bulk.support]
        np.testing.assert_allclose(spectrum.bulk.density(beside), 0.0, atol=1e-4)


def test_five_percent_in_the_outlier_equation_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    model = equivalent(problem(2.0, 0.5), 600)
    wanted = model.kernel(SAMPLES).spikes[0]
    # An isotropic form without norms and pull has 195.235 and 0.41911.
    assert wanted.value == pytest.approx(195.235, rel=2e-3)
    assert wanted.overlap == pytest.approx(0.41911, rel=5e-3)
    original = KernelSpectrum._cores

    def mutant(self: KernelSpectrum, point: State) -> Any:
        cores = original(self, point)
        return cores._replace(matrix=1.05 * cores.matrix - 0.05 * np.eye(cores.matrix.shape[-1]))

    monkeypatch.setattr(KernelSpectrum, "_cores", mutant)
    assert abs(float(model.kernel(SAMPLES).spikes[0].value / wanted.value) - 1) > 1e-2


def test_refusals() -> None:
    limit = equivalent(problem(2.0, 0.5))
    with pytest.raises(NotCovered, match="give d"):
        limit.kernel(SAMPLES)
    assert all(np.isinf(spike.value) for spike in limit.weights().spikes)
    with pytest.raises(InvalidProblem, match="samples"):
        equivalent(problem(2.0, 0.5), 100).features(-1.0)


@pytest.mark.parametrize("d", [200, 800])
def test_directions_that_leave_the_bulk_by_themselves(d: int) -> None:
    """Heavy-tailed labels put poles above the bulk; the spike above them is found, once."""
    problem = gs.Problem(
        activation="sin",
        teacher="he1(x) + he2(x)/4",
        noise_variance=0.1,
        width=1.43,
        steps=[gs.Step(samples=1.08, rate=1.2, exponent=0.5)],
        init=gs.Init(second_layer="constant"),
    )
    (spike,) = theory.weights(problem, d=d).spikes
    expected = theory.weights(
        problem.replace({"steps.0.exponent": 0.0, "steps.0.rate": 1.2 * (1.43 * d) ** 0.5})
    ).spikes[0]
    assert spike.value == pytest.approx(expected.value, rel=0.03)
    assert spike.overlap == pytest.approx(expected.overlap, rel=0.02)


def test_the_edge_of_one_strong_direction_is_not_passed_over() -> None:
    """The strong direction of the inputs has a bulk of its own above that of the others."""
    given = gs.Problem(
        activation="tanh",
        teacher="he2(x) + x",
        width=3.0,
        steps=[gs.Step(samples=0.7, rate=0.07)],
        readout=gs.Ridge(samples=3.0, penalty=1.0),
        inputs=gs.SpikedCovariance(strength=3.0, alignment=0.186),
    )
    bulk: Any = gs.theory.kernel(given, d=300).bulk
    x = bulk.edge * np.geomspace(1.002, 4.0, 80)
    assert np.max(x * bulk.stieltjes(x * (1 + 1e-9j)).imag) < 1e-6
    beneath = bulk.edge * 0.998
    assert beneath * bulk.stieltjes(beneath * (1 + 1e-9j)).imag > 1e-4


def test_linear_features_have_the_rank_of_the_inputs() -> None:
    given = gs.Problem(
        activation="identity",
        teacher="tanh",
        width=2.0,
        steps=[gs.Step(samples=1.0, rate=0.5, exponent=0.25)],
        readout=gs.Ridge(samples=4.0, penalty=0.1),
    )
    bulk: Any = gs.theory.kernel(given, d=200).bulk
    assert dict(bulk.atoms) == {0.0: pytest.approx(0.75)}
    assert bulk.cdf(bulk.edge) == pytest.approx(1.0, abs=1e-6)
    assert bulk.support[0][0] > 0


@pytest.mark.slow
def test_the_kernel_of_far_nodes_has_one_interval_and_its_mass() -> None:
    """Few samples with large labels: nodes of their quadrature show as many small intervals."""
    given = gs.Problem(
        activation="silu",
        teacher="10*tanh(x)",
        width=1.0,
        steps=[gs.Step(samples=0.1, rate=3.0, exponent=0.5)],
        readout=gs.Ridge(samples=0.5, penalty=0.1),
        init=gs.Init(second_layer="constant"),
    )
    bulk: Any = gs.theory.kernel(given, d=100).bulk
    assert bulk.support[-1][1] == pytest.approx(bulk.edge, rel=1e-9)
    assert bulk.cdf(bulk.edge) == pytest.approx(1.0, abs=1e-6)
    assert len(bulk.support) == 1
    low, high = bulk.support[0][0], bulk.edge
    inside = bulk.density(np.geomspace(low, high, 200)[1:-1])
    assert np.all(np.isfinite(inside))
    assert inside.min() >= 0


@pytest.mark.parametrize("layer", ["gaussian", "constant"])
def test_densities_on_few_nodes_are_those_on_all(layer: str) -> None:
    """Two steps; also that there are far fewer of them."""
    steps = [gs.Step(samples=2.0, rate=1.0, exponent=0.5)] * 2
    given = problem(1.0, 0.5, activation="tanh(x)+0.3*he2(x)", steps=steps)
    given = given.replace({"init.second_layer": layer})
    model = equivalent(given, 300)
    assert model.bounded is not None
    every = KernelSpectrum(model.bounded(0).system([Ridge(samples=SAMPLES, penalty=1.0)], 0))
    z = every.scale * np.geomspace(1e-4, 1e2, 12) * np.exp(0.1j)
    v1, tau, active = every.above(z)
    few = KernelSpectrum(
        on_fewer_nodes(every.equations.take(np.zeros(12, int)).at(v1, tau, -z, active))
    )
    system, whole = few.equations.system, every.equations.system
    nodes = [part.bulk.batches[-1].weights.shape[1] for part in (system, whole)]
    assert nodes[0] < nodes[1] / 2
    assert system.probabilities.sum() == pytest.approx(1, abs=1e-6)
    x = np.linspace(0.1, 0.9, 9) * every.bulk.edge * (1 + 1e-3j)
    found, expected = (one.transform(one.above(x), x).imag for one in (few, every))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("layer", ["gaussian", gs.Vocabulary((-1.0, 2.0), (0.5, 0.5))])
def test_densities_of_weights_on_few_nodes_are_those_on_all(layer: Any) -> None:
    """Three steps: types with covariances of their own, and batches that each type multiplies."""
    steps = [gs.Step(samples=2.0, rate=1.0, exponent=0.5)] * 3
    given = problem(1.0, 0.5, activation="tanh(x)+0.3*he2(x)", steps=steps)
    model = equivalent(given.replace({"init.second_layer": layer}), 300)
    assert model.bounded is not None
    every = spectra._weights(model, 1, Work()).spectrum.branch
    few = every.of_density
    assert few is not every
    nodes = [one.equations.bulk.batches[-1].weights.shape[1] for one in (few, every)]
    assert nodes[0] < nodes[1] / 5
    z = every.scale * np.array([0.1, 0.3, 1.0, 2.0, 3.0, 5.0]) * (1 + 1e-3j)
    found, expected = (one.transform(one.above(z), z).imag for one in (few, every))
    np.testing.assert_allclose(found, expected, rtol=5e-4)


def test_a_spectrum_that_takes_too_long_ends_and_says_what_else_to_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = problem(1.0, 0.5, readout=gs.Ridge(samples=SAMPLES, penalty=0.1))
    expected = theory.kernel(given, d=300)
    monkeypatch.setattr(spectra, "MOST", 1e7)
    with pytest.raises(
        NotConverged, match=r"0\.01 thousand million operations.*simulation\.kernel"
    ):
        theory.kernel(given, d=300)
    with pytest.raises(
        NotConverged, match=r"simulation\.weights, or a smaller problem: fewer steps"
    ):
        theory.weights(given, d=300)
    # What is asked at points of one's own does not count.
    monkeypatch.setattr(spectra, "MOST", 5e9)
    bulk = bulk_of(theory.kernel(given, d=300))
    z = np.linspace(0.1, 3.0, 500) + 0.01j
    values = [bulk.stieltjes(z) for _ in range(3)]
    np.testing.assert_allclose(values[2], bulk_of(expected).stieltjes(z), rtol=1e-6)
