"""Penalised least squares over functions of the spike coordinates, to all digits (theory §5c)."""

from __future__ import annotations

import numpy as np

from giantsteps.errors import NotConverged
from giantsteps.theory.solver.packing import identity, product, solve, transposed
from giantsteps.types import Array

#: Functions of the spike weaker than the first of these, relative to the largest, are rounding;
#: and so are those weaker than the second times the share of the target that no function has,
#: which is what rounding makes them fit. They are felt from N > 1e14 on.
_RESOLVED, _PER_MISFIT = 1e-9, 3e-7
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
    diagonal = covariance.diagonal(axis1=1, axis2=2)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    matrix = covariance / (scale[:, :, None] * scale[:, None])
    try:
        return np.asarray(scale[:, :, None] * np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        if len(matrix) > 1:  # no cell sees its neighbours
            return np.concatenate([square_root(one[None]) for one in covariance])
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(scale[:, :, None] * vectors * np.sqrt(np.maximum(values, 0.0))[:, None])


def fitted_freely(short: Array, functions: Array, target: Array, root: Array) -> Array:
    """As `fitted`, without a penalty (N = ∞) on ``functions`` (B, n, K), but for rounding.

    What is rounding is penalised, σ⁴/(σ⁴ + resolved⁴) of it being kept: nothing is left out, and no
    function comes or goes with a jump.
    """
    left, values, right = np.linalg.svd(functions * root[:, None], full_matrices=False)
    largest = np.where(values[:, :1] > 0, values[:, :1], 1.0)
    strength = (values / largest)[:, :, None]
    # At points without weight by the combination that makes them, elsewhere to the last digits.
    seen = root[:, None] > 0
    exact = strength * right / np.where(seen, root[:, None], 1.0)
    combined = product(transposed(left), functions) / largest[:, :, None]
    basis = strength * np.where(seen, exact, combined)
    resolved = np.full((len(target), 1, 1), _RESOLVED)
    fit, power = target, ((target * root) ** 2).sum(axis=1)
    for _ in range(2):
        fit = fitted(short, basis / resolved**2, target, root)
        misfit = ((target - fit) * root) ** 2
        share = np.sqrt(misfit.sum(axis=1) / np.where(power > 0, power, 1.0))
        resolved = np.hypot(_RESOLVED, _PER_MISFIT * share)[:, None, None]
    return fit


def fitted(short: Array, whole: Array, target: Array, root: Array) -> Array:
    """The fit of the target, weights root², on functions with unit penalty.

    Functions have shapes (B, n, K), ``short`` ones only the first of these points: they are zero
    at the others.
    """
    known, size = short.shape[1:]
    more = size < target.shape[1]
    first, second, wanted = short * root[:, None, :size], whole * root[:, None], target * root
    power = (first * first).sum(axis=(1, 2)) + (second * second).sum(axis=(1, 2))
    if not power.max() < _NORMAL:
        padded = np.zeros((len(short), known, target.shape[1]))
        padded[:, :, :size] = short
        return _by_rotations(np.concatenate([padded, whole], axis=1), target, root)
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


def _by_rotations(functions: Array, target: Array, root: Array) -> Array:
    """The same without forming products of functions, which lose half of the digits."""
    cells, count, nodes = functions.shape
    rows = np.zeros((cells, nodes + count, count + 1))
    rows[:, :nodes, :-1] = transposed(functions * root[:, None])
    rows[:, :nodes, -1] = target * root
    rows[:, nodes:, :-1] = identity(count)
    scale = np.sqrt((rows[:, :, :-1] ** 2).sum(axis=1))
    rows[:, :, :-1] /= scale[:, None]
    triangle = np.asarray(np.linalg.qr(rows, mode="r"))
    coefficients = solve(triangle[:, :count, :-1], triangle[:, :count, -1]) / scale
    return product(coefficients[:, None], functions)[:, 0]
