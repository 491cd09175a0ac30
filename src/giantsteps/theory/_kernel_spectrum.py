"""Eigenvalues of the kernel of the equivalent model: bulk and outliers at every rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from giantsteps.theory._continuation import Continuation, State
from giantsteps.theory._implicit_law import ImplicitLaw
from giantsteps.theory._resolvent import Equations, Resolvent
from giantsteps.theory._solve import solve
from giantsteps.theory._special import special_resolvent
from giantsteps.theory._system import System

__all__ = ["KernelSpectrum", "Outlier"]

_NEWTON = 12
_CHANNELS = 1e-4
_MEMORY = 3_000_000
_GRID = 16
_GAP = 0.05
#: An eigenvalue of 𝓜 that vanishes, and crossings too close to be two outliers.
_ZERO, _POLE = 1e-3, 1e-5


@dataclass(frozen=True, eq=False)
class Outlier:
    r"""An eigenvalue x of K outside the bulk, and the vector q = (m, χ) with 𝓜q = 0 there.

    With 𝓜' the derivative in x, unit eigenvectors u of K and v of ΦᵀΦ have

    .. math:: n^{-1}⟨u, g⟩² = -\frac{Γ(qᵀE[ωφg])²}{x\, qᵀ\mathcal M'q},\qquad
              ⟨v, f⟩² = -\frac{(Σ_t m_t f(A_t))²}{qᵀ\mathcal M'q}

    for functions g of the spike coordinates and f of the type; for the labels E[ωφg] becomes
    E[ωφh] + Γ⁻¹(0, 𝒴_bb⁻¹𝒴_bBψ̂).

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
    types: NDArray
    pull: NDArray
    labels: float


class KernelSpectrum:
    r"""Spectrum of K = ΦΦᵀ (n × n) from the nonlinear part at λ_s = −z (theory §5d).

    .. math:: n^{-1}\mathrm{tr}(K - z)^{-1} = E_k[ω]/(-z),

    and outliers at the real x outside the bulk where, at λ_s = −x, the matrix

    .. math:: \mathcal M = ΓE[ω(φφᵀ + φ_nφ_nᵀ)] +
              \mathrm{diag}\big(1/(pV2_t),\ \mathcal Y_{bb}^{-1}\big),\qquad φ = (μ_{0t}, k_jμ_{1t})

    is singular.

    Parameters
    ----------
    system : System
        One cell; its penalty is not used.
    """

    def __init__(self, system: System) -> None:
        self.system = system
        merged, self.group = _merge_types(system)
        self.equations = Equations(merged, _CHANNELS)

    # -- bulk -----------------------------------------------------------------------------------

    def resolvent(self, z: NDArray) -> Resolvent:
        """The solution at complex z (Z,), Im z > 0, by continuation from large Im z."""
        size = self.equations.features[0].size * 6 + 4 * self.equations.features.shape[1] ** 2
        count = max(1, _MEMORY // size)
        parts = [self._continue(z[i : i + count]) for i in range(0, len(z), count)]
        if len(parts) == 1:
            return parts[0]
        v1 = np.concatenate([part.v1 for part in parts])
        tau = np.concatenate([part.tau for part in parts])
        return self._repeat(len(z)).at(v1, tau, -z)

    @cached_property
    def _follow(self) -> Continuation:
        return Continuation(self._solve, self.scale, "the resolvent of the kernel")

    def _continue(self, z: NDArray) -> Resolvent:
        v1, tau = self._follow(z)
        return self._repeat(len(z)).at(v1, tau, -z)

    def _repeat(self, count: int) -> Equations:
        return self.equations.take(np.zeros(count, dtype=int))

    def _solve(self, z: NDArray, start: State | None, rounds: int | None) -> tuple[State, NDArray]:
        solved = solve(self._repeat(len(z)), -z, start, rounds)
        return (solved.v1, solved.tau), solved.residual

    def transform(self, z: NDArray) -> NDArray:
        """m(z) = E_k[ω]/(−z)."""
        return (self.resolvent(z).omega * self.system.weights).sum(axis=-1) / -z

    @cached_property
    def scale(self) -> float:
        """Mean of the bulk's eigenvalues."""
        system = self.system
        total = (system.variances @ system.bulk[:, :, None])[0]
        power = system.residual[0] + total * system.linear[0] ** 2
        return float(system.probabilities[0] @ power @ system.weights)

    @cached_property
    def bulk(self) -> ImplicitLaw:
        """Law of the n eigenvalues without the outliers, with its atom at zero if n > N."""
        ratio = float(self.system.ratio[0])
        atoms = ((0.0, 1.0 - 1.0 / ratio),) if ratio > 1 else ()
        return ImplicitLaw(self.transform, self.scale, atoms)

    # -- outliers -------------------------------------------------------------------------------

    @cached_property
    def outliers(self) -> tuple[Outlier, ...]:
        """All outliers, largest first: above the bulk, and in gaps between parts of some mass."""
        support = self.bulk.support
        highest = 4.0 * (support[-1][1] + self._bound)
        found: list[float] = []
        for i, (_, lower) in enumerate(support):
            if i + 1 == len(support):
                found += self._roots(lower, highest)
            elif min(self.bulk.masses[i], self.bulk.masses[i + 1]) > _GAP:
                found += self._roots(lower, support[i + 1][0])
        return tuple(self._describe(x) for x in sorted(found, reverse=True))

    @cached_property
    def _bound(self) -> float:
        """Γp Σ πₜE[μ₀ₜ² + ξₜ²] + the part of χ: no outlier is above it and the bulk together."""
        system = self.system
        power = (system.mean[0] ** 2 + system.norm[0] ** 2) @ system.weights
        neurons = 1.0 / float(system.inverse_neurons[0])
        squares = (system.coordinates**2).sum(axis=1) * system.weights
        spread = system.variances[0].max() * float(system.width[0])
        linear = spread * float(system.probabilities[0] @ (system.linear[0] ** 2 @ squares))
        return float(system.ratio[0]) * (neurons * float(system.probabilities[0] @ power) + linear)

    def _roots(self, lower: float, upper: float) -> list[float]:
        """Where eigenvalues of 𝓜 change sign strictly between two points outside the bulk."""
        grid = np.geomspace(max(lower, 1e-4 * upper) * (1 + 1e-5), upper * (1 - 1e-5), _GRID)
        near = self.resolvent(grid * (1 + 1e-9j))
        points = [self._outside(x, near.take(np.array([i]))) for i, x in enumerate(grid)]
        counts = [_positive(self._matrix(point)[0]) for point in points]
        roots = []
        for i in range(_GRID - 1):
            roots += self._split(points[i], points[i + 1], counts[i], counts[i + 1])
        return roots

    def _outside(self, x: float, near: Resolvent) -> Resolvent:
        """The real solution at x outside the bulk, from a solution nearby."""
        start = (near.v1.real, near.tau.real)
        solved = solve(near.equations, np.array([-x]), start, rounds=_NEWTON, guarded=False)
        if not solved.converged.all():
            raised = self.resolvent(np.array([x * (1 + 1e-9j)]))
            return raised.equations.at(raised.v1.real, raised.tau.real, np.array([-x]))
        return near.equations.at(solved.v1, solved.tau, np.array([-x]))

    def _split(self, left: Resolvent, right: Resolvent, low: int, high: int) -> list[float]:
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

            root = float(brentq(eigenvalue, a, b, xtol=1e-12 * b))
            return [root] if abs(eigenvalue(root)) < _ZERO else []
        if b - a <= _POLE * b:
            return []
        middle = self._outside(float(np.sqrt(a * b)), left)
        count = _positive(self._matrix(middle)[0])
        return self._split(left, middle, low, count) + self._split(middle, right, count, high)

    def _matrix(self, point: Resolvent) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """𝓜 scaled to order one, its scale, φ at the nodes and the source of the labels."""
        system, x = self.system, -float(point.penalty[0])
        channels = point.equations.channels
        count = system.coordinates.shape[1]
        v2 = system.probabilities[0] * point.tau[0][self.group]
        spikes = system.coordinates.T[:, None, :] * channels[0]
        spikes = spikes.reshape(count * channels.shape[1], -1)
        features = np.concatenate([system.mean[0], spikes])
        norm = np.concatenate([system.norm[0], np.zeros_like(spikes)])
        special = special_resolvent(point)
        inverse = np.linalg.inv(special.spikes[0])
        measure = point.measure[0]
        types = len(v2)
        matrix = (features * measure) @ features.T + (norm * measure) @ norm.T
        matrix[:types, :types] += np.diag(system.inverse_neurons[0] / v2)
        matrix[types:, types:] += (inverse + inverse.T) / 2
        target = (features * measure) @ system.target[0]
        psi_hat = channels[0] @ (measure * system.target_linear[0])
        target[types:] += inverse @ (special.mixed[0] @ psi_hat)
        scale = np.sqrt(
            np.concatenate(
                [
                    system.probabilities[0] / (x * system.inverse_neurons[0]),
                    np.full(len(spikes), float(system.width[0]) / x),
                ]
            )
        )
        return matrix * np.outer(scale, scale), scale, features, target

    def _describe(self, x: float) -> Outlier:
        near = self.resolvent(np.array([x * (1 + 1e-9j)]))
        point = self._outside(x, near)
        matrix, scale, features, target = self._matrix(point)
        values, vectors = np.linalg.eigh(matrix)
        vector = vectors[:, np.argmin(np.abs(values))] * scale
        step = 1e-4 * min(x, min(abs(x - edge) for pair in self.bulk.support for edge in pair))
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
        )


def _positive(matrix: NDArray) -> int:
    return int((np.linalg.eigvalsh(matrix) > 0).sum())


def _merge_types(system: System) -> tuple[System, NDArray]:
    """Types with the same μ₁, μ₂² and variances as one, and the group that each type joins."""
    rows = np.concatenate(
        [system.linear[0], system.residual[0], system.variances[0], system.special_variances[0]],
        axis=1,
    )
    scale = np.abs(rows).max()
    _, first, group = np.unique(
        np.round(rows / scale, 11), axis=0, return_index=True, return_inverse=True
    )
    group = group.ravel()
    probabilities = np.bincount(group, weights=system.probabilities[0])[None]
    kept = {
        name: getattr(system, name)[:, first]
        for name in ("mean", "linear", "residual", "norm", "variances", "special_variances")
    }
    return replace(system, probabilities=probabilities, **kept), group
