"""The equations of the equivalent model as arrays: what the solver sees of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHANNELS", "System"]

#: Relative size of the smallest channel kept; what is lost is its square.
CHANNELS = 1e-7


@dataclass(frozen=True, kw_only=True, eq=False)
class System:
    r"""Coefficients of the equivalent model (theory §5c) for a stack of cells.

    Every array has the cells on its first axis (B of them) except the two of the coordinates.
    T types, K nodes of the r spike coordinates, I generic and J special bulk directions.

    ==========================  ========================  ================================
    symbol                      attribute                 shape
    ==========================  ========================  ================================
    k, its weights              coordinates, weights      (K, r), (K,)
    μ₀ₜ, μ₁ₜ, μ₂ₜ², ξₜ at k     mean, linear,             (B, T, K)
                                residual, norm
    h, h₁, hh at k              target, target_linear,    (B, K)
                                target_square
    πₜ                          probabilities             (B, T)
    ν_ι, sₜ(ι)                  bulk, variances           (B, I), (B, T, I)
    [[ν_bb, ν_bB], [·, ν_BB]]   special                   (B, J, r+1, r+1)
    sₜ at the special nodes     special_variances         (B, T, J)
    ∂μ₀ₜ at k, κₜ, vₜ           length, slope, spread     (B, L, K), (B, L)
    β, Γ, 1/p                   width, ratio,             (B,)
                                inverse_neurons
    λ_s, and 1 in ω = 1/(1+V)   penalty, unit             (B,)
    ==========================  ========================  ================================

    The special directions are those of the r spikes and of the part of the teacher that is
    orthogonal to them; their matrix-valued measure has total mass I. An isotropic bulk is one
    direction with special measure I. The equations are homogeneous in (λ_s, 1): λ → 0 with n < N
    is (1, 0). L is 0, or T for each way
    in which the lengths of neurons vary (theory §5e).
    """

    coordinates: NDArray
    weights: NDArray
    mean: NDArray
    linear: NDArray
    residual: NDArray
    norm: NDArray
    target: NDArray
    target_linear: NDArray
    target_square: NDArray
    probabilities: NDArray
    bulk: NDArray
    variances: NDArray
    special: NDArray
    special_variances: NDArray
    length: NDArray
    slope: NDArray
    spread: NDArray
    width: NDArray
    ratio: NDArray
    inverse_neurons: NDArray
    penalty: NDArray
    unit: NDArray

    @property
    def cells(self) -> int:
        """Number of cells B."""
        return len(self.width)

    @property
    def shape(self) -> tuple[int, ...]:
        """(T, K, r, I, J, L): cells of one shape are solved in one stack."""
        return (
            *self.mean.shape[1:],
            self.coordinates.shape[1],
            self.bulk.shape[1],
            self.special.shape[1],
            self.slope.shape[1],
        )

    def take(self, cells: NDArray) -> System:
        """The system of some of the cells."""
        shared = {"coordinates", "weights"}
        return System(
            **{
                field.name: getattr(self, field.name)
                if field.name in shared
                else getattr(self, field.name)[cells]
                for field in fields(self)
            }
        )

    @classmethod
    def stack(cls, systems: Sequence[System]) -> System:
        """One system from several of one shape and with the same coordinates."""
        first = systems[0]
        shared = {"coordinates", "weights"}
        return cls(
            **{
                field.name: getattr(first, field.name)
                if field.name in shared
                else np.concatenate([getattr(system, field.name) for system in systems])
                for field in fields(cls)
            }
        )

    def channels(self, tolerance: float = CHANNELS) -> tuple[NDArray, NDArray, NDArray]:
        r"""μ₁ₜ(k) = Σ_a U_ta C_a(k) with as few channels a as needed.

        The T × T matrices of theory §5c live on the span of μ₁ₜ(·), which has few dimensions: the
        singular vectors of √(πₜ w_k) μ₁ₜ(k).

        Parameters
        ----------
        tolerance : float
            Singular values below this, relative to the largest, are left out.

        Returns
        -------
        U : ndarray of shape (B, T, R)
        C : ndarray of shape (B, R, K)
        rank : ndarray of shape (B,)
            Channels that a cell needs; a stack with unequal ranks must be split first.
        """
        if self.mean.shape[1] == 1:
            ones = np.ones((self.cells, 1, 1))
            return ones, self.linear, np.ones(self.cells, dtype=int)
        types = np.sqrt(self.probabilities)[:, :, None]
        nodes = np.sqrt(self.weights)
        left, values, _ = np.linalg.svd(types * self.linear * nodes, full_matrices=False)
        scale = values[:, :1]
        rank = np.maximum((values > tolerance * scale).sum(axis=1), 1)
        most = int(rank.max())
        # One memory layout whatever the stack, so that every product has one order of sums.
        left = np.ascontiguousarray(left[:, :, :most])
        right = np.ascontiguousarray(np.swapaxes(left * types, 1, 2))
        return left / types, right @ self.linear, rank
