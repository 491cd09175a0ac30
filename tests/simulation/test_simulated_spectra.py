"""Top eigenpairs and full spectra against a dense singular value decomposition."""

from __future__ import annotations

import numpy as np
import pytest

from giantsteps.errors import NotConverged
from giantsteps.simulation._engine import _largest as spectra
from giantsteps.simulation._engine._arrays import Arrays
from giantsteps.simulation._engine._devices import resolve
from giantsteps.simulation._engine._largest import largest, largest_of, singular_values


def matrix(rows: int, columns: int, spike: float) -> np.ndarray:
    rng = np.random.default_rng(rows)
    plain = rng.standard_normal((rows, columns)) / np.sqrt(rows)
    return plain + spike * np.outer(rng.standard_normal(rows), rng.standard_normal(columns)) / rows


@pytest.mark.parametrize(("rows", "columns"), [(40, 25), (25, 40), (30, 30)])
def test_small(any_arrays: Arrays, rows: int, columns: int) -> None:
    w = matrix(rows, columns, 3.0)
    tolerance = 100 * any_arrays.epsilon
    u, s, vt = np.linalg.svd(w, full_matrices=False)
    found = singular_values(any_arrays, any_arrays.asarray(w))
    np.testing.assert_allclose(found, s, rtol=0, atol=max(tolerance, 1e-7))
    assert found.size == min(rows, columns)
    values, left, right = largest_of(any_arrays, any_arrays.asarray(w), 3)
    np.testing.assert_allclose(values, s[:3], rtol=tolerance)
    left, right = any_arrays.to_host(left), any_arrays.to_host(right)
    np.testing.assert_allclose(np.abs(np.sum(left * u[:, :3], axis=0)), 1, rtol=tolerance)
    np.testing.assert_allclose(np.abs(np.sum(right * vt[:3].T, axis=0)), 1, rtol=tolerance)


@pytest.mark.parametrize("spike", [0.0, 2.0, 100.0])
@pytest.mark.parametrize(("rows", "columns"), [(700, 500), (500, 900)])
def test_iterated(spike: float, rows: int, columns: int) -> None:
    arrays = resolve()
    w = matrix(rows, columns, spike)
    u, s, vt = np.linalg.svd(w, full_matrices=False)
    values, left, right = largest_of(arrays, w, 4)
    np.testing.assert_allclose(values, s[:4], rtol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(left * u[:, :4], axis=0)), 1, rtol=1e-11)
    np.testing.assert_allclose(np.abs(np.sum(right * vt[:4].T, axis=0)), 1, rtol=1e-11)


def test_iterated_low_rank(arrays: Arrays) -> None:
    # fewer directions than are asked for: the others are zero, and no division fails
    v = np.random.default_rng(1).standard_normal((450, 2))
    given = arrays.asarray(v @ v.T)
    values, vectors = largest(arrays, lambda x: given @ x, 450, 3)
    np.testing.assert_allclose(values[:2], np.linalg.eigvalsh(v.T @ v)[::-1], rtol=1e-12)
    assert abs(values[2]) < 1e-10
    host = arrays.to_host(vectors)
    np.testing.assert_allclose(host.T @ host, np.eye(3), atol=1e-12)


def test_not_converged_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectra, "_RESTARTS", 1)
    w = matrix(900, 900, 0.0)
    with pytest.raises(NotConverged, match="4 largest of 900"):
        largest_of(resolve(), w, 4)
