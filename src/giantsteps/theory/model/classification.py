r"""How often the sign of a prediction is wrong, for teachers with the values ±1 (theory §5c).

Given the coordinates k of the input along the spikes and z, that of the teacher beside them, the
prediction is Gaussian with the mean and variance

.. math:: m(k, z) = C(k) + s(k)\,z + b(k)\,(z² - 1),\qquad v(k) - s(k)² - 2b(k)²,

so that the probability of a wrong sign is the integral

.. math:: P(\hat f f^* < 0) = E_{k, z}\, Φ\Bigl(-f^*(k, z)\frac{m(k, z)}{\sqrt{v - s² - 2b²}}\Bigr).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from giantsteps.functions import Function
from giantsteps.gaussian import legendre_panels
from giantsteps.types import FloatArray

#: Where z ends, Gauss–Legendre nodes of a panel, and panels that are always there.
_REACH, _NODES, _PANELS = 8.5, 16, 6
#: Standard deviations around a zero of the mean within which Φ rises.
_RISE = (-6.0, -2.0, 0.0, 2.0, 6.0)
#: Points of the scan for jumps, and halvings of an interval that has one.
_SCAN, _HALVINGS = 401, 36


@dataclass(frozen=True, eq=False)
class Predicted:
    """The law of the prediction given k, at K points: C, s, b, v and the weights of the points."""

    weights: FloatArray
    fit: FloatArray
    slope: FloatArray
    bend: FloatArray
    variance: FloatArray


def wrong_sign(
    predicted: Predicted,
    teacher: Callable[[FloatArray], FloatArray],
    jumps: FloatArray,
) -> float:
    """The probability that prediction and teacher have different signs.

    * ``teacher``: z of shape (K, Q) → f* there.
    * ``jumps``: (K, J): values of z at which f* changes its sign, for each point k; those beyond
      8.5 do not matter.
    """
    fit, slope, bend = (
        values[:, None] for values in (predicted.fit, predicted.slope, predicted.bend)
    )
    scale = np.sqrt(np.maximum(predicted.variance[:, None] - slope**2 - 2 * bend**2, 0.0))
    edges = _edges(fit, slope, bend, scale, jumps)
    z, lengths = legendre_panels(edges, _NODES)
    density = lengths * np.exp(-z * z / 2)
    signed = np.sign(teacher(z)) * (fit + slope * z + bend * (z * z - 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        wrong = np.where(scale > 0, ndtr(-signed / scale), signed < 0)
    share = (wrong * density).sum(axis=1) / density.sum(axis=1)
    return float(predicted.weights @ share)


def _edges(
    fit: FloatArray, slope: FloatArray, bend: FloatArray, scale: FloatArray, jumps: FloatArray
) -> FloatArray:
    """Edges of panels in z, (K, E): at jumps of the teacher and around the zero of the mean."""
    constant = fit - bend
    root = np.sqrt(np.maximum(slope**2 - 4 * bend * constant, 0.0))
    below = slope + np.where(slope < 0, -root, root)
    some = np.abs(below) > 1e-12
    safe = np.where(some, below, 1.0)
    zero = np.where(some, -2 * constant / safe, 0.0)
    width = np.where(some, scale / np.abs(safe / 2), 0.0)
    around = np.where(some, zero + width * np.array(_RISE), 0.0)
    always = np.broadcast_to(np.linspace(-_REACH, _REACH, _PANELS + 1), (len(fit), _PANELS + 1))
    edges = np.concatenate([always, around, jumps], axis=1)
    return np.sort(np.clip(edges, -_REACH, _REACH), axis=1)


def jumps_of_link(link: Function, along: FloatArray, beside: float) -> FloatArray:
    """Where σ*(u), u = along + beside · z, is not smooth: values of z, one row for each point."""
    if beside <= 0:
        return np.zeros((len(along), 0))
    reach = _REACH * beside + float(np.abs(along).max(initial=0.0))
    places = np.asarray(link.breakpoints(-reach, reach), dtype=float)
    return np.asarray((places - along[:, None]) / beside)


def jumps_by_scan(teacher: Callable[[FloatArray], FloatArray], count: int) -> FloatArray:
    """Where f* changes its sign along z for each of K = ``count`` points, found by bisection."""
    grid = np.linspace(-_REACH, _REACH, _SCAN)
    signs = np.sign(teacher(np.broadcast_to(grid, (count, _SCAN))))
    changed = signs[:, 1:] * signs[:, :-1] < 0
    most = int(changed.sum(axis=1).max(initial=0))
    # Intervals with a change first; a row with fewer repeats ones without, which do no harm.
    order = np.argsort(~changed, axis=1, kind="stable")[:, :most]
    lower, upper = grid[order], grid[order + 1]
    first = np.take_along_axis(signs, order, axis=1)
    for _ in range(_HALVINGS):
        middle = (lower + upper) / 2
        same = np.sign(teacher(middle)) == first
        lower, upper = np.where(same, middle, lower), np.where(same, upper, middle)
    return np.asarray(upper)
