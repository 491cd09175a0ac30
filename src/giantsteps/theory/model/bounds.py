"""Floor and ceiling of the test error of spiked features of one type (theory §4)."""

from __future__ import annotations

import math

import numpy as np

from giantsteps.answers import Bounds
from giantsteps.errors import NotCovered
from giantsteps.functions import Function
from giantsteps.gaussian import moments, smoothed
from giantsteps.theory.model.rules import graded_rule
from giantsteps.theory.model.spiked_features import SpikedFeatures
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
        model.link,
        float(model.spikes[0, 0]),
        float(model.bulk.totals[0]),
        float(model.overlap[0]),
    )
    return Bounds(
        **model.stated,
        floors={"linear": moments(model.link).residual_variance, "optimal penalty": low},
        ceilings={"infinite penalty": high},
    )


def best_penalty(
    activation: Function, link: Function, spike: float, variance: float, overlap: float
) -> tuple[float, float]:
    r"""Lower and upper bound at the best penalty, from the coefficients of theory §5c.

    .. math::
        \text{infinite penalty} &= \inf_ν E(h - νμ_0)^2 + E\operatorname{Var}[f^*|k] \;\ge\; R \\
        \text{optimal penalty} &= \inf_{ν_1,ν_2} E(h - ν_1μ_0 - ν_2 kμ_1)^2
            + E\operatorname{Var}[f^*|k] - \frac{(E h_1 μ_1)^2}{E μ_1^2} \;\le\; R
    """
    width = 2.0 ** math.floor(math.log2(2.0 / max(abs(spike) / math.sqrt(variance), 0.5)))
    rule = graded_rule(3, width)
    k, mean = rule.nodes, rule.mean
    feature = smoothed(activation, spike * k, np.full_like(k, math.sqrt(variance)))
    rest = math.sqrt(max(1.0 - overlap**2, 0.0))
    teacher = smoothed(link, overlap * k, np.full_like(k, rest))
    hidden = float(mean(teacher.second_moment - teacher.mean**2))  # E Var[f*|k]
    learned = float(mean(teacher.linear * feature.slope)) ** 2 / float(mean(feature.slope**2))
    upper = hidden + _distance(teacher.mean, [feature.mean], rule.weights)
    lower = hidden + _distance(teacher.mean, [feature.mean, k * feature.slope], rule.weights)
    return lower - learned, upper


def _distance(target: FloatArray, basis: list[FloatArray], weights: FloatArray) -> float:
    """inf over ν of E(target − Σ ν_i basis_i)², by least squares on √weight · values."""
    root = np.sqrt(weights)
    design = np.stack(basis, axis=-1) * root[:, None]
    solution = np.linalg.lstsq(design, target * root, rcond=None)[0]
    return float(np.sum((target * root - design @ solution) ** 2))
