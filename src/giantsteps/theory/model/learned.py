"""The function that ridge regression on an equivalent model learns (theory §5c)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from giantsteps.answers import LearnedFunction, Solution, direction_of
from giantsteps.errors import InvalidProblem
from giantsteps.functions import Teacher
from giantsteps.problem import Ridge
from giantsteps.theory.model.errors import refine
from giantsteps.theory.model.functions_of_spike import left_of, teacher_given
from giantsteps.theory.model.rules import axes_rule, graded_rule, smooth_rule, width_of
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.model.stacks import solve_cells
from giantsteps.types import FloatArray

#: Resolution of one spike coordinate given that of the teacher.
_AROUND = 1
#: Nodes of several at once.
_MOST = 512
#: Variance of a coordinate, given the one that is asked about, that counts as none.
_NO_WIDTH = 1e-12
#: Changes of the errors below which the function is resolved far out, too, where samples are few.
_GOOD = (1e-3, 1e-6, 1e-9, 1e-5)


def points_of(x: ArrayLike | None) -> FloatArray:
    """Where the function is wanted: 61 points from −3 to 3 unless given."""
    given = np.linspace(-3.0, 3.0, 61) if x is None else x
    try:
        points = np.atleast_1d(np.asarray(given, None if hasattr(given, "dtype") else float))
    except (TypeError, ValueError):
        points = np.array([])
    real = points.dtype.kind in "fiu" and points.ndim == 1 and points.size > 0
    if not real or not np.all(np.isfinite(points)):
        raise InvalidProblem("x", x, "a one-dimensional array of finite numbers")
    return points.astype(float)


def learned_function_of_model(
    model: SpikedFeatures,
    readout: Ridge,
    x: ArrayLike | None = None,
    along: str = "spike",
) -> LearnedFunction:
    r"""Mean and spread of the prediction given one coordinate of the input.

    Along the spike, turned towards the teacher, k₁ = x. Along a direction of the teacher, ⟨x, β*⟩ =
    u: k ~ N(γu, I − γγᵀ), and with z its coordinate orthogonal to the spikes

    .. math:: E[\hat f | u] = E[C(k) + s(k) z + b(k)(z² - 1) | u].

    References: theory §5c; cui2024.
    """
    number = direction_of(along, model.teacher.rank)
    if number is None and model.problem is not None and not model.problem.steps:
        raise InvalidProblem("along", along, '"teacher": without a step there is no spike')
    points = points_of(x)
    refined = refine([(model, readout)], _GOOD)
    level = refined.levels[0]
    used = model.at_level(level)
    turned = -1.0 if used.cosines[0, 0] < 0 else 1.0
    direction = turned * np.eye(used.rank)[0] if number is None else used.cosines[number]
    # k given the coordinate, as a quadrature around direction · x: functions of k are smooth.
    around, weights = _around(used, direction, level)
    k = (points[:, None, None] * direction + around).reshape(-1, used.rank)
    (found,) = solve_cells([(model, readout)], level, [k])
    shape = (len(points), len(weights))
    fit, bend, variance = (
        getattr(found, name)[0, -len(k) :].reshape(shape) for name in ("fit", "bend", "variance")
    )
    target = used.target(k).reshape(shape) @ weights
    if number is not None:
        beside = used.beside[number]
        size = float(np.linalg.norm(beside))
        along_z = beside / size if size > 0 else beside
        rest = points[:, None] - (k @ direction).reshape(shape)
        z = rest / size if size > 0 else np.zeros(shape)
        slope = (along_z @ found.slope[0, :, -len(k) :]).reshape(shape)
        fit, variance = fit + slope * z + bend * (z * z - 1.0), variance - slope**2
        target = target_along(used.teacher, np.eye(used.teacher.rank)[number], points)
    mean = fit @ weights
    band = (variance + (fit - mean[:, None]) ** 2) @ weights
    return LearnedFunction(
        **model.stated,
        solution=Solution(
            status="converged",
            residual=refined.residual[0],
            iterations=refined.iterations[0],
            error=refined.error[0],
        ),
        x=points,
        mean=mean,
        band=np.sqrt(np.maximum(band, 0.0)),
        along=along,
        target=target,
    )


def target_along(teacher: Teacher, cosines: FloatArray, points: FloatArray) -> FloatArray:
    """E[f* | x] at points x of a coordinate with cosines (R,) with the teacher's directions."""
    beside, _ = left_of(cosines[:, None])
    return teacher_given(teacher, np.outer(cosines, points), beside).mean


def _around(
    model: SpikedFeatures, direction: FloatArray, level: int
) -> tuple[FloatArray, FloatArray]:
    """Nodes (Q, r) and weights of N(0, I − direction directionᵀ), none along axes of no width."""
    variance, axes = np.linalg.eigh(np.eye(model.rank) - np.outer(direction, direction))
    some = variance > _NO_WIDTH
    if not some.any():
        return np.zeros((1, model.rank)), np.ones(1)
    size = np.sqrt(variance[some])[:, None] * axes[:, some].T
    if model.rank == 1:
        rule = graded_rule(_AROUND)
        return rule.nodes[:, None] * size, rule.weights
    slopes = np.abs(model.spikes @ size.T) / np.sqrt(model.bulk.totals)[:, None]
    rule = axes_rule(level, tuple(width_of(float(slope)) for slope in slopes.max(axis=0)))
    if len(rule.weights) > _MOST:  # beside the first axes neurons lean little
        rule = smooth_rule(int(_MOST ** (1 / len(size)) + 1e-9), len(size))
    return rule.nodes @ size, rule.weights
