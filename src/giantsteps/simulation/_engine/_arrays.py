"""Arrays for the simulator: a namespace, a device, a precision, and what the standard lacks.

The numerics of this package are written against the Python array API. Five things are outside it:
symmetric rank-k products, Cholesky solves, products added in place, normal variates drawn on the
device, and the way back to the host. `Arrays` does them with what the standard has; the modules
beside this one do them as NumPy and PyTorch can.

A matrix may have axes before its last two: one matrix for each network of a batch. A *symmetric*
matrix is stored by its lower triangle; what is above the diagonal is not read until
`Arrays.mirror` has filled it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from giantsteps.errors import NotConverged
from giantsteps.simulation._engine._normals import Words, fill_normal

#: An array of whichever namespace is in use.
Array = Any

_PIECE = 2**18  # variates that one thread draws at a time, a multiple of four
_PANEL = 2048  # rows that are cast to float64 at a time
_TOLERANCE = 1e-11  # of a full decomposition, relative to the norm of the matrix


@dataclass(frozen=True)
class Arrays:
    """An array namespace that follows the standard, and the few operations it lacks."""

    xp: Any  # the array namespace
    device: Any = None  # where arrays live, as the namespace names it; None for its default
    #: Of weights, inputs and features. Gram matrices and what is solved with them are float64 sums
    #: of them always.
    precision: str = "float64"
    #: Threads for elementwise work and for drawing; as many as the linear algebra uses.
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
        """Whether elementwise work leaves no temporary of the size of its operand."""
        return False

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU: it needs more rows at a time for full speed."""
        return False

    # Moving and making ------------------------------------------------------------------------

    def asarray(self, host: np.ndarray, *, wide: bool = False) -> Array:
        """A NumPy array on the device, in `dtype`, or in float64 if ``wide``."""
        dtype = self.xp.float64 if wide else self.dtype
        return self.xp.asarray(np.ascontiguousarray(host), dtype=dtype, device=self.device)

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

    def map_rows(
        self, function: Callable[[Array, Array], tuple[Array, Array]], z: Array, y: Array
    ) -> tuple[Array, Array]:
        """``function`` of rows of z (…, rows, width) and y (…, rows), which returns as many of
        each; may overwrite ``z``."""
        return function(z, y)

    def transform(self, function: Callable[[Array], Array], z: Array) -> Array:
        """``function(z)`` elementwise; may overwrite ``z``."""
        return function(z)

    def stream(self, number: int) -> AbstractContextManager[None]:
        """A queue of the device, for work that does not depend on that of other queues."""
        return nullcontext()

    # Linear algebra ---------------------------------------------------------------------------

    def add_product(self, out: Array, a: Array, b: Array) -> Array:
        """``out + aᵀ b``, the product in `dtype`, the sum in float64; may overwrite ``out``."""
        return out + self.wide(self.xp.matrix_transpose(a) @ b)

    def add_gram(self, out: Array, a: Array) -> Array:
        """The symmetric ``out + aᵀ a``, summed in float64; may overwrite ``out``."""
        for _, panel in self._wide_panels(a):
            out = self._add_wide_gram(out, panel)
        return out

    def _add_wide_gram(self, out: Array, a: Array) -> Array:
        """`add_gram` for ``a`` in float64."""
        return self.add_product(out, a, a)

    def transposed_product(self, a: Array, b: Array) -> Array:
        """``aᵀ b``, summed in float64, for a matrix ``b`` in float64."""
        parts = (
            self.xp.matrix_transpose(panel) @ b[..., rows, :]
            for rows, panel in self._wide_panels(a)
        )
        total = next(parts)
        for part in parts:
            total = total + part
        return total

    def _wide_panels(self, a: Array) -> Iterator[tuple[slice, Array]]:
        """Rows of ``a`` in float64: all at once if they are, else a few that are cast."""
        step = a.shape[-2] if a.dtype == self.xp.float64 else _PANEL
        for start in range(0, a.shape[-2], step):
            rows = slice(start, min(start + step, a.shape[-2]))
            yield rows, self.wide(a[..., rows, :])

    def mirror(self, symmetric: Array) -> Array:
        """A symmetric matrix with its upper triangle filled; may overwrite it."""
        lower = self.xp.tril(symmetric, k=-1)
        return self.xp.tril(symmetric) + self.xp.matrix_transpose(lower)

    def solve(self, symmetric: Array, shift: float, rhs: Array) -> tuple[Array, Array]:
        """x with (S + shift·I) x = rhs, by Cholesky, and whether each S + shift·I was positive
        definite: an array of booleans over the axes before the last two.

        Where it was not, x means nothing.
        """
        xp = self.xp
        identity = xp.eye(symmetric.shape[-1], dtype=xp.float64, device=self.device)
        shifted = self.mirror(symmetric) + shift * identity
        # A namespace is free in how it says that Cholesky failed; the sign of the least
        # eigenvalue is not.
        solved = xp.linalg.eigvalsh(shifted)[..., 0] > 0
        usable = xp.where(solved[..., None, None], shifted, identity)
        return xp.linalg.solve(usable, rhs[..., None])[..., 0], solved

    def solve_many(
        self, symmetric: Array, shifts: Sequence[float], rhs: Array
    ) -> list[tuple[Array, Array]]:
        """`solve` for each shift."""
        return [self.solve(symmetric, shift, rhs) for shift in shifts]

    def factors(self, count: int) -> int:
        """Copies of a matrix that `solve_many` holds at once for so many shifts."""
        return 2

    def eigh(self, symmetric: Array) -> tuple[Array, Array]:
        """Eigenvalues, increasing, and eigenvectors of one symmetric matrix in float64.

        Checked on two vectors z: SVz = VΛz and VᵀVz = z.
        """
        xp, size = self.xp, symmetric.shape[0]
        values, vectors = self._eigh(symmetric)
        signs = np.random.Generator(np.random.PCG64(0)).choice([-1.0, 1.0], (size, 2))
        z = self.asarray(signs, wide=True)
        turned = vectors @ z
        missed = self.mirror(symmetric) @ turned - vectors @ (values[:, None] * z)
        lost = xp.matrix_transpose(vectors) @ turned - z
        norm = float(xp.max(xp.abs(values))) or 1.0
        residuals = [float(xp.linalg.vector_norm(part)) for part in (missed / norm, lost)]
        _check(max(residuals) / math.sqrt(2 * size), f"the eigenvectors of a matrix of size {size}")
        return values, vectors

    def _eigh(self, symmetric: Array) -> tuple[Array, Array]:
        values, vectors = self.xp.linalg.eigh(self.mirror(symmetric))
        return values, vectors

    def eigh_small(self, symmetric: Array) -> tuple[Array, Array]:
        """Eigenvalues, increasing, and eigenvectors of small full matrices, which nobody checks:
        for those whose pairs the caller checks, or which are too small to go wrong."""
        values, vectors = self.xp.linalg.eigh(symmetric)
        return values, vectors

    def orthonormal(self, columns: Array) -> Array:
        """An orthonormal basis of what the columns span; of a batch, NaN where they are dependent
        but for rounding."""
        return self.xp.linalg.qr(columns).Q

    def inverse_traces(self, symmetric: Array, shift: float) -> tuple[Array, Array]:
        """tr (S + s)⁻¹ and tr (S + s)⁻² of each matrix of a batch; NaN where S + s is not positive
        definite."""
        xp = self.xp
        values = xp.linalg.eigvalsh(self.mirror(symmetric)) + shift
        inverse = xp.where(values > 0, 1 / values, xp.full_like(values, float("nan")))
        return xp.sum(inverse, axis=-1), xp.sum(inverse**2, axis=-1)

    def eigvalsh(self, symmetric: Array) -> Array:
        """Eigenvalues ℓ of one symmetric matrix in float64, increasing.

        Checked by Σℓ = tr S and Σℓ² = ‖S‖².
        """
        xp, size = self.xp, symmetric.shape[0]
        diagonal = xp.linalg.diagonal(symmetric)
        trace, own = float(xp.sum(diagonal)), float(xp.sum(diagonal**2))
        square = own + 2 * float(xp.sum(xp.tril(symmetric, k=-1) ** 2))
        values = self._eigvalsh(symmetric)
        first = abs(float(xp.sum(values)) - trace) / (math.sqrt(square * size) or 1.0)
        second = abs(float(xp.sum(values**2)) - square) / (square or 1.0)
        _check(first + second, f"the {size} eigenvalues of a matrix")
        return values

    def _eigvalsh(self, symmetric: Array) -> Array:
        return self.xp.linalg.eigvalsh(self.mirror(symmetric))

    # Random numbers ---------------------------------------------------------------------------

    def normal(self, keys: Words, stream: tuple[int, int], start: int, count: int) -> Array:
        """N(0, 1) of consecutive words of a stream (see `normals`), for each of some keys.

        * ``keys``: of the generators.
        * ``stream``: which numbers these are: role and step.
        * ``start``, ``count``: the first word, and how many.

        Returns
        -------
        array (networks, count)
            In `dtype`: the same numbers, rounded, in every precision and on every device.
        """
        return self.asarray(self._normal_on_host(keys, stream, start, count))

    def _normal_on_host(
        self, keys: Words, stream: tuple[int, int], start: int, count: int
    ) -> np.ndarray:
        out = np.empty((len(keys), count), dtype=self.precision)

        def draw(piece: tuple[int, int, int]) -> None:
            network, begin, end = piece
            part = out[network, begin:end]
            drawn = part if part.dtype == np.float64 else np.empty(part.size)
            fill_normal(drawn, keys[network], (*stream, 0), start + begin)
            if drawn is not part:
                part[...] = drawn

        pieces = [
            (network, begin, min(begin + _PIECE, count))
            for network in range(len(keys))
            for begin in range(0, count, _PIECE)
        ]
        if self.threads == 1 or len(pieces) == 1:
            for piece in pieces:
                draw(piece)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(draw, pieces))
        return out


def _check(missed: float, what: str) -> None:
    if not missed <= _TOLERANCE:  # nor NaN
        raise NotConverged(what, missed, 1, 'device="cpu"')
