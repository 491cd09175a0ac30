"""Floors and ceilings of the test error (theory §4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.optimize import least_squares, minimize_scalar

from giantsteps.answers import Bounds
from giantsteps.functions import Function, SingleIndex, Teacher, as_function
from giantsteps.gaussian import Rule, coordinate_rule, gauss_rule, smoothed
from giantsteps.problem import Constant, Problem
from giantsteps.theory.model.teacher import teacher_moments, teacher_rule
from giantsteps.theory.steps.build import model
from giantsteps.theory.steps.kinds import Kind, kind_of
from giantsteps.types import FloatArray

#: Nodes on an axis of the scan over κ, points from which it is refined, and how far.
_COARSE, _STARTS, _TOL = 12, 3, 1e-11
#: Largest |κ|, and knots of a smoothed activation per unit.
_LARGEST, _SPACING = 50.0, 1.0 / 16.0


def bounds(problems: Sequence[Problem], claims: Sequence[Any], d: int | None) -> list[Bounds]:
    """The kernel floor, τ*, and after a large step with a constant second layer those of
    cui2024. With several directions κ* is the length of the best vector κ.

    With a covariance Σ the best linear function of x is that of the normalised coordinate u, and a
    neuron starts with pre-activations of variance d⁻¹tr Σ = 1: the first two do not change.
    """
    return [_bounds(problem, claim) for problem, claim in zip(problems, claims, strict=True)]


def _bounds(problem: Problem, claim: Any) -> Bounds:
    teacher = problem.teacher
    if isinstance(teacher, SingleIndex):
        tau, kappa = approximation_error(problem.activation, teacher.link)
    else:
        tau, kappa = _error_of_directions(problem.activation, teacher)
    floors: dict[str, Any] = {"linear": teacher_moments(teacher).residual_variance}
    ceilings: dict[str, Any] = {}
    law = problem.init.second_layer
    if kind_of(problem) is Kind.LARGE and isinstance(law, Constant):
        found = model(problem, claim, None).bounds()
        floors |= found.floors
        ceilings |= found.ceilings
    return Bounds(
        **claim,
        floors=floors,
        ceilings=ceilings,
        terms={"tau": tau},
        arguments={"tau": kappa},
    )


def approximation_error(activation: Function | str, link: Function | str) -> tuple[float, float]:
    """τ* = inf_κ E(σ*(ξ₁) − E_ξ₂ σ(κξ₁+ξ₂))² and κ*, over a scan of |κ| ≤ 50 refined by Brent.

    Parameters
    ----------
    activation : Function or str
        σ.
    link : Function or str
        σ*.

    Returns
    -------
    tuple of float
        τ* and κ*.

    References
    ----------
    theory §4; ba2022.

    Examples
    --------
    One neuron along the teacher's direction can be an error function, at κ* = √3:

    >>> tau, kappa = approximation_error("erf", "erf")
    >>> round(tau, 9), round(kappa, 4)
    (0.0, 1.7321)
    """
    activation, link = as_function(activation, "activation"), as_function(link, "link")
    rule = gauss_rule(link)
    target = link(rule.nodes)

    def distance(kappa: float) -> float:
        learned = smoothed(activation, kappa * rule.nodes, np.ones_like(rule.nodes)).mean
        return float(rule.mean((target - learned) ** 2))

    grid = np.sinh(np.linspace(-1, 1, 61) * math.asinh(_LARGEST))
    values = [distance(kappa) for kappa in grid]
    best = int(np.argmin(values))
    lower, upper = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(
        distance, bounds=(lower, upper), method="bounded", options={"xatol": 1e-10}
    )
    if values[best] <= found.fun:
        return values[best], float(grid[best])
    return float(found.fun), float(found.x)


def _error_of_directions(activation: Function, teacher: Teacher) -> tuple[float, float]:
    """The same with a vector κ, one neuron along any of the teacher's directions: τ* and |κ*|."""
    rank, fine = teacher.rank, teacher_rule(teacher)
    coarse = coordinate_rule(rank, nodes=_COARSE)
    angles = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 5)] * rank), axis=-1).reshape(-1, rank)
    lengths = np.linalg.norm(angles, axis=1)
    around = angles[lengths > 0] / lengths[lengths > 0, None]
    starts = np.concatenate([size * around for size in (0.3, 1.0, 3.0, 10.0)])

    def misses(kappa: FloatArray, rule: Rule, labels: FloatArray) -> FloatArray:
        return np.sqrt(rule.weights) * (_neuron(activation, rule.nodes @ kappa)[0] - labels)

    def slopes(kappa: FloatArray, rule: Rule, labels: FloatArray) -> FloatArray:
        slope = np.sqrt(rule.weights) * _neuron(activation, rule.nodes @ kappa)[1]
        return np.asarray(slope[:, None] * rule.nodes)

    known = coarse, np.asarray(teacher(coarse.nodes), dtype=float)
    values = [float(np.sum(misses(kappa, *known) ** 2)) for kappa in starts]
    known = fine, np.asarray(teacher(fine.nodes), dtype=float)
    limits: Any = {"bounds": (-_LARGEST, _LARGEST), "xtol": _TOL, "ftol": _TOL, "gtol": _TOL}
    found = [
        least_squares(misses, starts[i], slopes, args=known, **limits)
        for i in np.argsort(values, kind="stable")[:_STARTS]
    ]
    best = min(found, key=lambda one: float(one.cost))
    nothing = float(np.sum(misses(np.zeros(rank), *known) ** 2))
    if nothing <= 2.0 * best.cost:
        return nothing, 0.0
    return 2.0 * float(best.cost), float(np.linalg.norm(best.x))


@lru_cache(maxsize=8)
def _splines(activation: Function, reach: float) -> tuple[Any, Any]:
    """t ↦ E σ(t + ξ) and its slope for |t| ≤ reach.

    Both vary on the scale of one, whatever σ: the spline of degree 7 is as good as its knots.
    """
    t = np.arange(-reach - 1.0, reach + 1.0, _SPACING)
    learned = smoothed(activation, t, np.ones_like(t))
    return make_interp_spline(t, learned.mean, k=7), make_interp_spline(t, learned.slope, k=7)


def _neuron(activation: Function, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """E σ(t + ξ) and its slope."""
    reach = 2.0 ** math.ceil(math.log2(max(8.0, float(np.abs(t).max()))))
    mean, slope = _splines(activation, reach)
    return mean(t), slope(t)
