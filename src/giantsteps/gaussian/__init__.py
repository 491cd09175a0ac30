"""Expectations under Gaussian laws: kink-aware quadrature, Hermite coefficients, moments."""

from __future__ import annotations

from giantsteps.gaussian._even import smoothed_around as smoothed_around
from giantsteps.gaussian._even import table_nodes as table_nodes
from giantsteps.gaussian._hermite import Moments as Moments
from giantsteps.gaussian._hermite import (
    hermite_coefficients,
    information_exponent,
    moments,
)
from giantsteps.gaussian._hermite import hermite_functions as hermite_functions
from giantsteps.gaussian._multivariate import coordinate_rule as coordinate_rule
from giantsteps.gaussian._multivariate import split_rule as split_rule
from giantsteps.gaussian._quadrature import Rule as Rule
from giantsteps.gaussian._quadrature import check_function as check_function
from giantsteps.gaussian._quadrature import expectation
from giantsteps.gaussian._quadrature import gauss_rule as gauss_rule
from giantsteps.gaussian._scales import hermite_at_scales as hermite_at_scales
from giantsteps.gaussian._smoothed import Smoothed as Smoothed
from giantsteps.gaussian._smoothed import smoothed as smoothed

__all__ = [
    "expectation",
    "hermite_coefficients",
    "information_exponent",
    "moments",
]
