"""Eigenvalues of the kernel of the equivalent model: bulk and outliers at every rate (§5d)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq

from giantsteps.errors import NotConverged
from giantsteps.theory.model.implicit_law import ImplicitLaw
from giantsteps.theory.solver.continuation import Continuation
from giantsteps.theory.solver.newton import solve_state
from giantsteps.theory.solver.prior import Prior
from giantsteps.theory.solver.state import Equations, State
from giantsteps.theory.solver.system import System
from giantsteps.types import Array, FloatArray

_NEWTON = 12
_MEMORY = 3_000_000
_GRID = 16
#: An eigenvalue of 𝓜 that vanishes, and crossings too close to be two outliers.
_ZERO, _POLE = 1e-3, 1e-5
#: Rounds and distance at which an outlier known at another resolution is found.
_CLOSER, _CLOSE = 6, 1e-9
#: Variance of a coefficient, relative to the largest, that counts as none.
_ZERO_VARIANCE = 1e-14


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
    left : float
        Newton's step to the zero of qᵀ𝓜q.
    """

    value: float
    types: FloatArray
    pull: FloatArray
    labels: float
    left: float = 0.0


class KernelSpectrum:
    r"""Spectrum of K = ΦΦᵀ (n × n) from the nonlinear part at λ_s = −z (theory §5d).

    .. math:: n^{-1}\mathrm{tr}(K - z)^{-1} = E_k[ω]/(-z),

    and outliers at the real x above the bulk where, at λ_s = −x, the matrix of the least-squares
    problem of the readout is singular,

    .. math:: \mathcal M = ΓE\bigl[ωΣ_eφ_eφ_eᵀ\bigr] +
              \mathrm{diag}\bigl(\mathrm{Cov}_m^{-1},\ 𝒴^{-1}\bigr),

    φ the regressors μ₀ₜ, k_jC_a and those of the norms, e the modes of the norm of the input.

    Parameters
    ----------
    system : System
        One cell; its penalty is not used.
    around : float, optional
        The edge of the bulk at another resolution.
    """

    def __init__(self, system: System, around: float | None = None) -> None:
        self.system, self._around = system, around
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
        return ImplicitLaw(self.transform, self, self.scale, atoms, self._around)

    # -- outside the bulk -----------------------------------------------------------------------

    def near(self, x: FloatArray) -> tuple[Array, ...]:
        """(V₁, τ, 𝔤) close to a real solution at x outside the bulk."""
        near = self.resolvent(x * (1 + 1e-7j))
        parts = (near.v1, near.tau, near.active)
        return tuple(np.ascontiguousarray(part.real) for part in parts)

    def linearised(
        self, state: tuple[Array, ...], x: FloatArray
    ) -> tuple[tuple[Array, ...], tuple[Array, ...], FloatArray]:
        """Newton's step at real x, the derivatives in x, and the residual."""
        v1, tau, active = state
        point = self._repeat(len(x)).at(v1, tau, -x, active)
        step = tuple(new - old for new, old in zip(point.newton(), state))
        return step, tuple(-part for part in point.tangent()), point.gap

    def parameter(self, state: tuple[Array, ...]) -> FloatArray:
        """−Σ π_tτ_t, which grows with x outside the bulk."""
        return np.asarray(-state[1] @ self.equations.system.probabilities[0])

    # -- outliers -------------------------------------------------------------------------------

    @cached_property
    def outliers(self) -> tuple[Outlier, ...]:
        """Eigenvalues above the bulk, largest first."""
        edge = self.bulk.edge
        found = self._roots(edge, 4.0 * (edge + self._bound))
        return tuple(self._describe(x) for x in sorted(found, reverse=True))

    def outlier_near(self, x: float) -> Outlier | None:
        """The outlier that is at x at another resolution; None if the bulk has swallowed it."""
        if not x > self.bulk.edge:
            return None
        found, gap = self._describe(x), np.inf
        for _ in range(_CLOSER):
            # At the zero −qᵀ𝓜'q = 1: what is left of qᵀ𝓜q is the distance.
            step = found.left
            if not (found.value + step > self.bulk.edge and abs(step) < gap):
                return None
            found, gap = self._describe(found.value + step), abs(step)
            if gap <= _CLOSE * found.value:
                break
        return found

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
        """Where eigenvalues of 𝓜 change sign strictly between two points above the bulk."""
        grid = np.geomspace(max(lower, 1e-4 * upper) * (1 + 1e-5), upper * (1 - 1e-5), _GRID)
        near = self.resolvent(grid * (1 + 1e-9j))
        points = [self._outside(x, near.take(np.array([i]))) for i, x in enumerate(grid)]
        counts = [_positive(self._matrix(point)[0]) for point in points]
        roots = []
        for i in range(_GRID - 1):
            roots += self._split(points[i], points[i + 1], counts[i], counts[i + 1])
        return roots

    def _outside(self, x: float, near: State) -> State:
        """The real solution at x outside the bulk, from a solution nearby."""
        start = (near.v1.real, near.tau.real, near.active.real)
        at = np.array([-x])
        with np.errstate(all="ignore"):
            solved = solve_state(near.equations, at, start, rounds=_NEWTON, guarded=False)
        if solved.converged.all():
            return solved.state
        raised = self.resolvent(np.array([x * (1 + 1e-9j)]))
        return raised.equations.at(raised.v1.real, raised.tau.real, at, raised.active.real)

    def _split(self, left: State, right: State, low: int, high: int) -> list[float]:
        """The |low − high| crossings between two points, each to the last digits.

        Two that do not come apart, or a jump, are a pole of 𝓜: a bulk direction of no weight.
        """
        if low == high:
            return []
        a, b = -float(left.penalty[0]), -float(right.penalty[0])
        if abs(low - high) == 1:
            rank = max(low, high) - 1  # in descending order, the eigenvalue that changes sign

            def eigenvalue(x: float) -> float:
                near = left if x * x < a * b else right
                matrix = self._matrix(self._outside(x, near))[0]
                return float(np.linalg.eigvalsh(matrix)[::-1][rank])

            return _root(eigenvalue, a, b)
        if b - a <= _POLE * b:
            return []
        middle = self._outside(float(np.sqrt(a * b)), left)
        count = _positive(self._matrix(middle)[0])
        return self._split(left, middle, low, count) + self._split(middle, right, count, high)

    def _matrix(self, point: State) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """𝓜 scaled to order one, its scale, φ at the nodes and the source of the labels."""
        system, prior = self.system, Prior(self._whole(point))
        state = prior.state
        types, modes, nodes = system.mean.shape[1:]
        measure = state.measure[0]
        channels = state.equations.channels[0]
        own = system.regressors(state.equations.channels)[0]
        # Coefficients that cannot vary (a step of rate zero) are not regressors.
        covariance, size = prior.covariance[0], np.abs(np.diag(prior.covariance[0]))
        free = size > _ZERO_VARIANCE * size.max(initial=0.0)
        own, covariance = own[free], covariance[np.ix_(free, free)]
        rows = np.concatenate([system.mean[0], own])
        features = rows[:, 0]
        flat = rows.reshape(len(rows), modes * nodes)
        whole = np.tile(measure, modes)
        matrix = (flat * whole) @ flat.T
        joint = slice(types, len(matrix))
        matrix[:types, :types] += system.inverse_neurons[0] * prior.precision[0]
        inverse = _inverse(covariance)
        matrix[joint, joint] += inverse
        target = (flat * whole) @ system.target[0].ravel()
        psi_hat = ((measure * system.target_linear[0]) @ channels.T).ravel()
        target[joint] += inverse @ (prior.with_teacher[0] @ psi_hat)[free]
        scale = 1.0 / np.sqrt(np.abs(np.diag(matrix)))
        return matrix * np.outer(scale, scale), scale, features, target

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
        near = self.resolvent(np.array([x * (1 + 1e-9j)]))
        point = self._outside(x, near)
        matrix, scale, features, target = self._matrix(point)
        values, vectors = np.linalg.eigh(matrix)
        nearest = int(np.argmin(np.abs(values)))
        vector = vectors[:, nearest] * scale
        step = 1e-4 * (x - self.bulk.edge)
        slope = 0.0
        for sign in (1.0, -1.0):
            moved, moved_scale, _, _ = self._matrix(self._outside(x + sign * step, point))
            unscaled = moved / np.outer(moved_scale, moved_scale)
            slope += sign * float(vector @ unscaled @ vector) / (2 * step)
        vector = vector / np.sqrt(abs(slope))
        ratio = float(self.system.ratio[0])
        pull = point.omega[0] * (vector @ features) * np.sqrt(ratio / x)
        return Outlier(
            value=x,
            types=vector[: len(self.system.probabilities[0])],
            pull=pull,
            labels=float((vector @ target) ** 2 / (ratio * x)),
            left=-float(values[nearest]) / slope,
        )


def _root(eigenvalue: Callable[[float], float], a: float, b: float) -> list[float]:
    """The zero of an eigenvalue between two points, unless it jumps there."""
    low, high = eigenvalue(a), eigenvalue(b)
    if not low * high < 0:  # one of the ends is not on the branch that was counted
        raise NotConverged(
            "the outliers of the kernel", min(abs(low), abs(high)), _GRID, "another rate or width"
        )
    root = float(brentq(eigenvalue, a, b, xtol=1e-12 * b))
    return [root] if abs(eigenvalue(root)) < _ZERO else []


def _inverse(covariance: FloatArray) -> FloatArray:
    """Inverse of a symmetric matrix whose rows may be of very different size."""
    size = np.sqrt(np.abs(np.diag(covariance)))
    values, vectors = np.linalg.eigh(covariance / np.outer(size, size))
    floor = 1e-13 * np.abs(values).max(initial=0.0)
    values = np.where(np.abs(values) > floor, values, np.where(values < 0, -floor, floor))
    return np.asarray((vectors / values) @ vectors.T / np.outer(size, size))


def _positive(matrix: FloatArray) -> int:
    return int((np.linalg.eigvalsh(matrix) > 0).sum())


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
