"""An outlier of the kernel, and the matrices that it makes singular (theory §5d)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from giantsteps.theory.solver.system import System
from giantsteps.types import FloatArray


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
    pull : ndarray of shape (1 + J, K)
        ω(k) qᵀφ_e(k) √(Γ/x) at the nodes, e the function itself and the weak spikes:
        ⟨u, g⟩²/n = E[Σ_e pull_e·g_e]² with g₀ = E[g|k] and g_j = E[w_j g|k], w their coordinates.
    labels : float
        ⟨u, ỹ⟩²/n.
    scale : ndarray of shape (K,)
        ω(k)√(Γ/x) at the nodes.
    """

    value: float
    types: FloatArray
    pull: FloatArray
    labels: float
    scale: FloatArray

    def slope(self, leans: FloatArray, system: System) -> FloatArray:
        """E[u z | k] at the nodes, for neurons that lean by so little (T,) along a direction z."""
        return np.asarray(self.scale * ((self.types * leans) @ system.linear[0]))


class Cores(NamedTuple):
    """At each point I + 𝓛, ℭF, E[ωφh]Γ and Fᵀ times what the teacher adds to it."""

    matrix: FloatArray
    moved: FloatArray
    target: FloatArray
    shift: FloatArray


def weighted_gram(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Σ_k w_k r(k)r(k)ᵀ, at half the cost where no weight is negative."""
    if weights.min() < 0:
        return np.asarray((rows * weights) @ rows.T)
    half = rows * np.sqrt(weights)
    return np.asarray(half @ half.T)
