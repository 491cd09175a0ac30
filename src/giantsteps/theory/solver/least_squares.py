"""Penalised least squares over functions of the spike coordinates, to all digits (theory §5c)."""

from __future__ import annotations

import numpy as np

from giantsteps.errors import NotConverged
from giantsteps.theory.solver.packing import identity, product, solve, transposed
from giantsteps.types import Array

#: Functions of the spike below this, relative to the largest, are rounding: without penalty (N = ∞)
#: a fit would use their noise. Weaker regressors are felt from N > 1e18 on.
_RESOLVED = 1e-9
#: Power of the penalised functions up to which normal equations keep all digits.
_NORMAL = 1e7


def triangular(precision: Array) -> Array:
    """The Cholesky factor of the penalty of the types."""
    if precision.shape[-1] == 1 and np.all(precision > 0):
        return np.asarray(np.sqrt(precision))
    try:
        return np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        lowest = float(np.linalg.eigvalsh(precision).min())
        raise NotConverged(
            "the pull of the initial output, which at these rates is more than a correction",
            abs(lowest),
            1,
            "smaller rates, a larger d, or the limit",
        ) from None


def square_root(covariance: Array) -> Array:
    """F with FFᵀ = covariance: triangular, or where it is singular by eigenvectors of the
    correlations.
    """
    diagonal = np.einsum("bii->bi", covariance)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    matrix = covariance / (scale[:, :, None] * scale[:, None])
    try:
        return np.asarray(scale[:, :, None] * np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        if len(matrix) > 1:  # no cell sees its neighbours
            return np.concatenate([square_root(one[None]) for one in covariance])
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(scale[:, :, None] * vectors * np.sqrt(np.maximum(values, 0.0))[:, None])


def span(functions: Array, weights: Array) -> Array:
    """Orthonormal functions that span those given, without what is rounding."""
    root = np.sqrt(weights)
    size = np.sqrt(((functions * root) ** 2).sum(axis=-1, keepdims=True))
    scaled = functions / np.where(size > 0, size, 1.0)
    left, values, right = np.linalg.svd(scaled * root, full_matrices=False)
    kept = values > _RESOLVED * values[:, :1]
    # At points without weight by the combination that makes them, elsewhere to the last digits.
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    combined = product(transposed(left * inverse[:, None]), scaled)
    exact = right / np.where(weights > 0, root, 1.0)
    return np.asarray(np.where(weights > 0, np.where(kept[:, :, None], exact, 0.0), combined))


def fitted(short: Array, whole: Array, free: Array, target: Array, root: Array) -> Array:
    """The fit of the target, weights root², on functions with unit penalty and on free ones.

    Functions have shapes (B, n, K), ``short`` ones only the first of these points: they are zero
    at the others.
    """
    known, size = short.shape[1:]
    more = size < target.shape[1]
    first, second, wanted = short * root[:, None, :size], whole * root[:, None], target * root
    power = (first * first).sum(axis=(1, 2)) + (second * second).sum(axis=(1, 2))
    if free.shape[1] or not power.max() < _NORMAL:
        padded = np.zeros((len(short), known, target.shape[1]))
        padded[:, :, :size] = short
        return _by_rotations(np.concatenate([padded, whole], axis=1), free, target, root)
    near = np.concatenate([first, second[:, :, :size]], axis=1)
    far = np.ascontiguousarray(second[:, :, size:])
    matrix = product(near, transposed(near)) + identity(near.shape[1])
    if more:
        matrix[:, known:, known:] += product(far, transposed(far))
    factor = np.linalg.inv(np.linalg.cholesky(matrix))
    coefficients, rest = np.zeros((*near.shape[:2], 1)), wanted
    for number in range(2):  # the second round removes what the normal equations have lost
        if number:
            inside = product(transposed(coefficients), near)
            beyond = [product(transposed(coefficients[:, known:]), far)] if more else []
            rest = wanted - np.concatenate([inside, *beyond], axis=2)[:, 0]
        right = product(near, rest[:, :size, None]) - coefficients
        if more:
            right[:, known:] += product(far, rest[:, size:, None])
        coefficients = coefficients + product(transposed(factor), product(factor, right))
    found = product(transposed(coefficients[:, known:]), whole)[:, 0]
    found[:, :size] += product(transposed(coefficients[:, :known]), short)[:, 0]
    return found


def _by_rotations(penalised: Array, free: Array, target: Array, root: Array) -> Array:
    """The same without forming products of functions, which lose half of the digits."""
    cells, count, nodes = penalised.shape
    functions = np.concatenate([penalised, free], axis=1)
    rows = np.zeros((cells, nodes + count, functions.shape[1] + 1))
    rows[:, :nodes, :-1] = transposed(functions * root[:, None])
    rows[:, :nodes, -1] = target * root
    rows[:, nodes:, :count] = identity(count)
    # A column of zeros stands for a function that is not there.
    scale = np.sqrt((rows[:, :, :-1] ** 2).sum(axis=1))
    empty = scale == 0
    scale = np.where(empty, 1.0, scale)
    rows[:, :, :-1] /= scale[:, None]
    triangle = np.asarray(np.linalg.qr(rows, mode="r"))
    square, right = triangle[:, : functions.shape[1], :-1], triangle[:, : functions.shape[1], -1]
    square = square + empty[:, :, None] * identity(square.shape[1])
    coefficients = solve(square, np.where(empty, 0.0, right)) / scale
    return product(coefficients[:, None], functions)[:, 0]
