r"""Limits of the errors on the staircase, η ≍ N^e with 0 < e < 1/2 (theory §6).

A diverging spike costs the readout nothing, so that the features act like finitely many
*unpenalised* regressors p_k(z) beside the random features of theory §4. Those explain a part of
whatever the regressors leave: at the effective penalty κ the residual g = y − Σν_k p_k costs

.. math:: J(κ) = \min_ν\; \|g_{≥2}\|^2 + w\,\|g_1\|^2 + w_0\,\|g_0\|^2,

with the prices w of its linear and w₀ of its constant part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from giantsteps.answers import Risk
from giantsteps.gaussian import hermite_coefficients, hermite_functions, moments
from giantsteps.laws import traces
from giantsteps.problem import Problem
from giantsteps.theory.model.classification import Predicted, jumps_of_link, wrong_sign
from giantsteps.theory.model.ridge_batch import DEGREES, RidgeBatch, risks_of
from giantsteps.theory.model.rules import graded_rule
from giantsteps.theory.steps.effective_penalty import (
    GaussianFeatures,
    effective_penalty,
    freedom,
    shrinkage,
)
from giantsteps.theory.steps.first import first_step, link_of
from giantsteps.theory.steps.kinds import staircase_level
from giantsteps.theory.steps.small import untrained_risk
from giantsteps.theory.steps.staircase.degrees import spike_degrees
from giantsteps.types import FloatArray as Array


def lengthening_of(problem: Problem) -> float:
    r"""κ₀, the squared length that the noise of the gradient adds to a neuron, in units of its
    movement along the spike.

    .. math:: κ_0 = \frac{E y_0^2\,\mathrm{Var}σ'}{α_0\, μ_1^2\, \|b\|^2}

    Infinite where the step has no direction (μ₁ = 0).
    """
    step, sigma = first_step(problem), moments(problem.activation)
    noise = step.label_moment * sigma.derivative_variance / problem.steps[0].samples
    moved = sigma.linear**2 * step.norm_squared
    return noise / moved if moved > 0 else float("inf")


def regressors(degrees: Sequence[int], lengthening: float, size: int) -> Array:
    r"""The polynomials p_k in the orthonormal basis He_j/√j!, j < size: one column a degree.

    .. math::
        p_k(z) = E_ε(z + \sqrt{κ_0}\,ε)^k
               = \sum_i \frac{k!}{(k-2i)!\, i!\, 2^i} (1+κ_0)^i\, \mathrm{He}_{k-2i}(z)

    Each is scaled to norm one: only their span matters.

    ======  ===============  ===========================================
    symbol  argument         meaning
    ======  ===============  ===========================================
    k       ``degrees``
    κ₀      ``lengthening``  see `lengthening_of`; 0 for plain powers z^k
    ======  ===============  ===========================================
    """
    columns = np.zeros((size, len(degrees)))
    for column, k in zip(columns.T, degrees):
        i = np.arange(k // 2 + 1)
        logarithm = i * np.log((1 + lengthening) / 2) - gammaln(i + 1) - gammaln(k - 2 * i + 1) / 2
        column[k - 2 * i] = np.exp(logarithm - logarithm.max())
        column /= np.linalg.norm(column)
    return columns


def prices(problems: Sequence[Problem], f: GaussianFeatures, kappa: Array) -> tuple[Array, Array]:
    r"""What random features leave of a unit residual, (w₀, w) for each cell, and the slopes in κ.

    .. math:: w = s\,g_1(s),\qquad w_0 = \frac{1}{1 + 2 c_2^2 β\, q_1(κ)},\qquad
              s = (μ_2^2+κ)/μ_1^2,\quad q_1 = g_2(s)/μ_1^2

    w is the price of a linear residual. w₀ is that of a constant one: 1 for weights on the sphere,
    less for gaussian weights with c₂ ≠ 0, whose unequal lengths make the mean of a neuron
    c₂(‖w_j‖² − 1) and with it a constant feature of strength² 2c₂²β.
    """
    s = (f.residual + kappa) / f.linear
    found = traces(s, f.width)
    q1, q1_slope = found.right / f.linear, found.right_slope / f.linear**2
    strength = np.array(
        [
            2 * moments(p.activation).quadratic ** 2 * p.width
            if p.init.weights == "gaussian"
            else 0.0
            for p in problems
        ]
    )
    constant = 1 / (1 + strength * q1)
    linear_slope = (found.left + s * found.left_slope) / f.linear
    constant_slope = -(constant**2) * strength * q1_slope
    return (
        np.stack([constant, s * found.left], axis=-1),
        np.stack([constant_slope, linear_slope], axis=-1),
    )


def unpenalised(problem: Problem) -> tuple[int, ...]:
    """Degrees of the unpenalised regressors; on a boundary, those of the limit from below."""
    level, boundary = staircase_level(problem.steps[0].exponent)
    degrees = spike_degrees(problem, level - 1 if boundary else level)
    return tuple(degree for degree, lacks in degrees.items() if lacks is None)


def risk(
    problems: Sequence[Problem], claims: Sequence[Any], d: int | None, *, lengthening: bool = True
) -> list[Risk]:
    """Limits of the errors, beside those of the untrained features."""
    errors = staircase_errors(problems, lengthening=lengthening)
    return risks_of(errors, claims, untrained_risk(problems, claims, d))


def staircase_errors(problems: Sequence[Problem], *, lengthening: bool = True) -> RidgeBatch:
    r"""Limits of the errors of problems with one step, 0 < e < 1/2.

    .. math:: R + Δ = \frac{J - κJ'}{1 - df_2},\qquad \text{train} = (λ/κ)^2 (R + Δ)

    * ``problems``: on a boundary the limit from below is taken.
    * ``lengthening``: with κ₀ (see `lengthening_of`); False sets it to zero, the form of
      moniri2023.

    References: theory §6; moniri2023.
    """
    f = GaussianFeatures.of(problems)
    kappa, residual, iterations = effective_penalty(f)
    _, df2 = freedom(f, kappa)
    fits = _fits(problems, f, kappa, lengthening)
    objective, slope = np.array([(fit.objective, fit.slope) for fit in fits]).reshape(-1, 2).T
    by_degree = np.array([fit.by_degree for fit in fits]).reshape(-1, DEGREES)
    noisy = (objective - kappa * slope) / (1 - df2)
    train = shrinkage(f, kappa) ** 2 * noisy
    error = np.maximum(residual, 1e-14)
    wrong = [
        _wrong_sign(problem, fit, test)
        for problem, fit, test in zip(problems, fits, noisy - f.noise, strict=True)
    ]
    return RidgeBatch(
        noisy - f.noise, train, by_degree, residual, iterations, error, np.array(wrong, dtype=float)
    )


def loss_staircase(problems: Sequence[Problem], *, lengthening: bool = True) -> Array:
    r"""Limit of the minimum of the readout's objective, its penalty included: (λ/κ) J.

    It is the function L(λ) with train = L − λL' and dλ/dκ = 1 − df₂.
    """
    f = GaussianFeatures.of(problems)
    kappa, _, _ = effective_penalty(f)
    fits = _fits(problems, f, kappa, lengthening)
    return shrinkage(f, kappa) * np.array([fit.objective for fit in fits])


@dataclass(frozen=True, eq=False)
class _Fit:
    """J and dJ/dκ, the error by degree, and the prediction C(k) + s z: C in He_j/√j!, s, ρ."""

    objective: float
    slope: float
    by_degree: Array
    along: Array
    beside: float
    overlap: float


def _fits(
    problems: Sequence[Problem], f: GaussianFeatures, kappa: Array, lengthening: bool
) -> list[_Fit]:
    cells = zip(problems, *prices(problems, f, kappa), strict=True)
    return [_fit(problem, price, slope, lengthening) for problem, price, slope in cells]


def _wrong_sign(problem: Problem, fit: _Fit, test: float) -> float:
    """P(f̂ f* < 0): the prediction is C(k) + s z and noise of one variance for all inputs."""
    if not problem.binary or not np.isfinite(test):
        return float("nan")
    link, rest = link_of(problem), float(np.sqrt(max(1.0 - fit.overlap**2, 0.0)))
    factor = np.exp(gammaln(np.arange(1, len(fit.along) + 1)) / 2)
    target = factor * hermite_coefficients(link, len(fit.along) - 1)
    known = (
        fit.along @ (target * fit.overlap ** np.arange(len(target))) + fit.beside * target[1] * rest
    )
    # E(f̂ − f*)² = E f̂² − 2 E f̂ f* + E f*², E f̂² = C·C + s² + noise.
    noise = test + 2 * known - moments(link).second_moment - fit.along @ fit.along - fit.beside**2
    rule = graded_rule(2, max(2.0 * rest / max(abs(fit.overlap), 1e-3), 1e-2))
    k, same = rule.nodes, np.ones(len(rule.nodes))
    predicted = Predicted(
        weights=rule.weights,
        fit=fit.along @ hermite_functions(k, len(fit.along) - 1),
        slope=fit.beside * same,
        bend=0.0 * same,
        variance=(fit.beside**2 + noise) * same,
    )
    along = fit.overlap * k
    return wrong_sign(
        predicted, lambda z: link(along[:, None] + rest * z), jumps_of_link(link, along, rest)
    )


def _fit(problem: Problem, price: Array, price_slope: Array, lengthening: bool) -> _Fit:
    """J, dJ/dκ, the prediction and its error by degree, from the prices (w₀, w) of degrees 0 and 1.

    In the basis He_j(z)/√j! the labels have coefficients √j! c*_j ρ^j; the part of their linear
    component that is orthogonal to the spike, c*₁√(1−ρ²), is left to the random features.
    """
    degrees = unpenalised(problem)
    link, step = link_of(problem), first_step(problem)
    size = max(DEGREES, *(degree + 1 for degree in degrees)) if degrees else DEGREES
    factor = np.exp(gammaln(np.arange(1, size + 1)) / 2)
    teacher = factor * hermite_coefficients(link, size - 1)
    overlap = np.sqrt(step.alignment) * (1.0 if teacher[1] >= 0 else -1.0)
    powers = overlap ** np.arange(size)
    target = teacher * powers
    weights = np.ones(size)
    weights[:2] = price

    kappa0 = lengthening_of(problem) if lengthening and len(degrees) > 1 else 0.0
    root = np.sqrt(weights)
    basis, _ = np.linalg.qr(root[:, None] * regressors(degrees, kappa0, size))
    scaled = root * target
    left = (scaled - basis @ (basis.T @ scaled)) / root

    aside = teacher[1] ** 2 * (1 - step.alignment)
    label_moment = moments(link).second_moment + problem.noise_variance
    objective = label_moment - target @ target - aside + weights @ left**2 + price[1] * aside
    slope = price_slope @ left[:2] ** 2 + price_slope[1] * aside

    # f̂ − f* on He_j(⟨x, β*⟩): what the regressors miss, times the price in degrees 0 and 1.
    missed = teacher - powers * (target - left)
    missed[0] = price[0] * left[0]
    missed[1] = price[1] * (overlap * left[1] + teacher[1] * (1 - step.alignment))
    return _Fit(
        objective=float(objective),
        slope=float(slope),
        by_degree=missed[:DEGREES] ** 2,
        along=target - weights * left,
        beside=float(teacher[1] * np.sqrt(1 - step.alignment) * (1 - price[1])),
        overlap=float(overlap),
    )
