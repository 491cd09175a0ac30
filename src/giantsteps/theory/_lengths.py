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
    r"""How the squared lengths of the neurons of a type vary about cₜ, and spikes with them.

    .. math:: \|w_j\|^2 = c_t + κ_t ⟨w_{0j}, \hat b⟩ + \sqrt{v_t/d}\; ξ_j
              + \sqrt{u/d}\; f_t\, ξ'_j, \qquad
              S_j = S_t + \sqrt{u/d}\; e_t\, ξ'_j

    All terms are of order d^{-1/2}, and so is the weight of a single neuron in what the readout
    sums over all of them: they change the errors by an amount that does not vanish.

    ======  ===========  =================================================================
    symbol  argument     meaning
    ======  ===========  =================================================================
    κₜ      ``slope``    shape (T,): with the initial weight along the spike b̂
    vₜ      ``spread``   shape (T,): independent of the directions
    u       ``initial``  with the initial squared length: 2 for Gaussian rows, 0 on a sphere
    fₜ      ``growth``   shape (T,): what that makes of the squared length
    eₜ      ``stretch``  shape (T,): and of the spike
    ======  ===========  =================================================================

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
    >>> gaussian = SpikedFeatures(**given, lengths=Lengths(0.0, 0.0, initial=2.0)).risk(readout)
    >>> f"{gaussian.test / sphere - 1:.1%}"
    '-5.3%'
    """

    slope: NDArray
    spread: NDArray
    initial: float
    growth: NDArray
    stretch: NDArray

    def __init__(
        self,
        slope: ArrayLike,
        spread: ArrayLike,
        *,
        initial: float = 0.0,
        growth: ArrayLike = 1.0,
        stretch: ArrayLike = 0.0,
    ) -> None:
        shape = np.atleast_1d(np.asarray(slope, dtype=float)).shape
        given = {"slope": slope, "spread": spread, "growth": growth, "stretch": stretch}
        for name, value in given.items():
            array = np.array(value, dtype=float)
            if len(shape) > 1 or array.shape not in ((), shape) or not np.all(np.isfinite(array)):
                raise InvalidProblem(f"lengths.{name}", value, "a finite number for each type")
            array = np.array(np.broadcast_to(array, shape))
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if np.any(self.spread < 0):
            raise InvalidProblem("lengths.spread", spread, "non-negative")
        if not (initial >= 0 and np.isfinite(initial)):
            raise InvalidProblem("lengths.initial", initial, "finite and >= 0")
        object.__setattr__(self, "initial", float(initial))

    @property
    def slopes(self) -> NDArray:
        """κ of all regressors: those of the types, and again where initial lengths vary."""
        return np.concatenate([self.slope, np.zeros(len(self._initial))])

    @property
    def spreads(self) -> NDArray:
        """Variances of all regressors."""
        return np.concatenate([self.spread, self._initial])

    @property
    def _initial(self) -> NDArray:
        return np.full(len(self.slope) if self.initial else 0, self.initial)

    def functions(self, by_length: NDArray, by_spike: NDArray) -> NDArray:
        """The regressors from ∂μ₀/∂c and ∂μ₀/∂S of the types, both of shape (T, K)."""
        if not self.initial:
            return by_length
        moved = self.growth[:, None] * by_length + self.stretch[:, None] * by_spike
        return np.concatenate([by_length, moved])


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

    .. math:: v &= 4(η̃A)² \frac{E y_0²}{α_0} \bigl(E[g²(σ'-μ_1)²] - 36c_3²\bigr)
                   + 2 Σ ν_ι (s(ι) - 1)², \\
              f &= 1 + (η̃A)² \frac{E y_0²}{α_0} \bigl(\tfrac12 E[\mathrm{He}_2 σ'²]
                   - 6 c_3 μ_1\bigr), \qquad e = 3c_3 η̃A \|b\| = κ/4 .

    v is from the product of old and new weights and from the new ones. A longer neuron sees a
    steeper or flatter σ: E σ'(g) = μ₁ + 3c₃(‖w₀‖² − 1).
    """
    sigma, step = moments(problem.activation), problem.steps[0]
    if not sigma.is_odd:
        raise NotCovered("drawn lengths", "σ is not odd", 'an odd activation, or lengths="equal"')
    derivative = problem.activation.derivative
    rule = gauss_rule(derivative)
    g, slope = rule.nodes, np.asarray(derivative(rule.nodes), dtype=float)
    cubic = float(hermite_coefficients(problem.activation, 3)[3])
    product = float(rule.mean((g * (slope - sigma.linear)) ** 2)) - 36.0 * cubic**2
    steeper = float(rule.mean((g * g - 1) * slope**2)) / 2 - 6.0 * cubic * sigma.linear
    noise = moved**2 * first_step(problem).label_moment / step.samples
    tilt = length_slope(problem, moved)
    return Lengths(
        tilt,
        4.0 * noise * product + 2.0 * (bulk.variances - 1.0) ** 2 @ bulk.weights,
        initial=2.0 if problem.init.weights == "gaussian" else 0.0,
        growth=1.0 + noise * steeper,
        stretch=tilt / 4.0,
    )
