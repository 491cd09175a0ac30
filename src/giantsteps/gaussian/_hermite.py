"""Hermite coefficients and moments of a function under N(0, 1).

f = Σ_k c_k He_k,  c_k = E[f(z) He_k(z)]/k!,  Σ_k k! c_k² = E f² (Parseval).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from giantsteps.errors import InvalidProblem, NotConverged
from giantsteps.gaussian._quadrature import evaluate, gauss_rule

if TYPE_CHECKING:
    from giantsteps.functions import Function

#: What counts as zero relative to ‖f‖ = (E f²)^½, in parity, centring and information exponent.
ZERO = 1e-10
#: What is left of a linear function by rounding, relative to the same.
_ROUNDING = 1e-14
#: How far Σ k! c_k² may exceed E f², relative to it.
PARSEVAL = 1e-12
#: Highest degree of a Hermite coefficient, and of the search for the information exponent.
MAX_DEGREE, MAX_EXPONENT = 100, 30


def hermite_functions(x: np.ndarray, degree: int) -> np.ndarray:
    """h_k(x) = He_k(x)/√k!, k = 0..degree, shape (degree + 1, *x.shape); E h_j h_k = δ_jk.

    By the recurrence √(k+1) h_{k+1} = x h_k − √k h_{k−1}, which neither overflows nor cancels.

    * ``x``: Where.
    * ``degree``: highest k.
    """
    values = np.empty((degree + 1, *np.shape(x)))
    values[0] = 1.0
    if degree:
        values[1] = x
    for k in range(1, degree):
        values[k + 1] = (x * values[k] - math.sqrt(k) * values[k - 1]) / math.sqrt(k + 1)
    return values


@lru_cache(maxsize=1024)
def _normalised(function: Function, degree: int) -> tuple[np.ndarray, float]:
    """E[f h_k] = √k! c_k for k = 0..degree, and E f²."""
    if not 0 <= degree <= MAX_DEGREE:
        raise InvalidProblem("degree", degree, f"an integer from 0 to {MAX_DEGREE}")
    # Beyond the rule's range f² φ is negligible, and so is f h_k φ by Cauchy–Schwarz.
    rule = gauss_rule(function)
    values = evaluate(function, rule.nodes)
    coefficients = rule.mean(hermite_functions(rule.nodes, degree) * values)
    square = float(rule.mean(values**2))
    tail = square - float(np.sum(coefficients**2))
    if tail < -PARSEVAL * square:
        raise NotConverged(
            f"Hermite coefficients of {function!r} to degree {degree} (Parseval)",
            -tail / square,
            1,
            "a lower degree",
        )
    coefficients.setflags(write=False)
    return coefficients, square


@lru_cache(maxsize=1024)
def hermite_coefficients(function: Function, degree: int) -> np.ndarray:
    """c_k = E[f(z) He_k(z)]/k! for k = 0..degree.

    √k! c_k is accurate to 1e-12 ‖f‖, and Parseval's inequality Σ k! c_k² ≤ E f² is asserted. The
    array is shared and read-only.

    Parameters
    ----------
    function : Function
        f.
    degree : int
        Highest k, at most 100.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> from giantsteps.functions import as_function
    >>> hermite_coefficients(as_function("x**3"), 3).round(12) + 0.0  # x³ = He₃ + 3 He₁
    array([0., 3., 0., 1.])
    >>> hermite_coefficients(as_function("tanh"), 5).round(4)
    array([ 0.    ,  0.6057,  0.    , -0.0606,  0.    ,  0.0057])
    """
    coefficients = _normalised(function, degree)[0] / np.exp(gammaln(np.arange(1, degree + 2)) / 2)
    coefficients.setflags(write=False)
    return coefficients


@lru_cache(maxsize=1024)
def information_exponent(function: Function) -> int:
    """The smallest k ≥ 1 with c_k ≠ 0, that is √k! |c_k| > 1e-10 ‖f‖.

    Parameters
    ----------
    function : Function
        f.

    Raises
    ------
    InvalidProblem
        If there is none up to degree 30.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> from giantsteps.functions import as_function
    >>> [information_exponent(as_function(name)) for name in ("tanh", "x**2", "he3")]
    [1, 2, 3]
    """
    coefficients, square = _normalised(function, MAX_EXPONENT)
    found = np.flatnonzero(np.abs(coefficients[1:]) > ZERO * np.sqrt(square))
    if not found.size:
        raise InvalidProblem(
            "function",
            function,
            f"a function with a Hermite coefficient between degree 1 and {MAX_EXPONENT} "
            f"above {ZERO:g} of its norm",
        )
    return int(found[0]) + 1


@dataclass(frozen=True)
class Moments:
    """Moments of f(z), z ~ N(0, 1), in the names of theory §0.

    Attributes
    ----------
    function : Function
        f.
    mean : float
        c₀ = E f.
    linear : float
        μ₁ = c₁ = E z f (= E f' for a function without jumps).
    quadratic : float
        c₂ = E (z² − 1) f/2.
    second_moment : float
        E f².
    residual_variance : float
        μ₂² = E f² − c₀² − μ₁² = E (f − c₀ − μ₁ z)².
    is_odd, is_even, is_centered : bool
        ‖f(z) + f(−z)‖, ‖f(z) − f(−z)‖, |c₀| ≤ 1e-10 ‖f‖.
    """

    function: Function = field(repr=False)
    mean: float
    linear: float
    quadratic: float
    second_moment: float
    residual_variance: float
    is_odd: bool
    is_even: bool
    is_centered: bool

    @property
    def norm(self) -> float:
        """‖f‖ = (E f²)^½."""
        return self.second_moment**0.5

    @property
    def variance(self) -> float:
        """Var f = μ₁² + μ₂²."""
        return self.linear**2 + self.residual_variance

    @property
    def residual(self) -> float:
        """μ₂ = (E f² − c₀² − μ₁²)^½."""
        return self.residual_variance**0.5

    @cached_property
    def derivative_variance(self) -> float:
        """Var f'(z) = E (f' − μ₁)².

        Raises
        ------
        InvalidProblem
            If f jumps, or f' has no finite second moment.
        """
        derivative = self.function.derivative
        rule = gauss_rule(derivative)
        return float(rule.mean((evaluate(derivative, rule.nodes) - self.linear) ** 2))


@lru_cache(maxsize=1024)
def moments(function: Function) -> Moments:
    """c₀, μ₁, c₂, E f², μ₂² and the symmetries of f, each accurate to 1e-12 relative to ‖f‖.

    Parameters
    ----------
    function : Function
        f; may be constant.

    References
    ----------
    theory §0.

    Examples
    --------
    The centred ReLU of Ba et al.: μ₁ = 1/2 and μ₂² = 1/4 − 1/(2π).

    >>> from giantsteps.functions import centered
    >>> found = moments(centered("relu"))
    >>> round(found.linear, 12), round(found.residual_variance, 12)
    (0.5, 0.090845056908)
    >>> round(0.25 - 1 / (2 * np.pi), 12)
    0.090845056908
    """
    rule = gauss_rule(function)
    z, values = rule.nodes, evaluate(function, rule.nodes)
    mean, linear = float(rule.mean(values)), float(rule.mean(values * z))
    square = float(rule.mean(values**2))
    rest = float(rule.mean((values - mean - linear * z) ** 2))
    mirrored = evaluate(function, -z)
    return Moments(
        function=function,
        mean=mean,
        linear=linear,
        quadratic=float(rule.mean(values * (z**2 - 1))) / 2,
        second_moment=square,
        residual_variance=rest if rest > _ROUNDING**2 * square else 0.0,
        is_odd=bool(rule.mean((values + mirrored) ** 2) <= ZERO**2 * square),
        is_even=bool(rule.mean((values - mirrored) ** 2) <= ZERO**2 * square),
        is_centered=abs(mean) <= ZERO * square**0.5,
    )
