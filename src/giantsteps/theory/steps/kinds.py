"""What the steps of a problem look like in the limit: the rows of the table of regimes (§0)."""

from __future__ import annotations

from enum import Enum

from giantsteps.problem import Problem

#: Exponents closer than this to a boundary are on it.
BOUNDARY_WIDTH = 1e-9


class Kind(Enum):
    """What the steps of a problem look like in the limit; the value is how to say it."""

    UNTRAINED = "no step"
    SMALL = "one step, exponent 0"
    BETWEEN = "one step, 0 < exponent < 1/2"
    BOUNDARY = "one step, exponent (l-1)/(2l), l ≥ 2"
    LARGE = "one step, exponent 1/2"
    SMALL_STEPS = "several steps, all exponents 0"
    LARGE_STEPS = "several steps, all exponents 1/2"
    MIXED_STEPS = "several steps, other exponents"


def staircase_level(exponent: float) -> tuple[int, bool]:
    r"""ℓ with (ℓ−1)/(2ℓ) ≤ e < ℓ/(2ℓ+2), and whether e sits on the lower boundary of that interval.

    e = 1/2 − 1/(2(ℓ+1)) is where the (ℓ+1)-th polynomial spike appears (theory §6). Level 1 starts
    at e = 0, which is the small step itself and not a boundary between two staircase limits.
    """
    if exponent >= 0.5 - BOUNDARY_WIDTH:
        raise ValueError("exponent 1/2 is above the whole staircase")
    position = 1.0 / (1.0 - 2.0 * exponent)  # equals ℓ on the boundary (ℓ−1)/(2ℓ)
    nearest = round(position)
    if nearest >= 1 and abs(exponent - (nearest - 1) / (2 * nearest)) < BOUNDARY_WIDTH:
        return nearest, True
    return int(position), False


def kind_of(problem: Problem) -> Kind:
    """The row of the table a problem belongs to."""
    if not problem.steps:
        return Kind.UNTRAINED
    exponents = [step.exponent for step in problem.steps]
    small, large = max(exponents) < BOUNDARY_WIDTH, min(exponents) > 0.5 - BOUNDARY_WIDTH
    if len(exponents) > 1:
        return Kind.SMALL_STEPS if small else Kind.LARGE_STEPS if large else Kind.MIXED_STEPS
    if small or large:
        return Kind.SMALL if small else Kind.LARGE
    return Kind.BOUNDARY if staircase_level(exponents[0])[1] else Kind.BETWEEN
