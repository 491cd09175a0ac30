"""What can be true of a problem, as the conditions of the equations ask for it (theory §0)."""

from __future__ import annotations

import math
from collections.abc import Callable

from giantsteps.functions import SingleIndex
from giantsteps.gaussian import moments
from giantsteps.problem import PowerLaw, Problem
from giantsteps.theory.model.teacher import teacher_moments
from giantsteps.theory.steps.kinds import staircase_level
from giantsteps.theory.steps.staircase.degrees import spike_degrees


def teacher_centered(problem: Problem) -> bool:
    return teacher_moments(problem.teacher).is_centered


def mean_out_of_reach(problem: Problem) -> bool:
    return teacher_centered(problem) or moments(problem.activation).is_odd


def activation_centered(problem: Problem) -> bool:
    return moments(problem.activation).is_centered


def mean_free_or_odd(problem: Problem) -> bool:
    odd = moments(problem.activation).is_odd
    return odd or abs(problem.init.second_layer.mean) < 1e-12


def no_initial_output(problem: Problem) -> bool:
    # A mean that was subtracted to eight digits leaves nothing that an answer would show.
    found, layer = moments(problem.activation), problem.init.second_layer
    return abs(found.mean * layer.mean) <= 1e-8 * math.sqrt(found.second_moment)


def fresh(problem: Problem) -> bool:
    return all(step.batch == "fresh" for step in problem.steps)


def curved(problem: Problem) -> bool:
    """Three or more steps, not all of them small, of an activation with an even part."""
    large = any(step.exponent != 0 for step in problem.steps)
    return len(problem.steps) > 2 and large and not moments(problem.activation).is_odd


def curved_and_preconditioned(problem: Problem) -> bool:
    """Whether there are several preconditioned steps of an even part, inputs with a covariance."""
    return (
        not problem.inputs.isotropic
        and len(problem.steps) > 1
        and any(step.precondition for step in problem.steps)
        and not moments(problem.activation).is_odd
    )


def most_uses(problem: Problem) -> int:
    """How many steps share a batch, at most."""
    return 1 + max(map(len, "".join(step.batch[0] for step in problem.steps).split("f")))


def remembered(problem: Problem) -> bool:
    """Whether a reused batch is one of two steps, of small steps, or with odd functions."""
    if fresh(problem) or len(problem.steps) <= 2 or not any(s.exponent for s in problem.steps):
        return True
    if most_uses(problem) > 4 or not no_initial_output(problem):
        return False
    teacher = problem.teacher
    if not isinstance(teacher, SingleIndex):
        return False
    return moments(problem.activation).is_odd or moments(teacher.link).is_odd


def plain(problem: Problem) -> bool:
    return fresh(problem) and all(step.rule == "gradient" for step in problem.steps)


def no_marginal_spike(problem: Problem) -> bool:
    level, boundary = staircase_level(problem.steps[0].exponent)
    return not boundary or spike_degrees(problem, level)[level] is not None


def finite_moments(problem: Problem) -> bool:
    """Whether ‖Σ^tβ*‖² and d⁻¹tr Σ^{2t} are finite after t steps."""
    law, twice = problem.inputs, 2 * len(problem.steps)
    if not isinstance(law, PowerLaw):
        return True
    signal = (twice + 1) * law.exponent + law.teacher
    return max(signal, twice * law.exponent) < 1


def off_the_peak(problem: Problem) -> bool:
    readout = problem.readout
    return (
        readout is None
        or readout.penalty > 0
        or not math.isclose(readout.samples, problem.width, rel_tol=1e-9)
    )


def rules(*allowed: str) -> Callable[[Problem], bool]:
    return lambda problem: all(step.rule in allowed for step in problem.steps)
