"""The field of two steps of any rates, fresh or reused, and its directions (theory §7)."""

from __future__ import annotations

import math

import numpy as np

from giantsteps.problem import Problem, Step
from giantsteps.theory.steps.several.field import Field, Modes, two_step_field

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
    return two_step_field(
        sized.activation,
        sized.teacher,
        sized.noise_variance,
        sized.init.second_layer,
        (first.samples, second.samples),
        (rates[0], rates[1]),
        second.batch == "previous",
    )


def leading_modes(modes: Modes, neurons: float, most: int) -> Modes:
    """The directions that the equivalent model keeps, at most so many."""
    seen = np.maximum(np.sum(modes.teacher**2, axis=0), _UNALIGNED)
    matter = neurons * modes.strength * seen
    matter[:1] = math.inf
    order = np.argsort(-matter, kind="stable")[:most]
    return modes.take([int(j) for j in order if matter[j] > _NOTICEABLE])
