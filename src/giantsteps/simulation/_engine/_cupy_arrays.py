"""CuPy on a GPU: the standard, and the few routines that it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from giantsteps.simulation._engine import _cuda
from giantsteps.simulation._engine._arrays import Array, Arrays
from giantsteps.simulation._engine._normals import Words, tables


@dataclass(frozen=True)
class CupyArrays(Arrays):
    """CuPy arrays on its current device; `xp` is the array API wrapper."""

    @property
    def _cupy(self) -> Any:
        import cupy

        return cupy

    @property
    def on_gpu(self) -> bool:
        return True

    def to_host(self, x: Array) -> np.ndarray:
        return self._cupy.asnumpy(x)

    def free_memory(self) -> int | None:
        pool = self._cupy.get_default_memory_pool()
        return int(self._cupy.cuda.Device().mem_info[0] + pool.free_bytes())

    def solve(self, symmetric: Array, shift: float, rhs: Array) -> tuple[Array, Array]:
        xp, solve_triangular = self.xp, import_module("cupyx.scipy.linalg").solve_triangular
        identity = xp.eye(symmetric.shape[-1], dtype=xp.float64)
        shifted = self.mirror(symmetric) + shift * identity
        found = xp.empty_like(rhs)
        for index in np.ndindex(rhs.shape[:-1]):
            factor = self._cupy.linalg.cholesky(shifted[index])
            half = solve_triangular(factor, rhs[index], lower=True)
            found[index] = solve_triangular(factor, half, lower=True, trans=1)
        # CuPy does not raise where the matrix is not positive definite: it returns NaN.
        return found, xp.all(xp.isfinite(found), axis=-1)

    def normal(self, keys: Words, stream: tuple[int, int], start: int, count: int) -> Array:
        out = self._cupy.empty((len(keys), count), dtype=self.precision)
        given = self._cupy.asarray(np.ascontiguousarray(keys))
        numbers = (np.float64(value) for value in (*stream, start, count))
        kernel = _kernel(self.precision)
        kernel(
            (_cuda.blocks(start, count), len(keys), 1),
            (_cuda.THREADS, 1, 1),
            (out, given, self._cupy.asarray(np.concatenate(tables())), *numbers),
        )
        return out


@cache
def _kernel(precision: str) -> Any:
    """The kernel that draws on the GPU."""
    import cupy

    return cupy.RawKernel(_cuda.source(precision), _cuda.KERNEL)
