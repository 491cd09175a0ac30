"""Spectra through Gram matrices: all values, or only the largest with their vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from giantsteps.errors import NotConverged
from giantsteps.simulation._engine._arrays import Array, Arrays

_SMALL = 400  # below this size a full decomposition is as fast, of one matrix
_TOLERANCE = 1e-10  # residual of an eigenpair relative to its eigenvalue
_DEPTH = 12  # blocks of a Krylov space before it is restarted
_RESTARTS = 60


def singular_values(arrays: Arrays, matrix: Array) -> np.ndarray:
    """All min(rows, columns) singular values, decreasing, through the smaller Gram matrix.

    Values below 1e-8 of the largest are not resolved.
    """
    wide = arrays.wide(matrix)
    if wide.shape[0] < wide.shape[1]:
        wide = arrays.xp.matrix_transpose(wide)
    size = wide.shape[1]
    squares = arrays.eigvalsh(arrays.add_gram(arrays.zeros(size, size), wide))
    return np.sqrt(np.maximum(arrays.to_host(squares)[::-1], 0.0))


def largest_of(arrays: Arrays, matrix: Array, top: int) -> tuple[np.ndarray, Array, Array]:
    """The largest singular values (…, top) of matrices, with left and right vectors as columns.

    NaN where `largest` did not converge for a matrix of a batch.
    """
    xp = arrays.xp
    wide = arrays.wide(matrix)
    tall = wide.shape[-2] >= wide.shape[-1]
    given = wide if tall else xp.matrix_transpose(wide)
    squares, right = largest(
        arrays,
        lambda v: xp.matrix_transpose(given) @ (given @ v),
        given.shape[-1],
        top,
        given.shape[:-2],
    )
    values = np.sqrt(np.maximum(squares, 0.0))
    left = given @ right
    left = left / xp.linalg.vector_norm(left, axis=-2, keepdims=True)
    return (values, left, right) if tall else (values, right, left)


def largest(
    arrays: Arrays,
    multiply: Callable[[Array], Array],
    size: int,
    top: int,
    lead: tuple[int, ...] = (),
) -> tuple[np.ndarray, Array]:
    r"""The largest eigenvalues, decreasing, and eigenvectors of a positive semidefinite matrix.

    Block Krylov spaces with Rayleigh–Ritz and thick restarts, so that all work is products of
    the matrix with blocks of vectors. Every returned pair satisfies
    ‖Sv − ℓv‖ ≤ 1e-10 ℓ + 1e-14 ℓ₁ √size.

    * ``multiply``: (…, size, k) ↦ S @ (…, size, k).
    * ``size``, ``top``: of the matrix, and how many pairs.
    * ``lead``: the axis in front, for a batch of matrices: the values of a matrix that misses the
      tolerance are NaN.

    Returns
    -------
    values : ndarray (…, top)
    vectors : array (…, size, top)

    Raises
    ------
    NotConverged
        If a pair misses the tolerance, of one matrix.
    """
    xp = arrays.xp
    top = min(top, size)
    width = top + 4
    if size <= max(0 if lead else _SMALL, 20 * width):
        return _all(arrays, multiply, size, top, lead)
    # Any fixed start will do: it only has to be the same in every run.
    start = np.random.Generator(np.random.PCG64(0)).standard_normal((size, width))
    first = xp.linalg.qr(arrays.asarray(start, wide=True)).Q
    basis = xp.broadcast_to(first, (*lead, size, width)) if lead else first
    image = multiply(basis)
    sizes, missed = np.empty((*lead, top)), np.empty(lead)
    for _ in range(_RESTARTS):
        block, block_image = basis, image
        for _ in range(_DEPTH):
            fresh = block_image[..., -width:]
            for _ in range(2):
                fresh = fresh - block @ (xp.matrix_transpose(block) @ fresh)
                fresh = arrays.orthonormal(fresh)
            block = xp.concat([block, fresh], axis=-1)
            block_image = xp.concat([block_image, multiply(fresh)], axis=-1)
        small = xp.matrix_transpose(block) @ block_image
        values, rotation = arrays.eigh_small((small + xp.matrix_transpose(small)) / 2)
        chosen = xp.flip(rotation, axis=-1)[..., : 2 * width]
        basis, image = block @ chosen, block_image @ chosen
        ritz = xp.flip(values, axis=-1)[..., : 2 * width]
        norms = xp.linalg.vector_norm(image - basis * ritz[..., None, :], axis=-2)
        residuals = arrays.to_host(norms)[..., :top]
        sizes = arrays.to_host(ritz)[..., :top]
        allowed = _TOLERANCE * np.abs(sizes) + 1e-14 * np.sqrt(size) * np.abs(sizes[..., :1])
        missed = np.max(residuals / np.maximum(allowed, np.finfo(float).tiny), axis=-1)
        if not np.any(missed > 1):  # NaN stays NaN
            break
    if not lead and not missed <= 1:
        raise NotConverged(
            f"the {top} largest of {size} eigenvalues",
            float(missed) * _TOLERANCE,
            _RESTARTS,
            "fewer (top=), or the full spectrum",
        )
    return np.where((missed <= 1)[..., None], sizes, np.nan), basis[..., :top]


def _all(
    arrays: Arrays,
    multiply: Callable[[Array], Array],
    size: int,
    top: int,
    lead: tuple[int, ...],
) -> tuple[np.ndarray, Array]:
    """The same from a full decomposition of each matrix."""
    xp = arrays.xp
    identity = xp.eye(size, dtype=xp.float64, device=arrays.device)
    if not lead:
        values, vectors = arrays.eigh(multiply(identity))
        return arrays.to_host(xp.flip(values))[:top].copy(), xp.flip(vectors, axis=1)[:, :top]
    whole = multiply(xp.broadcast_to(identity, (*lead, size, size)))
    values, vectors = arrays.eigh_small((whole + xp.matrix_transpose(whole)) / 2)
    host = arrays.to_host(xp.flip(values, axis=-1))[..., :top].copy()
    return host, xp.flip(vectors, axis=-1)[..., :top]
