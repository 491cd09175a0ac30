"""Inputs whose eigenvalues fall off as a power."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from giantsteps.errors import InvalidProblem
from giantsteps.problem._checks import number
from giantsteps.problem._inputs import Directions, Inputs
from giantsteps.problem._part import set_fields
from giantsteps.types import FloatArray


@dataclass(frozen=True, repr=False)
class PowerLaw(Inputs):
    r"""Eigenvalues λ_i ∝ i^{−exponent}, i = 1 … d, rescaled to tr Σ/d = 1.

    In the limit they have the law of (1 − exponent)·u^{−exponent}, u uniform on (0, 1).

    Parameters
    ----------
    exponent : float
        In [0, 1). From one on, the first eigenvalue would carry a finite share of the variance: a
        spike of order d, for which pre-activations do not have a common variance. From 1/2 on,
        tr Σ²/d grows with d, so that theory needs a given d.
    teacher : float
        β*_i² ∝ i^{−teacher}, exactly, with random signs: 0 for a teacher without a preference,
        positive for one along the leading directions, negative for one along the trailing ones;
        exponent + teacher < 1, so that no single direction carries a finite share of the teacher.
        (With Gaussian coordinates the share of the first direction, which a large step depends on,
        would differ from teacher to teacher.)

    Attributes
    ----------
    law : str
        ``"power_law"``, its name in files.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> law = PowerLaw(0.4, teacher=0.3)
    >>> eigenvalues, shares, teacher_shares = law.directions(20)
    >>> round(float(shares @ eigenvalues), 12), round(float(teacher_shares.sum()), 12)
    (1.0, 1.0)
    """

    exponent: float
    teacher: float = 0.0
    law = "power_law"

    def __post_init__(self) -> None:
        exponent = number(self.exponent, "exponent", "a number in [0, 1)", lower=0.0)
        if exponent >= 1:
            raise InvalidProblem(
                "exponent",
                exponent,
                "a number in [0, 1): from one on, the first eigenvalues are spikes of order d, "
                "which carry a finite share of the variance of the inputs",
            )
        teacher = number(self.teacher, "teacher", "a finite number")
        if exponent + teacher >= 1:
            raise InvalidProblem(
                "teacher",
                teacher,
                f"below {1 - exponent:g}, so that exponent + teacher < 1: otherwise the first "
                "directions carry all of the teacher (use SpikedCovariance for that)",
            )
        set_fields(self, exponent=exponent, teacher=teacher)

    def variances(self, d: int) -> FloatArray:
        powers = np.arange(1, d + 1) ** -self.exponent
        return powers / powers.mean()

    def teacher_variances(self, d: int, direction: int = 0) -> tuple[FloatArray, tuple[int, ...]]:
        powers = np.arange(1, d + 1) ** -(self.exponent + self.teacher)
        return powers / powers.sum(), (d,) if self.isotropic and not self.teacher else (1,) * d

    def directions(self, count: int = 64, d: int | None = None) -> Directions:
        return self._limit(count) if d is None else self._finite(count, d)

    def _limit(self, count: int) -> Directions:
        """Gauss–Legendre in t with u = t^q, where q smooths every moment that is finite."""
        along = self.exponent + self.teacher
        moments = (0.0, 2 * self.exponent, along, along + self.exponent, along + 2 * self.exponent)
        power = min(4 / (1 - max(moment for moment in moments if moment < 1)), 60.0)
        nodes, weights = np.polynomial.legendre.leggauss(count)
        t = (nodes + 1) / 2
        shares = weights * t ** (power - 1)
        shares /= shares.sum()
        values = t ** (-power * self.exponent)
        values /= shares @ values
        teacher = shares * t ** (-power * along)
        return values[::-1].copy(), shares[::-1].copy(), (teacher / teacher.sum())[::-1].copy()

    def _finite(self, count: int, d: int) -> Directions:
        """The eigenvalues at d one by one, then in groups whose sizes grow in proportion."""
        values, along = self.variances(d), self.teacher_variances(d)[0]
        ends = np.arange(1, d + 1)
        if d > count:
            # So many singles that the groups after them begin with two of a kind.
            singles = next(
                s for s in range(1, count + 1) if (count - s) * math.log1p(1 / s) <= math.log(d / s)
            )
            rest = np.geomspace(singles, d, count - singles + 1)[1:]
            ends = np.unique(np.rint([*range(1, singles + 1), *rest]).astype(int))
        starts = np.concatenate([[0], ends[:-1]])
        sizes = ends - starts
        means = np.add.reduceat(values, starts) / sizes
        return means[::-1].copy(), (sizes / d)[::-1], np.add.reduceat(along, starts)[::-1].copy()

    @property
    def isotropic(self) -> bool:
        return self.exponent == 0
