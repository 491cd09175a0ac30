"""PyTorch on a CPU or a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from giantsteps.simulation import _machine
from giantsteps.simulation._arrays import Array, Arrays

__all__ = ["TorchArrays"]

_PANELS = 8  # of a Gram matrix: so many products, (1 + 1/panels)/2 of the full one's work


@dataclass(frozen=True)
class TorchArrays(Arrays):
    """PyTorch tensors; `xp` is the array API wrapper."""

    @property
    def _torch(self) -> Any:
        import torch

        return torch

    @property
    def on_gpu(self) -> bool:
        return self.device.type == "cuda"

    def asarray(self, host: np.ndarray, *, wide: bool = False) -> Array:
        tensor = self._torch.from_numpy(np.require(host, requirements=["C", "W"]))
        return tensor.to(device=self.device, dtype=self.xp.float64 if wide else self.dtype)

    def to_host(self, x: Array) -> np.ndarray:
        return x.detach().cpu().numpy()

    def free_memory(self) -> int | None:
        if not self.on_gpu:
            return _machine.memory()
        cuda = self._torch.cuda
        # What PyTorch keeps of freed tensors is free to us.
        kept = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
        return int(cuda.mem_get_info(self.device)[0] + kept)

    def add_product(self, out: Array, a: Array, b: Array) -> Array:
        if out.ndim == 2 and a.dtype == out.dtype:
            return out.addmm_(a.mT, b)
        return out.add_(a.mT @ b)

    def _add_wide_gram(self, out: Array, a: Array) -> Array:
        # Panels of columns, from the diagonal down.
        size = out.shape[0]
        step = max(512, -(-size // _PANELS))
        for start in range(0, size, step):
            panel = slice(start, min(start + step, size))
            self.add_product(out[start:, panel], a[:, start:], a[:, panel])
        return out

    def mirror(self, symmetric: Array) -> Array:
        return symmetric.tril_().add_(symmetric.tril(-1).mT)

    def solve(self, symmetric: Array, shift: float, rhs: Array) -> Array | None:
        shifted = symmetric.clone()
        shifted.diagonal().add_(shift)
        factor, failed = self._torch.linalg.cholesky_ex(shifted)
        if int(failed):
            return None
        return self._torch.cholesky_solve(rhs[:, None], factor)[:, 0]

    def _eigh(self, symmetric: Array) -> tuple[Array, Array]:
        values, vectors = self._torch.linalg.eigh(symmetric, UPLO="L")
        return values, vectors

    def _eigvalsh(self, symmetric: Array) -> Array:
        return self._torch.linalg.eigvalsh(symmetric, UPLO="L")

    def normal(self, entropy: int, rows: int, width: int) -> Array | None:
        generator = self._torch.Generator(self.device).manual_seed(entropy)
        return self._torch.randn(
            (rows, width), generator=generator, device=self.device, dtype=self.dtype
        )
