"""Residuals of a batch given the spike coordinates, as a quadrature (theory §7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from giantsteps.types import FloatArray

#: Size, relative to that of r, of what a further node would add: its square is what is lost.
_BREAKDOWN = 1e-6


@dataclass(frozen=True, eq=False)
class Conditional:
    """E[f(r) | k] = Σ weights f, E[z f(r) | k] = Σ first f, E[zzᵀ f(r) | k] = Σ second f.

    Of shapes (K, m), (R, K, m) and (R, R, K, m), z the teacher's coordinates beside the spikes.
    """

    nodes: FloatArray
    weights: FloatArray
    first: FloatArray
    second: FloatArray


def conditional_rule(
    values: FloatArray, weights: FloatArray, z: FloatArray, count: int
) -> Conditional:
    """Gauss quadrature of the law of r at each k, by Lanczos' method.

    * ``values``: (K, Q): r at a fine quadrature of (z, noise), for each k.
    * ``weights``, ``z``: (K, Q), (R, K, Q), or with K = 1 for the same at each k: of that
      quadrature.
    * ``count``: nodes for each k: polynomials in r up to degree 2·count − 1 are exact, and count −
      1 beside z.
    """
    cells = len(values)
    scale = np.sqrt((values**2 * weights).sum(axis=1))[:, None]
    scale = np.where(scale > 0, scale, 1.0)
    x = values / scale
    jacobi = np.zeros((cells, count, count))
    current, known = np.ones_like(x), [np.ones_like(x)]
    rank = len(z)
    pairs = (z[:, None] * z).reshape(rank * rank, *z.shape[1:])
    beside = [weights * part for part in (*z, *pairs)]
    along = np.zeros((len(beside), cells, count))
    for j in range(count):
        for part, function in zip(along, beside, strict=True):
            part[:, j] = (current * function).sum(axis=1)
        middle = (x * current * current * weights).sum(axis=1)
        jacobi[:, j, j] = middle
        if j + 1 == count:
            break
        following = x * current
        for _ in range(2):  # orthogonal to rounding
            for other in known:
                following = following - (following * other * weights).sum(axis=1)[:, None] * other
        size = np.sqrt((following**2 * weights).sum(axis=1))
        size = np.where(size > _BREAKDOWN, size, 0.0)
        jacobi[:, j, j + 1] = jacobi[:, j + 1, j] = size
        inverse = np.where(size > 0, 1.0 / np.where(size > 0, size, 1.0), 0.0)
        current = following * inverse[:, None]
        known.append(current)
    nodes, vectors = np.linalg.eigh(jacobi)
    top = vectors[:, 0]
    moments = np.stack([top * np.einsum("cj,cjq->cq", part, vectors) for part in along])
    second = moments[rank:].reshape(rank, rank, *top.shape)
    return Conditional(nodes * scale, top * top, moments[:rank], second)
