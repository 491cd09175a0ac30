"""What directions with a share of the variance of the inputs do to answers, in sizes seen (§10).

Sizes are those that cover theory − networks of d = 1000 in 150 random settings, one and two steps,
and in 60 that were drawn before the last change of the theory.
"""

from __future__ import annotations

import numpy as np

from giantsteps.gaussian import moments
from giantsteps.problem import Problem
from giantsteps.theory.steps.first import EIGENVALUES
from giantsteps.theory.steps.one import movement
from giantsteps.theory.steps.several.model import ALIGNED

#: Share of the variance up to which one step and several are exact, and the largest compared.
_NOTHING, _COMPARED = (0.02, 0.01), 0.11
#: Gap of test errors at a share of zero, and more for each unit of the share; how many times that
#: of training errors, and after several steps.
_GAP, _MORE, _TRAINING, _SEVERAL = 0.01, 0.35, 2, 3
#: The same where a later step overshoots: it moves the output along the direction by more than
#: twice what is there, so that networks differ from one another.
_OVERSHOOT, _APART = 2.0, 0.17
#: The least where most of the teacher lies along the direction, for activations that rise and fall,
#: whose neurons then pass several periods.
_PERIODS = 0.12
#: Where slopes of activations are looked at.
_SCAN = np.linspace(-4.0, 4.0, 81)


def heavy_directions(problem: Problem, d: int) -> tuple[str, ...]:
    """What the problem violates at d, with the size of the error; nothing where all are light."""
    if problem.inputs.isotropic:
        return ()
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
    if along > ALIGNED:
        slopes = np.asarray(problem.activation.derivative(_SCAN), dtype=float)
        if slopes.min() < -0.5 * slopes.max():
            gap = max(gap, _PERIODS)
            text += ", along which the teacher lies"
    slope = moments(problem.activation).linear ** 2 * problem.init.second_layer.second_moment
    neurons = float(problem.at(d).neurons)
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
