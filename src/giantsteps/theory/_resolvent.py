"""The equations of the equivalent model at a point: the map, its derivative, what follows."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from giantsteps.theory._system import CHANNELS, System

__all__ = ["Equations", "Resolvent", "solve_stacked"]

_ANY = 0.01


class Equations:
    r"""The map of theory §5c on (V1, τ), its derivative and the quantities made from it.

    .. math::
        V(k) = Σ μ_{1t}μ_{1s} V1_{ts} + Σ μ_{2t}² π_t τ_t, \quad ω = 1/(1+V), \quad
        \hat V1 = ΓE[ω μ_1μ_1ᵀ], \quad \hat V2 = ΓE[ω μ_2²],
    .. math::
        Y_ι = (\hat V1 + D_ι^{-1})^{-1},\ D_ι = \mathrm{diag}(βπτs(ι)), \quad
        V1 = β^{-1} Σ ν_ι Y_ι, \quad
        τ_t = \big(λ_s + \hat V2_t + Σ ν_ι s_t (\hat V1 - \hat V1 Y_ι \hat V1)_{tt}\big)^{-1}.

    In the channels μ₁ₜ = Σ U_ta C_a(k) every T × T matrix is R × R: with Ĉ = ΓE[ω C Cᵀ] and
    M_ι = Uᵀ D_ι U,

    .. math:: ℓ_ι = (I + \hat C M_ι)^{-1}, \quad UᵀY_ιU = M_ι ℓ_ι, \quad
              \hat V1 - \hat V1 Y_ι \hat V1 = U ℓ_ι \hat C Uᵀ, \quad (I - \hat V1 Y_ι) U = U ℓ_ι.

    Symmetric R × R matrices are kept packed (entries a ≤ b), R(R+1)/2 numbers; with the T
    numbers τ they are the unknowns of Newton's method.

    Parameters
    ----------
    system : System
        Cells of one shape and one rank R.
    tolerance : float
        Of the channels.
    """

    def __init__(self, system: System, tolerance: float = CHANNELS) -> None:
        self.system = system
        self.mixing, self.channels, rank = system.channels(tolerance)
        if np.any(rank != rank[0]):
            raise ValueError("cells of different rank in one stack")
        self.rank = int(rank[0])
        rows, columns = np.triu_indices(self.rank)
        self.rows, self.columns = rows, columns
        self.unpacking = np.empty((self.rank, self.rank), dtype=int)
        self.unpacking[rows, columns] = self.unpacking[columns, rows] = np.arange(len(rows))
        #: Off-diagonal entries count twice in Σ_ab.
        self.multiplicity = np.where(rows == columns, 1.0, 2.0)
        types = system.mean.shape[1]
        self.counted = np.concatenate([self.multiplicity, np.ones(types)])
        self.pairs = self.channels.take(rows, 1) * self.channels.take(columns, 1)  # (B, R2, K)
        self.mixing_pairs = self.mixing.take(rows, 2) * self.mixing.take(columns, 2)  # (B, T, R2)
        #: F(k): V = Σ counted · (V1 packed, πτ) · F.
        self.features = np.concatenate([self.pairs, system.residual], axis=1)  # (B, P, K)

    def pack(self, matrix: NDArray) -> NDArray:
        """Entries a ≤ b of symmetric matrices (…, R, R), C-contiguous as all that is stacked."""
        flat = matrix.reshape(*matrix.shape[:-2], -1)
        return flat.take(self.rows * self.rank + self.columns, axis=-1)

    def unpack(self, packed: NDArray) -> NDArray:
        """Symmetric matrices (…, R, R) from their packed entries."""
        return packed.take(self.unpacking, axis=-1)

    def inverse(self, matrix: NDArray) -> NDArray:
        """Inverse of stacked R × R matrices."""
        return 1.0 / matrix if self.rank == 1 else np.linalg.inv(matrix)

    def start(self, penalty: NDArray) -> tuple[NDArray, NDArray]:
        """(V1, τ) without data: above the solution in every order that matters.

        At λ_s = 0 (n > N) any point will do.
        """
        system = self.system
        start = np.where(penalty == 0, _ANY, penalty)[:, None]
        tau = np.broadcast_to(1.0 / start, system.probabilities.shape)
        scaled = system.probabilities * tau
        per_direction = (scaled[:, :, None] * system.variances) @ system.bulk[:, :, None]
        return _row(per_direction[:, :, 0]) @ self.mixing_pairs, tau

    def at(self, v1: NDArray, tau: NDArray, penalty: NDArray) -> Resolvent:
        """Evaluate the map at V1 packed (B, 1, R2) and τ (B, T)."""
        return Resolvent(self, v1, tau, penalty)

    def take(self, cells: NDArray) -> Equations:
        """The equations of some of the cells."""
        taken = copy(self)
        taken.system = self.system.take(cells)
        for name in ("mixing", "channels", "pairs", "mixing_pairs", "features"):
            setattr(taken, name, getattr(self, name)[cells])
        return taken


@dataclass(frozen=True, eq=False)
class Resolvent:
    """A point (V1, τ) and everything that theory §5c makes of it.

    Attributes
    ----------
    v1 : ndarray of shape (B, 1, R2)
        Uᵀ V1 U, packed.
    tau : ndarray of shape (B, T)
        τₜ.
    penalty : ndarray of shape (B,)
        λ_s, real or complex.
    """

    equations: Equations
    v1: NDArray
    tau: NDArray
    penalty: NDArray

    def move(self, v1: NDArray, tau: NDArray) -> Resolvent:
        """The same equations at another point."""
        return Resolvent(self.equations, v1, tau, self.penalty)

    def take(self, cells: NDArray) -> Resolvent:
        """The point of some of the cells."""
        return Resolvent(
            self.equations.take(cells), self.v1[cells], self.tau[cells], self.penalty[cells]
        )

    @cached_property
    def unknowns(self) -> NDArray:
        """(V1 packed, πτ) of shape (B, P)."""
        scaled = self.equations.system.probabilities * self.tau
        return np.concatenate([self.v1[:, 0], scaled], axis=1)

    @cached_property
    def spread(self) -> NDArray:
        """V(k) of shape (B, K)."""
        equations = self.equations
        return (_row(self.unknowns * equations.counted) @ equations.features)[:, 0]

    @cached_property
    def omega(self) -> NDArray:
        """ω(k) = 1/(1+V) of shape (B, K)."""
        return 1.0 / (self.equations.system.unit[:, None] + self.spread)

    @cached_property
    def measure(self) -> NDArray:
        """Γ w_k ω(k): averages over the samples, of shape (B, K)."""
        system = self.equations.system
        return system.ratio[:, None] * (system.weights * self.omega)

    @cached_property
    def _conjugates(self) -> NDArray:
        return (self.equations.features @ _column(self.measure))[:, :, 0]

    @cached_property
    def c_hat(self) -> NDArray:
        """Ĉ = ΓE[ω C Cᵀ] of shape (B, R, R)."""
        packed = len(self.equations.multiplicity)
        return self.equations.unpack(self._conjugates[:, :packed])

    @cached_property
    def v2_hat(self) -> NDArray:
        """V̂2ₜ of shape (B, T)."""
        return self._conjugates[:, len(self.equations.multiplicity) :]

    def directions(self, variances: NDArray) -> tuple[NDArray, NDArray]:
        """(ℓ_ι, UᵀY_ιU) of shape (B, I, R, R) for directions with variances (B, T, I)."""
        equations, system = self.equations, self.equations.system
        scale = system.width[:, None] * system.probabilities * self.tau
        scaled = np.ascontiguousarray(np.swapaxes(scale[:, :, None] * variances, 1, 2))
        strength = equations.unpack(scaled @ equations.mixing_pairs)
        damping = equations.inverse(np.eye(equations.rank) + self.c_hat[:, None] @ strength)
        return damping, strength @ damping

    @cached_property
    def generic(self) -> tuple[NDArray, NDArray]:
        """(ℓ_ι, UᵀY_ιU) along the generic directions."""
        return self.directions(self.equations.system.variances)

    @cached_property
    def weighted(self) -> NDArray:
        """ν_ι sₜ(ι) of shape (B, I, T)."""
        system = self.equations.system
        return np.ascontiguousarray(np.swapaxes(system.bulk[:, None, :] * system.variances, 1, 2))

    @cached_property
    def image(self) -> tuple[NDArray, NDArray]:
        """What the equations make of (V1, τ)."""
        equations, system = self.equations, self.equations.system
        damping, inner = self.generic
        total = _row(system.bulk) @ equations.pack(inner)
        gain = equations.pack(damping @ self.c_hat[:, None]) * equations.multiplicity
        felt = gain @ np.swapaxes(equations.mixing_pairs, 1, 2)  # (B, I, T): (V̂1 − V̂1YV̂1)ₜₜ
        force = np.swapaxes(self.weighted, 1, 2) * np.swapaxes(felt, 1, 2)
        tau = 1.0 / (self.penalty[:, None] + self.v2_hat + force.sum(axis=-1))
        return total / system.width[:, None, None], tau

    @cached_property
    def gap(self) -> NDArray:
        """Relative distance of the point from its image, one number a cell."""
        v1, tau = self.image
        scale = np.abs(self.v1[:, 0]).max(axis=1)
        first = np.abs(v1 - self.v1)[:, 0].max(axis=1) / scale
        second = np.abs(tau / self.tau - 1.0).max(axis=1)
        return np.maximum(first, second)

    @cached_property
    def response(self) -> tuple[NDArray, NDArray, NDArray]:
        r"""Derivatives of the equations, in packed form.

        .. math::
            δV1 = -β^{-1} K δ\hat C + P^T π δτ, \qquad
            Z δτ = -(δ\hat V2 + P\,δ\hat C), \qquad Z = τ'^{-2} - A,
        .. math::
            K = Σ ν UᵀY_ιU ⊗ UᵀY_ιU,\quad P_t = Σ ν s_t (Uℓ_ι)_t (Uℓ_ι)_tᵀ,\quad
            A_{ts} = Σ ν s_t (Uℓ_ι\hat CUᵀ)²_{ts} βπ_s s_s.

        τ' is the image of τ: the map is concave in τ, and Newton's method from above stays above.

        Returns
        -------
        K : (B, R2, R2) acting on packed matrices; P : (B, T, R2), to be used with the
        multiplicity when it acts on a packed matrix; Z : (B, T, T).
        """
        equations, system = self.equations, self.equations.system
        cells, directions, types = self.weighted.shape
        damping, inner = self.generic
        packed = equations.pack(inner)  # (B, I, R2)
        outer = np.swapaxes(packed, 1, 2) @ (system.bulk[:, :, None] * packed)  # [ac, bd]
        index = equations.unpacking
        a, b = equations.rows[:, None], equations.columns[:, None]
        c, d = equations.rows, equations.columns
        size = len(c)
        outer = outer.reshape(cells, size * size)
        k = outer.take(index[a, c] * size + index[b, d], 1)
        k = 0.5 * (k + outer.take(index[a, d] * size + index[b, c], 1)) * equations.multiplicity
        seen = equations.mixing[:, None] @ damping  # (B, I, T, R)
        by_type = np.ascontiguousarray(np.swapaxes(seen, 1, 2))  # (B, T, I, R)
        weights = np.swapaxes(self.weighted, 1, 2)[..., None]
        p = equations.pack(np.swapaxes(by_type, 2, 3) @ (weights * by_type))
        felt = (seen @ self.c_hat[:, None]) @ np.swapaxes(equations.mixing, 1, 2)[:, None]
        felt = felt * felt * self.weighted[..., None]
        felt = felt * np.swapaxes(system.variances, 1, 2)[:, :, None, :]
        ones = np.ones((cells, 1, directions))
        total = (ones @ felt.reshape(cells, directions, -1)).reshape(cells, types, types)
        total = total * (system.width[:, None] * system.probabilities)[:, None, :]
        tau = self.image[1]
        z = np.eye(types) / (tau * tau)[:, None, :] - total
        return k, p, z

    @cached_property
    def curvature(self) -> NDArray:
        """ΓE[ω² F Fᵀ] of shape (B, P, P): minus the derivative of (Ĉ, V̂2) in (V1, πτ)."""
        equations = self.equations
        squared = self.measure * self.omega
        features = np.swapaxes(equations.features, 1, 2)
        curvature = (equations.features * squared.real[:, None]) @ features
        if np.iscomplexobj(squared):
            curvature = curvature + 1j * ((equations.features * squared.imag[:, None]) @ features)
        return curvature * equations.counted

    @cached_property
    def jacobian(self) -> tuple[NDArray, tuple[NDArray, NDArray]]:
        r"""The linear system of Newton's method and of the error (theory §5c, (iii)).

        Both look for (X, y), a symmetric R × R matrix and T numbers, with

        .. math:: X = β^{-1} K \hat Q + Pᵀ y + …, \qquad Z y/π = \hat q + P \hat Q + …

        where (Q̂, q̂) = ΓE[ω² F Fᵀ] (X, y) + …: for Newton X = δV1 and y = πδτ, for the error
        X = Q and y = q2.

        Returns
        -------
        matrix : ndarray of shape (B, P, P)
            Acts on (X packed, y).
        sources : pair of ndarrays of shapes (B, R2, R2), (B, T, R2)
            β⁻¹K and P, acting on Q̂ packed.
        """
        equations, system = self.equations, self.equations.system
        k, p, z = self.response
        packed, types = k.shape[1], z.shape[1]
        size = packed + types
        k, p = k / system.width[:, None, None], p * equations.multiplicity
        curvature = self.curvature
        matrix = np.zeros((system.cells, size, size), dtype=z.dtype)
        matrix[:, :packed, :packed] = np.eye(packed)
        matrix[:, :packed, packed:] = -np.swapaxes(self.response[1], 1, 2)
        matrix[:, packed:, packed:] = z / system.probabilities[:, None, :]
        matrix[:, :packed] -= k @ curvature[:, :packed]
        matrix[:, packed:] -= p @ curvature[:, :packed] + curvature[:, packed:]
        return matrix, (k, p)

    def newton(self) -> tuple[NDArray, NDArray]:
        """(V1, τ) that solve the linearised equations."""
        v1, tau = self.image
        missing = np.concatenate([(v1 - self.v1)[:, 0], (tau - self.tau) / (tau * tau)], axis=1)
        step = solve_stacked(self.jacobian[0], missing)
        packed = self.v1.shape[2]
        tau = self.tau + step[:, packed:] / self.equations.system.probabilities
        return self.v1 + step[:, None, :packed], tau


def solve_stacked(matrix: NDArray, vector: NDArray) -> NDArray:
    """Solve stacked linear systems (B, P, P) x = (B, P)."""
    return np.linalg.solve(matrix, vector[..., None])[..., 0]


def _row(vector: NDArray) -> NDArray:
    return vector[:, None, :]


def _column(vector: NDArray) -> NDArray:
    return vector[:, :, None]
