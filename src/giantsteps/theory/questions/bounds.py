"""``theory.bounds``: floors and ceilings of the test error."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from giantsteps.answers import Bounds
from giantsteps.functions import Function
from giantsteps.gaussian import coordinate_rule, gauss_rule, moments, smoothed
from giantsteps.problem import Constant, Grid, Problem

from giantsteps.theory.scope.dispatch import answer
from giantsteps.theory.steps.first import first_step, link_of
from giantsteps.theory.scope.kinds import Kind, kind_of
from giantsteps.theory.scope.table import Rule
from giantsteps.theory.equivalent.model import SpikedFeatures

__all__ = ["approximation_error", "bounds", "bounds_of_model"]


def bounds(problem: Problem | Grid) -> Bounds:
    r"""Floors and ceilings of the test error R, without label noise.

    .. math::
        \text{linear} &= E σ^{*2} - μ_1^{*2} \\
        τ^* &= \inf_κ E\bigl(σ^*(ξ_1) - E_{ξ_2} σ(κξ_1 + ξ_2)\bigr)^2

    and, after one large step with a constant second layer, for the best penalty λ,

    .. math::
        \text{infinite penalty} &= \inf_ν E(h - νμ_0)^2 + E\operatorname{Var}[f^*|k] \;\ge\; R \\
        \text{optimal penalty} &= \inf_{ν_1,ν_2} E(h - ν_1μ_0 - ν_2 kμ_1)^2
            + E\operatorname{Var}[f^*|k] - \frac{(E h_1 μ_1)^2}{E μ_1^2} \;\le\; R

    with μ₀(k), μ₁(k), h(k), h₁(k) of theory §5c at p = ∞, isotropic bulk.

    ======  ===========================  ===========================================
    symbol  field of the problem         meaning
    ======  ===========================  ===========================================
    σ, σ*   ``activation``, ``teacher``  activation and link function
    μ₁*     ``teacher``                  E zσ*(z)
    ξ₁, ξ₂                               independent, N(0, 1)
    k                                    coordinate of the input along the spike
    h, h₁   ``teacher``                  E[f*|k] and its linear response, theory §5c
    μ₀, μ₁  ``activation``               those of a neuron given k
    ======  ===========================  ===========================================

    Parameters
    ----------
    problem : Problem or Grid
        With a rank-one centred teacher; the readout plays no part.

    Returns
    -------
    Bounds
        ``floors["linear"]``: no random features, tangent or rotation-invariant kernel goes below
        it. ``terms["tau"]`` with its optimiser ``arguments["tau"]``: the error of one direction,
        which bounds R by a multiple of itself at large η and many samples. ``floors["optimal
        penalty"]`` and ``ceilings["infinite penalty"]`` after a large step.

    References
    ----------
    theory §4; ba2022, cui2024.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0)
    >>> found = bounds(problem)
    >>> round(found["linear"], 6), round(found["tau"], 6), round(found.arguments["tau"], 4)
    (0.064453, 0.009044, 1.7847)
    """
    return answer("bounds", problem, None, {"bounds": _bounds})


def _bounds(problems: Sequence[Problem], rules: Sequence[Rule], d: int | None) -> list[Bounds]:
    return [_bounds_of(problem, rule) for problem, rule in zip(problems, rules, strict=True)]


def _bounds_of(problem: Problem, rule: Rule) -> Bounds:
    link = link_of(problem)
    tau, kappa = approximation_error(problem.activation, link)
    floors, ceilings = {"linear": moments(link).residual_variance}, {}
    law = problem.init.second_layer
    if kind_of(problem) is Kind.LARGE and isinstance(law, Constant):
        step, sigma = first_step(problem), moments(problem.activation)
        moved = problem.steps[0].rate * law.value  # η̃ A
        floors["optimal penalty"], ceilings["infinite penalty"] = _large_step(
            problem.activation,
            link,
            moved * sigma.linear * math.sqrt(step.norm_squared),
            1.0
            + moved**2 * sigma.derivative_variance * step.label_moment / problem.steps[0].samples,
            math.sqrt(step.alignment),
        )
    return Bounds(
        **rule.stated(problem, None),
        floors=floors,
        ceilings=ceilings,
        terms={"tau": tau},
        arguments={"tau": kappa},
    )


def bounds_of_model(model: SpikedFeatures) -> tuple[float, float]:
    """Lower and upper bound of R at the best penalty for spiked features of one type, rank one.

    Parameters
    ----------
    model : SpikedFeatures
        Of one type and one spike.

    Returns
    -------
    tuple of float
        The floor ``"optimal penalty"`` and the ceiling ``"infinite penalty"`` of `bounds`.

    References
    ----------
    theory §4; cui2024.

    Examples
    --------
    >>> from giantsteps.problem import Ridge
    >>> from giantsteps.theory import SpikedFeatures
    >>> model = SpikedFeatures(activation="tanh", teacher="sin", width=1.0,
    ...                        spikes=1.1340555, overlap=0.9718544, bulk=1.0189732)
    >>> low, high = bounds_of_model(model)
    >>> tests = [model.risk(Ridge(samples=3.0, penalty=x)).test for x in (0.01, 0.1, 1.0, 10.0)]
    >>> round(low, 4), round(min(tests), 4), round(high, 4)
    (0.0067, 0.0329, 0.0464)
    """
    return _large_step(
        model.activation,
        model.link,
        float(model.spikes[0, 0]),
        float(model.bulk.totals[0]),
        float(model.overlap[0]),
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


def _large_step(
    activation: Function, link: Function, spike: float, variance: float, overlap: float
) -> tuple[float, float]:
    """Lower and upper bound at the best penalty (cui2024), from the coefficients of theory §5c."""
    rule = coordinate_rule(1, reach=8.5)
    k, mean = rule.nodes[:, 0], rule.mean
    feature = smoothed(activation, spike * k, np.full_like(k, math.sqrt(variance)))
    rest = math.sqrt(max(1.0 - overlap**2, 0.0))
    teacher = smoothed(link, overlap * k, np.full_like(k, rest))
    hidden = float(mean(teacher.second_moment - teacher.mean**2))  # E Var[f*|k]
    learned = float(mean(teacher.linear * feature.slope)) ** 2 / float(mean(feature.slope**2))
    upper = hidden + _distance(teacher.mean, [feature.mean], rule.weights)
    lower = hidden + _distance(teacher.mean, [feature.mean, k * feature.slope], rule.weights)
    return lower - learned, upper


def _distance(target: NDArray, basis: list[NDArray], weights: NDArray) -> float:
    """inf over ν of E(target − Σ ν_i basis_i)², by least squares on √weight · values."""
    root = np.sqrt(weights)
    design = np.stack(basis, axis=-1) * root[:, None]
    solution = np.linalg.lstsq(design, target * root, rcond=None)[0]
    return float(np.sum((target * root - design @ solution) ** 2))
