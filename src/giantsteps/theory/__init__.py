"""Answers by theory: exact high-dimensional asymptotics, in the limit or at a given size.

The names below are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from giantsteps.theory.model.covariance import NeuronCovariance as NeuronCovariance
    from giantsteps.theory.model.from_weights import risk_of_weights as risk_of_weights
    from giantsteps.theory.model.norms import Norms as Norms
    from giantsteps.theory.model.spiked_features import SpikedFeatures as SpikedFeatures
    from giantsteps.theory.probe.classification import classes_of as classes_of
    from giantsteps.theory.probe.risk_of_features import (
        risk_of_features as risk_of_features,
    )
    from giantsteps.theory.questions.bounds import bounds as bounds
    from giantsteps.theory.questions.degrees_of_freedom import (
        degrees_of_freedom as degrees_of_freedom,
    )
    from giantsteps.theory.questions.equivalent import equivalent as equivalent
    from giantsteps.theory.questions.gradient import gradient as gradient
    from giantsteps.theory.questions.learned_function import learned_function as learned_function
    from giantsteps.theory.questions.movement import movement as movement
    from giantsteps.theory.questions.outlier_count import outlier_count as outlier_count
    from giantsteps.theory.questions.reuse_exponent import reuse_exponent as reuse_exponent
    from giantsteps.theory.questions.risk import risk as risk
    from giantsteps.theory.questions.risk import staircase_risk as staircase_risk
    from giantsteps.theory.questions.spectra import features as features
    from giantsteps.theory.questions.spectra import kernel as kernel
    from giantsteps.theory.questions.spectra import weights as weights
    from giantsteps.theory.questions.training_loss import training_loss as training_loss
    from giantsteps.theory.questions.trajectory import trajectory as trajectory
    from giantsteps.theory.search.critical_rate import critical_rate as critical_rate
    from giantsteps.theory.search.crossing import crossing as crossing
    from giantsteps.theory.search.level_curves import level_curves as level_curves
    from giantsteps.theory.search.optimize import optimize as optimize
    from giantsteps.theory.search.quantity import QUANTITIES as QUANTITIES
    from giantsteps.theory.search.quantity import values_of as values_of
    from giantsteps.theory.steps.bounds import approximation_error as approximation_error
    from giantsteps.theory.steps.staircase.staircase import staircase as staircase

_LAZY = {
    "SpikedFeatures": "model.spiked_features",
    "approximation_error": "steps.bounds",
    "bounds": "questions.bounds",
    "critical_rate": "search.critical_rate",
    "crossing": "search.crossing",
    "degrees_of_freedom": "questions.degrees_of_freedom",
    "equivalent": "questions.equivalent",
    "features": "questions.spectra",
    "gradient": "questions.gradient",
    "kernel": "questions.spectra",
    "learned_function": "questions.learned_function",
    "level_curves": "search.level_curves",
    "movement": "questions.movement",
    "optimize": "search.optimize",
    "outlier_count": "questions.outlier_count",
    "reuse_exponent": "questions.reuse_exponent",
    "risk": "questions.risk",
    "risk_of_features": "probe.risk_of_features",
    "risk_of_weights": "model.from_weights",
    "staircase": "steps.staircase.staircase",
    "staircase_risk": "questions.risk",
    "training_loss": "questions.training_loss",
    "trajectory": "questions.trajectory",
    "weights": "questions.spectra",
}

# Shared with other packages; not part of the interface.
_SHARED = {
    "NeuronCovariance": "model.covariance",
    "Norms": "model.norms",
    "QUANTITIES": "search.quantity",
    "classes_of": "probe.classification",
    "values_of": "search.quantity",
}

__all__ = list(_LAZY)


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name) or _SHARED.get(name)
    if module is None:
        raise AttributeError(f"module 'giantsteps.theory' has no attribute {name!r}")
    return getattr(import_module(f"giantsteps.theory.{module}"), name)


def __dir__() -> list[str]:
    return sorted(_LAZY)
