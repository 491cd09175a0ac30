"""Answers by theory: exact high-dimensional asymptotics, in the limit or at a given size."""

from ._bounds import approximation_error, bounds, bounds_of_model
from ._critical_rate import critical_rate
from ._crossing import crossing
from ._degrees_of_freedom import degrees_of_freedom
from ._directions import Directions
from ._equivalent import equivalent
from ._given_weights import risk_of_weights
from ._gradient import gradient
from ._learned_function import learned_function
from ._lengths import Lengths
from ._level_curves import level_curves
from ._optimize import optimize
from ._outlier_count import outlier_count
from ._reuse import reuse_exponent
from ._risk import risk, staircase_risk
from ._scope import scope_table
from ._spectra import features, kernel
from ._spiked_features import SpikedFeatures
from ._staircase import Staircase, StaircaseSpike, staircase, staircase_exponents
from ._training_loss import linear_loss_drop, quadratic_loss_drop, training_loss
from ._weights import weights
from .questions.risk_of_features import risk_of_features

__all__ = [
    "Directions",
    "Lengths",
    "SpikedFeatures",
    "Staircase",
    "StaircaseSpike",
    "approximation_error",
    "bounds",
    "bounds_of_model",
    "critical_rate",
    "crossing",
    "degrees_of_freedom",
    "equivalent",
    "features",
    "gradient",
    "kernel",
    "learned_function",
    "level_curves",
    "linear_loss_drop",
    "optimize",
    "outlier_count",
    "quadratic_loss_drop",
    "reuse_exponent",
    "risk",
    "risk_of_features",
    "risk_of_weights",
    "scope_table",
    "staircase",
    "staircase_exponents",
    "staircase_risk",
    "training_loss",
    "weights",
]
