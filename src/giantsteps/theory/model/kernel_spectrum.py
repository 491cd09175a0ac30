"""Eigenvalues of the kernel of the equivalent model: bulk and outliers at every rate (§5d)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from giantsteps.theory.model.implicit_law import ImplicitLaw
from giantsteps.theory.solver.continuation import Continuation
from giantsteps.theory.solver.newton import solve_state
from giantsteps.theory.solver.prior import Prior
from giantsteps.theory.solver.state import Equations, State
from giantsteps.theory.solver.system import System
from giantsteps.types import Array, FloatArray

_MEMORY = 3_000_000
_GRID = 8
#: Plain rounds at the first point above the bulk.
_PLAIN = 3
#: An eigenvalue that vanishes (it does not jump), and how well it is found.
_ZERO, _CLOSE = 1e-3, 1e-12
#: Differences for derivatives, relative to the distance from the edge.
_STEP = 1e-3
#: Places and weights of a derivative.
_SLOPE = {-2.0: 1 / 12, -1.0: -2 / 3, 1.0: 2 / 3, 2.0: -1 / 12}


@dataclass(frozen=True, eq=False)
class Outlier:
    r"""An eigenvalue x of K outside the bulk, and the vector q with 𝓜q = 0 there.

    With 𝓜' the derivative in x, unit eigenvectors u of K and v of ΦᵀΦ have

    .. math:: n^{-1}⟨u, g⟩² = -\frac{Γ(qᵀE[ωφg])²}{x\, qᵀ\mathcal M'q},\qquad
              ⟨v, f⟩² = -\frac{(Σ_t m_t f(A_t))²}{qᵀ\mathcal M'q}

    for functions g of the spike coordinates and f of the type; for the labels E[ωφg] becomes
    E[ωφh] + Γ⁻¹𝒴⁻¹𝒴_{·B}ψ̂.

    Attributes
    ----------
    value : float
    types : ndarray of shape (T,)
        m, scaled so that −qᵀ𝓜'q = 1.
    pull : ndarray of shape (K,)
        ω(k) qᵀφ(k) √(Γ/x) at the nodes: ⟨u, g⟩²/n = E[pull·g]².
    labels : float
        ⟨u, ỹ⟩²/n.
    """

    value: float
    types: FloatArray
    pull: FloatArray
    labels: float


class KernelSpectrum:
    r"""Spectrum of K = ΦΦᵀ (n × n) from the nonlinear part at λ_s = −z (theory §5d).

    .. math:: n^{-1}\mathrm{tr}(K - z)^{-1} = E_k[ω]/(-z),

    and outliers at the real x above the bulk where, at λ_s = −x, the matrix of the least-squares
    problem of the readout is singular,

    .. math:: \mathcal M = ΓE\bigl[ωΣ_eφ_eφ_eᵀ\bigr] +
              \mathrm{diag}\bigl(\mathrm{Cov}_m^{-1},\ 𝒴^{-1}\bigr),

    φ the regressors μ₀ₜ, k_jC_a and those of the norms, e the modes of the norm of the input. With
    B the first term, positive above the bulk, and ℭ = diag(Cov_m, 𝒴), which may be anything, that
    is where an eigenvalue of I + 𝓛, 𝓛 = B^{½}ℭB^{½}, vanishes; with its vector y, q = −ℭB^{½}y and
    qᵀ𝓜'q = −yᵀ𝓛'y.

    Parameters
    ----------
    system : System
        One cell; its penalty is not used.
    """

    def __init__(self, system: System) -> None:
        self.system = system
        merged, self.group = _merge_types(system)
        self.equations = Equations(merged)

    # -- bulk -----------------------------------------------------------------------------------

    def resolvent(self, z: Array) -> State:
        """The solution at complex z (Z,), Im z > 0, by continuation from negative z."""
        size = self.equations.features[0].size * 6 + 4 * self.equations.features.shape[1] ** 2
        for batch in self.equations.system.bulk.batches:
            blocks = (1 + batch.factors.shape[1]) * self.equations.rank
            size += 8 * batch.weights.shape[1] * blocks**2
        count = max(1, _MEMORY // size)
        parts = [self._follow(z[i : i + count]) for i in range(0, len(z), count)]
        v1, tau, active = (np.concatenate(part) for part in zip(*parts, strict=True))
        return self._repeat(len(z)).at(v1, tau, -z, active)

    @cached_property
    def _follow(self) -> Continuation:
        def solver(
            z: Array, start: tuple[Array, ...] | None, rounds: int | None
        ) -> tuple[tuple[Array, ...], Array]:
            known = None if start is None else (start[0], start[1], start[2])
            solved = solve_state(self._repeat(len(z)), -z, known, rounds)
            state = solved.state
            return (state.v1, state.tau, state.active), solved.residual

        return Continuation(solver, self.scale, "the resolvent of the kernel")

    def _repeat(self, count: int) -> Equations:
        return self.equations.take(np.zeros(count, dtype=int))

    def transform(self, z: Array) -> Array:
        """m(z) = E_k[ω]/(−z)."""
        return np.asarray((self.resolvent(z).omega * self.system.weights[0]).sum(axis=-1) / -z)

    @cached_property
    def scale(self) -> float:
        """Mean of the bulk's eigenvalues."""
        system = self.equations.system
        power = system.residual[0] + self.equations.totals[0][:, None] * system.linear[0] ** 2
        return float(system.probabilities[0] @ power @ system.weights[0])

    @cached_property
    def bulk(self) -> ImplicitLaw:
        """Law of the n eigenvalues without the outliers, with its atom at zero if n > N."""
        ratio = float(self.system.ratio[0])
        atoms = ((0.0, 1.0 - 1.0 / ratio),) if ratio > 1 else ()
        return ImplicitLaw(self.transform, self, self.scale, atoms)

    # -- outside the bulk -----------------------------------------------------------------------

    def above(self, z: Array) -> tuple[Array, ...]:
        """(V₁, τ, 𝔤) at z in the upper half-plane."""
        found = self.resolvent(z)
        return found.v1, found.tau, found.active

    def far(self, x: FloatArray) -> tuple[Array, ...]:
        """(V₁, τ, 𝔤) at x far above the bulk, where every start leads to the solution."""
        point = self._repeat(len(x)).start(-x)
        for _ in range(_PLAIN):
            point = point.move(*point.image, point.dyson.image)
        return point.v1, point.tau, point.active

    def linearised(
        self, state: tuple[Array, ...], x: Array
    ) -> tuple[tuple[Array, ...], tuple[Array, ...], FloatArray]:
        """Newton's step at real x, the derivatives in x, and the residual."""
        v1, tau, active = state
        point = self._repeat(len(x)).at(v1, tau, -x, active)
        step = tuple(new - old for new, old in zip(point.newton(), state))
        return step, tuple(-part for part in point.tangent()), point.gap

    def parameter(self, state: tuple[Array, ...]) -> Array:
        """−Σ π_tτ_t, which grows with x outside the bulk."""
        return np.asarray(-state[1] @ self.equations.system.probabilities[0])

    def regular(self, state: tuple[Array, ...], x: FloatArray) -> Array:
        """Whether ω > 0, −τ > 0 and the samples of the steps are as they are at x = ∞."""
        v1, tau, active = state
        point = self._repeat(len(x)).at(v1, tau, -x, active)
        positive = np.all(point.omega > 0, axis=1) & np.all(tau < 0, axis=1)
        return np.asarray(positive & point.dyson.regular)

    # -- outliers -------------------------------------------------------------------------------

    @cached_property
    def outliers(self) -> tuple[Outlier, ...]:
        """Eigenvalues above the bulk, largest first."""
        edge = self.bulk.edge
        found = self._roots(edge, 4.0 * (edge + self._bound))
        return tuple(self._describe(x) for x in sorted(found, reverse=True))

    @cached_property
    def _bound(self) -> float:
        """Γ(p Σ π E[μ₀ₜ²] + the part of χ): no outlier is above it and the bulk together."""
        system = self.system
        power = (system.mean[0] ** 2).sum(axis=1) @ system.weights[0]
        neurons = 1.0 / float(system.inverse_neurons[0])
        squares = (system.coordinates[0] ** 2).sum(axis=1) * system.weights[0]
        spread = self.equations.totals.max() * float(system.width[0])
        linear = spread * float(system.probabilities[0] @ (system.linear[0] ** 2 @ squares))
        norms = (system.norms[0] ** 2 @ system.weights[0]) * system.spread[0]
        more = float(system.width[0]) * float(norms.sum())
        return float(system.ratio[0]) * (
            neurons * float(system.probabilities[0] @ power) + linear + more
        )

    def _roots(self, lower: float, upper: float) -> list[float]:
        """Where eigenvalues of I + 𝓛 change sign strictly between two points above the bulk."""
        grid = np.geomspace(max(lower, 1e-4 * upper) * (1 + 1e-5), upper * (1 - 1e-5), _GRID)
        states = self._outside(grid)
        cores = [self._core(states.take(np.array([i]))).matrix for i in range(_GRID)]
        values = [np.linalg.eigvalsh(core) for core in cores]
        counts = [int((found < 0).sum()) for found in values]
        roots = []
        for i in range(_GRID - 1):
            for rank in range(min(counts[i : i + 2]), max(counts[i : i + 2])):
                ends = {1.0 / grid[j]: float(values[j][rank]) for j in (i + 1, i)}
                roots += self._root(ends, rank)
        return roots

    def _root(self, known: dict[float, float], rank: int) -> list[float]:
        """The zero of an eigenvalue between two points 1/x where it is known, unless it jumps.

        In 1/x the eigenvalues are almost linear.
        """

        def eigenvalue(inverse: float) -> float:
            if inverse not in known:
                core = self._core(self._at(1.0 / inverse))
                known[inverse] = float(np.linalg.eigvalsh(core.matrix)[rank])
            return known[inverse]

        low, high = known
        root = float(brentq(eigenvalue, low, high, xtol=_CLOSE * low, rtol=_CLOSE))
        return [1.0 / root] if abs(eigenvalue(root)) < _ZERO else []

    def _outside(self, x: FloatArray) -> State:
        """The real solutions at x (X,) above the bulk."""
        v1, tau, active = self.bulk.outside(x)
        return self._repeat(len(x)).at(v1, tau, -x, active)

    def _at(self, x: float) -> State:
        return self._outside(np.array([x]))

    def _core(self, point: State) -> _Core:
        """I + 𝓛 at a point above the bulk, and what belongs to it."""
        system, prior = self.system, Prior(self._whole(point))
        state = prior.state
        types, modes, nodes = system.mean.shape[1:]
        measure = state.measure[0]
        channels = state.equations.channels[0]
        own = system.regressors(state.equations.channels)[0]
        rows = np.concatenate([system.mean[0], own])
        flat, whole = rows.reshape(len(rows), modes * nodes), np.tile(measure, modes)
        power = (flat * whole) @ flat.T
        target = (flat * whole) @ system.target[0].ravel()
        values, vectors = np.linalg.eigh(power)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        covariance = np.zeros_like(power)
        covariance[:types, :types] = np.linalg.inv(prior.precision[0]) / system.inverse_neurons[0]
        covariance[types:, types:] = prior.covariance[0]
        moved = covariance @ root
        psi_hat = ((measure * system.target_linear[0]) @ channels.T).ravel()
        shift = np.concatenate([np.zeros(types), prior.with_teacher[0] @ psi_hat])
        matrix = np.eye(len(power)) + root @ moved
        return _Core((matrix + matrix.T) / 2, moved, rows[:, 0], target, root @ shift)

    def _whole(self, point: State) -> State:
        """The point with all types, where some were merged."""
        if len(self.group) == point.tau.shape[1]:
            return point
        merged = point.equations
        equations = self._all_types
        return (
            State(equations, point.v1, point.tau[:, self.group], point.active, point.penalty)
            if equations.rank == merged.rank
            else point
        )

    @cached_property
    def _all_types(self) -> Equations:
        """The equations of all types, in the channels of the merged ones."""
        whole = Equations(self.system)
        merged = self.equations
        whole.mixing = np.ascontiguousarray(merged.mixing[:, self.group])
        whole.channels, whole.rank, whole.packing = merged.channels, merged.rank, merged.packing
        rows, columns = merged.packing.rows, merged.packing.columns
        pairs = whole.channels.take(rows, 1) * whole.channels.take(columns, 1)
        whole.features = np.concatenate([pairs, self.system.residual], axis=1)
        whole.mixing_pairs = whole.mixing.take(rows, 2) * whole.mixing.take(columns, 2)
        whole.counted = np.concatenate([merged.packing.count, np.ones(len(self.group))])
        return whole

    def _describe(self, x: float) -> Outlier:
        point = self._at(x)
        core = self._core(point)
        values, vectors = np.linalg.eigh(core.matrix)
        y = vectors[:, int(np.argmin(np.abs(values)))]
        step = _STEP * (x - self.bulk.edge)
        slope = sum(
            weight * float(y @ self._core(self._at(x + place * step)).matrix @ y)
            for place, weight in _SLOPE.items()
        )
        y = y / np.sqrt(abs(slope) / step)
        vector, ratio = -core.moved @ y, float(self.system.ratio[0])
        labels = float(vector @ core.target - y @ core.shift)
        return Outlier(
            value=x,
            types=vector[: len(self.system.probabilities[0])],
            pull=point.omega[0] * (vector @ core.features) * np.sqrt(ratio / x),
            labels=labels**2 / (ratio * x),
        )


class _Core(NamedTuple):
    """I + 𝓛, ℭB^{½}, φ at the nodes, E[ωφh]Γ and B^{½} times what the teacher adds to it."""

    matrix: FloatArray
    moved: FloatArray
    features: FloatArray
    target: FloatArray
    shift: FloatArray


def _merge_types(system: System) -> tuple[System, Array]:
    """Types with the same μ₁, μ₂² and covariance as one, and the group that each type joins.

    What the nonlinear part does not see (means, norms, pull) is that of one of them.
    """
    rows = np.concatenate(
        [system.linear[0], system.residual[0], system.bulk.coefficients[0]], axis=1
    )
    scale = np.abs(rows).max()
    _, first, group = np.unique(
        np.round(rows / scale, 11), axis=0, return_index=True, return_inverse=True
    )
    group = group.ravel()
    if len(first) == len(group):
        return system, np.arange(len(group))
    probabilities = np.bincount(group, weights=system.probabilities[0])[None]
    kept = {name: getattr(system, name)[:, first] for name in ("mean", "linear", "residual")}
    bulk = replace(system.bulk, coefficients=system.bulk.coefficients[:, first])
    return replace(system, probabilities=probabilities, bulk=bulk, **kept), group
