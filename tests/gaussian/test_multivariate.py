"""Rules for several Gaussian coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from giantsteps.errors import InvalidProblem
from giantsteps.functions import as_function
from giantsteps.gaussian import (
    coordinate_rule,
    smoothed,
    split_rule,
)


def test_split_rule() -> None:
    rule = split_rule(20, 6.0)
    assert rule.nodes.size == 40
    assert rule.weights.sum() == pytest.approx(1, abs=1e-15)
    np.testing.assert_array_equal(rule.nodes, -rule.nodes[::-1])
    np.testing.assert_array_equal(rule.weights, rule.weights[::-1])
    # What lies beyond 6 is missing: 2 (6 φ(6) + Φ(−6)) = 7e-8 of E A².
    assert rule.mean(np.abs(rule.nodes)) == pytest.approx(np.sqrt(2 / np.pi), rel=1e-7)
    assert rule.mean(rule.nodes**2) == pytest.approx(1, rel=1e-7)


@pytest.mark.parametrize(
    ("rank", "reach", "nodes"), [(1, None, 61), (1, 8.5, 80), (2, None, 585), (2, 8.5, 1380)]
)
def test_coordinate_rule(rank: int, reach: float | None, nodes: int) -> None:
    rule = coordinate_rule(rank, reach=reach)
    assert rule.nodes.shape == (nodes, rank)
    assert rule.weights.sum() == pytest.approx(1, abs=1e-14)
    second = (rule.nodes.T * rule.weights) @ rule.nodes
    np.testing.assert_allclose(second, np.eye(rank), rtol=0, atol=1e-12)
    assert rule.mean(rule.nodes[:, 0] ** 4) == pytest.approx(3, rel=1e-11)
    waves = np.cos(rule.nodes.sum(axis=1))
    assert rule.mean(waves) == pytest.approx(np.exp(-rank / 2), rel=1e-12)


@pytest.mark.parametrize(("rank", "reach", "tolerance"), [(3, None, 1e-12), (3, 8.5, 1e-10)])
def test_coordinate_rule_of_higher_rank(rank: int, reach: float | None, tolerance: float) -> None:
    rule = coordinate_rule(rank, reach=reach)
    second = (rule.nodes.T * rule.weights) @ rule.nodes
    np.testing.assert_allclose(second, np.eye(rank), rtol=0, atol=tolerance)


def test_coordinate_rule_integrates_smoothed_functions() -> None:
    """E_k h(k)² for h(k) = E sign(γ k + √(1−γ²) z): 2/π arcsin γ²."""
    sign = as_function("sign")
    for overlap, reach in [(0.6, None), (0.98, 8.5)]:
        rule = coordinate_rule(1, reach=reach)
        h = smoothed(sign, overlap * rule.nodes[:, 0], np.sqrt(1 - overlap**2)).mean
        exact = 2 / np.pi * np.arcsin(overlap**2)
        assert rule.mean(h**2) == pytest.approx(exact, rel=1e-8)


def test_coordinate_rule_refuses() -> None:
    for rank, reach in [(0, None), (5, None), (4, 8.5)]:
        with pytest.raises(InvalidProblem, match="rank"):
            coordinate_rule(rank, reach=reach)
