"""The lengths of the neurons: how they vary within a type, and with the weight along the spike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.gaussian import gauss_rule, hermite_coefficients, moments
from giantsteps.problem import Problem
from giantsteps.theory._directions import Directions
from giantsteps.theory._first_step import first_step

__all__ = ["Lengths", "length_slope", "lengths_after_step"]


@dataclass(frozen=True, eq=False)
class Lengths:
    r"""How the squared lengths of the neurons of a type vary about cₜ.

    .. math:: \|w_j\|^2 = c_t + κ_t ⟨w_{0j}, \hat b⟩ + \sqrt{v_t/d}\; ξ_j

    Both terms are of order d^{-1/2}, and so is the weight of a single neuron in what the readout
    sums over all of them: they change the errors by an amount that does not vanish.

    ======  ==========  ==================================================================
    symbol  argument    meaning
    ======  ==========  ==================================================================
    κₜ      ``slope``   shape (T,): with the initial weight along the spike b̂
    vₜ      ``spread``  shape (T,): the rest, independent of the directions
    ======  ==========  ==================================================================

    References
    ----------
    theory §5e.

    Examples
    --------
    Rows with independent Gaussian entries instead of rows on a sphere, c = 1:

    >>> from giantsteps.problem import Ridge
    >>> from giantsteps.theory import SpikedFeatures
    >>> given = {"activation": "tanh", "teacher": "tanh", "width": 1.0, "spikes": 2.0,
    ...          "overlap": 1.0, "bulk": 1.0}
    >>> readout = Ridge(samples=3.0, penalty=0.1 / 3)
    >>> sphere = SpikedFeatures(**given).risk(readout).test
    >>> gaussian = SpikedFeatures(**given, lengths=Lengths(0.0, 2.0)).risk(readout).test
    >>> f"{gaussian / sphere - 1:.1%}"
    '-5.3%'
    """

    slope: NDArray
    spread: NDArray

    def __init__(self, slope: ArrayLike, spread: ArrayLike) -> None:
        for name, given in (("slope", slope), ("spread", spread)):
            value = np.atleast_1d(np.array(given, dtype=float))
            if value.ndim != 1 or not np.all(np.isfinite(value)):
                raise InvalidProblem(f"lengths.{name}", given, "a finite number for each type")
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        if np.any(self.spread < 0):
            raise InvalidProblem("lengths.spread", spread, "non-negative")


def length_slope(problem: Problem, moved: ArrayLike) -> NDArray:
    r"""κ = 12 c₃ η̃A ‖b‖ of neurons that have η̃A = ``moved``.

    A step adds η̃A n₀⁻¹ Σ y_i x_i σ'(g_i) to a neuron, g_i = ⟨w₀, x_i⟩; across the part along b
    its squared length gains 2η̃A n₀⁻¹ Σ y_i g_i(σ'(g_i) − μ₁), and the part of g(σ'(g) − μ₁) that
    is linear in g has the coefficient E[He₂σ'] = 6c₃.
    """
    cubic = float(hermite_coefficients(problem.activation, 3)[3])
    length = np.sqrt(first_step(problem).norm_squared)
    return np.asarray(12.0 * cubic * length * np.asarray(moved, dtype=float))


def lengths_after_step(problem: Problem, moved: NDArray, bulk: Directions) -> Lengths:
    r"""Lengths of the types with η̃A = ``moved`` after one step of an odd activation.

    .. math:: v = 4(η̃A)² \frac{E y_0²}{α_0} \bigl(E[g²(σ'-μ_1)²] - 36c_3²\bigr)
                  + 2 Σ ν_ι (s(ι) - 1)² + 2\,[\text{gaussian } W_0]

    the three from the product of old and new weights, from the new ones, and from the old ones.
    """
    sigma, step = moments(problem.activation), problem.steps[0]
    if not sigma.is_odd:
        raise NotCovered("drawn lengths", "σ is not odd", 'an odd activation, or lengths="equal"')
    slope = problem.activation.derivative
    rule = gauss_rule(slope)
    turned = rule.nodes * (np.asarray(slope(rule.nodes), dtype=float) - sigma.linear)
    cubic = float(hermite_coefficients(problem.activation, 3)[3])
    product = float(rule.mean(turned**2)) - 36.0 * cubic**2
    spread = 4.0 * moved**2 * first_step(problem).label_moment / step.samples * product
    spread = spread + 2.0 * (bulk.variances - 1.0) ** 2 @ bulk.weights
    if problem.init.weights == "gaussian":
        spread = spread + 2.0
    return Lengths(length_slope(problem, moved), spread)
