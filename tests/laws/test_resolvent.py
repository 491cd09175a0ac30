"""Resolvent traces g1, g2: equations, derivatives, extremes, finite matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from giantsteps.laws import traces

WIDTHS = np.array([0.05, 0.2, 1 - 1e-9, 1.0, 1 + 1e-9, 1.25, 5.0, 40.0])
POINTS = np.geomspace(1e-12, 1e12, 49)


@pytest.mark.parametrize("width", WIDTHS)
def test_both_traces_solve_their_equations_from_tiny_to_huge(width: float) -> None:
    s = POINTS
    left, right = traces(s, width)[:2]
    assert np.all(left > 0)
    assert np.all(right > 0)
    for terms in (
        (s * left**2, (s + (width - 1)) * left, -1.0),
        (width * s * right**2, (s + (1 - width)) * right, -1.0),
        (width * s * right, 1 - width, -s * left),  # β s g2 = s g1 − (1 − β)
    ):
        size = sum(np.abs(term) for term in terms)
        assert np.max(np.abs(sum(terms)) / size) < 1e-15


def test_traces_near_width_one_match_the_closed_form_at_one() -> None:
    s = np.geomspace(1e-6, 10, 30)
    exact = (np.sqrt(1 + 4 / s) - 1) / 2
    np.testing.assert_allclose(traces(s, 1.0)[:2], [exact, exact], rtol=1e-13)


@pytest.mark.parametrize("width", [0.2, 1.0, 1.25, 5.0])
def test_derivatives_by_the_complex_step(width: Any) -> None:
    s = np.geomspace(1e-3, 1e3, 25)
    step = 1e-30
    moved = np.array(traces(s + 1j * step, width)[:2])
    found = traces(s, width)
    slopes = found.left_slope, found.right_slope
    np.testing.assert_allclose(slopes, moved.imag / step, rtol=1e-13)


@pytest.mark.parametrize("width", [0.4, 1.0, 2.5])
def test_traces_of_a_finite_matrix(width: float) -> None:
    d = 400
    weights = np.random.default_rng(5).normal(size=(d, round(width * d))) / np.sqrt(d)
    gram = weights @ weights.T
    for s in (0.3, 2.0):
        trace = np.mean(1 / (np.linalg.eigvalsh(gram) + s))
        other = (trace - (1 - width) / s) / width
        assert traces(s, width)[:2] == pytest.approx((trace, other), rel=5e-3)


def test_complex_argument_is_a_stieltjes_transform() -> None:
    z = np.linspace(-1, 6, 40) + 1e-3j
    found = np.array(traces(-z, 1.7)[:2])
    assert np.all(found.imag > 0)
    np.testing.assert_allclose(traces(-z.conj(), 1.7)[:2], found.conj(), rtol=1e-13)


def test_real_points_beyond_the_cut_and_on_it() -> None:
    width = 2.0
    upper = (1 + np.sqrt(width)) ** 2
    s = np.array([-upper - 1.0, -upper - 1e-3])
    left = traces(s, width).left
    np.testing.assert_allclose(left, traces(s + 0j, width).left.real, rtol=1e-12)
    assert np.all(left < 0)
    assert np.isnan(traces(-2.0, width).left)


def test_arguments_broadcast() -> None:
    assert traces(np.ones((3, 1)), np.array([0.5, 2.0])).left.shape == (3, 2)
