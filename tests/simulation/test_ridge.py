"""Ridge regression against explicit inverses, the pseudo-inverse and least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from giantsteps.simulation._engine._arrays import Arrays
from giantsteps.simulation._engine._devices import resolve
from giantsteps.simulation._readout import _ridge
from giantsteps.simulation._readout._ridge import RidgeCurve, solve_shifted


def data(samples: int, neurons: int, rank: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(samples + 7 * neurons)
    phi = rng.standard_normal((samples, neurons)) / np.sqrt(neurons)
    if rank is not None:
        phi = phi[:, :rank] @ rng.standard_normal((rank, neurons)) / np.sqrt(rank)
    return phi, rng.standard_normal(samples)


def chunks(arrays: Arrays, phi: np.ndarray, y: np.ndarray, rows: int) -> list[tuple[Any, Any]]:
    wide = arrays.xp.float64
    return [
        (arrays.asarray(phi[i : i + rows]), arrays.xp.asarray(y[i : i + rows, None], dtype=wide))
        for i in range(0, len(y), rows)
    ]


def ridge_curve(
    arrays: Arrays,
    pieces: list[tuple[Any, Any]],
    neurons: int,
    cells: dict[int, Any],
) -> tuple[Any, Any]:
    """The fits over chunks of (features, targets), and the Gram matrix."""
    curve = RidgeCurve(arrays, neurons, cells)
    for features, targets in pieces:
        curve.add(features, targets)
    gram = curve.finish()
    return curve.fits, gram


def explicit(phi: np.ndarray, y: np.ndarray, penalty: float) -> tuple[np.ndarray, float]:
    samples, neurons = phi.shape
    if penalty == 0:
        a = np.linalg.pinv(phi, rcond=1e-6) @ y
    else:
        shift = samples * penalty / neurons
        if samples < neurons:
            a = phi.T @ np.linalg.inv(phi @ phi.T + shift * np.eye(samples)) @ y
        else:
            a = np.linalg.inv(phi.T @ phi + shift * np.eye(neurons)) @ phi.T @ y
    return a, float(np.mean((y - phi @ a) ** 2))


@pytest.mark.parametrize("samples", [1, 15, 40, 41, 90])
@pytest.mark.parametrize("penalty", [0.0, 1e-3, 0.7])
@pytest.mark.parametrize("rows", [1000, 13])
def test_against_explicit_inverse(arrays: Arrays, samples: int, penalty: float, rows: int) -> None:
    phi, y = data(samples, 40)
    fits, gram = ridge_curve(arrays, chunks(arrays, phi, y, rows), 40, {samples: [penalty]})
    a, train = explicit(phi, y, penalty)
    if samples in (40, 41) and penalty == 0:  # next to singular: compare predictions
        np.testing.assert_allclose(
            phi @ arrays.to_host(fits[samples, 0.0].coefficients), phi @ a, atol=1e-8
        )
    else:
        found = arrays.to_host(fits[samples, penalty].coefficients)
        np.testing.assert_allclose(found, a, rtol=0, atol=1e-10 * np.max(np.abs(a)))
    assert float(fits[samples, penalty].train) == pytest.approx(train, abs=1e-11)
    assert (gram.features is not None) == (samples <= 40)
    matrix = phi @ phi.T if samples <= 40 else phi.T @ phi
    np.testing.assert_allclose(arrays.to_host(arrays.mirror(gram.matrix)), matrix, atol=1e-12)


@pytest.mark.parametrize("samples", [30, 90])
def test_minimum_norm_of_deficient_features(arrays: Arrays, samples: int) -> None:
    # rank 12: singular whatever the sample size, and the labels are not in the range
    phi, y = data(samples, 40, rank=12)
    fits, _ = ridge_curve(arrays, chunks(arrays, phi, y, 25), 40, {samples: [0.0, 0.3]})
    for penalty in (0.0, 0.3):
        a, train = explicit(phi, y, penalty)
        np.testing.assert_allclose(
            arrays.to_host(fits[samples, penalty].coefficients), a, atol=1e-9
        )
        assert float(fits[samples, penalty].train) == pytest.approx(train, abs=1e-11)


def test_least_squares() -> None:
    arrays = resolve()
    phi, y = data(200, 30)
    fits, _ = ridge_curve(arrays, chunks(arrays, phi, y, 64), 30, {200: [0.0]})
    expected, residual, *_ = np.linalg.lstsq(phi, y, rcond=None)
    np.testing.assert_allclose(fits[200, 0.0].coefficients, expected, rtol=1e-11)
    assert fits[200, 0.0].train == pytest.approx(residual[0] / 200, rel=1e-12)


def test_a_curve_equals_its_points(arrays: Arrays) -> None:
    phi, y = data(120, 40)
    cells = {12: [0.1, 0.0], 40: [0.5], 41: [0.1], 77: [1e-3, 2.0], 120: [0.1]}
    curve, _ = ridge_curve(arrays, chunks(arrays, phi, y, 32), 40, cells)
    assert set(curve) == {(n, penalty) for n, several in cells.items() for penalty in several}
    for (n, penalty), found in curve.items():
        alone, _ = ridge_curve(arrays, chunks(arrays, phi[:n], y[:n], 32), 40, {n: [penalty]})
        np.testing.assert_allclose(
            arrays.to_host(found.coefficients),
            arrays.to_host(alone[n, penalty].coefficients),
            rtol=0,
            atol=1e-11,
        )
        assert float(found.train) == pytest.approx(float(alone[n, penalty].train), abs=1e-13)


@pytest.mark.parametrize("samples", [25, 80])
def test_many_penalties_from_one_decomposition(
    samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = resolve()
    phi, y = data(samples, 40)
    penalties = [0.0, *np.geomspace(1e-3, 10, _ridge.EIGEN_FROM)]
    fits, _ = ridge_curve(arrays, chunks(arrays, phi, y, 50), 40, {samples: penalties})
    for penalty in penalties:
        a, train = explicit(phi, y, penalty)
        np.testing.assert_allclose(fits[samples, penalty].coefficients, a, atol=1e-10)
        assert float(fits[samples, penalty].train) == pytest.approx(train, abs=1e-12)


def test_a_failed_factorisation_falls_back(arrays: Arrays) -> None:
    # 1e-18 is below the rounding of the matrix: Cholesky fails, eigenvalues do not
    v = np.linspace(1.0, 2.0, 6)
    matrix = np.outer(v, v) - 1e-14 * np.eye(6)
    (x, _) = solve_shifted(arrays, arrays.asarray(matrix), [1e-18], arrays.asarray(v))[0]
    np.testing.assert_allclose(arrays.to_host(x), v / (v @ v), rtol=1e-6)


def test_single_precision_features() -> None:
    phi, y = data(300, 40)
    narrow, _ = ridge_curve(
        resolve("cpu", "float32"), chunks(resolve("cpu", "float32"), phi, y, 64), 40, {300: [0.1]}
    )
    a, train = explicit(phi, y, 0.1)
    np.testing.assert_allclose(narrow[300, 0.1].coefficients, a, atol=2e-6)
    assert narrow[300, 0.1].coefficients.dtype == np.float64
    assert narrow[300, 0.1].train == pytest.approx(train, rel=1e-6)
