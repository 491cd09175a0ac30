"""What directions with a share of the variance of the inputs do to answers, in sizes seen (§10).

Sizes are those that cover theory − networks of d = 1000 in 150 random settings, one and two steps,
and in 60 that were drawn before the last change of the theory.
"""

from __future__ import annotations

import math

import numpy as np

from giantsteps.gaussian import moments
from giantsteps.problem import Problem
from giantsteps.theory.model.teacher import teacher_moments
from giantsteps.theory.steps.first import EIGENVALUES
from giantsteps.theory.steps.neuron import slopes
from giantsteps.theory.steps.one import labels_of, movement
from giantsteps.theory.steps.several.model import ALIGNED

#: Share of the variance up to which one step and several are exact, and the largest compared.
_NOTHING, _COMPARED = (0.02, 0.01), 0.11
#: Gap of test errors at a share of zero, and more for each unit of the share; how many times that
#: of training errors, and after several steps.
_GAP, _MORE, _TRAINING, _SEVERAL = 0.01, 0.1, 2, 3
#: The same where a later step overshoots: it moves the output along the direction by more than
#: twice what is there, so that networks differ from one another.
_OVERSHOOT, _APART = 2.0, 0.17
#: The least where most of the teacher lies along the direction, for activations that rise and fall,
#: whose neurons then pass several periods.
_PERIODS = 0.12
#: How much slopes may vary with the weights along the direction, in parts of their mean, and leans
#: beside a second layer of one value, in parts of the noise of a pre-activation. Beyond it first
#: orders are not enough, and networks were off by up to these shares.
_BENT, _SPREAD, _FAR = 0.3, 0.6, (0.6, 0.2)
#: What the curvature of the activation may make of the weights in the first of several steps, in
#: the mean and in its fluctuations, and how far networks were beyond it, without and with a
#: direction that has a share of the variance.
_TURN, _CURVED = (0.15, 2.7), (0.25, 0.4)
#: Where slopes of activations are looked at.
_SCAN = np.linspace(-4.0, 4.0, 81)


def heavy_directions(problem: Problem, d: int) -> tuple[str, ...]:
    """What the problem violates at d, with the size of the error; nothing where all are light."""
    if problem.inputs.isotropic:
        return ()
    return (*_heavy(problem, d), *_curved(problem, d))


def _heavy(problem: Problem, d: int) -> tuple[str, ...]:
    """A direction with a share of the variance."""
    values, shares, teacher = problem.inputs.directions(EIGENVALUES, d)
    values, teacher = (np.append(one[shares * d < 1.5], 0.0) for one in (values, teacher))
    largest, along = float(values.max()), float(teacher[np.argmax(values)])
    share, later = largest / d, range(1, len(problem.steps))
    most = _NOTHING[len(later) > 0]
    if share <= most:
        return ()
    text = f"no direction has more than {most:.0%} of the variance of the inputs (here {share:.1%}"
    if share > _COMPARED:
        return (f"{text}: networks were compared up to {_COMPARED:.0%})",)
    gap = (_GAP + _MORE * share) * (_SEVERAL if later else 1)
    neurons = float(problem.at(d).neurons)
    bent, spread = _first_orders(problem, largest, share, along, neurons)
    aligned = along > ALIGNED and bool(problem.steps)
    if aligned:
        seen = np.asarray(problem.activation.derivative(_SCAN), dtype=float)
        if seen.min() < -0.5 * seen.max():
            gap = max(gap, _PERIODS)
            text += ", along which the teacher lies"
        elif not later and bent < _BENT and spread < _SPREAD:
            return ()
    if bent > _BENT:
        gap = max(gap, _FAR[0])
        text += ", with the weights along which slopes vary too much"
    elif aligned and spread > _SPREAD:
        gap = max(gap, _FAR[1])
        text += ", along which leans vary too much"
    slope = moments(problem.activation).linear ** 2 * problem.init.second_layer.second_moment
    pushes = [
        movement(problem, number, neurons)
        * slope
        * largest ** (1 - problem.steps[number].precondition)
        for number in later
    ]
    if max(pushes, default=0.0) > _OVERSHOOT:
        gap = max(gap, _APART)
        text += ", along which a later step overshoots"
    errors = "test errors" if later else "test errors and largest singular values"
    return (
        f"{text}: {errors} of networks are met within {gap:.1%} and their standard error, "
        f"training errors within {_TRAINING * gap:.1%})",
    )


def _curved(problem: Problem, d: int) -> tuple[str, ...]:
    """A first step that multiplies the weights by far more than one, of several.

    Those after it take it as the same in all eigenspaces, and its fluctuations as generic.
    """
    tilt = slopes(problem.activation).hermite[1]
    if len(problem.steps) < 2 or not tilt:
        return ()
    step, law = problem.steps[0], problem.init.second_layer
    values, shares, _ = problem.inputs.directions(EIGENVALUES, d)
    reach = float(values[shares * d > 1.5].max(initial=0.0)) ** (1 - step.precondition)
    moved = movement(problem, 0, float(problem.at(d).neurons)) * math.sqrt(law.second_moment)
    residuals = labels_of(problem, moved, 0)
    size = abs(moved * tilt) * reach
    mean, noise = abs(residuals.moment(1)), math.sqrt(residuals.moment(2) / step.samples)
    if size * mean <= _TURN[0] and size * noise <= _TURN[1]:
        return ()
    largest = float(values[shares * d < 1.5].max(initial=0.0)) / d
    gap = _CURVED[largest > _NOTHING[1]]
    return (
        "the first of several steps multiplies the weights by little, beside its direction (here "
        f"their change is {size * mean:.2f} in the mean and {size * noise:.2f} beside it, of "
        f"{_TURN[0]:g} and {_TURN[1]:g}: test errors of networks are met within {gap:.0%})",
    )


def _first_orders(
    problem: Problem, value: float, share: float, along: float, neurons: float
) -> tuple[float, float]:
    """How much slopes vary with the weights along the direction, 3|h₂/μ₁|λ₁/d, and leans of neurons
    with one value of the second layer; nothing where there are several.
    """
    linear, _, bend, _ = slopes(problem.activation).hermite
    bent = 3 * abs(bend / linear) * share if linear else math.inf
    steps = problem.steps
    if not steps or problem.init.second_layer.distinct_nonzero > 1:
        return bent if steps else 0.0, 0.0
    moved = abs(movement(problem, 0, neurons) * linear) * teacher_moments(problem.teacher).linear
    size = math.sqrt(problem.init.second_layer.second_moment * along)
    return bent, math.sqrt(2) * bent * moved * size * value ** (1 - steps[0].precondition)
