"""Residuals of a batch given the spike coordinates, as a quadrature (theory §7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from giantsteps.types import FloatArray

#: Size, relative to that of r, of what a further node would add: its square is what is lost.
_BREAKDOWN = 1e-6


@dataclass(frozen=True, eq=False)
class Conditional:
    """E[f(r) | k] = Σ weights f, E[z f(r) | k] = Σ first f, E[z² f(r) | k] = Σ second f.

    All of shape (K, m), z the teacher's coordinate beside the spikes.
    """

    nodes: FloatArray
    weights: FloatArray
    first: FloatArray
    second: FloatArray


def conditional_rule(
    values: FloatArray, weights: FloatArray, z: FloatArray, count: int
) -> Conditional:
    """Gauss quadrature of the law of r at each k, by Lanczos' method.

    Parameters
    ----------
    values : ndarray of shape (K, Q)
        r at a fine quadrature of (z, noise), for each k.
    weights, z : ndarray of shape (K, Q), or (1, Q) for the same at each k
        Of that quadrature.
    count : int
        Nodes for each k: polynomials in r up to degree 2·count − 1 are exact, and count − 1 beside
        z.
    """
    cells = len(values)
    scale = np.sqrt((values**2 * weights).sum(axis=1))[:, None]
    scale = np.where(scale > 0, scale, 1.0)
    x = values / scale
    jacobi = np.zeros((cells, count, count))
    current, known = np.ones_like(x), [np.ones_like(x)]
    along = np.zeros((2, cells, count))
    for j in range(count):
        along[0, :, j] = (current * (weights * z)).sum(axis=1)
        along[1, :, j] = (current * (weights * z * z)).sum(axis=1)
        middle = (x * current * current * weights).sum(axis=1)
        jacobi[:, j, j] = middle
        if j + 1 == count:
            break
        following = x * current
        for _ in range(2):  # orthogonal to rounding
            for other in known:
                following = following - (following * other * weights).sum(axis=1)[:, None] * other
        beside = np.sqrt((following**2 * weights).sum(axis=1))
        beside = np.where(beside > _BREAKDOWN, beside, 0.0)
        jacobi[:, j, j + 1] = jacobi[:, j + 1, j] = beside
        inverse = np.where(beside > 0, 1.0 / np.where(beside > 0, beside, 1.0), 0.0)
        current = following * inverse[:, None]
        known.append(current)
    nodes, vectors = np.linalg.eigh(jacobi)
    top = vectors[:, 0]
    first, second = (top * np.einsum("cj,cjq->cq", part, vectors) for part in along)
    return Conditional(nodes * scale, top * top, first, second)
