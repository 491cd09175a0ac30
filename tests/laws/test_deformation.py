"""Outliers of finite-rank deformations: closed forms, and finite matrices."""

from __future__ import annotations

import numpy as np
import pytest

from giantsteps.errors import InvalidProblem
from giantsteps.laws import critical_strength, outlier


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
    theory, measured = outlier([3.5, 2.6], width), []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        a, b = (np.linalg.qr(rng.normal(size=(size, 2)))[0] for size in (d, n))
        u, s, vt = np.linalg.svd(rng.normal(size=(d, n)) / np.sqrt(d) + a * [3.5, 2.6] @ b.T)
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


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InvalidProblem, match="strength"):
        outlier(-1.0, 1.0)
    with pytest.raises(InvalidProblem, match="width"):
        outlier(1.0, 0.0)
