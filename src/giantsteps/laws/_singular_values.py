"""Singular values: the square root of a law of eigenvalues, without the trivial zeros."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidProblem
from ._law import Law


@dataclass(frozen=True)
class SingularValues(Law):
    r"""Law of √x, x drawn from the largest fraction ``kept`` of a law on [0, ∞).

    A p × q matrix M has min(p, q) singular values; the p × p matrix M Mᵀ has p eigenvalues, of
    which at least p − q are zeros that belong to no singular value. With F the cdf of the
    eigenvalues and k = min(1, q/p),

    .. math:: F_{sv}(x) = \frac{F(x^2) - (1 - k)}{k},\qquad ρ_{sv}(x) = \frac{2xρ(x^2)}{k}.

    ======  ===============  ===========================================
    symbol  argument         meaning
    ======  ===============  ===========================================
    F, ρ    ``eigenvalues``  cdf and density of the eigenvalues
    k       ``kept``         min(1, q/p)
    ======  ===============  ===========================================

    * ``eigenvalues``: law of the eigenvalues of M Mᵀ, with an atom of mass at least 1 − ``kept`` at
      0.
    * ``kept``: k = min(1, q/p).

    References: theory §1.
    """

    eigenvalues: Law
    kept: float = 1.0

    def __post_init__(self) -> None:
        at_zero = sum(mass for x, mass in self.eigenvalues.atoms if x == 0)
        if not 0 < self.kept <= 1 or 1 - self.kept > at_zero + 1e-12:
            raise InvalidProblem("kept", self.kept, f"in [{1 - at_zero:.6g}, 1]")

    @cached_property
    def edge(self) -> float:
        """Square root of the largest eigenvalue, without the rest of the support."""
        return float(self.eigenvalues.edge**0.5)

    @cached_property
    def support(self) -> tuple[tuple[float, float], ...]:
        """Square roots of the intervals of the eigenvalues."""
        if min([lo for lo, _ in self.eigenvalues.support] + [0.0]) < 0:
            raise InvalidProblem("eigenvalues", self.eigenvalues, "a law on [0, ∞)")
        return tuple((lo**0.5, hi**0.5) for lo, hi in self.eigenvalues.support)

    @cached_property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        """Atoms of the eigenvalues, those at 0 reduced by the trivial zeros."""
        kept = [
            (x**0.5, (mass - (1 - self.kept if x == 0 else 0.0)) / self.kept)
            for x, mass in self.eigenvalues.atoms
        ]
        return tuple((x, mass) for x, mass in kept if mass > 1e-12)

    def density(self, x: ArrayLike) -> NDArray[Any]:
        """2 x ρ(x²)/k."""
        x = np.asarray(x, dtype=float)
        return np.where(x > 0, 2 * x * self.eigenvalues.density(x**2) / self.kept, 0.0)

    def cdf(self, x: ArrayLike) -> NDArray[Any]:
        """(F(x²) − (1−k))/k."""
        x = np.asarray(x, dtype=float)
        mass = (self.eigenvalues.cdf(x**2) - (1 - self.kept)) / self.kept
        return np.where(x >= 0, np.clip(mass, 0.0, 1.0), 0.0)

    def quantile(self, p: ArrayLike) -> NDArray[Any]:
        """Square root of the quantile of the eigenvalues at 1 − k + k p."""
        p = np.asarray(p, dtype=float)
        if not np.all((p >= 0) & (p <= 1)):
            raise InvalidProblem("p", p, "probabilities in [0, 1]")
        # Just above the trivial zeros: p = 0 is the lower end of what is kept.
        level = np.maximum(1 - self.kept + self.kept * p, np.nextafter(1 - self.kept, 1.0))
        return np.sqrt(self.eigenvalues.quantile(np.minimum(level, 1.0)))

    def stieltjes(self, z: ArrayLike) -> NDArray[Any]:
        """∫ dμ(x)/(x − z) by quadrature: the square root has no closed form."""
        return self._stieltjes_by_quadrature(z)
