"""Findings that one fit describes: do their gaps close, and what error would have been seen?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special, stats
from scipy.optimize import brentq, minimize_scalar

from giantsteps.campaign import mean_and_error
from giantsteps.comparison.certify._finding import Finding
from giantsteps.types import FloatArray

#: Powers by which a gap may close: d^{-1/2} (the pull of the initial network) to 1/d.
POWERS = np.linspace(0.5, 1.0, 11)
#: Drop of the log-likelihood at the ends of the range of powers that is stated: 95 %.
_RANGE = stats.chi2.isf(0.05, 1) / 2
#: A gap is mentioned where it is beyond so many standard errors.
SEEN = 3.0
#: Largest relative error that is looked for.
_MOST = 10.0


@dataclass(frozen=True, eq=False)
class Group:
    r"""Findings of one family.

    With x_i = r^p (g_i(d₂) − ε) − (g_i(d₁) − ε) the contrast of a block, t = x̄/se is Student's
    with blocks − 1 degrees of freedom if the theory leaves the relative error ε and the rest of
    the gap closes as d^{-p}. Then z = Φ⁻¹(F(t)) is N(0, 1), and over the findings so is

    .. math:: Z(p, ε) = \frac{\sum w z}{\sqrt{\sum w^2}},\qquad
              w = \bigl(\sum_i x_i^2\bigr)^{-1/2},

    since t is independent of Σx²: the precision of a finding counts at no cost. Σz² is χ².
    The family fails if, for every p in [1/2, 1], Z(p, 0) or Σz² is too large for chance.

    ======  ============  =============================================================
    symbol  attribute     meaning
    ======  ============  =============================================================
    p       ``power``     by which the gap closes, in [1/2, 1]
    ε       ``error``     common relative error left at d = ∞
    t       ``t``         of each finding; F is the Student cdf
    ======  ============  =============================================================
    """

    name: str
    findings: tuple[Finding, ...]
    level: float  # a test fails if chance alone would do so this rarely

    @cached_property
    def _gaps(self) -> FloatArray:
        """Of shape (2, findings, blocks)."""
        return np.stack([finding.gaps for finding in self.findings], axis=1)

    @property
    def _blocks(self) -> int:
        return self._gaps.shape[2]

    def _contrast(self, powers: FloatArray, error: float) -> FloatArray:
        """x, of shape (powers, findings, blocks)."""
        lower, upper = self.findings[0].plan.sizes
        growth = (upper / lower) ** powers[:, None, None]
        return growth * (self._gaps[1] - error) - (self._gaps[0] - error)

    def _student(self, x: FloatArray) -> FloatArray:
        mean, error, _ = mean_and_error(x, axis=2)
        return mean / error

    def _sums(self, powers: FloatArray, error: float) -> tuple[FloatArray, FloatArray]:
        """Z and Σz² for each power."""
        x = self._contrast(powers, error)
        t = self._student(x)
        z = -np.sign(t) * special.ndtri(stats.t.sf(np.abs(t), self._blocks - 1))
        w = np.sum(x**2, axis=2) ** -0.5
        return np.sum(w * z, axis=1) / np.linalg.norm(w, axis=1), np.sum(z**2, axis=1)

    # The power ---------------------------------------------------------------------------------

    def _surprise(self, power: float) -> float:
        t = self._student(self._contrast(np.array([power]), 0.0))
        return -float(np.sum(stats.t.logpdf(t, self._blocks - 1)))

    @cached_property
    def power(self) -> float:
        """p of gap ∝ d^{-p}, free in [1/2, 1]: the most likely one."""
        found = minimize_scalar(self._surprise, bounds=(0.5, 1.0), method="bounded")
        return float(found.x)

    @cached_property
    def power_range(self) -> tuple[float, float]:
        """Powers that are not much less likely (95 %)."""
        least = self._surprise(self.power)
        near = [float(p) for p in POWERS if self._surprise(p) - least <= _RANGE]
        return min([*near, self.power]), max([*near, self.power])

    # Single findings ---------------------------------------------------------------------------

    @cached_property
    def t(self) -> FloatArray:
        """Student t of each finding, with the power of the group."""
        return self._student(self._contrast(np.array([self.power]), 0.0))[0]

    @cached_property
    def uniform(self) -> FloatArray:
        """Student cdf of t."""
        u: FloatArray = stats.t.cdf(self.t, self._blocks - 1)
        return u

    @cached_property
    def kolmogorov(self) -> float:
        """p-value of the Kolmogorov–Smirnov test against the uniform law."""
        return float(stats.kstest(self.uniform, "uniform").pvalue)

    # A common error ----------------------------------------------------------------------------

    def p_value(self, error: float = 0.0) -> float:
        """Of the hypothesis that so much is left at d = ∞, for the power that favours it most.

        The smaller p-value of the two tests, twice, since there are two.
        """
        shift, spread = self._sums(POWERS, error)
        tests = [2 * stats.norm.sf(np.abs(shift)), stats.chi2.sf(spread, len(self.findings))]
        return min(1.0, 2 * float(np.max(np.min(tests, axis=0))))

    def _where(self, shift: float) -> float:
        """The error at which Z, with the power of the group, has this value; ±∞ if it never has."""
        power = np.array([self.power])

        def excess(error: float) -> float:
            return float(self._sums(power, error)[0][0]) - shift

        if excess(-_MOST) < 0:
            return -math.inf
        if excess(_MOST) > 0:
            return math.inf
        return float(brentq(excess, -_MOST, _MOST, xtol=1e-7))

    @cached_property
    def error(self) -> float:
        """Common relative error left at d = ∞, with the power of the group."""
        return self._where(0.0)

    @cached_property
    def standard_error(self) -> float:
        """Of `error`."""
        return (self._where(-1.0) - self._where(1.0)) / 2

    @cached_property
    def allowed(self) -> tuple[float, float]:
        """Errors that would pass, for some power: a theory that is off by more fails."""
        return self._end(-1.0), self._end(1.0)

    def _end(self, sign: float) -> float:
        """From the error at hand outwards, until the p-value is below the level."""
        inside = max((self.error, 0.0), key=self.p_value)
        if self.p_value(inside) <= self.level:
            return inside
        step = self.standard_error
        while self.p_value(inside + sign * step) > self.level:
            step *= 2
            if not step < _MOST:
                return sign * math.inf
        return float(
            brentq(
                lambda e: math.log(max(self.p_value(e), 1e-300) / self.level),
                inside,
                inside + sign * step,
                xtol=1e-6,
            )
        )

    @property
    def detectable(self) -> float:
        """A wrong factor, up or down by this much, is found."""
        return max(abs(end) for end in self.allowed)

    # Verdict -----------------------------------------------------------------------------------

    @property
    def passed(self) -> bool:
        """Whether both tests are unsurprising."""
        return min(self.kolmogorov, self.p_value()) > self.level

    def gap_at(self, size: int) -> tuple[float, float]:
        """Mean relative gap at d₁ (0) or d₂ (1), each finding by its precision; standard error."""
        mean, error, _ = mean_and_error(self._gaps[size], axis=1)
        weight = error**-2
        return float(weight @ mean / np.sum(weight)), float(np.sum(weight)) ** -0.5

    @property
    def gap(self) -> float:
        """At the larger size."""
        return self.gap_at(1)[0]

    @property
    def gap_error(self) -> float:
        """Standard error of `gap`."""
        return self.gap_at(1)[1]

    @property
    def trend(self) -> str:
        """In words: how the gap goes from d₁ to d₂."""
        if all(abs(gap) <= SEEN * error for gap, error in map(self.gap_at, (0, 1))):
            return "none seen"
        return f"closes as d^-{self.power:.2g}" if self.p_value() > self.level else "stays"

    def to_data(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "settings": len(self.findings),
            "power": self.power,
            "power_range": list(self.power_range),
            "error": self.error,
            "standard_error": self.standard_error,
            "p_value": self.p_value(),
            "allowed": list(self.allowed),
            "detectable": self.detectable,
            "kolmogorov_smirnov_p": self.kolmogorov,
            "gap": self.gap,
            "theory_minus_simulation": [[-gap, error] for gap, error in map(self.gap_at, (0, 1))],
            "trend": self.trend,
            "passed": self.passed,
        }
