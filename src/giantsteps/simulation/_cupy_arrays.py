"""CuPy on a GPU: the standard, and the few routines that it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from giantsteps.simulation._arrays import Array, Arrays

__all__ = ["CupyArrays"]


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

    def solve(self, symmetric: Array, shift: float, rhs: Array) -> Array | None:
        solve_triangular = import_module("cupyx.scipy.linalg").solve_triangular
        identity = self.xp.eye(symmetric.shape[0], dtype=self.xp.float64)
        factor = self._cupy.linalg.cholesky(self.mirror(symmetric) + shift * identity)
        x = solve_triangular(factor, solve_triangular(factor, rhs, lower=True), lower=True, trans=1)
        # CuPy does not raise where the matrix is not positive definite: it returns NaN.
        return x if bool(self.xp.all(self.xp.isfinite(x))) else None

    def normal(self, entropy: int, rows: int, width: int) -> Array | None:
        generator = self._cupy.random.Generator(self._cupy.random.Philox4x3210(entropy))
        return generator.standard_normal((rows, width), dtype=self.dtype)
