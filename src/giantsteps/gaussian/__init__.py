"""Expectations under Gaussian laws: kink-aware quadrature, Hermite coefficients, moments."""

from __future__ import annotations

from giantsteps.gaussian._hermite import (
    Moments,
    hermite_coefficients,
    hermite_functions,
    hermite_tail,
    information_exponent,
    moments,
)
from giantsteps.gaussian._multivariate import (
    coordinate_rule,
    joint_rule,
    pair_expectation,
    split_rule,
)
from giantsteps.gaussian._quadrature import Rule, check_function, expectation, gauss_rule
from giantsteps.gaussian._scales import hermite_at_scales
from giantsteps.gaussian._smoothed import Smoothed, smoothed

__all__ = [
    "Moments",
    "Rule",
    "Smoothed",
    "check_function",
    "coordinate_rule",
    "expectation",
    "gauss_rule",
    "hermite_at_scales",
    "hermite_coefficients",
    "hermite_functions",
    "hermite_tail",
    "information_exponent",
    "joint_rule",
    "moments",
    "pair_expectation",
    "smoothed",
    "split_rule",
]
