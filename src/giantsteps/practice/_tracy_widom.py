"""The law of the largest eigenvalue of a random covariance matrix: its tail and quantiles."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import airy

from giantsteps.types import FloatArray

#: Points of the quadrature of the determinant.
_POINTS = 64
#: Beyond this place the tail is below 1e-300.
_FAR = 85.0


@cache
def _nodes() -> tuple[FloatArray, FloatArray]:
    """Gauss–Legendre on (0, 1), squared so that points gather where the kernel is large."""
    x, weights = np.polynomial.legendre.leggauss(_POINTS)
    return (x + 1) / 2, weights / 2


def tail(place: float) -> float:
    r"""1 − F₁(s), the probability that a Tracy–Widom variable (β = 1) exceeds s.

    F₁(s) = det(1 − B) with the kernel B(x, y) = Ai(x + y + s) on the half line, by quadrature.
    The logarithm of the determinant is summed over eigenvalues, so that tiny tails keep their
    digits.
    """
    if place > _FAR:
        return 0.0
    nodes, weights = _nodes()
    # The Airy function is below 1e-18 beyond 16 + max(−s, 0).
    reach = 16.0 + max(-place, 0.0)
    x, w = reach * nodes, np.sqrt(reach * weights)
    kernel = w[:, None] * airy(x[:, None] + x + place)[0] * w
    values = np.linalg.eigvalsh(kernel)
    return float(-np.expm1(np.sum(np.log1p(-np.minimum(values, 1.0 - 1e-16)))))


@cache
def tail_quantile(probability: float) -> float:
    """The place that a Tracy–Widom variable exceeds with a given probability."""
    return float(brentq(lambda s: np.log(tail(s)) - np.log(probability), -5.0, 80.0, xtol=1e-8))


def edge_scale(rows: int, columns: int, excess: float = 0.0) -> tuple[float, float]:
    """Centre and scale of the largest squared singular value for entries of variance one.

    With the halves of Johnstone's law that make it accurate for small matrices (Ma 2012), and the
    shift by the excess kurtosis of the entries, which sparse and heavy-tailed ones have (Hwang,
    Lee and Schnelli 2019).
    """
    a, b = np.sqrt(rows - 0.5), np.sqrt(columns - 0.5)
    shift = 1.0 + excess / np.sqrt(float(rows) * columns)
    return float((a + b) ** 2 * shift), float((a + b) * (1 / a + 1 / b) ** (1 / 3))
