"""Floor and ceiling of the test error of spiked features of one type (theory §4)."""

from __future__ import annotations

import math

import numpy as np

from giantsteps.answers import Bounds
from giantsteps.errors import NotCovered
from giantsteps.functions import Function, Teacher
from giantsteps.gaussian import smoothed
from giantsteps.theory.model.functions_of_spike import left_of, teacher_given
from giantsteps.theory.model.rules import graded_rule
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.model.teacher import teacher_moments
from giantsteps.types import FloatArray


def bounds_of_model(model: SpikedFeatures) -> Bounds:
    """Lower and upper bound of R at the best penalty for spiked features of one type, rank one.

    References: theory §4; cui2024.
    """
    if model.spikes.shape != (1, 1):
        raise NotCovered(
            f"bounds of {model.describe()}",
            "the bounds of cui2024 are those of one type and one spike",
            "a constant second layer after one step",
        )
    low, high = best_penalty(
        model.activation,
        model.teacher,
        float(model.spikes[0, 0]),
        float(model.bulk.totals[0]),
        model.cosines[:, 0],
    )
    return Bounds(
        **model.stated,
        floors={
            "linear": teacher_moments(model.teacher).residual_variance,
            "optimal penalty": low,
        },
        ceilings={"infinite penalty": high},
    )


def best_penalty(
    activation: Function, teacher: Teacher, spike: float, variance: float, overlap: FloatArray
) -> tuple[float, float]:
    r"""Lower and upper bound at the best penalty, from the coefficients of theory §5c.

    .. math::
        \text{infinite penalty} &= \inf_ν E(h - νμ_0)^2 + E\operatorname{Var}[f^*|k] \;\ge\; R \\
        \text{optimal penalty} &= \inf_{ν_1,ν_2} E(h - ν_1μ_0 - ν_2 kμ_1)^2
            + E\operatorname{Var}[f^*|k] - \frac{|E h_1 μ_1|^2}{E μ_1^2} \;\le\; R
    """
    width = 2.0 ** math.floor(math.log2(2.0 / max(abs(spike) / math.sqrt(variance), 0.5)))
    rule = graded_rule(3, width)
    k, mean = rule.nodes, rule.mean
    feature = smoothed(activation, spike * k, np.full_like(k, math.sqrt(variance)))
    wanted = teacher_given(teacher, np.outer(overlap, k), left_of(overlap[:, None])[0])
    hidden = float(mean(wanted.square - wanted.mean**2))  # E Var[f*|k]
    linear = wanted.linear @ (rule.weights * feature.slope)
    learned = float(linear @ linear) / float(mean(feature.slope**2))
    upper = hidden + _distance(wanted.mean, [feature.mean], rule.weights)
    lower = hidden + _distance(wanted.mean, [feature.mean, k * feature.slope], rule.weights)
    return lower - learned, upper


def _distance(target: FloatArray, basis: list[FloatArray], weights: FloatArray) -> float:
    """inf over ν of E(target − Σ ν_i basis_i)², by least squares on √weight · values."""
    root = np.sqrt(weights)
    design = np.stack(basis, axis=-1) * root[:, None]
    solution = np.linalg.lstsq(design, target * root, rcond=None)[0]
    return float(np.sum((target * root - design @ solution) ** 2))
