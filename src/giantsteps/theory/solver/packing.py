"""Small matrices in stacks, and symmetric ones as vectors of their entries.

Every result of a cell is the same, to the last bit, whatever stands beside it in the stack:
products go matrix by matrix through one memory layout.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

import numpy as np

from giantsteps.types import Array


@lru_cache(maxsize=128)
def identity(size: int) -> Array:
    """I, to be read only."""
    unit = np.eye(size)
    unit.setflags(write=False)
    return unit


def transposed(matrix: Array) -> Array:
    """Of stacked matrices."""
    return matrix.swapaxes(-1, -2)


def symmetric(matrix: Array) -> Array:
    """The symmetric part of stacked matrices."""
    return matrix if matrix.shape[-1] == 1 else 0.5 * (matrix + transposed(matrix))


def product(left: Array, right: Array) -> Array:
    """Stacked matrix product; where it is one of numbers, no call of BLAS is needed.

    A row or a column is doubled: BLAS orders the sums of a matrix with a vector by the place of
    the matrix in memory, and a cell would see its neighbours in the last digit.
    """
    if left.shape[-1] == 1:
        return left * right
    if left.shape[-2] == 1:
        return (left.repeat(2, axis=-2) @ np.ascontiguousarray(right))[..., :1, :]
    if right.shape[-1] == 1:
        return (np.ascontiguousarray(left) @ right.repeat(2, axis=-1))[..., :1]
    return np.ascontiguousarray(left) @ np.ascontiguousarray(right)


def inverse(matrix: Array) -> Array:
    """Inverse of stacked matrices, in closed form up to 2 × 2."""
    size = matrix.shape[-1]
    if size == 1:
        return 1.0 / matrix
    if size == 2:
        out = np.empty_like(matrix)
        out[..., 0, 0], out[..., 1, 1] = matrix[..., 1, 1], matrix[..., 0, 0]
        out[..., 0, 1], out[..., 1, 0] = -matrix[..., 0, 1], -matrix[..., 1, 0]
        det = out[..., 0, 0] * out[..., 1, 1] - out[..., 0, 1] * out[..., 1, 0]
        out /= det[..., None, None]
        return out
    return solve(matrix, np.broadcast_to(identity(size), matrix.shape))


def solve(matrix: Array, right: Array) -> Array:
    """Solve stacked linear systems (…, P, P) x = (…, P) or (…, P, Q); NaN where one is singular."""
    vector = right.ndim < matrix.ndim
    if matrix.shape[-1] == 1 and matrix.all():
        return right / (matrix[..., 0] if vector else matrix)
    right = right[..., None] if vector else right
    try:
        found = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        found = np.full(right.shape, np.nan, dtype=np.result_type(matrix, right))
        for place in np.ndindex(matrix.shape[:-2]):
            with suppress(np.linalg.LinAlgError):
                found[place] = np.linalg.solve(matrix[place], right[place])
    return found[..., 0] if vector else found


class Packing:
    """Symmetric matrices of one size as vectors of their entries i ≤ j.

    Parameters
    ----------
    size : int
    kept : ndarray of shape (size, size), optional
        Which entries are not zero: all of them unless given.

    Attributes
    ----------
    rows, columns : ndarray of shape (P,)
        i and j of the entries.
    count : ndarray of shape (P,)
        How often an entry stands in the matrix: 1 or 2.
    whole : Packing
        That of all entries.
    """

    def __init__(self, size: int, kept: Array | None = None) -> None:
        self.size, self.kept = size, kept
        self.rows, self.columns = np.triu_indices(size)
        if kept is not None:
            some = kept[self.rows, self.columns]
            self.rows, self.columns = self.rows[some], self.columns[some]
        self.whole = self if kept is None else packing(size)
        self.count = np.where(self.rows == self.columns, 1.0, 2.0)
        self._length, a, b = len(self.rows), self.rows[:, None], self.columns[:, None]
        self.place = np.full((size, size), self._length)
        self.place[self.rows, self.columns] = np.arange(self._length)
        self.place[self.columns, self.rows] = np.arange(self._length)
        self._flat = self.rows * size + self.columns
        #: Where the moments of two entries stand, for `congruence`.
        place, count = self.whole.place, len(self.whole)
        self._straight = place[a, self.rows] * count + place[b, self.columns]
        self._crossed = place[a, self.columns] * count + place[b, self.rows]

    def __len__(self) -> int:
        return self._length

    def pack(self, matrix: Array) -> Array:
        """Entries of stacked symmetric matrices, shape (..., P)."""
        if self.size == 1:
            return matrix[..., 0]
        return matrix.reshape(*matrix.shape[:-2], -1).take(self._flat, axis=-1)

    def unpack(self, packed: Array) -> Array:
        """The matrices again, shape (..., size, size)."""
        if self.size == 1:
            return packed[..., None]
        if self.kept is not None:
            packed = np.concatenate([packed, np.zeros_like(packed[..., :1])], axis=-1)
        return packed.take(self.place, axis=-1)

    def congruence(self, moment: Array) -> Array:
        """The map D ↦ E[A D A] of packed D, from the moments E[A_iA_j] of all entries of symmetric
        A, packed."""
        if self.size == 1:
            return moment
        flat = moment.reshape(*moment.shape[:-2], -1)
        both = flat.take(self._straight, axis=-1) + flat.take(self._crossed, axis=-1)
        return np.asarray(0.5 * both * self.count)

    def squared(self, matrix: Array) -> Array:
        """The map D ↦ A D A for stacked symmetric matrices A."""
        packed = self.whole.pack(matrix)
        return self.congruence(packed[..., :, None] * packed[..., None, :])


@lru_cache(maxsize=128)
def packing(size: int) -> Packing:
    """The packing of matrices of one size."""
    return Packing(size)


def raised(
    values: Array, weights: Array, outer: Packing, inner: Packing, others: Array | None = None
) -> Array:
    """The map D ↦ Σ_y w_y A_y D A_yᵀ from packed (r × r) to packed (i × i) matrices; with others B
    the symmetric part of Σ_y w_y A_y D B_yᵀ.

    Parameters
    ----------
    values : ndarray of shape (B, Y, i, r)
        A.
    others : ndarray of the same shape
        B.
    weights : ndarray of shape (B, Y)

    Returns
    -------
    ndarray of shape (B, P_i, P_r)
    """
    cells, count, i, r = values.shape
    flat = np.ascontiguousarray(values.reshape(cells, count, i * r))
    second = flat if others is None else np.ascontiguousarray(others.reshape(cells, count, i * r))
    moment = product(transposed(flat * weights[:, :, None]), second)
    moment = (moment if others is None else symmetric(moment)).reshape(cells, -1)
    if i == r == 1:
        return moment[:, None]
    straight, crossed = _places(outer, inner, i, r)
    both = moment.take(straight, axis=1) + moment.take(crossed, axis=1)
    return np.asarray(0.5 * both * inner.count)


@lru_cache(maxsize=256)
def _places(outer: Packing, inner: Packing, i: int, r: int) -> tuple[Array, Array]:
    """Where `raised` finds the moments of A_iaA_jb and of A_ibA_ja."""
    row, column = outer.rows[:, None], outer.columns[:, None]
    a, b = inner.rows, inner.columns
    first = (row * r + a) * (i * r) + column * r + b
    return first, (row * r + b) * (i * r) + column * r + a
