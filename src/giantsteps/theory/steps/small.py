r"""Ridge risk under Gaussian equivalence: no step, or one step with η = Θ(1) (theory §4).

The features act like Φ̄ = N^{-1/2}(μ₁ X̃ W + μ₂ Z); the step adds the rank-one part of theory §2
to W. Everything is a function of the resolvent traces g₁, g₂ of theory §1 at one point s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from giantsteps.answers import DegreesOfFreedom, LearnedFunction, Risk, Solution, direction_of
from giantsteps.errors import InvalidProblem
from giantsteps.functions import SingleIndex, Teacher
from giantsteps.gaussian import coordinate_rule, hermite_coefficients, moments
from giantsteps.laws import traces
from giantsteps.problem import Problem
from giantsteps.theory.model.classification import (
    Predicted,
    jumps_by_scan,
    jumps_of_link,
    wrong_sign,
)
from giantsteps.theory.model.degrees_of_freedom import counted
from giantsteps.theory.model.learned import points_of, target_along
from giantsteps.theory.model.ridge_batch import DEGREES, RidgeBatch, risks_of
from giantsteps.theory.model.teacher import linear_frame, teacher_moments
from giantsteps.theory.steps.effective_penalty import (
    GaussianFeatures,
    effective_penalty,
    freedom,
    shrinkage,
)
from giantsteps.theory.steps.several.summed import summed
from giantsteps.types import FloatArray as Array

#: Least s: linear features without penalty are the limit s → 0.
_LEAST = 1e-13
#: Accuracy of the closed forms.
_ROUNDING = 1e-14


@dataclass(frozen=True)
class RidgeErrors:
    """Errors of theory §4, one entry a cell; ``unlearned`` is the part of the teacher's linear
    component that stays out of reach, ``unlearned_mean`` that of its mean."""

    test: Array
    train: Array
    unlearned: Array
    unlearned_mean: Array
    residual: Array
    iterations: Array


def ridge_errors(f: GaussianFeatures) -> RidgeErrors:
    r"""Test and train error of theory §4.

    .. math::
        P(κ) &= μ_1^{*2}(1 - s K(s)) + μ_0^{*2}\frac{‖m‖^2 q_1}{1 + ‖m‖^2 q_1},\qquad
        K(s) = \frac{ρ^2 g_1}{1 + s θ_1^2 g_1 g_2} + (1-ρ^2)\, g_1, \\
        R + Δ &= \frac{E y^2 - P + κ P'}{1 - df_2},\qquad
        \text{train} = (λ/κ)^2 (R + Δ) = (1 - df_1)^2 (R + Δ)
    """
    kappa, residual, iterations = effective_penalty(f)
    _, df2 = freedom(f, kappa)
    s = np.maximum((f.residual + kappa) / f.linear, _LEAST)
    unlearned, slope = _unlearned(f, s)  # s K(s) and its derivative in s
    left, left_slope = _unlearned_mean(f, s)
    explained = f.teacher_linear * (1 - unlearned) + f.teacher_mean * (1 - left)
    explained_slope = -(f.teacher_linear * slope + f.teacher_mean * left_slope) / f.linear
    noisy = (f.label_moment - explained + kappa * explained_slope) / (1 - df2)
    train = shrinkage(f, kappa) ** 2 * noisy
    return RidgeErrors(noisy - f.noise, train, unlearned, left, residual, iterations)


def _unlearned_mean(f: GaussianFeatures, s: Array) -> tuple[Array, Array]:
    """1/(1 + ‖m‖²q₁), q₁ = g₂(s)/μ₁², and its derivative in s."""
    found = traces(s, f.width)
    finite = np.isfinite(f.mean_strength)
    strength = np.where(finite, f.mean_strength, 0.0) / f.linear
    left = np.where(finite, 1.0 / (1.0 + strength * found.right), 0.0)
    return left, -(left**2) * strength * found.right_slope


def _unlearned(f: GaussianFeatures, s: Array) -> tuple[Array, Array]:
    """s K(s) and its derivative."""
    found = traces(s, f.width)
    a, b, a_slope, b_slope = found.left, found.right, found.left_slope, found.right_slope
    finite = np.isfinite(f.strength)
    theta = np.where(finite, f.strength, 0.0) ** 2
    spiked = 1 + s * theta * a * b
    spiked_slope = theta * (a * b + s * (a_slope * b + a * b_slope))
    along = np.where(finite, a / spiked, 0.0)
    along_slope = np.where(finite, (a_slope - a * spiked_slope / spiked) / spiked, 0.0)
    k = f.alignment * along + (1 - f.alignment) * a
    k_slope = f.alignment * along_slope + (1 - f.alignment) * a_slope
    return s * k, k + s * k_slope


def small_errors(problems: Sequence[Problem], d: int | None = None) -> RidgeBatch:
    """Errors of each problem, at the realised ratios if d is given, and their parts by degree.

    The part of E(f̂ − f*)² on He_k(⟨x, β*⟩) is μ₁*²(s K)² for k = 1 and all of k! c*_k² above:
    Gaussian-equivalent features learn nothing beyond degree one. The mean of σ*, k = 0, is learned
    by that of the features.
    """
    sized = problems if d is None else [problem.realised(d) for problem in problems]
    errors = ridge_errors(GaussianFeatures.of(sized))
    factorial = np.array([1.0, 1.0, 2.0, 6.0, 24.0])
    by_degree = np.array([factorial * _hermite(p.teacher) ** 2 for p in problems]).reshape(
        -1, DEGREES
    )
    by_degree[:, 0] *= errors.unlearned_mean**2
    by_degree[:, 1] *= errors.unlearned**2
    error = np.maximum(errors.residual, _ROUNDING)
    wrong = [
        _wrong_sign(problem, *one)
        for problem, *one in zip(
            problems, errors.test, errors.unlearned, errors.unlearned_mean, strict=True
        )
    ]
    return RidgeBatch(
        errors.test,
        errors.train,
        by_degree,
        errors.residual,
        errors.iterations,
        error,
        np.array(wrong, dtype=float),
    )


def _wrong_sign(problem: Problem, test: float, unlearned: float, unlearned_mean: float) -> float:
    """P(f̂ f* < 0): f̂ is linear in the teacher's linear direction, and noise beside it."""
    if not problem.binary or not np.isfinite(test):
        return math.nan
    teacher = teacher_moments(problem.teacher)
    slope = teacher.linear * (1.0 - unlearned)
    fit = teacher.mean * (1.0 - unlearned_mean)
    power = test + 2.0 * (teacher.linear * slope + teacher.mean * fit) - teacher.second_moment
    variance = power - fit**2
    if isinstance(problem.teacher, SingleIndex):
        link, zero = problem.teacher.link, np.zeros(1)
        predicted = Predicted(np.ones(1), zero + fit, np.array([slope]), zero, np.array([variance]))
        return wrong_sign(predicted, link, jumps_of_link(link, zero, 1.0))
    frame = linear_frame(problem.teacher)
    rule = coordinate_rule(problem.teacher.rank - 1)
    same = np.ones(len(rule.weights))
    predicted = Predicted(rule.weights, fit * same, slope * same, 0 * same, variance * same)

    def labels(z: Array) -> Array:
        u = (rule.nodes @ frame[1:])[:, None] + z[:, :, None] * frame[0]
        return np.asarray(problem.teacher(u), dtype=float)

    return wrong_sign(predicted, labels, jumps_by_scan(labels, len(same)))


def _hermite(teacher: Teacher) -> Array:
    """Hermite coefficients of the teacher's link; NaN for a teacher of several directions."""
    if isinstance(teacher, SingleIndex):
        return hermite_coefficients(teacher.link, DEGREES - 1)
    return np.full(DEGREES, np.nan)


def closed_at(problem: Problem, d: int | None) -> bool:
    """Whether the closed forms hold before the steps: at a size the norm of the input is noise to
    the features' mean, by which an activation with an even part learns that of the labels.
    """
    odd = moments(problem.activation).is_odd
    return problem.inputs.isotropic and (
        d is None or odd or teacher_moments(problem.teacher).is_centered
    )


#: The same for all rates of a step.
_known_errors = lru_cache(maxsize=16)(small_errors)


# -- answers ------------------------------------------------------------------------------------


def untrained_risk(problems: Sequence[Problem], claims: Sequence[Any], d: int | None) -> list[Risk]:
    """The risk of the same readouts on the features at initialisation.

    Random features do not see the second layer, and the mean of σ only as a regressor of the
    teacher's mean: theory §4 holds for every activation there (see `closed_at`).
    """
    untrained = [problem.untrained() for problem in problems]
    claims = [{**claim, "problem": problem} for claim, problem in zip(claims, untrained)]
    place: dict[Problem, int] = {}
    cells = np.array([place.setdefault(problem, len(place)) for problem in untrained])
    return risks_of(_known_errors(tuple(place), d).take(cells), claims)


def risk(problems: Sequence[Problem], claims: Sequence[Any], d: int | None) -> list[Risk]:
    """No step, or steps with η = Θ(1), whose rates add up."""
    errors = small_errors([summed(problem) for problem in problems], d)
    return risks_of(errors, claims, untrained_risk(problems, claims, d))


def degrees_of_freedom(
    problems: Sequence[Problem], claims: Sequence[Any], d: int | None
) -> list[DegreesOfFreedom]:
    """κ, df₁ and df₂ of the bulk alone, whatever the steps."""
    untrained = [problem.untrained() for problem in problems]
    sized = untrained if d is None else [problem.realised(d) for problem in untrained]
    features = GaussianFeatures.of(sized)
    kappa, residual, iterations = effective_penalty(features)
    df1, df2 = freedom(features, kappa)
    return [
        DegreesOfFreedom(
            **counted(claim),
            solution=_solution(residual[i], iterations[i]),
            kappa=kappa[i],
            df1=df1[i],
            df2=df2[i],
        )
        for i, claim in enumerate(claims)
    ]


def learned_function(
    problems: Sequence[Problem],
    claims: Sequence[Any],
    d: int | None,
    *,
    along: str = "spike",
    x: ArrayLike | None = None,
) -> list[LearnedFunction]:
    r"""Everything is linear: with κ, s, K above and the learned mean m₀,

    .. math:: m(x) = m_0 + μ_1^*(1 - sK(s))\,x \ \text{(teacher)},\qquad
        m(x) = m_0 + μ_1^*ρ\Bigl(1 - \frac{s g_1}{1 + sθ_1^2 g_1 g_2}\Bigr) x \
        \text{(spike)},\qquad b^2 = R + 2P - Eσ^{*2} - m_0^2 - m'^2 .
    """
    return [
        _learned(problem, claim, d, along, points_of(x)) for problem, claim in zip(problems, claims)
    ]


def _learned(
    problem: Problem, claim: Any, d: int | None, along: str, points: Array
) -> LearnedFunction:
    if along == "spike" and not problem.steps:
        raise InvalidProblem("along", along, '"teacher": without a step there is no spike')
    sized = problem if d is None else problem.realised(d)
    features, teacher = GaussianFeatures.of([summed(sized)]), teacher_moments(problem.teacher)
    errors, rank = ridge_errors(features), problem.teacher.rank
    learned = 1.0 - errors.unlearned[0]  # 1 − sK
    linear = linear_frame(problem.teacher)[0] if rank > 1 else np.ones(1)
    number = direction_of(along, rank)
    if number is None:
        overlap = math.sqrt(features.alignment[0])
        cosines, slope = overlap * linear, teacher.linear * overlap * _along_spike(features)
    else:
        cosines, slope = np.eye(rank)[number], teacher.linear * linear[number] * learned
    constant = teacher.mean * (1.0 - errors.unlearned_mean[0])
    product = teacher.linear**2 * learned + teacher.mean * constant  # E f̂ f*
    power = errors.test[0] + 2.0 * product - teacher.second_moment - constant**2  # Var f̂
    return LearnedFunction(
        **claim,
        solution=_solution(errors.residual[0], errors.iterations[0]),
        x=points,
        mean=constant + slope * points,
        band=np.full(points.shape, math.sqrt(max(power - slope**2, 0.0))),
        along=along,
        target=target_along(problem.teacher, cosines, points),
    )


def _solution(residual: Any, iterations: Any) -> Solution:
    error = max(residual, _ROUNDING)
    return Solution(status="converged", residual=residual, iterations=iterations, error=error)


def _along_spike(features: GaussianFeatures) -> float:
    """1 − s g₁/(1 + sθ₁²g₁g₂): the part of the linear component along b̂ that is learned."""
    kappa, _, _ = effective_penalty(features)
    s = (features.residual + kappa) / features.linear
    a, b, _, _ = traces(s, features.width)
    return float((1.0 - s * a / (1.0 + s * features.strength**2 * a * b))[0])
