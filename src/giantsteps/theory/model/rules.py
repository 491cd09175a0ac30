"""Quadratures for the coordinates and the second layer of the equivalent model (theory §5c)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from giantsteps.gaussian import Rule, coordinate_rule
from giantsteps.types import FloatArray

__all__ = ["LEVELS", "graded_rule", "plane_rule"]

#: Resolutions, from 0: nodes of a panel, and Gauss–Hermite nodes per axis of several coordinates.
_ORDERS = (8, 12, 17, 24, 34)
_AXES = (25, 31, 39, 49, 61)
LEVELS = len(_ORDERS)
#: Panels grow by this factor away from a steep place, up to this width.
_GROWTH, _WIDEST = 4.0, 4.25


@lru_cache(maxsize=512)
def graded_rule(
    level: int,
    width: float = 4.25,
    places: tuple[float, ...] = (0.0,),
    reach: float = 8.5,
    orders: tuple[int, ...] = _ORDERS,
    widest: float = _WIDEST,
) -> Rule:
    """z ~ N(0, 1) by Gauss–Legendre panels that narrow towards places where functions are steep.

    Parameters
    ----------
    level : int
        Resolution, from 0.
    width : float
        Scale on which functions vary at the places.
    places : tuple of float
        Panels end there.
    reach : float
        Where the rule ends.
    orders : tuple of int
        Nodes of a panel, by resolution.
    widest : float
        Width of the widest panel.
    """
    edges = [np.array([-reach, reach])]
    steps = []
    widest = max(widest, width)
    step = width
    while step < 2 * reach:
        steps.append(step)
        step *= _GROWTH
    around = np.concatenate([-np.array(steps)[::-1], [0.0], steps])
    inside = [p for p in places if -reach < p < reach]
    edges += [p + around for p in inside]
    merged = _merged(np.concatenate(edges), np.array([-reach, *inside, reach]), width)
    merged = _split(merged[(merged >= -reach) & (merged <= reach)], widest)
    x, w = np.polynomial.legendre.leggauss(orders[level])
    half = np.diff(merged)[:, None] / 2
    nodes = (merged[:-1, None] + half * (1 + x)).ravel()
    weights = (half * w).ravel() * np.exp(-nodes * nodes / 2)
    return Rule(nodes, weights / weights.sum())


def _merged(edges: FloatArray, fixed: FloatArray, width: float) -> FloatArray:
    """Edges in order, without those too close to one that is needed or to the one before."""
    kept: list[float] = sorted({float(edge) for edge in fixed})
    for edge in np.unique(edges):
        distance = min(abs(edge - other) for other in kept)
        own = max(width, 0.5 * min(abs(edge - place) for place in fixed[1:-1]))
        if distance > 0.6 * own:
            kept.append(float(edge))
    return np.array(sorted(kept))


def _split(edges: FloatArray, widest: float) -> FloatArray:
    """Panels of at most the widest width."""
    parts = [edges[:1]]
    for left, right in zip(edges[:-1], edges[1:]):
        count = int(np.ceil((right - left) / widest - 1e-9))
        parts.append(left + (right - left) * np.arange(1, count + 1) / count)
    return np.concatenate(parts)


def plane_rule(level: int, rank: int) -> Rule:
    """k ~ N(0, I_r) of two or more coordinates by Gauss–Hermite, nodes of shape (K, r)."""
    count = _AXES[level] if rank == 2 else _AXES[level] // 2 + 1
    return coordinate_rule(rank, nodes=count)
