"""PyTorch on a CPU or a GPU."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from giantsteps.simulation._engine import _cuda, _machine
from giantsteps.simulation._engine._arrays import Array, Arrays
from giantsteps.simulation._engine._normals import Words, tables

_PANEL_AT_LEAST = 512  # columns
# A batch of matrices is factorised by the library's batched routine up to one size, then by
# blocks if they are enough, and from another size on one after the other: measured on an H200.
_BLOCKED_FROM, _BLOCKED_WITH, _BLOCK, _ALONE_FROM = 800, 6, 256, 3000
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
        return x if isinstance(x, np.ndarray) else x.detach().cpu().numpy()

    def zeros(self, *shape: int, wide: bool = True) -> Array:
        dtype = self.xp.float64 if wide else self.dtype
        if not wide or len(shape) < 2:
            return self._torch.zeros(shape, dtype=dtype, device=self.device)
        # As weights lie in memory, to which sums are added.
        turned = (*shape[:-2], shape[-1], shape[-2])
        return self._torch.zeros(turned, dtype=dtype, device=self.device).mT

    def free_memory(self) -> int | None:
        if not self.on_gpu:
            return _machine.memory()
        cuda = self._torch.cuda
        # What PyTorch keeps of freed tensors is free to us.
        kept = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
        return int(cuda.mem_get_info(self.device)[0] + kept)

    def stream(self, number: int) -> AbstractContextManager[None]:
        if not self.on_gpu:
            return nullcontext()
        return self._torch.cuda.stream(_stream(self.device, number))

    def add_product(self, out: Array, a: Array, b: Array) -> Array:
        if a.dtype != out.dtype or a.ndim != out.ndim or out.ndim > 3:
            return out.add_(a.mT @ b)
        return out.addmm_(a.mT, b) if out.ndim == 2 else out.baddbmm_(a.mT, b)

    def _add_wide_gram(self, out: Array, a: Array) -> Array:
        # Panels of columns, from the diagonal down.
        size = out.shape[-1]
        step = max(_PANEL_AT_LEAST, -(-size // _PANELS))
        for start in range(0, size, step):
            panel = slice(start, min(start + step, size))
            self.add_product(out[..., start:, panel], a[..., start:], a[..., panel])
        return out

    def mirror(self, symmetric: Array) -> Array:
        return symmetric.tril_().add_(symmetric.tril(-1).mT)

    def solve(self, symmetric: Array, shift: float, rhs: Array) -> tuple[Array, Array]:
        shifted = symmetric.clone()
        shifted.diagonal(dim1=-2, dim2=-1).add_(shift)
        size = symmetric.shape[-1]
        if symmetric.ndim == 2 or size < _BLOCKED_FROM or not self.on_gpu:
            return self._solve(shifted, rhs)
        if len(shifted) >= _BLOCKED_WITH and size < _ALONE_FROM:
            return self._solve_by_blocks(shifted, rhs)
        found, solved = zip(*(self._solve(matrix, b) for matrix, b in zip(shifted, rhs)))
        return self._torch.stack(found), self._torch.stack(solved)

    def _solve(self, matrix: Array, rhs: Array) -> tuple[Array, Array]:
        factor, failed = self._torch.linalg.cholesky_ex(matrix)
        return self._torch.cholesky_solve(rhs[..., None], factor)[..., 0], failed == 0

    def _solve_by_blocks(self, matrix: Array, rhs: Array) -> tuple[Array, Array]:
        """The same for a batch of matrices, which are overwritten: a Cholesky factorisation whose
        work is products of blocks of all matrices at once."""
        torch, size = self._torch, matrix.shape[-1]
        identity = torch.eye(_BLOCK, dtype=matrix.dtype, device=matrix.device)
        solved = torch.ones(matrix.shape[0], dtype=torch.bool, device=matrix.device)
        blocks = [slice(i, min(i + _BLOCK, size)) for i in range(0, size, _BLOCK)]
        inverses = []
        for here in blocks:
            before, width = slice(0, here.start), here.stop - here.start
            if here.start:
                matrix[:, here.start :, here].baddbmm_(
                    matrix[:, here.start :, before], matrix[:, here, before].mT, alpha=-1
                )
            factor, failed = torch.linalg.cholesky_ex(matrix[:, here, here])
            solved &= failed == 0
            right = identity[:width, :width].expand_as(factor)
            inverses.append(torch.linalg.solve_triangular(factor, right, upper=False))
            if here.stop < size:
                matrix[:, here.stop :, here] = matrix[:, here.stop :, here] @ inverses[-1].mT
        x = rhs[..., None].clone()
        for here, inverse in zip(blocks, inverses):
            before = slice(0, here.start)
            x[:, here] = inverse @ (x[:, here] - matrix[:, here, before] @ x[:, before])
        for here, inverse in zip(reversed(blocks), reversed(inverses)):
            after = slice(here.stop, size)
            x[:, here] = inverse.mT @ (x[:, here] - matrix[:, after, here].mT @ x[:, after])
        return x[..., 0], solved

    def inverse_traces(self, symmetric: Array, shift: float) -> tuple[Array, Array]:
        torch, size = self._torch, symmetric.shape[-1]
        shifted = symmetric.clone()
        shifted.diagonal(dim1=-2, dim2=-1).add_(shift)
        identity = torch.eye(size, dtype=symmetric.dtype, device=symmetric.device)
        first, second = [], []
        # One after the other, as the library would: tr S⁻¹ = ‖L⁻¹‖² and tr S⁻² = ‖L⁻ᵀL⁻¹‖².
        for matrix in shifted:
            factor, failed = torch.linalg.cholesky_ex(matrix)
            half = torch.linalg.solve_triangular(factor, identity, upper=False)
            lost = torch.where(failed == 0, 0.0, float("nan"))
            first.append(torch.sum(half**2) + lost)
            second.append(torch.sum((half.mT @ half) ** 2) + lost)
        return torch.stack(first), torch.stack(second)

    def eigh_small(self, symmetric: Array) -> tuple[Array, Array]:
        if not self.on_gpu:
            return super().eigh_small(symmetric)
        # Many small matrices are decomposed one after the other on a GPU, more slowly than here.
        values, vectors = np.linalg.eigh(np.nan_to_num(self.to_host(symmetric)))
        return self.asarray(values, wide=True), self.asarray(vectors, wide=True)

    def orthonormal(self, columns: Array) -> Array:
        if columns.ndim == 2:
            return super().orthonormal(columns)
        # By Cholesky of their Gram matrix: a Householder decomposition of many tall matrices runs
        # one after the other. The caller does it twice, so that what rounding leaves is gone.
        factor, failed = self._torch.linalg.cholesky_ex(columns.mT @ columns)
        identity = self._torch.eye(columns.shape[-1], dtype=columns.dtype, device=columns.device)
        inverse = self._torch.linalg.solve_triangular(
            factor, identity.expand_as(factor), upper=False
        )
        lost = self._torch.where(failed == 0, 0.0, float("nan"))
        return columns @ inverse.mT + lost[:, None, None]

    def _eigh(self, symmetric: Array) -> tuple[Array, Array]:
        values, vectors = self._torch.linalg.eigh(symmetric, UPLO="L")
        return values, vectors

    def _eigvalsh(self, symmetric: Array) -> Array:
        return self._torch.linalg.eigvalsh(symmetric, UPLO="L")

    def normal(self, keys: Words, stream: tuple[int, int], start: int, count: int) -> Array:
        kernel = _kernel(self.precision, self.device) if self.on_gpu else None
        if kernel is None:
            return super().normal(keys, stream, start, count)
        torch = self._torch
        out = torch.empty((len(keys), count), dtype=self.dtype, device=self.device)
        given = _keys(self.device, keys.tobytes())
        with torch.cuda.device(self.device):
            kernel(
                grid=(_cuda.blocks(start, count), len(keys), 1),
                block=(_cuda.THREADS, 1, 1),
                args=[out, given, _tables(self.device), *map(float, (*stream, start, count))],
            )
        return out


@cache
def _stream(device: Any, number: int) -> Any:
    import torch

    return torch.cuda.Stream(device)


@lru_cache(maxsize=64)
def _keys(device: Any, words: bytes) -> Array:
    """Keys of generators on the device: copied once, since a copy waits for the device."""
    import torch

    return torch.frombuffer(bytearray(words), dtype=torch.int64).to(device)


@cache
def _tables(device: Any) -> Array:
    """The tables of the ziggurat on the device."""
    import torch

    return torch.from_numpy(np.concatenate(tables())).to(device)


@cache
def _kernel(precision: str, device: Any) -> Any:
    """The kernel that draws on the GPU; None where this PyTorch cannot compile it."""
    import torch

    # PyTorch has it from 2.8 on, by this name. Without it the same numbers come from the host.
    compile_kernel = getattr(torch.cuda, "_compile_kernel", None)
    if compile_kernel is None:
        return None
    with torch.cuda.device(device):
        return compile_kernel(_cuda.source(precision), _cuda.KERNEL)
