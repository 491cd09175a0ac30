"""Two steps of any rates, fresh or reused: their equivalent model (theory §7)."""

from __future__ import annotations

import math

import numpy as np

from giantsteps.problem import Problem
from giantsteps.theory._field import Field, two_step_field
from giantsteps.theory._first_step import link_of
from giantsteps.theory._spiked_features import SpikedFeatures

__all__ = ["field_of", "two_steps"]

#: Directions j of the field with N ℓ_j above this count as spikes, so many at most: two give the
#: risk to 0.2 % (a third costs ten times more).
_NOTICEABLE, _MOST = 0.1, 2


def field_of(problem: Problem, d: int | None = None) -> Field:
    """The field of a problem with two steps; without d both exponents must be 1/2."""
    neurons = None if d is None else problem.at(d).neurons
    sized = problem if d is None else problem.realised(d)
    first, second = sized.steps
    rates = tuple(
        step.rate if neurons is None else step.learning_rate(neurons) / math.sqrt(neurons)
        for step in sized.steps
    )
    return two_step_field(
        sized.activation,
        sized.teacher,
        sized.noise_variance,
        sized.init.second_layer,
        (first.samples, second.samples),
        (rates[0], rates[1]),
        second.batch == "previous",
    )


def two_steps(problem: Problem, d: int | None = None) -> SpikedFeatures:
    r"""The equivalent model after two gradient steps.

    .. math:: S_{t,j} = \sqrt{ℓ_j}\,φ_j(A_t),\qquad
              γ_j = E_A[φ_j(A)\,⟨F(A), β^*⟩]/\sqrt{ℓ_j}

    with the eigenpairs (ℓ_j, φ_j) of 𝒦 under the law of A, the directions with N ℓ_j > 0.1, and an
    isotropic bulk of squared lengths c_t.

    Parameters
    ----------
    problem : Problem
        With two steps.
    d : int, optional
        Input dimension; without it both exponents must be 1/2 (then η̃ = rate, N = ∞).

    References: theory §7; no paper has it.
    """
    field = field_of(problem, d)
    sized = problem if d is None else problem.realised(d)
    neurons = math.inf if d is None else float(problem.at(d).neurons)
    noticed = int(np.sum(neurons * field.modes.strength > _NOTICEABLE))
    modes = field.modes.strongest(min(max(noticed, 1), _MOST))
    nothing = len(modes.strength) == 0
    return SpikedFeatures(
        activation=sized.activation,
        teacher=link_of(sized),
        noise_variance=sized.noise_variance,
        width=sized.width,
        neurons=neurons,
        probabilities=field.probabilities,
        spikes=np.zeros((len(field.values), 1)) if nothing else modes.spikes,
        overlap=0.0 if nothing else modes.teacher[0],
        bulk=field.variances,
        second_layer=field.values,
        problem=problem,
    )
