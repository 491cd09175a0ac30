"""Zeros of functions between points of opposite signs, many side by side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from giantsteps.types import Array, FloatArray

_ROUNDS = 100


def bracketed_roots(
    function: Callable[[FloatArray, Array], FloatArray],
    low: FloatArray,
    high: FloatArray,
    at_low: FloatArray,
    at_high: FloatArray,
    tolerance: float,
) -> tuple[FloatArray, FloatArray]:
    """Where functions vanish, by inverse quadratic interpolation where it is safe, else by halves.

    Chandrupatla's rule decides which of the two (Adv. Eng. Software 28, 145, 1997).

    Parameters
    ----------
    function : callable
        Values at the places x (X,) of the functions whose numbers (X,) are given.
    low, high : ndarray of shape (F,)
        Ends of the brackets, all of one sign.
    at_low, at_high : ndarray of shape (F,)
        The values there, of opposite signs.
    tolerance : float
        Relative to the places.

    Returns
    -------
    ndarray of shape (F,)
        The ends with the smaller values of the brackets that are left.
    ndarray of shape (F,)
        The values there.
    """
    a, b, at_a, at_b = (np.array(part, dtype=float) for part in (high, low, at_high, at_low))
    c, at_c = a.copy(), at_a.copy()
    share = _secant(at_a, at_b)
    for _ in range(_ROUNDS):
        first = np.abs(at_a) < np.abs(at_b)
        best, value = np.where(first, a, b), np.where(first, at_a, at_b)
        width = np.abs(b - a)
        least = tolerance * np.abs(best)
        todo = np.flatnonzero((width > 2 * least) & (value != 0))
        if not todo.size:
            break
        edge = (least / np.maximum(width, least))[todo]
        t = np.clip(share[todo], edge, 1 - edge)
        x = a[todo] + t * (b - a)[todo]
        new = function(x, todo)
        same = np.sign(new) == np.sign(at_a[todo])
        c[todo], at_c[todo] = (
            np.where(same, a[todo], b[todo]),
            np.where(same, at_a[todo], at_b[todo]),
        )
        b[todo], at_b[todo] = (
            np.where(same, b[todo], a[todo]),
            np.where(same, at_b[todo], at_a[todo]),
        )
        a[todo], at_a[todo] = x, new
        share = _inverse_quadratic(a, b, c, at_a, at_b, at_c)
    return best, value


def _secant(at_a: FloatArray, at_b: FloatArray) -> FloatArray:
    """Where the line between two values vanishes, as a share of the way."""
    return np.asarray(at_a / (at_a - at_b))


def _inverse_quadratic(
    a: FloatArray,
    b: FloatArray,
    c: FloatArray,
    at_a: FloatArray,
    at_b: FloatArray,
    at_c: FloatArray,
) -> FloatArray:
    """Where the parabola through three points vanishes, as a share of the way from a to b, or ½."""
    with np.errstate(all="ignore"):
        xi, phi = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
        safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        first = at_a / (at_b - at_a) * at_c / (at_b - at_c)
        second = (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
        return np.asarray(np.where(safe, first + second, 0.5))
