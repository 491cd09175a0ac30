"""The function that ridge regression on an equivalent model learns (theory §5c)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from giantsteps.answers import LearnedFunction, Solution
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Ridge
from giantsteps.theory.model.errors import refine, solve_cells
from giantsteps.theory.model.rules import graded_rule
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.types import FloatArray

__all__ = ["learned_function_of_model", "points_of"]

#: Resolution of one spike coordinate given that of the teacher.
_AROUND = 1
#: Changes of the errors below which the function is resolved far out, too, where samples are few.
_GOOD = (1e-3, 1e-9)


def points_of(x: ArrayLike | None) -> FloatArray:
    """Where the function is wanted: 61 points from −3 to 3 unless given."""
    try:
        points = np.atleast_1d(np.linspace(-3.0, 3.0, 61) if x is None else np.asarray(x, float))
    except (TypeError, ValueError):
        raise InvalidProblem("x", x, "a one-dimensional array of finite numbers") from None
    if points.ndim != 1 or not np.all(np.isfinite(points)):
        raise InvalidProblem("x", x, "a one-dimensional array of finite numbers")
    return points


def learned_function_of_model(
    model: SpikedFeatures,
    readout: Ridge,
    x: ArrayLike | None = None,
    along: Literal["spike", "teacher"] = "spike",
) -> LearnedFunction:
    r"""Mean and spread of the prediction given one coordinate of the input.

    Along the spike, turned towards the teacher, k₁ = x. Along the teacher, ⟨x, β*⟩ = u: k ~ N(γu, I
    − γγᵀ), and with z the teacher's coordinate orthogonal to the spikes

    .. math:: E[\hat f | u] = E[C(k) + s(k) z + b(k)(z² - 1) | u].

    References: theory §5c; cui2024.
    """
    if along not in ("spike", "teacher"):
        raise InvalidProblem("along", along, "'spike' or 'teacher'")
    points = points_of(x)
    refined = refine([(model, readout)], _GOOD)
    level = refined.levels[0]
    used = model.at_level(level)
    turned = -1.0 if along == "spike" and used.overlap[0] < 0 else 1.0
    direction = used.overlap if along == "teacher" else turned * np.eye(used.rank)[0]
    # k given the coordinate, as a quadrature around direction · x: functions of k are smooth.
    single = graded_rule(_AROUND)
    nodes, weights = single.nodes[:, None], single.weights
    if used.rank > 1:
        rule = used.coordinates(level)
        nodes, weights = rule.nodes, rule.weights
    around = nodes @ _root(np.eye(used.rank) - np.outer(direction, direction))
    if along == "spike" and used.rank == 1:
        around, weights = np.zeros((1, 1)), np.ones(1)
    k = (points[:, None, None] * direction + around).reshape(-1, used.rank)
    solved = solve_cells([(model, readout)], level, [k])
    shape = (len(points), len(weights))
    fit, slope, bend, variance = (
        getattr(solved.readouts[0], name)[0, -len(k) :].reshape(shape)
        for name in ("fit", "slope", "bend", "variance")
    )
    target = used.target(k).reshape(shape)
    if along == "teacher":
        rest = points[:, None] - (k @ used.overlap).reshape(shape)
        z = rest / used.remainder if used.remainder > 0 else np.zeros(shape)
        fit, variance = fit + slope * z + bend * (z * z - 1.0), variance - slope**2
        target = np.repeat(np.asarray(used.link(points), dtype=float)[:, None], shape[1], axis=1)
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
        target=target @ weights,
    )


def _root(matrix: FloatArray) -> FloatArray:
    """The symmetric square root of a positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
