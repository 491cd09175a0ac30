"""The Marchenko–Pastur law: eigenvalues of Gram matrices of the initial weights (theory §1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidProblem
from ._law import Law
from ._panels import Panels
from ._resolvent import traces
from ._singular_values import SingularValues


@dataclass(frozen=True)
class MarchenkoPastur(Law):
    r"""Law of shift + scale · x, x an eigenvalue of W Wᵀ (inputs) or of Wᵀ W (neurons).

    W is d × N with independent entries of mean 0 and variance 1/d, β = N/d:

    .. math:: ρ(x) = \frac{\sqrt{(λ_+ - x)(x - λ_-)}}{2π\,c\,x},\qquad
              λ_± = (1 ± \sqrt β)^2,

    with c = 1 for the d eigenvalues of W Wᵀ, which have an atom of mass 1 − β at 0 if β < 1,
    and c = β for the N eigenvalues of Wᵀ W, with one of mass 1 − 1/β if β > 1.

    ======  =========  ===================================
    symbol  argument   meaning
    ======  =========  ===================================
    β       ``width``  columns over rows, N/d
    c       ``side``   ``"inputs"`` or ``"neurons"``
    ======  =========  ===================================

    Parameters
    ----------
    width : float
        Positive ratio N/d.
    side : {"inputs", "neurons"}
        Which Gram matrix.
    scale, shift : float
        The law is that of ``shift + scale * x``; scale positive, shift not negative.

    References
    ----------
    theory §1.

    Examples
    --------
    >>> law = MarchenkoPastur(4.0)  # d eigenvalues of W Wᵀ, N = 4d
    >>> law.support, law.atoms
    (((1.0, 9.0),), ())
    >>> MarchenkoPastur(4.0, side="neurons").atoms  # 3d of the N eigenvalues of Wᵀ W are zero
    ((0.0, 0.75),)
    >>> law.singular_values().support
    ((1.0, 3.0),)
    """

    width: float
    side: Literal["inputs", "neurons"] = "inputs"
    scale: float = 1.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        for field in ("width", "scale"):
            value = getattr(self, field)
            if not 0 < value < np.inf:
                raise InvalidProblem(field, value, "a positive finite number")
        if not 0 <= self.shift < np.inf:
            raise InvalidProblem("shift", self.shift, "a finite number, not negative")
        if self.side not in ("inputs", "neurons"):
            raise InvalidProblem("side", self.side, "'inputs' (W Wᵀ) or 'neurons' (Wᵀ W)")

    @cached_property
    def support(self) -> tuple[tuple[float, float], ...]:
        """One interval, shift + scale·[(1−√β)², (1+√β)²]."""
        lower, upper = self._unit_edges
        return ((self.shift + self.scale * lower, self.shift + self.scale * upper),)

    @cached_property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        """The null space of the larger Gram matrix, at ``shift``."""
        mass = 1.0 - (self.width if self.side == "inputs" else 1.0 / self.width)
        return ((self.shift, mass),) if mass > 0 else ()

    def density(self, x: ArrayLike) -> NDArray[Any]:
        """Density of the continuous part."""
        unit = (np.asarray(x, dtype=float) - self.shift) / self.scale
        lower, upper = self._unit_edges
        inside = (unit >= lower) & (unit <= upper) & (unit > 0)
        unit = np.where(inside, unit, 0.5 * (lower + upper))
        height = np.sqrt((upper - unit) * (unit - lower)) / (2 * np.pi * unit)
        return np.where(inside, height / (self._multiplicity * self.scale), 0.0)

    def stieltjes(self, z: ArrayLike) -> NDArray[Any]:
        """∫ dμ(x)/(x − z) in closed form, from g1 or g2 at s = (shift − z)/scale."""
        z = np.asarray(z, dtype=complex)
        # Im s = +|Im z| and a conjugation: real z is then approached from the upper half-plane.
        s = (self.shift - z.real) / self.scale + 1j * (np.abs(z.imag) / self.scale)
        found = traces(s, self.width)
        trace = (found.left if self.side == "inputs" else found.right) / self.scale
        return np.where(z.imag < 0, trace, trace.conj())

    def fractions(self, omega: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """∫ dμ/(t − ω), ∫ t dμ/(t − ω), ∫ t² dμ/(t − ω)², each without cancellation.

        With q = ∫ x/(x+s) = c⁻¹β s g₁g₂ and r the root of the discriminant,
        ∫ x/(x+s)² = q/r and ∫ x²/(x+s)² = q (r − s)/r.
        """
        s = (self.shift - np.asarray(omega)) / self.scale
        left, right, root, _ = traces(s, self.width)
        own = left if self.side == "inputs" else right
        ratio = self.shift / self.scale
        with np.errstate(divide="ignore", invalid="ignore"):  # infinite at an edge
            sg1 = s * left
            beyond = 2.0 * sg1 + (self.width - 1.0)  # r − s
            q = sg1 * right * (self.width / self._multiplicity)
            first = ratio * own + q
            slope = own * (1.0 + self._multiplicity * own)  # −r times that of ∫ dμ/(x + s)
            second = (ratio**2 * slope + q * (2.0 * ratio + beyond)) / root
        return own / self.scale, first, second

    def singular_values(self) -> SingularValues:
        """Law of the min(d, N) singular values of √scale · W, which has no atom."""
        if self.shift:
            raise InvalidProblem("shift", self.shift, "0: a shifted law has no singular values")
        return SingularValues(
            self, kept=min(1.0, self.width if self.side == "inputs" else 1.0 / self.width)
        )

    @cached_property
    def _panels(self) -> tuple[Panels, ...]:
        """Those of the unit law, moved: a hard edge keeps its digits when it is not at 0."""
        if self.scale == 1.0 and self.shift == 0.0:
            return (Panels.adapted(self.density, *self.support[0]),)
        (unit,) = MarchenkoPastur(self.width, self.side)._panels
        lower, upper = self.support[0]
        return (replace(unit, lower=lower, upper=upper),)

    @property
    def _multiplicity(self) -> float:
        return 1.0 if self.side == "inputs" else self.width

    @property
    def _unit_edges(self) -> tuple[float, float]:
        root = np.sqrt(self.width)
        return float(((1.0 - self.width) / (1.0 + root)) ** 2), float((1.0 + root) ** 2)
