"""Singular values of the weights after several steps: bulk and outliers (theory §2, §7)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import Spike
from giantsteps.laws import Law, MarchenkoPastur
from giantsteps.problem import Problem
from giantsteps.theory.steps.several.field import Field
from giantsteps.theory.scope.kinds import Kind, kind_of
from giantsteps.theory.steps.several.small import small_steps_spike
from giantsteps.theory.steps.several.two import field_of
from giantsteps.theory.equivalent.weight_outliers import TypedWeights

__all__ = ["several_steps_weights"]

#: In the limit every direction is infinitely strong: those weaker than this, relative to the
#: strongest, are not listed.
_LISTED = 1e-6
#: Powers of A that a right singular vector is compared with.
_POWERS = 6


def several_steps_weights(problem: Problem, d: int | None) -> tuple[Law, tuple[Spike, ...]]:
    """The bulk of the weights and its outliers, for two steps or for small ones.

    Without d (both exponents 1/2) the outliers are infinite, with finite overlaps. An outlier's
    ``degree`` p is the power A^p that its right singular vector is closest to.
    """
    if d is not None and kind_of(problem) is Kind.SMALL_STEPS:
        found = small_steps_spike(problem, d)
        bulk = MarchenkoPastur(problem.realised(d).width).singular_values()
        return bulk, () if found is None else (found,)
    field = field_of(problem, d)
    modes = field.modes
    weights = TypedWeights(
        spikes=modes.spikes,
        variances=field.variances,
        probabilities=field.probabilities,
        width=(problem if d is None else problem.realised(d)).width,
        neurons=math.inf if d is None else float(problem.at(d).neurons),
    )
    if d is not None:
        outliers = [(out.value, out.direction, out.left, out.right) for out in weights.outliers]
    else:
        listed = int(np.sum(modes.strength > _LISTED * modes.strength.max(initial=0.0)))
        units = np.eye(len(modes.strength))[:listed]
        right = modes.spikes / np.sqrt(modes.strength)
        outliers = [(math.inf, unit, 1.0, right @ unit) for unit in units]
    return weights.bulk, tuple(_spike(field, *outlier) for outlier in outliers)


def _spike(field: Field, value: float, direction: NDArray, left: float, right: NDArray) -> Spike:
    modes, values, mass = field.modes, field.values, field.probabilities
    square = float(mass @ values**2)
    along = float(mass @ (values * right))
    return Spike(
        value=value,
        overlaps={
            "teacher": left * float(np.sum((modes.teacher @ direction) ** 2)),
            "gradient": left * float(modes.first @ direction) ** 2,
            "second_layer": along**2 / square if square else 0.0,
        },
        degree=_power(values, mass, right),
    )


def _power(values: NDArray, mass: NDArray, right: NDArray) -> int:
    """The p for which ``right`` has most on A^p, orthogonal to the lower powers."""
    root = np.sqrt(mass)
    powers = values[:, None] ** np.arange(1, min(_POWERS, len(values)) + 1) * root[:, None]
    basis, triangle = np.linalg.qr(powers)
    new = np.abs(np.diag(triangle)) > 1e-8 * np.linalg.norm(powers, axis=0)
    parts = np.where(new, (basis.T @ (root * right)) ** 2, 0.0)
    return int(np.argmax(parts)) + 1
