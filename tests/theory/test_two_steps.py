"""Two steps: fields, equivalent model and weights, by open values and independent routes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from numpy.testing import assert_allclose

import giantsteps as gs
from giantsteps import theory
from giantsteps.functions import as_function, as_teacher
from giantsteps.gaussian import moments
from giantsteps.laws import outlier
from giantsteps.theory import NeuronCovariance
from giantsteps.theory.model.weight_spectrum import WeightSpectrum
from giantsteps.theory.steps.several import field as fields
from giantsteps.theory.steps.several.field import two_step_field

from .two_step_model import field_of, fresh_field, two_steps

ONE = gs.Constant()
BENT = gs.centered("tanh(x) + 0.5*tanh(x)**2")
SLANTED = "he2(x)/2 + he3(x)/12**0.5"


def problem(
    batch: str = "fresh",
    *,
    activation: gs.Function | str = "tanh",
    teacher: Any = "sin",
    rates: tuple[float, ...] = (1.0, 1.0),
    exponents: tuple[float, float] = (0.5, 0.5),
    samples: float = 4.0,
    law: gs.Vocabulary | str = "gaussian",
    noise: float = 0.02,
) -> gs.Problem:
    first, second = (
        {"samples": samples, "rate": rate, "exponent": exponent}
        for rate, exponent in zip(rates, exponents)
    )
    return gs.Problem(
        activation=activation,
        teacher=teacher,
        noise_variance=noise,
        width=1.0,
        steps=[first, second | {"batch": batch}],
        readout=gs.Ridge(samples=3.0, penalty=0.1 / 3),
        init=gs.Init(second_layer=law),
    )


# -- open values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reused", "strength", "overlap", "length"),
    [(False, 1.03495, 0.75802, 1.03701), (True, 0.76591, 0.74589, 0.97660)],
)
def test_open_values_of_the_field(
    reused: bool, strength: float, overlap: float, length: float
) -> None:
    law = as_function("tanh"), as_teacher("sin"), 0.3, ONE
    field = (
        two_step_field(*law, 2.0, (0.5, 2.0))
        if reused
        else fresh_field(*law, (2.0, 2.0), (0.5, 2.0))
    )
    assert_allclose(field.modes.strength, [strength], atol=5e-6)
    assert_allclose(field.modes.teacher, [[overlap]], atol=5e-6)
    assert_allclose(field.variances, [length], atol=5e-6)


@pytest.mark.parametrize(
    ("batch", "d", "test"),
    [
        ("fresh", 800, 0.0429),
        ("previous", 800, 0.0620),
        ("fresh", 2000, 0.0397),
        ("previous", 2000, 0.0588),
    ],
)
def test_open_values_of_the_risk(batch: str, d: int | None, test: float) -> None:
    """An isotropic bulk and equal norms; what they leave out is 1 to 2 % of the error."""
    assert_allclose(two_steps(problem(batch), d).risk().test, test, atol=1e-4)
    assert 0.975 * test < theory.risk(problem(batch), d=d).test < 0.995 * test


def test_open_value_of_the_risk_of_unequal_steps() -> None:
    asked = problem("previous", rates=(0.5, 2.0), samples=2.0, noise=0.3).replace(
        {"width": 1.5, "readout.samples": 2.0, "readout.penalty": 0.1}
    )
    assert_allclose(two_steps(asked, 600).risk().test, 0.2078, atol=5e-5)
    assert_allclose(theory.risk(asked, d=600).test, 0.2078, rtol=0.01)


# -- the field by brute force -----------------------------------------------------------------


def _rule(count: int) -> tuple[np.ndarray, np.ndarray]:
    x, w = hermegauss(count)
    return x, w / w.sum()


def _brute_force(
    star: Callable[[np.ndarray], np.ndarray],
    samples: float,
    rates: tuple[float, ...],
    values: np.ndarray,
    mass: np.ndarray,
    reused: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Theory §7 term by term on a product of Gauss–Hermite nodes, without noise, for tanh."""

    def slope(x: np.ndarray) -> np.ndarray:
        return 1 / np.cosh(x) ** 2

    z, w = _rule(80)
    linear = w @ (z * np.tanh(z))
    variance = w @ slope(z) ** 2 - linear**2
    square, teacher = w @ star(z) ** 2, w @ (z * star(z))
    u, wu = _rule(40)
    q, wq = _rule(30)
    u, q = (part.ravel() for part in np.meshgrid(u, q, indexing="ij"))
    weight = np.outer(wu, wq).ravel()
    spread = np.sqrt(square / samples)
    y, v = star(u), teacher * u + spread * q
    lengths = 1 + (rates[0] * values) ** 2 * square * variance / samples
    g, wg = _rule(90)
    x, wx = _rule(10)
    g, x = (part.ravel() for part in np.meshgrid(g, x, indexing="ij"))
    inner = np.outer(wg, wx).ravel()
    response = []
    for value, length in zip(values, lengths):
        moved = rates[0] * value
        if reused:
            own = y[:, None] * slope(g) / samples
            h = g + moved * (own + linear * v[:, None]) + np.sqrt(length - 1) * x
        else:
            h = np.sqrt(length) * g + moved * linear * v[:, None]
        dh = slope(h)
        bend = -2 * np.tanh(h) * dh
        parts = (np.tanh(h), dh, bend, dh**2, dh * g, dh * slope(g))
        response.append([part @ inner for part in parts])
    output, zeta, curve, squared, tilt, echo = (np.array(part) for part in zip(*response))
    r = y - (mass * values) @ output
    pull = r * zeta
    frame = np.stack([pull @ (weight * u), pull @ (weight * (v - teacher * u)) / spread], axis=1)
    products = frame @ frame.T + (pull * weight) @ pull.T / samples
    along = frame @ [teacher, spread]
    if reused:
        drift = r * curve * values[:, None] - ((mass * values**2) @ zeta) * zeta
        drift, own = rates[0] * linear * drift @ weight, pull @ (weight * y)
        products += (np.outer(drift, own) + np.outer(own, drift)) / samples
        along = pull @ (weight * (y / samples + v))
    first, second = rates[0] * linear, rates[1]
    kernel = first**2 * (teacher**2 + spread**2) + first * second * np.add.outer(along, along)
    kernel = np.outer(values, values) * (kernel + second**2 * products)
    noise = (squared - zeta**2) @ (weight * r**2) / samples
    stretch, moved = curve @ (weight * r), second * values
    if not reused:
        return kernel, lengths * (1 + moved * stretch) ** 2 + moved**2 * noise
    tilted = tilt @ (weight * r)
    cross = (echo - linear * zeta) @ (weight * y * r) / samples
    grown = lengths - 1
    return kernel, (
        lengths
        + 2 * moved * (tilted + grown * stretch)
        + 2 * rates[0] * values * moved * cross
        + moved**2
        * (noise + tilted**2 + grown * stretch**2 + 2 * rates[0] * values * stretch * cross)
    )


@pytest.mark.parametrize("reused", [False, True])
def test_field_is_that_of_brute_force(reused: bool) -> None:
    law = gs.Vocabulary([-0.7, 1.2], [0.4, 0.6])
    args, rates = (as_function("tanh"), as_teacher("sin"), 0.0, law), (0.8, 1.1)
    field = two_step_field(*args, 2.0, rates) if reused else fresh_field(*args, (2.0, 2.0), rates)
    kernel, variances = _brute_force(np.sin, 2.0, (0.8, 1.1), *law.types(), reused)
    assert_allclose(field.kernel, kernel, rtol=2e-6)
    assert_allclose(field.variances, variances, rtol=2e-6)


@pytest.mark.parametrize("term", ["slope", "curvature", "echo"])
def test_each_term_is_needed(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A term that is 5 % off moves the field far beyond the accuracy of the open values."""
    original = fields.reused_response  # type: ignore[attr-defined]

    def broken(*args: Any) -> Any:
        response = original(*args)
        object.__setattr__(response, term, 1.05 * getattr(response, term))
        return response

    monkeypatch.setattr(fields, "reused_response", broken)
    field = two_step_field.__wrapped__(
        as_function("tanh"), as_teacher("sin"), 0.3, ONE, 2.0, (0.5, 2.0)
    )
    wrong = abs(field.modes.strength[0] - 0.76591) + abs(field.variances[0] - 0.97660)
    assert wrong > 1e-4


# -- limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", ["fresh", "previous"])
@pytest.mark.parametrize("activation", ["tanh", gs.centered("relu"), BENT])
def test_a_step_that_is_not_taken(batch: str, activation: gs.Function | str) -> None:
    """With either rate zero two steps are one, on a fresh batch and on a reused one."""
    law = gs.Vocabulary([-1.2, 0.0, 0.7], [0.3, 0.2, 0.5])
    for rates in ((1.3, 0.0), (0.0, 1.3)):
        model = theory.equivalent(problem(batch, activation=activation, rates=rates, law=law))
        single = problem(activation=activation, law=law).replace(
            {"steps": [gs.Step(samples=4.0, rate=1.3, exponent=0.5)]}
        )
        one = theory.equivalent(single)
        assert_allclose(model.spikes[:, :1], one.spikes, atol=2e-6)
        assert_allclose(model.overlap[0], one.overlap[0], rtol=1e-6)
        assert_allclose(model.bulk.totals, one.bulk.totals, rtol=1e-6)


@pytest.mark.parametrize("batch", ["fresh", "previous"])
@pytest.mark.parametrize("law", ["gaussian", "constant"])
def test_risk_of_a_step_that_is_not_taken(batch: str, law: gs.Vocabulary | str) -> None:
    """The limit of one step, with the pull of f₀ at a size."""
    one = problem(law=law).replace({"steps": [gs.Step(samples=4.0, rate=1.0, exponent=0.5)]})
    for rate in (0.0, 1e-6):
        two = problem(batch, rates=(1.0, rate), law=law)
        for d, accuracy in ((None, 2e-6), (600, 2e-6)):
            found, expected = theory.risk(two, d=d), theory.risk(one, d=d)
            assert_allclose(found.test, expected.test, rtol=accuracy)
            assert_allclose(found.train, expected.train, rtol=accuracy)


def test_samples_of_a_fresh_step_are_its_own() -> None:
    """More samples in the second step leave less noise in the second direction alone."""
    few, many = (
        theory.weights(problem().replace({"steps.1.samples": samples}), d=1000).spikes[0].overlap
        for samples in (4.0, 40.0)
    )
    assert many > few + 0.02


# -- weights ----------------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [1.3, 2.0, 7.0])
@pytest.mark.parametrize("width", [0.5, 1.0, 2.0])
def test_equal_norms_give_the_map_of_one_spike(strength: float, width: float) -> None:
    spectrum = WeightSpectrum(
        width=width,
        neurons=900.0,
        probabilities=np.ones(1),
        spikes=np.array([[strength / 30.0]]),
        bulk=NeuronCovariance.isotropic([1.0], 1),
    )
    value, left, right, present = outlier(strength, width)
    assert len(spectrum.outliers) == int(present)
    for found in spectrum.outliers:
        overlaps = spectrum.overlaps(found, {"left": np.eye(2)[0]}, {"right": np.ones(1)})
        assert_allclose(found, value**2, rtol=1e-8)
        assert_allclose([overlaps["left"], overlaps["right"]], [left, right], rtol=1e-6)


def test_outliers_of_drawn_weights_of_several_types() -> None:
    """Two spikes and three types with norms of their own, written out: values and overlaps."""
    mass, norms = np.array([0.3, 0.3, 0.4]), np.array([0.6, 1.8, 1.0])
    values, d, neurons = np.array([-1.0, 2.0, 0.5]), 500, 600
    spikes = np.array([[-1.5, 0.8], [2.0, 1.0], [0.5, -1.5]]) * 1.5 / np.sqrt(neurons)
    spectrum = WeightSpectrum(
        width=neurons / d,
        neurons=float(neurons),
        probabilities=mass,
        spikes=spikes,
        bulk=NeuronCovariance.isotropic(norms, 2),
    )
    types = np.repeat([0, 1, 2], np.round(mass * neurons).astype(int))
    left = {"first": np.array([1.0, 0, 0]), "second": np.array([0, 1.0, 0])}
    measured = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        drawn = rng.standard_normal((d, neurons)) * np.sqrt(norms[types] / d)
        drawn[:2] += spikes[types].T
        u, s, v = np.linalg.svd(drawn, full_matrices=False)
        along = (v[:2] @ values[types]) ** 2 / (values[types] @ values[types])
        measured.append(np.stack([s[:2] ** 2, u[0, :2] ** 2, u[1, :2] ** 2, along]))
        assert s[2] ** 2 < 1.03 * spectrum.law.edge
    mean, error = np.mean(measured, axis=0), np.std(measured, axis=0, ddof=1) / 4
    assert len(spectrum.outliers) == 2
    for number, value in enumerate(spectrum.outliers):
        overlaps = spectrum.overlaps(value, left, {"a": values})
        wanted = np.array([value, overlaps["first"], overlaps["second"], overlaps["a"]])
        assert np.all(np.abs(mean[:, number] - wanted) < 3.5 * error[:, number] + 0.01 * wanted)
        assert np.all(3 * error[:1, number] < 0.03 * wanted[:1])


def test_degrees_of_the_outliers() -> None:
    """An odd activation brings A and A³, one with an even part A and A² first."""
    odd = theory.weights(problem(rates=(2.0, 2.0), samples=1.0), d=2000).spikes
    assert [spike.degree for spike in odd] == [1, 3]
    even = theory.weights(problem(activation=gs.centered("relu"), rates=(1, 0.5)), d=4000).spikes
    assert [spike.degree for spike in even][:2] == [1, 2]


def test_a_reused_batch_aligns_a_second_outlier_that_a_fresh_one_does_not() -> None:
    """Without a linear part, E[y u] = 0, no step on a fresh batch leans towards the teacher.

    The outlier there has an overlap of 8e-6 all the same: samples with large labels lengthen the
    neurons along themselves, and E[y³u] ≠ 0. With an isotropic bulk there is none, although the
    labels of spectra are cut at the largest of n₀ draws.
    """
    overlaps = {}
    for batch in ("fresh", "previous"):
        asked = problem(
            batch,
            activation=BENT,
            teacher=SLANTED,
            rates=(2.0, 2.0),
            exponents=(0.35, 0.45),
            noise=0.0,
        )
        spikes = theory.weights(asked, d=1500).spikes
        overlaps[batch] = [spike.overlap for spike in spikes[:2]]
        if batch == "fresh":
            plain = theory.equivalent(asked, d=1500, simplify="isotropic bulk").weights().spikes
    assert 0.25 < overlaps["previous"][1] < 0.35
    assert max(overlaps["fresh"]) < 1e-4
    assert max(spike.overlap for spike in plain) < 1e-12


def test_limit_of_two_large_steps() -> None:
    spectrum = theory.weights(problem("previous", law=gs.Vocabulary([-1, 1, 2], [0.3, 0.4, 0.3])))
    big = theory.weights(
        problem("previous", law=gs.Vocabulary([-1, 1, 2], [0.3, 0.4, 0.3])), d=10**8
    )
    assert all(np.isinf(spike.value) for spike in spectrum.spikes)
    assert spectrum.count >= 2
    for limit, finite in zip(spectrum.spikes[:2], big.spikes[:2]):
        for name, overlap in limit.overlaps.items():
            assert_allclose(finite.overlaps[name], overlap, atol=2e-4)
        assert limit.degree == finite.degree
    constant = problem(law="constant")
    assert_allclose(theory.risk(constant).test, theory.risk(constant, d=10**7).test, rtol=1e-5)


# -- what is kept and what is refused ---------------------------------------------------------


def test_the_direction_that_shows_the_teacher_is_kept() -> None:
    """For c₂ ≠ 0 and an odd teacher the second strongest direction is blind; the third is not."""
    asked = problem(activation=BENT, rates=(1.0, 1.0), exponents=(0.4, 0.45))
    modes = field_of(asked, 1000).modes
    assert abs(modes.teacher[0, 1]) < 1e-8 < 0.1 < abs(modes.teacher[0, 2])
    model = theory.equivalent(asked, 1000)
    assert_allclose(abs(model.overlap[0]), abs(modes.teacher[0, 0]), rtol=1e-6)
    # What the teacher sees of all other leans: the third, and a little of the weaker ones.
    assert abs(modes.teacher[0, 2]) < abs(model.overlap[1]) < 1.002 * abs(modes.teacher[0, 2])


def test_a_grid_over_batches_is_its_cells() -> None:
    grid = gs.Grid(
        problem(law="constant"),
        {"steps.1.batch": ["fresh", "previous"], "readout.samples": [1.0, 2.0, 3.0]},
    )
    answer = theory.risk(grid, d=500)
    assert isinstance(answer.test, np.ndarray)
    assert answer.test.shape == (2, 3)
    assert answer.test[1, 2] == theory.risk(grid[1, 2], d=500).test
    assert not answer.exact
    assert answer.violated


@pytest.mark.parametrize(
    ("asked", "d", "needle"),
    [
        (problem(exponents=(0.3, 0.4)), None, "any exponents with d given"),
        (
            problem(
                "previous", activation=gs.centered("relu"), teacher=gs.centered("relu")
            ).replace({"steps": [*problem("previous").steps, problem().steps[0]]}),
            500,
            'batch="fresh"',
        ),
    ],
)
def test_refusals(asked: gs.Problem, d: int | None, needle: str) -> None:
    for question in (theory.risk, theory.weights, theory.equivalent):
        with pytest.raises(gs.NotCovered) as error:
            question(asked, d)
        assert needle in str(error.value)


def test_an_uncentred_activation_is_covered_where_the_second_layer_has_mean_zero() -> None:
    raw = theory.weights(problem(activation="relu"), d=500).spikes[0]
    centred = theory.weights(problem(activation=gs.centered("relu")), d=500).spikes[0]
    assert_allclose(raw.value, centred.value, rtol=1e-9)


def test_an_output_of_its_own_is_a_shift_of_the_labels() -> None:
    shift = moments(as_function("softplus")).mean
    rest = 0.1, ONE, 3.0, (1.2, 0.9)
    asked = two_step_field(as_function("softplus"), as_teacher("sin"), *rest)
    shifted = as_teacher(f"sin(x) - {shift!r}")
    moved = two_step_field(gs.centered("softplus"), shifted, *rest)
    for name in ("kernel", "teacher", "first", "variances"):
        assert_allclose(getattr(asked, name), getattr(moved, name), rtol=1e-9)


def test_heavy_labels_cost_no_accuracy() -> None:
    """The grid of labels is split where they are: moments of He₃ come out."""
    from giantsteps.theory.steps.several.sample_law import sample_law

    law = sample_law(as_teacher("he3"), 0.2, 3.0)
    assert_allclose(law.mean(law.label**2), 6.2, rtol=1e-7)
    assert_allclose(law.mean(law.step**2), law.norm_squared, rtol=1e-12)
    assert_allclose(law.mean(np.tanh(law.label) * law.step), 0.0, atol=1e-12)
    jumping = sample_law(as_teacher("sign"), 0.0, 3.0)
    assert_allclose(jumping.frame(jumping.label + 0 * jumping.step)[0], np.sqrt(2 / np.pi))
