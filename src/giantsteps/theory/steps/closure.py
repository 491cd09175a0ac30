r"""What a readout can fit along the spike without penalty, N = ∞ (theory §5c, §6).

Without penalty the readout fits the span of the functions μ₀_A(k) over the values of A. A
continuous second layer has all A ∈ R: the span does not depend on the rate, and it is taken where
it is easily resolved. Few values that hardly move have functions that are nearly the same; with c_A
− 1 = κ₀S_A² and

.. math:: μ_{0A}(k) = Σ_j c_j S_A^j\, p_j(k),\qquad p_{j+1} = k p_j + jκ_0 p_{j-1},

the span is that of p_m + Σ_{j>m} L_{mj}(c_j/c_m)s^{j−m}p_j over as many degrees m as the values can
tell apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from giantsteps.functions import Function
from giantsteps.gaussian import hermite_coefficients, moments
from giantsteps.theory.model.functions_of_spike import smoothed_by_symmetry
from giantsteps.theory.model.rules import graded_rule
from giantsteps.theory.steps.neuron import NeuronLaw
from giantsteps.types import FloatArray

#: Spikes of the values that stand for a continuous second layer: nodes of a panel, and their end.
_ORDERS, _REACH = (10, 14, 19, 26, 36, 48), 7.5
#: Spikes below which functions of few values are expanded in them, and the degree of the expansion.
_SMALL, _DEGREE = 0.05, 24
_PRESENT = 1e-13

Regressors = Callable[[FloatArray], FloatArray]


def closure_of_continuous(activation: Function, law: NeuronLaw, level: int) -> Regressors | None:
    """Functions (M, K) of points (K, 1) that span those of all A ∈ R; None where there is no
    spike.
    """
    unit = law.slope.hermite[0] * law.length
    if not unit:
        return None
    rule = graded_rule(level, 2.0, (0.0,), _REACH, _ORDERS, _REACH)
    whole = replace(law, moved=rule.nodes / abs(unit))
    scale, spikes = np.sqrt(whole.covariance().totals)[:, None], whole.spikes

    def regressors(points: FloatArray) -> FloatArray:
        along = np.multiply.outer(spikes, points[:, 0])
        return smoothed_by_symmetry(activation, along, scale).mean

    return regressors


def closure_of_few(activation: Function, law: NeuronLaw) -> Regressors | None:
    """Functions (T, K) that span those of few values with small spikes; None if they are not
    small.
    """
    spikes, growth = law.spikes, law.lengthening
    size = float(np.abs(spikes).max(initial=0.0))
    if growth is None or not 0 < size < _SMALL:
        return None
    coefficients = hermite_coefficients(activation, _DEGREE)
    present = np.flatnonzero(np.abs(coefficients) > _PRESENT * moments(activation).norm)
    powers = (spikes / size)[:, None] ** present
    leading = _independent(powers)
    rest = np.setdiff1d(np.arange(len(present)), leading)
    sizes = coefficients[present] * size ** present.astype(float)
    mixing = np.linalg.lstsq(powers[:, leading], powers[:, rest], rcond=None)[0]
    mixing = np.where(np.abs(mixing) > 1e-12, mixing, 0.0)
    mixing = mixing * (sizes[rest] / sizes[leading][:, None])

    def regressors(points: FloatArray) -> FloatArray:
        polynomials = _polynomials(points[:, 0], growth)[present]
        return np.asarray(polynomials[leading] + mixing @ polynomials[rest])

    return regressors


def _independent(columns: FloatArray) -> FloatArray:
    """Indices of columns that are independent of those before, as many as there are rows."""
    basis: list[FloatArray] = []
    found = []
    for number, column in enumerate(columns.T):
        rest = column.astype(float)
        for other in basis:
            rest = rest - (other @ rest) * other
        norm = float(np.linalg.norm(rest))
        if norm > 1e-9 * np.linalg.norm(column):
            basis.append(rest / norm)
            found.append(number)
        if len(found) == len(columns):
            break
    return np.array(found, dtype=int)


def _polynomials(k: FloatArray, growth: float) -> FloatArray:
    """p_j(k) for j = 0 … degree, shape (degree + 1, K)."""
    found = [np.ones_like(k), k]
    for j in range(1, _DEGREE):
        found.append(k * found[j] + j * growth * found[j - 1])
    return np.stack(found)
