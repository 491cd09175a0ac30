"""Outliers of finite-rank deformations: closed forms, a general law, and finite matrices."""

from __future__ import annotations

import numpy as np
import pytest

from giantsteps.errors import InvalidProblem
from giantsteps.laws import (
    critical_strength,
    outlier,
    outliers,
)


def test_threshold_is_sharp_and_infinite_strength_is_a_limit() -> None:
    width = 1.7
    just = outlier(critical_strength(width) * (1 + 1e-9), width)
    assert just.present
    assert just.value == pytest.approx(1 + np.sqrt(width), abs=1e-12)
    assert just.left == pytest.approx(0, abs=1e-8)
    infinite = outlier(np.inf, width)
    assert infinite.value == np.inf
    assert infinite.left == infinite.right == 1


def test_rank_two_deformation_of_a_finite_matrix() -> None:
    d, width, seeds = 500, 1.5, 8
    n = round(width * d)
    mix = np.array([[2.6, 0.6], [0.0, 3.0]])
    measured = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        basis = np.linalg.qr(rng.normal(size=(d, 2)))[0]
        left = basis @ mix  # correlated columns
        right = np.linalg.qr(rng.normal(size=(n, 2)))[0] @ np.array([[1.0, 0.4], [0.0, 1.2]])
        u, s, vt = np.linalg.svd(rng.normal(size=(d, n)) / np.sqrt(d) + left @ right.T)
        theory = outliers(left.T @ left, right.T @ right, width)
        a, b = left @ theory.left_vectors, right @ theory.right_vectors
        np.testing.assert_allclose(a.T @ a, np.eye(2), atol=1e-10)
        np.testing.assert_allclose(a * theory.strength @ b.T, left @ right.T, atol=1e-10)
        cosines = (u[:, :2].T @ a) ** 2
        measured.append(
            [
                s[0],
                s[1],
                cosines[0, 0],
                cosines[1, 1],
                *((vt[:2] @ b) ** 2).diagonal(),
                cosines[0, 1],
            ]
        )
    assert theory.present.all()
    expected = np.concatenate([theory.value, theory.left, theory.right, [0.0]])
    found = np.array(measured)
    error = found.std(axis=0, ddof=1) / np.sqrt(seeds)
    resolution = 3 * error[:6] / expected[:6]
    assert np.all(resolution[:2] <= 0.02)
    assert np.all(resolution[2:] <= 0.05)
    assert np.all(np.abs(found.mean(axis=0) - expected)[:6] <= 3 * error[:6])
    assert found[:, 6].mean() < 0.02


def test_gram_matrices_may_be_singular_and_batched() -> None:
    left = np.array([[4.0, 4.0], [4.0, 4.0]])  # P = (p, p), |p| = 2
    right = np.array([[1.0, 0.0], [0.0, 1.0]])
    result = outliers(np.stack([left, right]), np.stack([right, right]), np.array([1.0, 2.0]))
    np.testing.assert_allclose(result.strength, [[np.sqrt(8), 0], [1, 1]], atol=1e-12)
    np.testing.assert_array_equal(result.present, [[True, False], [False, False]])
    assert result.value[1] == pytest.approx(1 + np.sqrt(2))


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InvalidProblem, match="strength"):
        outlier(-1.0, 1.0)
    with pytest.raises(InvalidProblem, match="width"):
        outlier(1.0, 0.0)
    with pytest.raises(InvalidProblem, match="left_gram"):
        outliers(-np.eye(2), np.eye(2), 1.0)
