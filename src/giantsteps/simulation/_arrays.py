"""Arrays for the simulator: a namespace, a device, a precision, and what the standard lacks.

The numerics of this package are written against the Python array API. Four things are outside it
and live here, once for each kind of array: symmetric rank-k products, Cholesky solves, products
added in place, and normal variates drawn on the device.

A *symmetric* matrix below is stored by its lower triangle; what is above the diagonal is not read
until `Arrays.mirror` has filled it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from scipy.linalg import blas, eigh, eigvalsh, lapack
from threadpoolctl import threadpool_info

from giantsteps.errors import InvalidProblem

__all__ = ["Array", "Arrays", "resolve"]

#: An array of whichever namespace is in use.
Array = Any

_SLAB = 2**16  # entries of the row slabs of elementwise work: 512 kB, stays in the cache


@dataclass(frozen=True)
class Arrays:
    """An array namespace that follows the standard, and the few operations it lacks.

    Attributes
    ----------
    xp : module
        The array namespace.
    device : object
        Where arrays live, as the namespace names it; None for its default.
    precision : {"float64", "float32"}
        Of weights, inputs and features. Sums over samples are float64 always.
    threads : int
        Threads for elementwise work and for drawing; as many as the linear algebra uses.
    """

    xp: Any
    device: Any = None
    precision: str = "float64"
    threads: int = 1

    @property
    def dtype(self) -> Any:
        """The dtype of weights, inputs and features."""
        return getattr(self.xp, self.precision)

    @property
    def itemsize(self) -> int:
        """Bytes of one number of `dtype`."""
        return 8 if self.precision == "float64" else 4

    @property
    def epsilon(self) -> float:
        """Rounding unit of `dtype`."""
        return float(np.finfo(self.precision).eps)

    @property
    def in_place(self) -> bool:
        """Whether elementwise work leaves no temporary of the size of its operand, and whether a
        matrix is factorised where it stands."""
        return False

    # Moving and making ------------------------------------------------------------------------

    def asarray(self, host: np.ndarray) -> Array:
        """A NumPy array on the device, in `dtype`."""
        return self.xp.asarray(host, dtype=self.dtype, device=self.device)

    def wide(self, x: Array) -> Array:
        """``x`` in float64."""
        return self.xp.astype(x, self.xp.float64, copy=False)

    def narrow(self, x: Array) -> Array:
        """``x`` in `dtype`."""
        return self.xp.astype(x, self.dtype, copy=False)

    def to_host(self, x: Array) -> np.ndarray:
        """``x`` as a NumPy array."""
        return np.asarray(x)

    def zeros(self, *shape: int, wide: bool = True) -> Array:
        """Zeros in float64, or in `dtype` if not ``wide``."""
        return self.xp.zeros(
            shape, dtype=self.xp.float64 if wide else self.dtype, device=self.device
        )

    def free_memory(self) -> int | None:
        """Bytes that the device has, None if unknown."""
        return None

    # Work by rows -----------------------------------------------------------------------------

    def by_rows(self, task: Callable[[slice], None], rows: int, width: int) -> None:
        """Run ``task`` on slices that cover ``range(rows)``, for arrays of ``width`` columns."""
        task(slice(0, rows))

    def transform(self, function: Callable[[Array], Array], z: Array) -> Array:
        """``function(z)`` elementwise; may overwrite the matrix ``z``."""

        def task(rows: slice) -> None:
            z[rows, :] = function(z[rows, :])

        self.by_rows(task, *z.shape)
        return z

    # Linear algebra ---------------------------------------------------------------------------

    def add_product(self, out: Array, a: Array, b: Array) -> Array:
        """``out + aᵀ b`` in float64; may overwrite ``out``."""
        return out + self.wide(self.xp.matrix_transpose(a) @ b)

    def add_gram(self, out: Array, a: Array) -> Array:
        """The symmetric ``out + aᵀ a`` in float64; may overwrite ``out``."""
        return self.add_product(out, a, a)

    def mirror(self, symmetric: Array) -> Array:
        """A symmetric matrix with its upper triangle filled; may overwrite it."""
        lower = self.xp.tril(symmetric, k=-1)
        return self.xp.tril(symmetric) + self.xp.matrix_transpose(lower)

    def solve(self, symmetric: Array, shift: float, rhs: Array) -> Array | None:
        """x with (S + shift·I) x = rhs, by Cholesky; None if that is not positive definite."""
        xp = self.xp
        shifted = self.mirror(symmetric) + shift * xp.eye(symmetric.shape[0], dtype=xp.float64)
        if not bool(xp.linalg.eigvalsh(shifted)[0] > 0):
            return None
        return xp.linalg.solve(shifted, rhs[:, None])[:, 0]

    def eigh(self, symmetric: Array) -> tuple[Array, Array]:
        """Eigenvalues, increasing, and eigenvectors of a symmetric matrix."""
        values, vectors = self.xp.linalg.eigh(self.mirror(symmetric))
        return values, vectors

    def eigvalsh(self, symmetric: Array) -> Array:
        """Eigenvalues of a symmetric matrix, increasing."""
        return self.xp.linalg.eigvalsh(self.mirror(symmetric))

    # Random numbers ---------------------------------------------------------------------------

    def normal(self, entropy: int, rows: int, width: int) -> Array | None:
        """Normal variates drawn on the device from a 64-bit seed; None: draw them on the host."""
        return None


@dataclass(frozen=True)
class NumpyArrays(Arrays):
    """NumPy, with the BLAS and LAPACK routines that NumPy does not reach, and threads."""

    @property
    def in_place(self) -> bool:
        return True

    def asarray(self, host: np.ndarray) -> Array:
        return np.asarray(host, dtype=self.precision)

    def zeros(self, *shape: int, wide: bool = True) -> Array:
        # Sums are read and updated by BLAS, rows of features are written one after the other.
        return np.zeros(shape, "float64" if wide else self.precision, order="F" if wide else "C")

    def free_memory(self) -> int | None:
        return _physical_memory()

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

    def add_gram(self, out: Array, a: Array) -> Array:
        given, flipped = _fortran(a)
        if a.dtype == np.float64:
            return blas.dsyrk(1.0, given, 1.0, out, not flipped, lower=True, overwrite_c=True)
        out += blas.ssyrk(1.0, given, trans=not flipped, lower=True)
        return out

    def mirror(self, symmetric: Array) -> Array:
        step = 512
        for start in range(0, symmetric.shape[0], step):
            here = slice(start, start + step)
            corner = symmetric[here, here]
            corner[...] = np.tril(corner) + np.tril(corner, -1).T
            symmetric[here, start + step :] = symmetric[start + step :, here].T
        return symmetric

    def solve(self, symmetric: Array, shift: float, rhs: Array) -> Array | None:
        shifted = np.array(symmetric, order="F")
        shifted.ravel(order="K")[:: shifted.shape[0] + 1] += shift
        factor, failed = lapack.dpotrf(shifted, lower=True, clean=False, overwrite_a=True)
        if failed:
            return None
        return lapack.dpotrs(factor, rhs, lower=True)[0]

    def eigh(self, symmetric: Array) -> tuple[Array, Array]:
        values, vectors = eigh(symmetric, lower=True, driver="evd", check_finite=False)
        return values, vectors

    def eigvalsh(self, symmetric: Array) -> Array:
        return eigvalsh(symmetric, lower=True, check_finite=False)


def _fortran(a: np.ndarray) -> tuple[np.ndarray, bool]:
    """``a`` or its transpose, whichever Fortran reads without a copy, and whether transposed."""
    return (a.T, True) if a.flags.c_contiguous else (a, False)


@dataclass(frozen=True)
class TorchArrays(Arrays):
    """PyTorch on a CPU or a GPU; `xp` is its array API wrapper."""

    @property
    def _torch(self) -> Any:
        import torch

        return torch

    def asarray(self, host: np.ndarray) -> Array:
        tensor = self._torch.from_numpy(np.ascontiguousarray(host))
        return tensor.to(device=self.device, dtype=self.dtype)

    def to_host(self, x: Array) -> np.ndarray:
        return x.detach().cpu().numpy()

    def free_memory(self) -> int | None:
        if self.device.type == "cuda":
            return int(self._torch.cuda.mem_get_info(self.device)[0])
        return _physical_memory()

    def add_product(self, out: Array, a: Array, b: Array) -> Array:
        if out.ndim == 2 and a.dtype == out.dtype:
            return out.addmm_(a.mT, b)
        return out.add_(a.mT @ b)

    def add_gram(self, out: Array, a: Array) -> Array:
        # Panels of columns, from the diagonal down: (1 + 1/panels)/2 of the full product.
        size = out.shape[0]
        step = max(512, -(-size // 8))
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

    def eigh(self, symmetric: Array) -> tuple[Array, Array]:
        values, vectors = self._torch.linalg.eigh(symmetric, UPLO="L")
        return values, vectors

    def eigvalsh(self, symmetric: Array) -> Array:
        return self._torch.linalg.eigvalsh(symmetric, UPLO="L")

    def normal(self, entropy: int, rows: int, width: int) -> Array | None:
        generator = self._torch.Generator(self.device).manual_seed(entropy)
        return self._torch.randn(
            (rows, width), generator=generator, device=self.device, dtype=self.dtype
        )


_DEVICES = (
    '"cpu" (NumPy, the default), "torch" (PyTorch on the CPU), "cuda" or "cuda:0" (PyTorch on a '
    'GPU), "cupy", or an array namespace'
)


def resolve(device: object = None, dtype: object = "float64") -> Arrays:
    """The arrays for a device and a precision.

    Parameters
    ----------
    device : str, torch.device, module or None
        ``"cpu"`` or None: NumPy; ``"torch"``: PyTorch on the CPU; ``"cuda"``, ``"cuda:1"``:
        PyTorch on a GPU; ``"cupy"``; or a module that follows the array API.
    dtype : {"float64", "float32"}
        Precision of weights, inputs and features.
    """
    precision = getattr(dtype, "__name__", None) or str(dtype).removeprefix("torch.")
    if precision not in ("float64", "float32"):
        raise InvalidProblem("dtype", dtype, '"float64" or "float32"')
    if device is None or device == "cpu":
        return NumpyArrays(np, None, precision, _threads())
    if isinstance(device, ModuleType):
        return Arrays(device, None, precision)
    name = str(device)
    if name == "cupy":
        return Arrays(_optional("array_api_compat.cupy", "cupy", device), None, precision)
    if name in ("torch", "cpu") or name.partition(":")[0] == "cuda":
        return _torch_arrays("cpu" if name == "torch" else name, device, precision)
    raise InvalidProblem("device", device, _DEVICES)


def _torch_arrays(name: str, device: object, precision: str) -> TorchArrays:
    xp = _optional("array_api_compat.torch", "torch", device)
    import torch

    if name != "cpu":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        index = name.partition(":")[2] or "0"
        if not index.isdigit() or int(index) >= count:
            raise InvalidProblem("device", device, f"a GPU that PyTorch sees: it sees {count}")
    return TorchArrays(xp, torch.device(name), precision, _threads())


def _optional(module: str, package: str, device: object) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise InvalidProblem(
            "device", device, f"another one, or install {package}: it cannot be imported"
        ) from None


def _physical_memory() -> int | None:
    """Bytes that the machine has, None where the system does not say."""
    if not hasattr(os, "sysconf"):
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _threads() -> int:
    """As many threads as the linear algebra may use, never more than the processors."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    pools = [int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(1, min([processors, *pools]))
