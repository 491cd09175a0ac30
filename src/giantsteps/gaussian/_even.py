"""Smooth functions smoothed by Gaussians, at the nodes of a table, by the trapezoidal rule.

For a function that is smooth on the scale of the spacing the rule converges exponentially: the
error of one spacing is about the square of that of twice the spacing. In units of s the nodes of
the rule and of the table are the same for all s, and so are the weights.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from giantsteps.gaussian._hermite import moments
from giantsteps.gaussian._quadrature import evaluate

if TYPE_CHECKING:
    from giantsteps.functions import Function

#: Nodes of a panel of width 2s: Gaussian smoothing on the scale s leaves nothing finer.
ORDER = 20
#: Standard deviations that the rule covers beyond a panel.
_REACH = 12
#: How often a spacing of s is halved at most, before and after it is known how large s is, and
#: numbers that are held at once.
_FINEST, _MOST, _MEMORY = 7, 14, 1_000_000
#: What twice the spacing may leave, relative to (E f²)^½, and f² φ at the ends to E f²
#: (or ‖f‖, if that is larger).
_COARSE, _NEGLIGIBLE = 1e-6, 1e-16
_LAST = _REACH**2 * np.exp(-0.5 * _REACH**2) / _NEGLIGIBLE


@lru_cache(maxsize=4)
def table_nodes(order: int = ORDER) -> np.ndarray:
    """Chebyshev nodes on [−1, 1]."""
    return np.asarray(np.cos((np.arange(order) + 0.5) * np.pi / order))


def smoothed_around(
    function: Function, centre: np.ndarray, std: np.ndarray, order: int = ORDER
) -> np.ndarray | None:
    """The five moments of `Smoothed` at m = c + s x, x the Chebyshev nodes of some order.

    * ``function``: f.
    * ``centre``, ``std``: (P,): c and s > 0.
    * ``order``: one: at c itself.

    Returns
    -------
    ndarray of shape (5, P, order), or None where f is not smooth enough.
    """
    reach = (1 + _REACH) * std
    if function.breakpoints(float((centre - reach).min()), float((centre + reach).max())).size:
        return None
    halvings = np.maximum(1, np.ceil(np.log2(std)).astype(int) + _halvings(function))
    if halvings.max() > _MOST:
        return None
    numbers = sorted(set(halvings.tolist()))
    if len(numbers) == 1 and len(centre) <= _at_once(numbers[0]):
        return _resolved(function, centre, std, numbers[0], order)
    out = np.empty((5, len(centre), order))
    for number in numbers:
        some, count = np.flatnonzero(halvings == number), _at_once(number)
        for start in range(0, len(some), count):
            part = some[start : start + count]
            found = _resolved(function, centre[part], std[part], number, order)
            if found is None:
                return None
            out[:, part] = found
    return out


def _at_once(halvings: int) -> int:
    """Centres that the memory holds."""
    return max(1, _MEMORY // (32 * 2**halvings))


def _resolved(
    function: Function, centre: np.ndarray, std: np.ndarray, halvings: int, order: int
) -> np.ndarray | None:
    """The moments at a spacing, or at half of it."""
    found = _moments(function, centre, std, halvings, order)
    return _moments(function, centre, std, halvings + 1, order) if found is None else found


@lru_cache(maxsize=256)
def _halvings(function: Function) -> int:
    """How often a spacing of one is halved for a function that is smoothed by N(0, 1)."""
    centre = np.arange(-5.0, 6.0, 2.0)
    for number in range(1, _FINEST):
        if _moments(function, centre, np.ones(len(centre)), number, ORDER) is not None:
            return number
    return _FINEST


def _moments(
    function: Function, centre: np.ndarray, std: np.ndarray, halvings: int, order: int
) -> np.ndarray | None:
    if halvings > _FINEST:
        return None
    u, weights, plain, at_centre, coarse = _weights(halvings, order)
    f = evaluate(function, centre[:, None] + std[:, None] * u)
    with np.errstate(all="ignore"):
        # What is left of f beside a line: its variance does not cancel.
        line = f @ at_centre
        level, slope = line[:, :1], line[:, 1:]
        rest = f - level - slope * u
        found = np.empty((5, len(f), order))
        found[:3] = (rest @ weights).reshape(-1, 3, order).swapaxes(0, 1)
        mean, linear, _, second, variance = found
        np.maximum(rest * rest @ plain - mean * mean - linear * linear, 0.0, out=variance)
        mean += level + slope * table_nodes(order)
        linear += slope
        second[:] = variance + mean * mean + linear * linear
        scale = second + moments(function).second_moment
        close = np.abs(f @ coarse - mean) <= _COARSE * np.sqrt(scale)
        close &= np.abs(f * f @ coarse - second) <= _COARSE * scale
        ends = f[:, :: len(u) - 1]
        close &= (_LAST * ends * ends).max(axis=1, keepdims=True) <= scale.min(axis=1)[:, None]
    return found if close.all() else None


@lru_cache(maxsize=16)
def _weights(halvings: int, order: int) -> tuple[np.ndarray, ...]:
    """Nodes u around c in units of s; weights (U, 3·order) of f, of z f and of (z² − 1)f/2, those
    of f alone, (U, 2) of the first two at c, and (U, order) of f at every other node.
    """
    count = (1 + _REACH) * 2**halvings
    u = np.arange(-count, count + 1) / 2.0**halvings
    z = u[:, None] - np.append(table_nodes(order), 0.0)
    weights = np.exp(-z * z / 2) / (np.sqrt(2 * np.pi) * 2.0**halvings)
    coarse = np.where((np.arange(len(u)) % 2 == 0)[:, None], 2 * weights[:, :order], 0.0)
    parts = [weights, z * weights, (z * z - 1) / 2 * weights]
    at_nodes = np.concatenate([part[:, :order] for part in parts], axis=1)
    at_centre = np.stack([part[:, order] for part in parts[:2]], axis=1)
    return u, at_nodes, np.ascontiguousarray(at_nodes[:, :order]), at_centre, coarse
