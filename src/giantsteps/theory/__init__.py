"""Answers by theory: exact high-dimensional asymptotics, in the limit or at a given size."""

#from giantsteps.theory.questions.bounds import approximation_error, bounds, bounds_of_model
#from giantsteps.theory.search.critical_rate import critical_rate
#from giantsteps.theory.search.crossing import crossing
#from giantsteps.theory.questions.degrees_of_freedom import degrees_of_freedom
#from ._directions import Directions
#from giantsteps.theory.equivalent.build import equivalent
#from giantsteps.theory.equivalent.from_weights import risk_of_weights
#from giantsteps.theory.questions.gradient import gradient
#from giantsteps.theory.questions.learned_function import learned_function
#from ._lengths import Lengths
#from giantsteps.theory.search.level_curves import level_curves
#from giantsteps.theory.search.optimize import optimize
#from giantsteps.theory.questions.outlier_count import outlier_count
#from giantsteps.theory.steps.several.reuse import reuse_exponent
#from giantsteps.theory.questions.risk import risk, staircase_risk
#from giantsteps.theory.scope.page import scope_table
#from giantsteps.theory.questions.spectra import features, kernel
#from giantsteps.theory.equivalent.model import SpikedFeatures
#from giantsteps.theory.steps.staircase.staircase import Staircase, StaircaseSpike, staircase, staircase_exponents
#from giantsteps.theory.questions.training_loss import linear_loss_drop, quadratic_loss_drop, training_loss
#from giantsteps.theory.questions.weights import weights

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
    "risk_of_weights",
    "scope_table",
    "staircase",
    "staircase_exponents",
    "staircase_risk",
    "training_loss",
    "weights",
]
