"""The nonlinear equations at a point: the map, its derivative and what follows (theory §5c)."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from giantsteps.theory.solver.chain import dyson_at
from giantsteps.theory.solver.dyson import Directions, Dyson
from giantsteps.theory.solver.once import once
from giantsteps.theory.solver.packing import (
    Packing,
    identity,
    inverse,
    packing,
    product,
    raised,
    solve,
    symmetric,
    transposed,
)
from giantsteps.theory.solver.system import System
from giantsteps.types import Array

_ANY = 0.01
#: Rounds for a first guess.
_ROUNDS = 3
#: Below this size of τ(Y) its second moment is computed without cancellation.
_WEAK = 1e-3
#: Of unknowns that are on the border of where they may be.
_ROUNDING = 1e-12
#: Share of V by the linear part that counts as none.
_NO_PART = 1e-14


class Equations:
    r"""The map of theory §5c on (V₁, τ, 𝔤), its derivative and the quantities made from it.

    .. math::
        V(k) = Σ μ_{1t}μ_{1s} V_{1,ts} + Σ μ_{2t}² π_t τ_t, \quad ω = 1/(1+V), \quad
        \hat C = ΓE[ω C Cᵀ], \quad \hat V_{2,t} = ΓE[ω μ_{2t}²],
    .. math::
        𝒢 = \bigl(\hat C^{-1} + Σ_t βπ_tτ_t\, u_tu_tᵀ ⊗ Σ_t\bigr)^{-1}, \quad
        V_1 = β^{-1}\bigl(\hat C^{-1} - \hat C^{-1}τ(𝒢)\hat C^{-1}\bigr), \quad
        τ_t = \bigl(λ_s + \hat V_{2,t} + u_tᵀτ(Σ_t𝒢)u_t\bigr)^{-1}

    in the channels μ₁ₜ = Σ U_ta C_a(k). Symmetric R × R matrices are kept packed, R(R+1)/2 numbers;
    with the T numbers τ they are the unknowns of Newton's method, which takes 𝔤 along.

    Parameters
    ----------
    system : System
        Cells of one shape and one rank R.
    """

    def __init__(self, system: System) -> None:
        self.system = system
        self.mixing, self.channels = system.channels()
        self.rank = self.mixing.shape[2]
        self.packing = packing(self.rank)
        rows, columns = self.packing.rows, self.packing.columns
        self.counted = np.concatenate([self.packing.count, np.ones(system.probabilities.shape[1])])
        pairs = self.channels.take(rows, 1) * self.channels.take(columns, 1)  # (B, P, K)
        #: F(k): V = Σ counted · (V₁ packed, πτ) · F.
        self.features = np.concatenate([pairs, system.residual], axis=1)
        self.mixing_pairs = self.mixing.take(rows, 2) * self.mixing.take(columns, 2)  # (B, T, P)

    def start(self, penalty: Array) -> State:
        """Where to begin: at a `guess`; at complex λ_s without data."""
        known = self.without_data if np.iscomplexobj(penalty) else self.guess
        return self.at(*known(penalty), penalty)

    def guess(self, penalty: Array) -> tuple[Array, Array]:
        """What (V₁, τ) are without data, τ = 1/λ_s, times a number a of its own,
        a(1 + ΓE[V]E[1/(1 + aV)]) = 1: the solution if all features were independent.

        At λ_s = 0 (n > N) any point will do.
        """
        (v1, tau), system = self.without_data(penalty), self.system
        unknowns = np.concatenate([v1, system.probabilities * tau], axis=1) * self.counted
        variance = product(unknowns[:, None], self.features)[:, 0]
        share, gain = np.ones((len(tau), 1)), (system.weights * variance).sum(axis=1)[:, None]
        gain = system.ratio[:, None] * gain
        for _ in range(_ROUNDS):
            omega = 1.0 / (1.0 + share * variance)
            mean = system.weights * omega
            slope = (mean * omega).sum(axis=1)[:, None]  # of a E[ω]
            step = share * (1.0 + gain * mean.sum(axis=1)[:, None]) - 1.0
            share = np.maximum(share - step / (1.0 + gain * slope), 0.1 * share)
        return share * v1, share * tau

    def above(self, penalty: Array) -> State:
        """The point without data, τ = 1/λ_s: above the solution in every order that matters."""
        return self.at(*self.without_data(penalty), penalty)

    def without_data(self, penalty: Array) -> tuple[Array, Array]:
        """The same (V₁, τ)."""
        system = self.system
        floor = np.where(penalty == 0, _ANY, penalty)[:, None]
        tau = np.broadcast_to(1.0 / floor, system.probabilities.shape)
        total = (system.probabilities * tau * system.bulk.totals)[:, None]
        return product(total, self.mixing_pairs)[:, 0], tau

    @once
    def loads(self) -> Array:
        """m_tc u_tu_tᵀ packed: what a type's p_t adds to the parameters, shape (B, T, mP)."""
        loads = self.system.bulk.coefficients[..., None] * self.mixing_pairs[:, :, None]
        return loads.reshape(*loads.shape[:2], -1)

    def at(self, v1: Array, tau: Array, penalty: Array, active: Array | None = None) -> State:
        """The map at V₁ packed (B, P), τ (B, T) and 𝔤 (B, Q, Q); 𝔤 is guessed if not given."""
        if active is not None:
            return State(self, v1, tau, active, penalty)
        bare = State(self, v1, tau, np.zeros((len(v1), 0, 0)), penalty)
        return State(self, v1, tau, bare.dyson.alone(), penalty)

    def take(self, cells: Array) -> Equations:
        """The equations of some of the cells."""
        taken = copy(self)
        taken.__dict__.pop("loads", None)
        taken.system = self.system.take(cells)
        for name in ("mixing", "channels", "mixing_pairs", "features"):
            setattr(taken, name, getattr(self, name)[cells])
        return taken


@dataclass(frozen=True, eq=False)
class State:
    """A point (V₁, τ, 𝔤) and everything that theory §5c makes of it."""

    equations: Equations
    v1: Array  # (B, P): UᵀV₁U, packed
    tau: Array  # (B, T)
    active: Array  # (B, Q, Q): 𝔤 of the Dyson equation on its active blocks
    penalty: Array  # (B,): λ_s, real or complex

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """(V₁, τ, 𝔤)."""
        return self.v1, self.tau, self.active

    def move(self, v1: Array, tau: Array, active: Array) -> State:
        """The same equations at another point."""
        return State(self.equations, v1, tau, active, self.penalty)

    def take(self, cells: Array) -> State:
        """The point of some of the cells."""
        parts = (part[cells] for part in (*self.parts, self.penalty))
        return State(self.equations.take(cells), *parts)

    @once
    def unknowns(self) -> Array:
        """(V₁ packed, πτ) of shape (B, P + T)."""
        return np.concatenate([self.v1, self.equations.system.probabilities * self.tau], axis=1)

    @once
    def variance(self) -> Array:
        """V(k) of shape (B, K)."""
        equations = self.equations
        return product((self.unknowns * equations.counted)[:, None], equations.features)[:, 0]

    @once
    def omega(self) -> Array:
        """ω(k) = 1/(1+V) of shape (B, K)."""
        return np.asarray(1.0 / (self.equations.system.unit[:, None] + self.variance))

    @once
    def measure(self) -> Array:
        """Γ w_k ω(k): averages over the samples, of shape (B, K)."""
        system = self.equations.system
        return np.asarray(system.ratio[:, None] * (system.weights * self.omega))

    @once
    def _conjugates(self) -> Array:
        return product(self.equations.features, self.measure[:, :, None])[:, :, 0]

    @once
    def c_hat(self) -> Array:
        """Ĉ = ΓE[ω C Cᵀ] of shape (B, R, R)."""
        packed = self.equations.packing
        return packed.unpack(self._conjugates[:, : len(packed)])

    @once
    def v2_hat(self) -> Array:
        """V̂₂ₜ of shape (B, T)."""
        return self._conjugates[:, len(self.equations.packing) :]

    @once
    def x(self) -> Array:
        """X = Ĉ⁻¹."""
        return symmetric(inverse(self.c_hat))

    @once
    def strength(self) -> Array:
        """p_t = βπ_tτ_t of shape (B, T)."""
        system = self.equations.system
        return np.asarray(system.width[:, None] * system.probabilities * self.tau)

    @once
    def dyson(self) -> Dyson:
        """The Dyson equation of the bulk at this point."""
        equations, bulk = self.equations, self.equations.system.bulk
        weighted = transposed(bulk.coefficients * self.strength[:, :, None])
        packed = product(weighted, equations.mixing_pairs)
        strengths = equations.packing.unpack(packed)
        return dyson_at(bulk, self.x, strengths, self.active, equations.mixing)

    # -- the map --------------------------------------------------------------------------------

    def _image(self, traces: Array) -> tuple[Array, Array]:
        """(V₁ packed, τ) from the traces of the Dyson equation."""
        equations, system = self.equations, self.equations.system
        packed, rank = equations.packing, self.equations.rank
        inner = self.dyson.coupled(traces)
        v1 = symmetric(product(inner, self.x)) if rank > 1 else inner * self.x
        entries = packed.pack(traces[:, 1:]) * packed.count  # (B, m, P)
        seen = product(equations.mixing_pairs, transposed(entries))  # (B, T, m)
        force = (seen * system.bulk.coefficients).sum(axis=-1)
        tau = 1.0 / (self.penalty[:, None] + self.v2_hat + force)
        return packed.pack(v1) / system.width[:, None], tau

    @once
    def image(self) -> tuple[Array, Array]:
        """What the equations make of (V₁, τ)."""
        return self._image(self.dyson.traces)

    @once
    def gap(self) -> Array:
        """Relative distance of the point from its image, one number per cell."""
        v1, tau = self.image
        least = _NO_PART * np.abs(self.variance).max(axis=1)  # of an even activation: rounding
        scale = np.maximum(np.abs(self.v1).max(axis=1), least)
        scale = np.where(scale > 0, scale, 1.0)
        gaps = [np.abs(v1 - self.v1).max(axis=1) / scale, np.abs(tau / self.tau - 1.0).max(axis=1)]
        if self.equations.system.bulk.batches:
            apart = np.abs(self.dyson.image - self.active).max(axis=(1, 2))
            size = np.abs(self.active).max(axis=(1, 2))
            gaps.append(apart / np.where(size > 0, size, 1.0))
        return np.maximum.reduce(gaps)

    @property
    def inside(self) -> Array:
        """Whether V and τ are positive, or, at complex λ_s, in the upper half-plane."""
        part = np.imag if np.iscomplexobj(self.penalty) else np.real
        size = np.abs(self.variance).max(axis=1, keepdims=True)
        upper = np.all(part(self.tau) > -_ROUNDING * np.abs(self.tau), axis=1)
        return upper & np.all(part(self.variance) > -_ROUNDING * size, axis=1)

    # -- its derivative ---------------------------------------------------------------------------

    @once
    def response(self) -> tuple[Array, Array, Array]:
        r"""Derivatives of the equations, in packed form.

        .. math:: δV_1 = -β^{-1} K δ\hat C + P^T π δτ, \qquad
                  Z δτ = -(δ\hat V_2 + P\,δ\hat C)

        Z = τ'⁻² + β ∂force/∂p · π with τ' the image of τ: the map is concave in τ, and Newton's
        method from above stays above.

        Returns
        -------
        K : (B, P, P) acting on packed matrices; P : (B, T, P), to be used with the multiplicity
        when it acts on a packed matrix; Z : (B, T, T).
        """
        equations, system = self.equations, self.equations.system
        packed, (curved, _) = equations.packing, self._curved
        size, count = len(packed), packed.count
        squared = packed.squared(self.x)  # −∂X/∂Ĉ
        k = product(self._second(), squared)
        cross = curved[:, size:]  # ∂force in X and p_t, (B, T, P + T)
        p = -product(cross[..., :size], squared) / count
        total = cross[..., size:]
        tau = self.image[1]
        z = identity(tau.shape[1]) / (tau * tau)[:, None, :]
        return k, p, z + total * (system.width[:, None] * system.probabilities)[:, None, :]

    @once
    def _curved(self) -> tuple[Array, Array]:
        """The hessian in the entries of X and the p_t of the types, (B, P + T, P + T), and how 𝔤
        moves with them.
        """
        equations = self.equations
        size, loads = len(equations.packing), transposed(equations.loads)
        types = equations.system.bulk.coefficients, equations.mixing
        others = np.concatenate([np.zeros_like(loads[:, :size]), loads], axis=1)
        return self.dyson.response(Directions(size, others, *types))

    def _second(self) -> Array:
        r"""D ↦ τ(Y D Yᵀ) on packed matrices, Y = I − X𝒢 = Σ_c P_cΩ_c𝒢.

        Where Y is small (large penalties) as τ(Y)D − Σ_c P_c τ(Ω_c𝒢D𝒢)X, else as
        (I − Xτ(𝒢))D(I − τ(𝒢)X) − Xτ(𝒢)Dτ(𝒢)X + Xτ(𝒢D𝒢)X: each loses digits where the other
        does not.
        """
        packed, rank = self.equations.packing, self.equations.rank
        size, count, curved = len(packed), packed.count, self._curved[0]
        weak = self.dyson.coupled(self.dyson.traces)  # τ(Y)
        small = np.abs(weak).max(axis=(1, 2)) < _WEAK
        inner = product(self.x, self.dyson.traces[:, 0])
        rest = identity(rank) - inner
        own = product(packed.squared(self.x), curved[:, :size, :size] / count[:, None])
        found = _congruence(rest, packed) - _congruence(inner, packed) - own
        if not small.any() or self.equations.system.bulk.chained:
            return found
        cells, operators = len(self.x), self.dyson.strengths.shape[1]
        entries = np.zeros((cells, self.dyson.layout.parameters, 0))
        curved = self.dyson.curved(Directions(size, entries))
        units = packed.unpack(identity(size))  # (P, R, R)
        moved = curved[:, size:].reshape(cells, operators, size, size) / count[:, None]
        moved = packed.unpack(np.swapaxes(moved, 2, 3))  # ∂τ(Ω_c𝒢) for each unit, (B, m, P, R, R)
        total = product(weak[:, None], units[None])
        total = total + product(
            product(self.dyson.strengths[:, :, None], moved), self.x[:, None, None]
        ).sum(axis=1)
        total = transposed(packed.pack(symmetric(total)))
        return np.where(small[:, None, None], total, found)

    @once
    def curvature(self) -> Array:
        """ΓE[ω² F Fᵀ] of shape (B, P + T, P + T): minus the derivative of (Ĉ, V̂₂) in (V₁, πτ)."""
        equations = self.equations
        squared = self.measure * self.omega
        features = transposed(equations.features)
        curvature = product(equations.features * squared.real[:, None], features)
        if np.iscomplexobj(squared):
            imaginary = product(equations.features * squared.imag[:, None], features)
            curvature = curvature + 1j * imaginary
        return np.asarray(curvature * equations.counted)

    @once
    def jacobian(self) -> tuple[Array, tuple[Array, Array]]:
        r"""The linear system of Newton's method and of the error.

        Both look for (X, y), a symmetric R × R matrix and T numbers, with

        .. math:: X = β^{-1} K \hat Q + Pᵀ y + …, \qquad Z y/π = \hat q + P \hat Q + …

        where (Q̂, q̂) = ΓE[ω² F Fᵀ] (X, y) + …: for Newton X = δV₁ and y = πδτ, for the error
        X = Q and y = q₂.

        Returns
        -------
        matrix : ndarray of shape (B, P + T, P + T)
            Acts on (X packed, y).
        sources : pair of ndarrays of shapes (B, P, P), (B, T, P)
            β⁻¹K and P, acting on Q̂ packed.
        """
        equations, system = self.equations, self.equations.system
        k, p, z = self.response
        packed, types = k.shape[1], z.shape[1]
        k, weighted = k / system.width[:, None, None], p * equations.packing.count
        matrix = np.zeros((system.cells, packed + types, packed + types), dtype=z.dtype)
        matrix[:, :packed, :packed] = identity(packed)
        matrix[:, :packed, packed:] = -transposed(p)
        matrix[:, packed:, packed:] = z / system.probabilities[:, None, :]
        curvature = self.curvature
        matrix[:, :packed] -= product(k, curvature[:, :packed])
        matrix[:, packed:] -= product(weighted, curvature[:, :packed]) + curvature[:, packed:]
        return matrix, (k, weighted)

    def newton(self, by: State | None = None) -> tuple[Array, Array, Array]:
        """(V₁, τ, 𝔤) that solve the linearised equations; with the derivatives of a point nearby,
        which cost much more than the equations themselves, if there is one.
        """
        system, by = self.equations.system, by or self
        v1, tau = self._image(self.dyson.corrected(by.dyson))
        missing = np.concatenate([v1 - self.v1, (tau - self.tau) / (self.image[1] * tau)], axis=1)
        v1, tau, active = by._moved(solve(by.jacobian[0], missing))
        if system.bulk.batches:
            active = active + self.dyson.layout.outer.unpack(self.dyson.settled(by.dyson))
        return self.v1 + v1, self.tau + tau, self.active + active

    def tangent(self) -> tuple[Array, Array, Array]:
        """Derivatives of (V₁, τ, 𝔤) in λ_s where the equations hold."""
        source = np.zeros_like(self.unknowns)
        source[:, self.v1.shape[1] :] = -1.0
        return self._moved(solve(self.jacobian[0], source))

    def _moved(self, step: Array) -> tuple[Array, Array, Array]:
        """How (V₁, τ, 𝔤) move when (V₁, πτ) move by ``step``."""
        equations = self.equations
        packed, system = equations.packing, equations.system
        tau = step[:, len(packed) :] / system.probabilities
        if not system.bulk.batches:
            return step[:, : len(packed)], tau, np.zeros_like(self.active)
        hats = product(self.curvature[:, : len(packed)], step[:, :, None])
        x = product(packed.squared(self.x), hats)[:, :, 0]  # δX = −X δĈ X, δĈ = −curvature step
        moved = np.concatenate([x, system.width[:, None] * step[:, len(packed) :]], axis=1)
        active = product(self._curved[1], moved[:, :, None])[:, :, 0]
        return step[:, : len(packed)], tau, self.dyson.layout.outer.unpack(active)


def _congruence(matrix: Array, packed: Packing) -> Array:
    """The map D ↦ N D Nᵀ of packed symmetric matrices."""
    if packed.size == 1:
        return matrix * matrix
    return raised(matrix[:, None], np.ones((len(matrix), 1)), packed, packed)
