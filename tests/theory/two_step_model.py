"""The field of two steps as an equivalent model with an isotropic bulk and equal norms."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from giantsteps.functions import Function, Teacher
from giantsteps.gaussian import moments, smoothed
from giantsteps.problem import Problem, SecondLayer, Step
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.steps.first import link_of
from giantsteps.theory.steps.one import types_of
from giantsteps.theory.steps.several.field import Field, Modes, two_step_field
from giantsteps.theory.steps.several.response import Response, lengths
from giantsteps.theory.steps.several.sample_law import sample_law

#: The strongest direction of the field is a spike, and the one beside it that matters most to the
#: readout if N ℓ_j γ_j² is above this. Two give the risk to 0.2 %; a third costs ten times more.
_NOTICEABLE = 1e-4
#: γ² of a direction that is not aligned with the teacher, when it competes with those that are.
_UNALIGNED = 1e-3


def field_of(problem: Problem, d: int | None = None) -> Field:
    """The field of a problem with at most two steps; without d all exponents must be 1/2."""
    neurons = None if d is None else problem.at(d).neurons
    sized = problem if d is None else problem.realised(d)
    rest = Step(samples=1.0, rate=0.0)  # a step that is not taken
    first, second = (*sized.steps, rest, rest)[:2]
    rates = [
        step.rate if neurons is None else step.learning_rate(neurons) / math.sqrt(neurons)
        for step in (first, second)
    ]
    law = sized.activation, sized.teacher, sized.noise_variance, sized.init.second_layer
    if second.batch == "previous":
        return two_step_field(*law, first.samples, (rates[0], rates[1]))
    return fresh_field(*law, (first.samples, second.samples), (rates[0], rates[1]))


def fresh_field(
    activation: Function,
    teacher: Teacher,
    noise_variance: float,
    second_layer: SecondLayer,
    samples: tuple[float, float],
    rates: tuple[float, float],
) -> Field:
    r"""The field where the second step has a batch of its own, whose samples no neuron knows.

    .. math:: h = \sqrt{c_1}\,g + s\,μ_1 v,\qquad
              ⟨D_A,D_{A'}⟩ = ⟨E[xg_A],E[xg_{A'}]⟩ + E[g_Ag_{A'}]/α_2,\qquad
              ⟨D_A,b⟩ = ⟨b,E[xg_A]⟩
    """
    sigma = moments(activation)
    shift = sigma.mean * second_layer.mean
    law = sample_law(teacher, noise_variance, samples[0], shift=shift)
    length = np.sqrt(law.norm_squared)
    steepness = abs(sigma.linear) * length * (abs(rates[0]) + abs(rates[1]))
    values, probabilities = types_of(second_layer, 2, steepness)
    first, second = rates[0] * sigma.linear, rates[1]
    before = lengths(sigma, law, rates[0] * values)
    at = np.multiply.outer(first * values, law.step), np.sqrt(before)[:, None]
    output, slope = (smoothed(f, *at) for f in (activation, activation.derivative))
    zeta = slope.mean[:, None]  # the label plays no part: one row stands for all
    residual = law.label + shift - (probabilities * values) @ output.mean
    pull = residual * zeta
    frame = law.frame(pull)
    weighted = (pull * law.mass).reshape(len(values), -1)
    inner = frame @ frame.T + weighted @ pull.reshape(len(values), -1).T / samples[1]
    along = frame @ law.direction
    kernel = first**2 * law.norm_squared + first * second * np.add.outer(along, along)
    noise = law.mean(residual**2 * (slope.second_moment[:, None] - zeta**2)) / samples[1]
    stretch = law.mean(residual * slope.slope[:, None])
    return Field(
        values=values,
        probabilities=probabilities,
        kernel=np.outer(values, values) * (kernel + second**2 * inner),
        teacher=values[:, None] * (first * law.linear + second * frame[:, :-1]),
        first=values * (first * length + second * along / length),
        variances=before * (1 + second * values * stretch) ** 2 + (second * values) ** 2 * noise,
        law=law,
        response=Response(*(zeta for _ in fields(Response))),  # of no use here
        residual=residual,
    )


def leading_modes(modes: Modes, neurons: float, most: int) -> Modes:
    """The directions that the equivalent model keeps, at most so many."""
    seen = np.maximum(np.sum(modes.teacher**2, axis=0), _UNALIGNED)
    matter = neurons * modes.strength * seen
    matter[:1] = math.inf
    order = np.argsort(-matter, kind="stable")[:most]
    kept = order[matter[order] > _NOTICEABLE]
    return Modes(*(getattr(modes, one.name)[..., kept] for one in fields(Modes)))


def two_steps(problem: Problem, d: int | None = None, **others: Any) -> SpikedFeatures:
    r"""The equivalent model after two gradient steps.

    .. math:: S_{t,j} = \sqrt{ℓ_j}\,φ_j(A_t),\qquad
              γ_j = E_A[φ_j(A)\,⟨F(A), β^*⟩]/\sqrt{ℓ_j}

    with the eigenpairs (ℓ_j, φ_j) of 𝒦 under the law of A, an isotropic bulk of squared lengths
    c_t, and two directions: the strongest, and the one that shows most of the teacher besides.
    (Not the second strongest: for c₂ ≠ 0 that is even in A, and an odd teacher is in the third.)

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
    modes = leading_modes(field.modes, neurons, 2)
    some = len(modes.strength) > 0
    return SpikedFeatures(
        activation=sized.activation,
        teacher=link_of(sized),
        noise_variance=sized.noise_variance,
        width=sized.width,
        neurons=neurons,
        probabilities=field.probabilities,
        spikes=modes.spikes if some else np.zeros((len(field.values), 1)),
        overlap=modes.teacher[0] if some else 0.0,
        bulk=field.variances,
        second_layer=field.values,
        step_directions=modes.first[None] if some else None,
        problem=problem,
        **others,
    )
