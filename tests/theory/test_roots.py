"""Zeros of many functions side by side."""

from __future__ import annotations

import numpy as np

from giantsteps.theory.solver.roots import bracketed_roots
from giantsteps.types import Array, FloatArray


def test_many_roots_at_once() -> None:
    goals = np.array([0.3, 2.0, 7.0, 1e3])
    calls = 0

    def function(x: FloatArray, which: Array) -> FloatArray:
        nonlocal calls
        calls += 1
        return np.asarray(x**3 + 0.1 * x - (goals**3 + 0.1 * goals)[which])

    everything = np.arange(len(goals))
    low, high = goals * 0.2, goals * 4.0
    ends = function(low, everything), function(high, everything)
    found, left = bracketed_roots(function, low, high, *ends, tolerance=1e-12)
    np.testing.assert_allclose(found, goals, rtol=3e-12)
    assert np.all(np.abs(left) < 1e-9 * np.abs(ends[1]))
    assert calls < 25


def test_a_jump_is_found_as_a_jump() -> None:
    def step(x: FloatArray, which: Array) -> FloatArray:
        return np.where(x < 1.25, -1.0, 2.0)

    ends = np.array([1.0]), np.array([3.0])
    found, left = bracketed_roots(step, *ends, np.array([-1.0]), np.array([2.0]), tolerance=1e-12)
    np.testing.assert_allclose(found, 1.25, rtol=1e-11)
    assert abs(left[0]) >= 1.0
