"""Expectations under Gaussian laws: kink-aware quadrature, Hermite coefficients, moments."""

from __future__ import annotations

from giantsteps.gaussian._even import smoothed_around, table_nodes
from giantsteps.gaussian._hermite import (
    Moments,
    hermite_coefficients,
    hermite_functions,
    information_exponent,
    moments,
)
from giantsteps.gaussian._multivariate import (
    coordinate_rule,
    hermite_rule,
    split_rule,
    tensor_rule,
)
from giantsteps.gaussian._panels import legendre_panels, normal_panels
from giantsteps.gaussian._quadrature import Rule, check_function, expectation, gauss_rule
from giantsteps.gaussian._scales import hermite_at_scales
from giantsteps.gaussian._smoothed import Smoothed, smoothed

__all__ = [
    "expectation",
    "hermite_coefficients",
    "information_exponent",
    "moments",
]
