r"""Spikes of the features' covariance after a small step, and of the kernel (theory §3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from giantsteps.laws import KernelBulk


@dataclass(frozen=True)
class PopulationSpike:
    """A spike of Σ and what its unit eigenvector ξ is made of."""

    tau: float  # the eigenvalue τ
    step: float = 0.0  # ⟨b̂, W₁ξ⟩², by which the spike sees the direction b of the step
    #: ⟨â, ξ⟩² and ⟨𝟙̂, ξ⟩².
    second_layer: float = 0.0
    common: float = 0.0
    rest: float = 0.0  # squared cosine of ξ with the part of â that is orthogonal to 𝟙̂


@dataclass(frozen=True)
class SpikedPopulation:
    r"""Spikes of Σ = μ₁² W₁ᵀW₁ + μ₂² I + s 𝟙̂𝟙̂ᵀ with W₁ = W₀ + θ b̂âᵀ; their images above K's bulk.

    With H the law of the eigenvalues of μ₁²W₀ᵀW₀ + μ₂², r₀(τ) = ∫ dH(t)/(τ−t) and
    q(τ) = β ∫ (t−μ₂²) dH(t)/(τ−t), a spike τ solves

    .. math:: (1 - A)(1 - B) = κ^2 A B,\qquad
              A = μ_1^2 θ^2 r_0 (1 + q),\quad B = s r_0,\quad κ = ⟨â, 𝟙̂⟩ .

    κ = 0: A = 1 is τ = μ₁²s₁² + μ₂² with s₁ the outlier of W₁, and B = 1 is a spike by itself.
    κ = 1: both act on one direction, A + B = 1. s = ∞: (1 − κ²) A = 1, the step is left with
    the part of â that is orthogonal to 𝟙̂.

    ======  ============  ==========================================================
    symbol  attribute     meaning
    ======  ============  ==========================================================
    θ       ``strength``  of the step's spike in W₁
    s       ``common``    what all neurons share: 2βc₂² through ‖x‖², N c₀² through a mean
    κ       ``shared``    E A/√(E A²)
    ======  ============  ==========================================================
    """

    bulk: KernelBulk
    strength: float
    common: float
    shared: float

    def spikes(self) -> list[PopulationSpike]:
        """Spikes τ with Λ(τ) above the bulk of K, and their eigenvectors."""
        return [self._spike(tau) for tau in self._roots(self._branches)]

    def mirrored(self) -> list[PopulationSpike]:
        """B = 1 by itself: the mean c₂(‖w_j‖² − 1) of the neurons, orthogonal to â and 𝟙̂."""

        def branch(tau: float) -> list[float]:
            return [self._terms(tau)[1]]

        return [PopulationSpike(tau) for tau in self._roots(branch)]

    def _integrals(self, tau: float) -> tuple[float, float, float, float]:
        """r₀, q and minus their derivatives."""
        shift, width = self.bulk.residual**2, self.bulk.width
        zeroth, first, second = (
            float(x) for x in self.bulk.population.fractions(np.asarray(float(tau)))
        )
        r0 = -zeroth
        r2 = (second - 1.0 + 2.0 * tau * r0) / tau**2
        return r0, -width * (first + shift * r0), r2, width * (tau * r2 - r0 - shift * r2)

    def _terms(self, tau: float) -> tuple[float, float]:
        """A and B."""
        r0, q, _, _ = self._integrals(tau)
        return (self.bulk.linear * self.strength) ** 2 * r0 * (1.0 + q), self.common * r0

    def _branches(self, tau: float) -> list[float]:
        """Eigenvalues of (A, κ√AB; κ√AB, B): one where τ is a spike, falling above all of H."""
        a, b = self._terms(tau)
        if math.isinf(b):
            return [(1.0 - self.shared**2) * a]
        spread = math.hypot((a - b) / 2, self.shared * math.sqrt(a * b))
        return [(a + b) / 2 + spread, (a + b) / 2 - spread]

    def _roots(self, branches: Callable[[float], list[float]]) -> list[float]:
        """τ above H on each branch."""
        lowest = self.bulk.critical_spike
        found = []
        for number, value in enumerate(branches(lowest)):
            if value > 1.0:
                highest = 2.0 * lowest
                while branches(highest)[number] > 1.0:
                    highest *= 2.0

                def excess(tau: float, number: int = number) -> float:
                    return branches(tau)[number] - 1.0

                found.append(float(brentq(excess, lowest, highest, xtol=1e-300, rtol=1e-14)))
        return found

    def _spike(self, tau: float) -> PopulationSpike:
        """ξ ∝ (τ − Σ₀)⁻¹(c₁ â + μ₁²θ r₀(c₁ + κc₃) W₀ᵀb̂ + c₃ 𝟙̂), from the null vector (c₁, c₃)."""
        r0, q, r2, q2 = self._integrals(tau)
        a, b = self._terms(tau)
        kappa = self.shared
        if math.isinf(b):
            c1, c3 = 1.0, -kappa
        else:
            system = np.array([[1.0 - a, -kappa * a], [-kappa * b, 1.0 - b]])
            c1, c3 = np.linalg.svd(system)[2][-1]
        along, flat = r0 * (c1 + kappa * c3), r0 * (kappa * c1 + c3)  # ⟨â, ξ⟩ and ⟨𝟙̂, ξ⟩
        length = r2 * (c1**2 + 2 * kappa * c1 * c3 + c3**2)
        length += q2 * (self.bulk.linear * self.strength * along) ** 2
        apart = 1.0 - kappa**2
        rest = (along - kappa * flat) ** 2 / (apart * length) if apart > 1e-12 else 0.0
        return PopulationSpike(
            tau=tau,
            step=float((self.strength * along * (1.0 + q)) ** 2 / length),
            second_layer=float(along**2 / length),
            common=float(flat**2 / length),
            rest=float(rest),
        )
