r"""Laws of the inputs: x ~ N(0, Σ), by the eigenvalues of Σ and how the teacher lies among them.

A law gives coordinates to the simulation and directions (eigenvalues, their shares and those of
the teacher) to the theory, so that neither has to ask which law it is. Σ is diagonal in the
coordinates of the inputs: networks start without a preferred basis, so only rules that act on
coordinates (``"sign"``, ``"adam"``) can tell.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from giantsteps.problem._part import Law
from giantsteps.types import FloatArray

#: Eigenvalues, their shares, and the shares of the teacher.
Directions = tuple[FloatArray, FloatArray, FloatArray]


class Inputs(Law, ABC):
    r"""The law of the inputs, x = Σ^{1/2} z with z ~ N(0, I_d) (theory §0).

    Two normalisations hold for every law: tr Σ/d = 1, so that pre-activations start with variance
    one, and ⟨β*, Σβ*⟩ = 1, so that the teacher sees a standard Gaussian ⟨x, β*⟩.

    ======  ===================================================================================
    symbol  meaning
    ======  ===================================================================================
    λ_ι     eigenvalues of Σ
    ν_ι     their shares of the d directions, Σ_ι ν_ι = 1 and Σ_ι ν_ι λ_ι = 1
    ω_ι     shares of ‖β*‖² over the eigenspaces; ω = ν for a teacher without a preference
    τ_ι     shares of ‖Σ^{1/2}β*‖² = 1, that is ω_ι λ_ι up to a factor
    ======  ===================================================================================

    Attributes
    ----------
    law : str
        The name of the law in files and in ``Problem(inputs=...)``.
    """

    @abstractmethod
    def variances(self, d: int) -> FloatArray:
        """Return the variance of each coordinate at dimension d, (d,)."""

    @abstractmethod
    def teacher_variances(self, d: int, direction: int = 0) -> tuple[FloatArray, tuple[int, ...]]:
        """Return how Σ^{1/2}β* is drawn: independent coordinates of these variances, (d,), then
        runs of coordinates (whose lengths are the second value, summing to d), each rescaled to
        exactly the sum of its variances; the total is one.

        ``direction`` is the number of the direction for a teacher with several of them.
        """

    @abstractmethod
    def directions(self, count: int = 64, d: int | None = None) -> Directions:
        """Return (λ, ν, τ), each of shape (ι,), such that E g = Σ_ι ν_ι g(λ_ι).

        Exact for finitely many eigenvalues; otherwise a quadrature with about ``count`` nodes. In
        the limit d → ∞, or for the eigenvalues at a given d.
        """

    def at(self, d: int) -> Inputs:
        """Return the law whose shares are exactly those of the integers at dimension d.

        Raises
        ------
        InvalidProblem
            If d is too small for the law.
        """
        return self

    @property
    def isotropic(self) -> bool:
        """Whether Σ = I."""
        return False


@dataclass(frozen=True, repr=False)
class Isotropic(Inputs):
    """Σ = I: standard Gaussian inputs, the default.

    Attributes
    ----------
    law : str
        ``"isotropic"``, its name in files.

    References
    ----------
    theory §0.
    """

    law = "isotropic"

    def variances(self, d: int) -> FloatArray:
        return np.ones(d)

    def teacher_variances(self, d: int, direction: int = 0) -> tuple[FloatArray, tuple[int, ...]]:
        return np.full(d, 1 / d), (d,)

    def directions(self, count: int = 64, d: int | None = None) -> Directions:
        return np.ones(1), np.ones(1), np.ones(1)

    @property
    def isotropic(self) -> bool:
        return True
