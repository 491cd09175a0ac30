"""What the equations assume of a problem: in words, as a test, with the way to satisfy it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from giantsteps.gaussian import moments
from giantsteps.problem import Problem

from giantsteps.theory.scope.kinds import BOUNDARY_WIDTH, staircase_level
from ._lengths import length_slope
from giantsteps.theory.steps.staircase.degrees import spike_degrees
from giantsteps.theory.steps.teacher import teacher_moments

__all__ = ["CONDITIONS", "Condition"]

#: Slope of the lengths up to which errors change by a few thousandths at most.
_LITTLE = 1.0


@dataclass(frozen=True)
class Condition:
    """Something an equation assumes of a problem, in words, with the way to satisfy it."""

    text: str
    fix: str | Callable[[Problem], str]
    holds: Callable[[Problem], bool]

    def advice(self, problem: Problem) -> str:
        """What would be covered, for this problem."""
        return self.fix if isinstance(self.fix, str) else self.fix(problem)


def _teacher_centered(problem: Problem) -> bool:
    return teacher_moments(problem.teacher).is_centered


def _activation_centered(problem: Problem) -> bool:
    return moments(problem.activation).is_centered


def _activation_odd(problem: Problem) -> bool:
    return moments(problem.activation).is_odd


def _mean_free_or_odd(problem: Problem) -> bool:
    return _activation_odd(problem) or abs(problem.init.second_layer.mean) < 1e-12


def _no_initial_output(problem: Problem) -> bool:
    return _activation_centered(problem) or abs(problem.init.second_layer.mean) < 1e-12


def _no_marginal_spike(problem: Problem) -> bool:
    level, boundary = staircase_level(problem.steps[0].exponent)
    return not boundary or spike_degrees(problem, level)[level] is not None


def _little_length(problem: Problem) -> bool:
    law = problem.init.second_layer
    continuous = math.isinf(law.distinct_nonzero)
    if not problem.steps or continuous or not _activation_odd(problem):
        return True  # nothing changes, or is known to: theory §5e
    values, _ = law.types()
    moved = problem.steps[0].rate * float(np.abs(values).max())
    return bool(abs(length_slope(problem, moved)) <= _LITTLE)


def _one_sided_limits(problem: Problem) -> str:
    level, _ = staircase_level(problem.steps[0].exponent)
    ends = [k / (2 * k + 2) for k in (level - 2, level - 1, level)]
    return (
        f"the limit from below, which is that of every exponent in ({ends[0]:g}, {ends[1]:g}), "
        f"that from above, of every exponent in ({ends[1]:g}, {ends[2]:g}), "
        "and this exponent with d given"
    )


CONDITIONS: dict[str, Condition] = {
    "single index": Condition(
        "the teacher depends on one direction",
        "a rank-one teacher",
        lambda problem: problem.teacher.rank == 1,
    ),
    "centered teacher": Condition(
        "E σ*(z) = 0",
        'gs.centered(teacher), in TOML {name = "...", centered = true}',
        _teacher_centered,
    ),
    "centered activation": Condition(
        "E σ(z) = 0",
        "gs.centered(activation), or give d, which keeps the mean as a feature",
        _activation_centered,
    ),
    "mean-free or odd": Condition(
        "σ is odd or the second layer has mean zero",
        'second_layer="gaussian", an odd activation, or give d',
        _mean_free_or_odd,
    ),
    "odd activation": Condition(
        "σ is odd (else the bulk of the trained weights is a good approximation, theory §5b)",
        "an odd activation",
        _activation_odd,
    ),
    "little length": Condition(
        "the lengths of the neurons hardly go with the spike (12 c₃ η̃A‖b‖ is at most one in "
        "size), or the second layer is continuous (else the error is off by up to 5 %; "
        'theory.equivalent with lengths="drawn" has them, theory §5e)',
        "a smaller rate, or a gaussian second layer",
        _little_length,
    ),
    "few directions": Condition(
        "the teacher depends on at most three directions",
        "a teacher of rank three or less",
        lambda problem: problem.teacher.rank <= 3,
    ),
    "at most two steps": Condition(
        "there are at most two steps",
        "two steps, or no d",
        lambda problem: len(problem.steps) <= 2,
    ),
    "no initial output": Condition(
        "E σ(z) = 0 or the second layer has mean zero",
        'gs.centered(activation), or second_layer="gaussian"',
        _no_initial_output,
    ),
    "isotropic bulk": Condition(
        "the neurons move little (exponents 0), so that their bulk is isotropic (else edges and "
        "weak outliers are approximate, and the risk at small step samples)",
        "exponents 0",
        lambda problem: all(step.exponent < BOUNDARY_WIDTH for step in problem.steps),
    ),
    "no marginal spike": Condition(
        "no polynomial spike appears at this very exponent (else the limits from its two sides "
        "differ)",
        _one_sided_limits,
        _no_marginal_spike,
    ),
}
