"""Laws of the inputs: their normalisations, their directions, what they refuse, data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import giantsteps as gs
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Inputs

LAWS: list[Inputs] = [
    gs.Isotropic(),
    gs.Covariance((0.3, 1.7), (0.5, 0.5)),
    gs.Covariance((5, 1, 2), (0.2, 0.5, 0.3), (0.1, 0.2, 0.7)),
    gs.PowerLaw(0.4),
    gs.PowerLaw(0.7, -0.5),
    gs.PowerLaw(0.3, 0.6),
    gs.SpikedCovariance(3, 0.4),
    gs.SpikedCovariance(-0.5, 1),
]
PROBLEM = gs.Problem(activation="tanh", teacher="sin", width=1.0)


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("d", [60, 201])
def test_normalisations(law: Inputs, d: int) -> None:
    law.at(d)
    variances = law.variances(d)
    spiked = isinstance(law, gs.SpikedCovariance)
    trace = d + law.strength if isinstance(law, gs.SpikedCovariance) else d
    assert variances.shape == (d,)
    assert variances.sum() == pytest.approx(trace, rel=1e-12)
    for direction in (0, 1):
        along, runs = law.teacher_variances(d, direction)
        assert along.sum() == pytest.approx(1, rel=1e-12)
        assert along.min() >= 0
        assert sum(runs) == d
    for values, shares, teacher in (law.directions(40), law.directions(40, d)):
        assert shares.sum() == pytest.approx(1, rel=1e-12)
        assert teacher.sum() == pytest.approx(1, rel=1e-12)
        assert np.all(np.diff(values) * np.sign(values[-1] - values[0]) >= 0)
        if not spiked:
            assert shares @ values == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_the_directions_at_d_are_those_of_its_coordinates(law: Inputs) -> None:
    d = 100
    values, shares, teacher = law.directions(1000, d)
    variances, (along, _) = law.variances(d), law.teacher_variances(d)
    for power in (1, 2, 3):
        assert shares @ values**power == pytest.approx(np.mean(variances**power), rel=1e-12)
        assert teacher @ values**power == pytest.approx(along @ variances**power, rel=1e-12)


@pytest.mark.parametrize("law", [gs.PowerLaw(0.3), gs.PowerLaw(0.4, 0.1), gs.PowerLaw(0.2, -1)])
def test_the_quadrature_of_a_power_law(law: gs.PowerLaw) -> None:
    """Against the integrals of u^−a, and against the eigenvalues at a large d."""
    a, b = law.exponent, law.exponent + law.teacher
    values, shares, teacher = law.directions(40)
    assert shares @ values**2 == pytest.approx((1 - a) ** 2 / (1 - 2 * a), rel=1e-8)
    assert teacher @ values == pytest.approx((1 - a) * (1 - b) / (1 - a - b), rel=1e-8)
    smooth = shares @ (1 / (1 + values))
    exact = law.directions(40, 10**6)
    assert exact[1] @ (1 / (1 + exact[0])) == pytest.approx(smooth, rel=2e-3)
    coarse, fine = (law.directions(n, 3000) for n in (64, 256))
    assert coarse[1] @ coarse[0] ** 2 == pytest.approx(fine[1] @ fine[0] ** 2, rel=1e-3)
    assert coarse[2] @ coarse[0] == pytest.approx(fine[2] @ fine[0], rel=2e-3)


@pytest.mark.parametrize("strength", [-0.4, 0.135, 0.156, 0.579, 7.3])
def test_a_teacher_along_the_spike_has_no_other_part(strength: float) -> None:
    """Rounding left −2e-16 of it, whose root was not a number."""
    assert gs.SpikedCovariance(strength, 1.0).directions()[2].tolist() == [0.0, 1.0]


def test_only_ratios_of_eigenvalues_matter() -> None:
    law = gs.Covariance((30, 170), (0.5, 0.5))
    assert law == gs.Covariance((1.7, 0.3), (0.5, 0.5))
    assert gs.Covariance((1, 3), (0.25, 0.75), (0.25, 0.75)).teacher is None
    again = gs.Covariance(law.eigenvalues, law.weights, law.teacher)
    assert again == law  # nothing is rescaled twice
    assert law.at(7).at(7) == law.at(7)


def test_realised_has_the_shares_of_the_integers() -> None:
    problem = PROBLEM.replace(inputs=gs.Covariance((1, 3), (0.3, 0.7)))
    realised = problem.realised(11)
    assert realised.inputs.weights == (3 / 11, 8 / 11)  # type: ignore[attr-defined]
    np.testing.assert_allclose(realised.inputs.variances(11), problem.inputs.variances(11))
    assert problem.inputs.variances(11).sum() == pytest.approx(11)


def _at(law: Inputs, d: int) -> object:
    return PROBLEM.replace(inputs=law).at(d)


@pytest.mark.parametrize(
    ("make", "field", "word"),
    [
        (lambda: gs.PowerLaw(1.0), "exponent", "spikes of order d"),
        (lambda: gs.PowerLaw(0.6, 0.4), "teacher", "SpikedCovariance"),
        (lambda: gs.Covariance((1, 1), (0.5, 0.5)), "eigenvalues", "distinct"),
        (lambda: gs.Covariance((0, 1), (0.5, 0.5)), "eigenvalues", "positive"),
        (lambda: gs.Covariance((1, 2), (0.5, 0.6)), "weights", "numbers that sum to one"),
        (lambda: gs.Covariance((1, 2), (0, 1)), "weights", "no share"),
        (lambda: gs.Covariance((1, 2), (0.5, 0.5), (1,)), "teacher", "2 numbers"),
        (lambda: gs.SpikedCovariance(-1, 0.5), "strength", "> -1"),
        (lambda: _at(gs.SpikedCovariance(50, 0.5), 100), "inputs.strength", "spike of order d"),
        (lambda: _at(gs.Covariance((1, 2), (0.01, 0.99)), 20), "inputs.weights", "no direction"),
    ],
)
def test_what_is_refused(make: Callable[[], object], field: str, word: str) -> None:
    with pytest.raises(InvalidProblem, match=word) as caught:
        make()
    assert caught.value.field == field


def test_paths_reach_into_the_law() -> None:
    problem = PROBLEM.replace(inputs=gs.PowerLaw(0.3))
    grid = gs.Grid(problem, {"inputs.exponent": [0.1, 0.2]})
    assert grid[1].inputs == gs.PowerLaw(0.2)  # type: ignore[union-attr]
    laws = gs.Grid(PROBLEM, {"inputs": ["isotropic", gs.PowerLaw(0.2)]})
    assert laws.coords["inputs"].tolist() == ["isotropic", "PowerLaw(exponent=0.2, teacher=0.0)"]


def _inputs(rows: int, law: Inputs, d: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    scaled = rng.standard_normal((rows, d)) * np.sqrt(law.variances(d))
    return (7 * scaled) @ basis.T + 3.0


@pytest.mark.parametrize("rows", [150, 600, 6000])
def test_the_first_moments_of_an_estimate_do_not_depend_on_the_number_of_rows(rows: int) -> None:
    law, d = gs.Covariance((0.4, 2.2), (2 / 3, 1 / 3)), 150
    estimates = [
        gs.Covariance.from_data(_inputs(rows, law, d, seed), tolerance=0.02) for seed in range(4)
    ]
    second = [np.dot(e.weights, np.square(e.eigenvalues)) for e in estimates]
    truth = np.dot(law.weights, np.square(law.eigenvalues))
    assert np.mean(second) == pytest.approx(truth, rel=0.04)
    if rows == 6000:
        wide = gs.Covariance.from_data(_inputs(rows, law, d), tolerance=0.1)
        np.testing.assert_allclose(wide.eigenvalues, law.eigenvalues, rtol=0.03)
        np.testing.assert_allclose(wide.weights, law.weights)


def test_as_few_eigenvalues_as_the_tolerance_allows() -> None:
    inputs = _inputs(4000, gs.PowerLaw(0.45), 100)
    sizes = []
    for tolerance in (0.3, 0.1, 0.01, 0.001):
        law = gs.Covariance.from_data(inputs, tolerance=tolerance, most=50)
        fine = gs.Covariance.from_data(inputs, tolerance=0.0, most=100)
        spread, whole = (np.dot(e.weights, np.square(e.eigenvalues)) - 1 for e in (law, fine))
        assert 1 - spread / whole <= tolerance + 1e-9
        sizes.append(len(law.eigenvalues))
    assert sizes == sorted(set(sizes))
    assert len(gs.Covariance.from_data(inputs, tolerance=0.0, most=5).eigenvalues) == 5


def test_shares_of_a_teacher_direction() -> None:
    rng = np.random.default_rng(1)
    inputs = rng.standard_normal((8000, 60)) * np.sqrt(np.repeat([0.5, 1.5], 30))
    beta = np.concatenate([np.full(30, 1.0), np.full(30, 2.0)])
    law = gs.Covariance.from_data(inputs, beta, tolerance=0.2)
    assert law.teacher is not None
    np.testing.assert_allclose(law.teacher, (0.2, 0.8), atol=0.02)


def test_inputs_without_structure_and_inputs_that_are_refused() -> None:
    noise = np.random.default_rng(0).standard_normal((100, 50))
    estimate = gs.Covariance.from_data(noise, tolerance=0.01)
    assert np.dot(estimate.weights, np.square(estimate.eigenvalues)) < 1.1
    fewer = gs.Covariance.from_data(noise[:, :20] @ np.eye(20, 50))
    assert min(fewer.eigenvalues) > 0
    refused = {"rows >= 3": noise[:2], "vary": np.ones((9, 4)), "finite": noise * np.nan}
    for word, bad in refused.items():
        with pytest.raises(InvalidProblem, match=word):
            gs.Covariance.from_data(bad)
    with pytest.raises(InvalidProblem, match="teacher_direction"):
        gs.Covariance.from_data(noise, np.zeros(50))


def test_strong_directions_of_data_stay_alone() -> None:
    """Theory takes them one by one; values of equal size are one group."""
    scales = np.sqrt(np.concatenate([[30.0, 24.0], np.ones(58)]))
    rows = np.random.default_rng(3).standard_normal((4000, 60)) * scales
    law = gs.Covariance.from_data(rows, tolerance=0.1)
    assert law.weights[-2:] == pytest.approx((1 / 60, 1 / 60))
    assert law.eigenvalues[-1] / law.eigenvalues[-2] == pytest.approx(1.25, rel=0.2)
    flat = gs.Covariance.from_data(np.tile(np.eye(4), (3, 1)), tolerance=0.0)
    assert len(set(flat.eigenvalues)) == len(flat.eigenvalues)
