"""Parts of the errors of a model: by degree of the teacher's polynomials, and wrong signs (§5c)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from giantsteps.functions import Function
from giantsteps.gaussian import coordinate_rule, hermite_coefficients, hermite_functions
from giantsteps.problem import is_binary
from giantsteps.theory.model.classification import Predicted, wrong_sign
from giantsteps.theory.model.given_coordinates import coordinates, label_jumps, labels
from giantsteps.theory.model.ridge_batch import DEGREES
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.solver.readout import Readout
from giantsteps.types import Array


def wrong_sign_of_model(model: SpikedFeatures, readout: Readout, level: int) -> float:
    """The probability of a wrong sign; NaN unless the teacher takes the values ±1."""
    if not is_binary(model.teacher):
        return math.nan
    rule, beside = coordinates(model, level), model.beside
    count, others = len(rule.weights), len(beside) - 1
    fit, slope, bend, variance = (
        getattr(readout, name)[0, ..., :count] for name in ("fit", "slope", "bend", "variance")
    )
    weights, along = rule.weights, rule.nodes @ model.cosines.T
    if others:  # all but one of the directions beside the spikes by quadrature
        more = coordinate_rule(others)
        fit = fit[:, None] + slope[1:].T @ more.nodes.T
        fit = (fit + bend[:, None] * ((more.nodes**2).sum(axis=1) - others)).ravel()
        variance = variance - (slope[1:] ** 2).sum(axis=0) - 2 * others * bend**2
        along = along[:, None] + more.nodes @ beside[:, 1:].T
        along, weights = along.reshape(-1, len(beside)), np.outer(weights, more.weights).ravel()
    repeated = (np.repeat(part, len(fit) // count) for part in (slope[0], bend, variance))
    predicted = Predicted(weights, fit, *repeated)
    return wrong_sign(predicted, lambda z: labels(model, along, z), label_jumps(model, along))


def parts_by_degree(model: SpikedFeatures, level: int) -> Callable[[Readout], Array]:
    r"""The parts by degree of any readout of a model.

    Given k, the prediction is C(k) + s(k) z + b(k)(z² − 1), z the teacher's coordinate orthogonal
    to the spikes, and E_z He_j(γ·k + √(1−|γ|²) z) = |γ|^j He_j(γ̂·k).
    """
    if model.teacher.rank > 1:
        return lambda readout: np.full(DEGREES, np.nan)
    rule = coordinates(model, level)
    count = len(rule.weights)
    length = math.sqrt(float(model.overlap @ model.overlap))
    along = rule.nodes @ (model.overlap / length) if length > 0 else rule.nodes[:, 0]
    basis = hermite_functions(along, DEGREES - 1) * rule.weights
    j, roots, pairs, target = _of_degrees(model.link)
    basis = basis * (length**j)[:, None]
    beside = float(model.beside[0, 0])
    once = beside * roots * basis[:-1]
    twice = beside**2 * pairs * basis[:-2]

    def parts(readout: Readout) -> Array:
        learned = basis @ readout.fit[0, :count]
        learned[1:] += once @ readout.slope[0, 0, :count]
        learned[2:] += twice @ readout.bend[0, :count]
        return np.asarray((learned - target) ** 2)

    return parts


@lru_cache(maxsize=64)
def _of_degrees(link: Function) -> tuple[Array, Array, Array, Array]:
    """j, √j and √(j(j−1)) of the degrees that have them, and √j! c*_j.

    √j! cancels: j He_{j−1}/√j! = √j h_{j−1}, j(j−1) He_{j−2}/√j! = √(j(j−1)) h_{j−2}.
    """
    j = np.arange(float(DEGREES))
    target = hermite_coefficients(link, DEGREES - 1) * np.exp(gammaln(j + 1) / 2)
    return j, np.sqrt(j[1:])[:, None], np.sqrt(j[2:] * (j[2:] - 1))[:, None], target
