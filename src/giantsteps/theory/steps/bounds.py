"""Floors and ceilings of the test error (theory §4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from giantsteps.answers import Bounds
from giantsteps.functions import Function
from giantsteps.gaussian import gauss_rule, moments, smoothed
from giantsteps.problem import Constant, Problem
from giantsteps.theory.steps.build import model
from giantsteps.theory.steps.first import link_of
from giantsteps.theory.steps.kinds import Kind, kind_of


def bounds(problems: Sequence[Problem], claims: Sequence[Any], d: int | None) -> list[Bounds]:
    """The kernel floor, τ*, and after a large step with a constant second layer those of
    cui2024.

    With a covariance Σ the best linear function of x is that of the normalised coordinate u, and a
    neuron starts with pre-activations of variance d⁻¹tr Σ = 1: the first two do not change.
    """
    return [_bounds(problem, claim) for problem, claim in zip(problems, claims, strict=True)]


def _bounds(problem: Problem, claim: Any) -> Bounds:
    link = link_of(problem)
    tau, kappa = approximation_error(problem.activation, link)
    floors: dict[str, Any] = {"linear": moments(link).residual_variance}
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


def approximation_error(activation: Function, link: Function) -> tuple[float, float]:
    """τ* = inf_κ E(σ*(ξ₁) − E_ξ₂ σ(κξ₁+ξ₂))² and κ*, over a scan of |κ| ≤ 50 refined by Brent.

    Parameters
    ----------
    activation : Function
        σ.
    link : Function
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

    >>> from giantsteps.functions import as_function
    >>> tau, kappa = approximation_error(as_function("erf"), as_function("erf"))
    >>> round(tau, 9), round(kappa, 4)
    (0.0, 1.7321)
    """
    rule = gauss_rule(link)
    target = link(rule.nodes)

    def distance(kappa: float) -> float:
        learned = smoothed(activation, kappa * rule.nodes, np.ones_like(rule.nodes)).mean
        return float(rule.mean((target - learned) ** 2))

    grid = np.sinh(np.linspace(-1, 1, 61) * math.asinh(50.0))
    values = [distance(kappa) for kappa in grid]
    best = int(np.argmin(values))
    lower, upper = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(
        distance, bounds=(lower, upper), method="bounded", options={"xatol": 1e-10}
    )
    if values[best] <= found.fun:
        return values[best], float(grid[best])
    return float(found.fun), float(found.x)
