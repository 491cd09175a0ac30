"""``theory.critical_rate``: the learning rate at which a spike leaves the bulk of the weights."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from giantsteps.answers import Leaf
from giantsteps.errors import InvalidProblem
from giantsteps.gaussian import moments
from giantsteps.laws import critical_strength
from giantsteps.problem import Grid, Problem
from giantsteps.theory.scope.dispatch import resolve
from giantsteps.theory.steps.first import curvature, first_step

#: μ₁ smaller than this, relative to the norm of σ, is zero.
_ZERO = 1e-10


def critical_rate(problem: Problem | Grid, d: int | None = None) -> Leaf:
    r"""The rate of the step at which the spike of the weights leaves their bulk.

    .. math:: θ_1 = η\,|μ_1|\,\|b\|\,\sqrt{E A^2} = β^{1/4}
              \quad\Longrightarrow\quad
              η_c = \frac{β^{1/4}}{|μ_1|\,\|b\|\,\sqrt{E A^2}},\qquad
              \|b\|^2 = μ_1^{*2} + E y_0^2/α_0

    At given d the initial output pulls on the neurons: along the second layer W₀ shrinks by
    ηε = ημ₁²E[ℓ'']E A²/√N, and the spike leaves the bulk where (theory §2)

    .. math:: η²κ² + (1 - ηε)² + η²ε²/α_0 = 1 + \sqrt β ,\qquad κ = θ_1/η .

    On inputs with a covariance, without this pull, the two parts of ‖b‖² are multiplied by means of
    Σ^{1−2p}, over the teacher's directions and over all (theory §10).

    Below it the top singular vector of the weights has no overlap with the teacher in the limit.

    ======  ===============================  ==============
    symbol  field of the problem             meaning
    ======  ===============================  ==============
    β       ``width``                        N/d
    α₀      ``steps.0.samples``              n₀/d
    μ₁      ``activation``                   E zσ(z)
    μ₁*     ``teacher``                      E zσ*(z)
    A       ``init.second_layer``            its law
    ℓ''     ``steps.0.loss``                 one for the squared loss
    E y₀²   ``teacher``, ``noise_variance``  E(y − c₀ E A)²
    ======  ===============================  ==============

    Parameters
    ----------
    problem : Problem or Grid
        With one step; its rate plays no part.
    d : int, optional
        Input dimension: sizes are rounded, the initial output counts, and with
        η = rate · N^exponent any exponent has a critical rate η_c N^{−exponent}. Without it the
        exponent must be 0.

    Returns
    -------
    float, or ndarray of the grid's shape
        In closed form; ``inf`` where μ₁ = 0, since no rate makes a spike then.

    References
    ----------
    theory §2, §10; ba2022.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="tanh", noise_variance=0.1, width=1.25,
    ...                      steps=[gs.Step(samples=3, rate=3)])
    >>> round(critical_rate(problem), 6)
    2.394173
    >>> round(critical_rate(problem, d=500), 6)
    2.46872
    """
    if isinstance(problem, Problem):
        return _critical_rate(problem, d)
    if not isinstance(problem, Grid):
        raise InvalidProblem("problem", problem, "a Problem or a Grid")
    cells = [_critical_rate(cell, d) for cell in problem]
    return np.reshape(cells, problem.shape)


def rate_over_critical(problem: Problem, d: int | None = None) -> float:
    """Rate of the step over the critical one: one on the line where the spike appears."""
    return problem.steps[0].rate / _critical_rate(problem, d) if problem.steps else 0.0


def _critical_rate(problem: Problem, d: int | None) -> float:
    resolve("critical_rate", problem, d)
    neurons = 1  # N^0
    if d is not None:
        neurons, problem = problem.at(d).neurons, problem.realised(d)
    step = dataclasses.replace(problem.steps[0], rate=1.0)
    unit = first_step(dataclasses.replace(problem, steps=(step,)), neurons, d).strength
    sigma = moments(problem.activation)
    if unit == 0 or abs(sigma.linear) <= _ZERO * sigma.norm:
        return math.inf
    least = float(critical_strength(problem.width))
    if d is None or not problem.inputs.isotropic:
        return least / unit
    power = sigma.linear**2 * problem.init.second_layer.second_moment / math.sqrt(neurons)
    pull = step.learning_rate(neurons) * curvature(problem) * power
    total = unit**2 + pull**2 * (1.0 + 1.0 / step.samples)
    return (pull + math.sqrt(pull**2 + least**2 * total)) / total
