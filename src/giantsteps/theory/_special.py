"""Resolvents along the directions that are not generic: the spikes, the teacher, the lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from giantsteps.theory._resolvent import Resolvent

__all__ = ["SpecialResolvent", "special_resolvent", "total", "transposed"]

#: What stands for lengths that do not vary, so that their covariance has an inverse.
_STIFF = 1e-14


@dataclass(frozen=True, eq=False)
class SpecialResolvent:
    r"""𝒴_bb, 𝒴_bB and 𝒴_BB of theory §5c, in channels; lengths of neurons join the spikes.

    The readout sees the lengths of type t through κₜ⟨qₜ, w₀b̂⟩ + …, with the covariances (P =
    diag(βπτ), κ slope and v spread of the lengths, theory §5e)

    .. math:: \mathrm{Cov}(Uᵀq_x, l) = Σ ν_{xb} (I - M_ι ℓ_ι \hat C) Uᵀ P κ, \qquad
              \mathrm{Cov}(l, l) = P (κ² + v) - κ P U \bigl(Σ ν_{bb} ℓ_ι \hat C\bigr) Uᵀ P κ .
    """

    damping: NDArray  # ℓ_ι of shape (B, J, R, R)
    inner: NDArray  # UᵀY_ιU of shape (B, J, R, R)
    lengths: NDArray  # UᵀP of the types, once for each way their lengths vary, (B, R, L)
    lifted: NDArray  # I ⊗ Ĉ of shape (B, rR, rR)
    spikes: NDArray  # 𝒴_bb of shape (B, rR + L, rR + L)
    mixed: NDArray  # 𝒴_bB of shape (B, rR + L, R)
    teacher: NDArray  # 𝒴_BB of shape (B, R, R)


def special_resolvent(point: Resolvent) -> SpecialResolvent:
    """𝒴_bb, 𝒴_bB and 𝒴_BB at a solution of the nonlinear part."""
    equations, system = point.equations, point.equations.system
    count, rank, own = system.coordinates.shape[1], equations.rank, system.slope.shape[1]
    damping, inner = point.directions(system.special_variances)
    size, c_hat = count * rank, point.c_hat[:, None]
    copies = own // system.probabilities.shape[1]
    scale = np.tile(system.width[:, None] * system.probabilities * point.tau, copies)
    lengths = np.tile(transposed(equations.mixing), copies) * scale[:, None]
    tilted = lengths * system.slope[:, None]
    felt = tilted[:, None] - inner @ (c_hat @ tilted[:, None])  # (B, J, R, L)
    felt = felt.reshape(*inner.shape[:2], rank * own)
    first = np.ascontiguousarray(transposed(system.special[..., 0]))
    cross = (first @ felt).reshape(system.cells, size + rank, own)
    within = total(system.special[:, :, 0, 0, None, None] * (damping @ c_hat))
    within = -transposed(tilted) @ (within @ tilted)
    vary = np.maximum(system.slope**2 + system.spread, _STIFF)
    within += (scale * vary)[:, None] * np.eye(own)
    generic = _kronecker_sum(system.special, inner)
    joint = np.block([[generic, cross], [transposed(cross), within]])
    lifted = _lift(point.c_hat, count)
    opened = np.linalg.solve(np.eye(size) - generic[:, :size, :size] @ lifted, joint[:, :size])
    full = joint + joint[:, :, :size] @ (lifted @ opened)
    full[:, :size] = opened
    end = np.arange(size, size + rank)
    rest = np.delete(np.arange(size + rank + own), end)

    def block(rows: NDArray, columns: NDArray) -> NDArray:
        return np.ascontiguousarray(full[:, rows[:, None], columns])

    return SpecialResolvent(
        damping=damping,
        inner=inner,
        lengths=lengths,
        lifted=lifted,
        spikes=block(rest, rest),
        mixed=block(rest, end),
        teacher=block(end, end),
    )


def _kronecker_sum(special: NDArray, inner: NDArray) -> NDArray:
    """Σ_ι special(ι) ⊗ UᵀY_ιU, of shape (B, (r+1)R, (r+1)R)."""
    cells, directions, count, _ = special.shape
    rank = inner.shape[-1]
    left = np.ascontiguousarray(transposed(special.reshape(cells, directions, count * count)))
    product = left @ inner.reshape(cells, directions, rank * rank)
    product = product.reshape(cells, count, count, rank, rank)
    return np.swapaxes(product, 2, 3).reshape(cells, count * rank, count * rank)


def _lift(matrix: NDArray, count: int) -> NDArray:
    """I ⊗ matrix."""
    cells, rank, _ = matrix.shape
    blocks = np.eye(count)[None, :, None, :, None] * matrix[:, None, :, None, :]
    return blocks.reshape(cells, count * rank, count * rank)


def transposed(matrix: NDArray) -> NDArray:
    """Of stacked matrices."""
    return np.swapaxes(matrix, -1, -2)


def total(array: NDArray) -> NDArray:
    """Sum over the directions, axis 1, in an order that does not depend on the other cells."""
    return np.asarray(np.ascontiguousarray(np.moveaxis(array, 1, -1)).sum(axis=-1))
