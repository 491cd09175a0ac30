"""NumPy, with the BLAS and LAPACK routines that it does not reach, and threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, eigh, eigvalsh, lapack

from giantsteps.simulation import _machine
from giantsteps.simulation._arrays import Array, Arrays
from giantsteps.simulation._cholesky import factorise

__all__ = ["NumpyArrays"]

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
        return np.zeros(shape, "float64" if wide else self.precision, order="F" if wide else "C")

    def free_memory(self) -> int | None:
        return _machine.memory()

    def by_rows(self, task: Callable[[slice], None], rows: int, width: int) -> None:
        step = max(1, _SLAB // max(width, 1))
        slices = [slice(start, min(start + step, rows)) for start in range(0, rows, step)]
        if self.threads == 1 or len(slices) == 1:
            for each in slices:
                task(each)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(task, slices))

    def add_product(self, out: Array, a: Array, b: Array) -> Array:
        if out.ndim == 2 and out.flags.f_contiguous and a.dtype == b.dtype == np.float64:
            left, flip_left = _fortran(a)
            right, flip_right = _fortran(b)
            return blas.dgemm(
                1.0, left, right, 1.0, out, not flip_left, flip_right, overwrite_c=True
            )
        out += a.T @ b
        return out

    def _add_wide_gram(self, out: Array, a: Array) -> Array:
        given, flipped = _fortran(a)
        return blas.dsyrk(1.0, given, 1.0, out, not flipped, lower=True, overwrite_c=True)

    def mirror(self, symmetric: Array) -> Array:
        for start in range(0, symmetric.shape[0], _BLOCK):
            here, below = slice(start, start + _BLOCK), slice(start + _BLOCK, None)
            corner = symmetric[here, here]
            corner[...] = np.tril(corner) + np.tril(corner, -1).T
            symmetric[here, below] = symmetric[below, here].T
        return symmetric

    def solve(self, symmetric: Array, shift: float, rhs: Array) -> Array | None:
        shifted = np.array(symmetric, order="F")
        shifted.ravel(order="K")[:: shifted.shape[0] + 1] += shift
        return lapack.dpotrs(shifted, rhs, lower=True)[0] if factorise(shifted) else None

    def solve_many(
        self, symmetric: Array, shifts: Sequence[float], rhs: Array
    ) -> list[Array | None]:
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


def _fortran(a: np.ndarray) -> tuple[np.ndarray, bool]:
    """``a`` or its transpose, whichever Fortran reads without a copy, and whether transposed."""
    return (a.T, True) if a.flags.c_contiguous else (a, False)
