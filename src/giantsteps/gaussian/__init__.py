"""Expectations under Gaussian laws: kink-aware quadrature, Hermite coefficients, moments."""

from __future__ import annotations

from ._hermite import (
    Moments,
    hermite_coefficients,
    hermite_functions,
    hermite_tail,
    information_exponent,
    moments,
)
from ._quadrature import Rule, check_function, expectation, gauss_rule

__all__ = [
    "Moments",
    "Rule",
    "check_function",
    "expectation",
    "gauss_rule",
    "hermite_coefficients",
    "hermite_functions",
    "hermite_tail",
    "information_exponent",
    "moments",
]
