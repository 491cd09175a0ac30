"""NumPy, with the BLAS and LAPACK routines that it does not reach, and threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, eigh, eigvalsh, lapack

from giantsteps.simulation._engine import _machine
from giantsteps.simulation._engine._arrays import Array, Arrays
from giantsteps.simulation._engine._cholesky import factorise

_SLAB = 2**16  # entries of the row slabs of elementwise work: 512 kB, stays in the cache
_BLOCK = 512  # rows that are mirrored at a time
_FACTORS = 4  # matrices that are factorised at the same time, at most


@dataclass(frozen=True)
class NumpyArrays(Arrays):
    """NumPy arrays; elementwise work and copies by several threads."""

    @property
    def in_place(self) -> bool:
        return True

    def asarray(self, host: np.ndarray, *, wide: bool = False) -> Array:
        return np.ascontiguousarray(host, dtype="float64" if wide else self.precision)

    def zeros(self, *shape: int, wide: bool = True) -> Array:
        # Sums are read and updated by BLAS, rows of features are written one after the other.
        if not wide or len(shape) < 2:
            return np.zeros(shape, "float64" if wide else self.precision)
        return np.zeros((*shape[:-2], shape[-1], shape[-2])).swapaxes(-1, -2)

    def free_memory(self) -> int | None:
        return _machine.memory()

    def map_rows(
        self, function: Callable[[Array, Array], tuple[Array, Array]], z: Array, y: Array
    ) -> tuple[Array, Array]:
        second = np.empty_like(y)

        def task(rows: slice) -> None:
            z[..., rows, :], second[..., rows] = function(z[..., rows, :], y[..., rows])

        self._by_rows(task, *z.shape[-2:])
        return z, second

    def _by_rows(self, task: Callable[[slice], None], rows: int, width: int) -> None:
        """Run ``task`` on slices that cover ``range(rows)``, for arrays of ``width`` columns."""
        step = max(1, _SLAB // max(width, 1))
        slices = [slice(start, min(start + step, rows)) for start in range(0, rows, step)]
        if self.threads == 1 or len(slices) == 1:
            for each in slices:
                task(each)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(task, slices))

    def transform(self, function: Callable[[Array], Array], z: Array) -> Array:
        flat = z.reshape(-1, z.shape[-1])

        def task(rows: slice) -> None:
            flat[rows] = function(flat[rows])

        self._by_rows(task, *flat.shape)
        return flat.reshape(z.shape)

    def add_product(self, out: Array, a: Array, b: Array) -> Array:
        for sums, left, right in _matrices(out, a, b):
            if sums.flags.f_contiguous and left.dtype == right.dtype == np.float64:
                first, flip_first = _fortran(left)
                second, flip_second = _fortran(right)
                blas.dgemm(
                    1.0, first, second, 1.0, sums, not flip_first, flip_second, overwrite_c=True
                )
            else:
                sums += left.T @ right
        return out

    def _add_wide_gram(self, out: Array, a: Array) -> Array:
        for sums, given in _matrices(out, a):
            first, flipped = _fortran(given)
            blas.dsyrk(1.0, first, 1.0, sums, not flipped, lower=True, overwrite_c=True)
        return out

    def mirror(self, symmetric: Array) -> Array:
        size = symmetric.shape[-1]
        for start in range(0, size, _BLOCK):
            here, below = slice(start, start + _BLOCK), slice(start + _BLOCK, None)
            corner = symmetric[..., here, here]
            corner[...] = np.tril(corner) + np.tril(corner, -1).swapaxes(-1, -2)
            symmetric[..., here, below] = symmetric[..., below, here].swapaxes(-1, -2)
        return symmetric

    def solve(self, symmetric: Array, shift: float, rhs: Array) -> tuple[Array, Array]:
        found = np.zeros(rhs.shape)
        solved = np.zeros(rhs.shape[:-1], dtype=bool)
        for index in np.ndindex(solved.shape):
            shifted = np.array(symmetric[index], order="F")
            shifted.ravel(order="K")[:: shifted.shape[0] + 1] += shift
            if factorise(shifted):
                solved[index] = True
                found[index] = lapack.dpotrs(shifted, rhs[index], lower=True)[0]
        return found, solved

    def solve_many(
        self, symmetric: Array, shifts: Sequence[float], rhs: Array
    ) -> list[tuple[Array, Array]]:
        # A factorisation by several threads waits for the last of them again and again; where
        # another process has a processor, that costs many times the work. One thread each waits
        # for nothing.
        workers = self.factors(len(shifts))
        if self.threads == 1 or 2 * workers < self.threads:
            return super().solve_many(symmetric, shifts, rhs)
        with _machine.one_thread(), ThreadPoolExecutor(workers) as pool:
            return list(pool.map(lambda shift: self.solve(symmetric, shift, rhs), shifts))

    def factors(self, count: int) -> int:
        return max(1, min(self.threads, count, _FACTORS))

    def _eigh(self, symmetric: Array) -> tuple[Array, Array]:
        values, vectors = eigh(symmetric, lower=True, driver="evd", check_finite=False)
        return values, vectors

    def _eigvalsh(self, symmetric: Array) -> Array:
        return eigvalsh(symmetric, lower=True, check_finite=False)


def _matrices(*stacks: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """The matrices of stacks of one shape before the last two axes, one of each at a time."""
    for index in np.ndindex(stacks[0].shape[:-2]):
        yield tuple(stack[index] for stack in stacks)


def _fortran(a: np.ndarray) -> tuple[np.ndarray, bool]:
    """``a`` or its transpose, whichever Fortran reads without a copy, and whether transposed."""
    return (a.T, True) if a.flags.c_contiguous else (a, False)
