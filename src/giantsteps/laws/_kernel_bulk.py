"""The bulk of the conjugate kernel under Gaussian equivalence (theory §3)."""

from __future__ import annotations

import numpy as np

from ..errors import InvalidProblem
from ._empirical import EmpiricalLaw
from ._marchenko_pastur import MarchenkoPastur
from ._sample_covariance import SampleCovariance
from ._singular_values import SingularValues


class KernelBulk(SampleCovariance):
    """Law of the n eigenvalues of K = Φ̄Φ̄ᵀ, Φ̄ = N^{-1/2}(μ₁ X̃ W + μ₂ Z).

    A `SampleCovariance` with Γ = n/N whose population H is the law of μ₂² + μ₁² x, x the N
    eigenvalues of Wᵀ W. K has an atom at 0 of mass 1 − β/α if α > β.

    ======  ============  ===========================================
    symbol  argument      meaning
    ======  ============  ===========================================
    β       ``width``     N/d
    α       ``samples``   n/d
    μ₁      ``linear``    E[z σ(z)]
    μ₂      ``residual``  √(Var σ(z) − μ₁²)
    ======  ============  ===========================================

    References
    ----------
    theory §3; fan2020; ba2022.
    """

    def __init__(self, *, width: float, samples: float, linear: float, residual: float) -> None:
        for field, value in (("width", width), ("samples", samples)):
            if not 0 < value < np.inf:
                raise InvalidProblem(field, value, "a positive finite number")
        if not (np.isfinite(linear) and np.isfinite(residual)) or linear == residual == 0:
            raise InvalidProblem("linear, residual", (linear, residual), "finite, not both zero")
        self.width, self.samples = float(width), float(samples)
        self.linear, self.residual = float(linear), float(residual)
        population = (
            MarchenkoPastur(self.width, "neurons", scale=linear**2, shift=residual**2)
            if linear
            else EmpiricalLaw([residual**2])
        )
        super().__init__(population, self.samples / self.width)

    def __repr__(self) -> str:
        return (
            f"KernelBulk(width={self.width!r}, samples={self.samples!r}, "
            f"linear={self.linear!r}, residual={self.residual!r})"
        )

    def singular_values(self) -> SingularValues:
        """Law of the min(n, N) singular values of the features Φ̄."""
        return SingularValues(self, kept=min(1.0, 1.0 / self.ratio))
