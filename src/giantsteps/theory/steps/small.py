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
from giantsteps.errors import InvalidProblem, NotConverged
from giantsteps.functions import SingleIndex, Teacher
from giantsteps.gaussian import coordinate_rule, hermite_coefficients, moments
from giantsteps.laws import g1, g2, traces
from giantsteps.problem import Problem
from giantsteps.theory.model.classification import (
    Predicted,
    jumps_by_scan,
    jumps_of_link,
    wrong_sign,
)
from giantsteps.theory.model.learned import points_of, target_along
from giantsteps.theory.model.ridge_batch import DEGREES, RidgeBatch, risks_of
from giantsteps.theory.model.teacher import linear_frame, teacher_moments
from giantsteps.theory.steps.first import first_step
from giantsteps.theory.steps.several.batches import summed
from giantsteps.types import FloatArray as Array

#: Least s: linear features without penalty are the limit s → 0.
_LEAST = 1e-13
#: Accuracy of the closed forms.
_ROUNDING = 1e-14
_CHEBYSHEV = 64


@dataclass(frozen=True)
class GaussianFeatures:
    """The scalars of theory §4, one entry a cell.

    ======  =====================  ==========================================
    symbol  attribute              meaning
    ======  =====================  ==========================================
    β       ``width``              N/d
    α       ``samples``            n/d of the readout; Γ = α/β
    λ       ``penalty``            ridge penalty
    μ₁²     ``linear``             linear part of σ, squared
    μ₂²     ``residual``           non-linear part of σ, squared
    μ₁*²    ``teacher_linear``     linear part of σ*, squared
    E y²    ``label_moment``       second moment of the labels, noise included
    Δ       ``noise``              variance of the label noise
    θ₁      ``strength``           of the spike; inf is allowed
    ρ²      ``alignment``          of the spike with the teacher
    ======  =====================  ==========================================
    """

    width: Array
    samples: Array
    penalty: Array
    linear: Array
    residual: Array
    teacher_linear: Array
    label_moment: Array
    noise: Array
    strength: Array
    alignment: Array

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> GaussianFeatures:
        """The scalars of each problem, its first step (if any) taken at exponent zero."""
        rows = []
        for problem in problems:
            sigma, teacher = moments(problem.activation), teacher_moments(problem.teacher)
            readout = problem.require_readout()
            step = first_step(problem) if problem.steps else None
            rows.append(
                (
                    problem.width,
                    readout.samples,
                    readout.penalty,
                    # An even activation is the limit μ₁ → 0.
                    max(sigma.linear**2, 1e-30 * sigma.second_moment),
                    sigma.residual_variance,
                    teacher.linear**2,
                    teacher.second_moment + problem.noise_variance,
                    problem.noise_variance,
                    step.strength if step else 0.0,
                    step.alignment if step else 0.0,
                )
            )
        return cls(*np.array(rows, dtype=float).reshape(-1, 10).T)


@dataclass(frozen=True)
class RidgeErrors:
    """Errors of theory §4, one entry a cell; ``unlearned`` is the part 1 − P/μ₁*² of the linear
    component that stays out of reach."""

    test: Array
    train: Array
    unlearned: Array
    residual: Array
    iterations: Array


def effective_penalty(f: GaussianFeatures) -> tuple[Array, Array, Array]:
    r"""κ > 0 of κ(1 − df₁(κ)) = λ, by Newton from above.

    .. math:: df_1 = (1 - κ q_1)/Γ,\quad df_2 = (1 - 2κ q_1 - κ^2 q_1')/Γ,\quad
              q_1(κ) = N^{-1}\operatorname{tr}(Σ+κ)^{-1} = g_2(s)/μ_1^2

    κ df₁(κ) is concave with slope df₂ and at most E σ²/Γ, so Newton from λ + E σ²/Γ descends to the
    root without ever crossing it. λ = 0 is the limit λ → 0⁺: κ = 0 for n > N, and found for n < N
    and linear features at the penalty 1e-14 E σ², which moves it by no more than rounding.

    Returns
    -------
    kappa, residual, iterations : ndarray
    """
    scale = f.linear + f.residual
    gamma = f.samples / f.width
    penalty = np.maximum(f.penalty, 1e-14 * scale)
    kappa = penalty + scale / gamma
    active = np.ones(kappa.shape, dtype=bool)
    iterations = np.zeros(kappa.shape)
    for _ in range(200):
        df1, df2 = freedom(f, kappa)
        lower = kappa - (kappa * (1 - df1) - penalty) / (1 - df2)
        active &= lower < kappa * (1 - 1e-15)
        if not active.any():
            break
        kappa = np.where(active, np.maximum(lower, penalty), kappa)
        iterations += active
    kappa = np.where((f.penalty == 0) & (gamma > 1) & (f.residual > 0), 0.0, kappa)
    penalty = np.where(kappa == 0, 0.0, penalty)
    df1, _ = freedom(f, kappa)
    residual = np.abs(kappa * (1 - df1) - penalty) / np.maximum(np.maximum(kappa, penalty), 1e-300)
    if active.any() or not np.all(residual < 1e-10):
        worst = int(np.argmax(residual))
        raise NotConverged(
            f"effective penalty at width={f.width[worst]:.6g}, samples={f.samples[worst]:.6g}, "
            f"penalty={f.penalty[worst]:.6g}",
            float(residual[worst]),
            int(iterations[worst]),
            "a larger penalty, or samples further from the width",
        )
    return kappa, residual, iterations


def freedom(f: GaussianFeatures, kappa: Array) -> tuple[Array, Array]:
    """df₁(κ) and df₂(κ), both relative to the number of samples.

    Their closed forms cancel where κ is larger than the eigenvalues of Σ; there they are integrals.
    """
    gamma = f.samples / f.width
    s = (f.residual + kappa) / f.linear
    _, trace, root = traces(s, f.width)
    q1 = trace / f.linear
    q1_slope = -trace * (1.0 + f.width * trace) / (root * f.linear**2)
    first, second = 1 - kappa * q1, 1 - 2 * kappa * q1 - kappa**2 * q1_slope
    top = f.linear * (1 + np.sqrt(f.width)) ** 2 + f.residual
    far = kappa > top
    if np.any(far):
        share = _shares(f, kappa)
        first = np.where(far, share[0], first)
        second = np.where(far, share[1], second)
    return first / gamma, second / gamma


def _shares(f: GaussianFeatures, kappa: Array) -> tuple[Array, Array]:
    r"""∫h dH and ∫h²dH, h = t/(t+κ), by Gauss–Chebyshev nodes of the Marchenko–Pastur law.

    With t = μ₁²x + μ₂² and the density √((x₊−x)(x−x₋))/(2πβx) of the N eigenvalues x of W₀ᵀW₀,
    zeros included, ∫h dH = h₀ + ∫(h − h₀)/x · √(…)/(2πβ) dx, h₀ that of x = 0.
    """
    angle = np.arange(1, _CHEBYSHEV + 1) * np.pi / (_CHEBYSHEV + 1)
    weights = 2 / (_CHEBYSHEV + 1) * np.sin(angle) ** 2
    width = f.width[:, None]
    x = 1 + width + 2 * np.sqrt(width) * np.cos(angle)
    t = f.linear[:, None] * x + f.residual[:, None]
    total = f.residual + kappa  # where it is zero, so is h₀
    some = np.where(total > 0, total, 1.0)
    zero = f.residual / some
    slope = (f.linear * np.where(total > 0, kappa / some, 1.0))[:, None] / (t + kappa[:, None])
    double = slope * (t / (t + kappa[:, None]) + zero[:, None])
    # Sums by rows: a product of matrices would let a cell see how many others there are.
    return zero + (slope * weights).sum(axis=1), zero**2 + (double * weights).sum(axis=1)


def ridge_errors(f: GaussianFeatures) -> RidgeErrors:
    r"""Test and train error of theory §4.

    .. math::
        P(κ) &= μ_1^{*2}(1 - s K(s)),\qquad
        K(s) = \frac{ρ^2 g_1}{1 + s θ_1^2 g_1 g_2} + (1-ρ^2)\, g_1, \\
        R + Δ &= \frac{E y^2 - P + κ P'}{1 - df_2},\qquad
        \text{train} = (λ/κ)^2 (R + Δ) = (1 - df_1)^2 (R + Δ)
    """
    kappa, residual, iterations = effective_penalty(f)
    _, df2 = freedom(f, kappa)
    s = np.maximum((f.residual + kappa) / f.linear, _LEAST)
    unlearned, slope = _unlearned(f, s)  # s K(s) and its derivative in s
    explained = f.teacher_linear * (1 - unlearned)
    explained_slope = -f.teacher_linear * slope / f.linear
    noisy = (f.label_moment - explained + kappa * explained_slope) / (1 - df2)
    train = shrinkage(f, kappa) ** 2 * noisy
    return RidgeErrors(noisy - f.noise, train, unlearned, residual, iterations)


def shrinkage(f: GaussianFeatures, kappa: Array) -> Array:
    """λ/κ = 1 − df₁, by which residuals shrink on the training set, without cancellation."""
    df1, _ = freedom(f, kappa)
    found = np.where(kappa > 0, f.penalty / np.where(kappa > 0, kappa, 1.0), 1 - df1)
    return np.asarray(np.minimum(found, 1.0))


def _unlearned(f: GaussianFeatures, s: Array) -> tuple[Array, Array]:
    """s K(s) and its derivative."""
    a, b, root = traces(s, f.width)
    a_slope, b_slope = -a * (1.0 + a) / root, -b * (1.0 + f.width * b) / root
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
    Gaussian-equivalent features learn nothing beyond degree one.
    """
    sized = problems if d is None else [problem.realised(d) for problem in problems]
    errors = ridge_errors(GaussianFeatures.of(sized))
    factorial = np.array([1.0, 1.0, 2.0, 6.0, 24.0])
    by_degree = np.array([factorial * _hermite(p.teacher) ** 2 for p in problems]).reshape(
        -1, DEGREES
    )
    by_degree[:, 1] *= errors.unlearned**2
    error = np.maximum(errors.residual, _ROUNDING)
    wrong = [
        _wrong_sign(problem, test, unlearned)
        for problem, test, unlearned in zip(problems, errors.test, errors.unlearned, strict=True)
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


def _wrong_sign(problem: Problem, test: float, unlearned: float) -> float:
    """P(f̂ f* < 0): f̂ is linear in the teacher's linear direction, and noise beside it."""
    if not problem.binary or not np.isfinite(test):
        return math.nan
    teacher = teacher_moments(problem.teacher)
    slope = teacher.linear * (1.0 - unlearned)
    power = test + 2.0 * teacher.linear * slope - teacher.second_moment  # E f̂²
    if isinstance(problem.teacher, SingleIndex):
        link, zero = problem.teacher.link, np.zeros(1)
        predicted = Predicted(np.ones(1), zero, np.array([slope]), zero, np.array([power]))
        return wrong_sign(predicted, link, jumps_of_link(link, zero, 1.0))
    frame = linear_frame(problem.teacher)
    rule = coordinate_rule(problem.teacher.rank - 1)
    same = np.ones(len(rule.weights))
    predicted = Predicted(rule.weights, 0 * same, slope * same, 0 * same, power * same)

    def labels(z: Array) -> Array:
        u = (rule.nodes @ frame[1:])[:, None] + z[:, :, None] * frame[0]
        return np.asarray(problem.teacher(u), dtype=float)

    return wrong_sign(predicted, labels, jumps_by_scan(labels, len(same)))


def _hermite(teacher: Teacher) -> Array:
    """Hermite coefficients of the teacher's link; NaN for a teacher of several directions."""
    if isinstance(teacher, SingleIndex):
        return hermite_coefficients(teacher.link, DEGREES - 1)
    return np.full(DEGREES, np.nan)


# -- answers ------------------------------------------------------------------------------------


def untrained_risk(problems: Sequence[Problem], claims: Sequence[Any], d: int | None) -> list[Risk]:
    """The risk of the same readouts on the features at initialisation.

    Random features do not see the second layer, and the mean of σ only as a regressor that a
    centred teacher leaves at zero: theory §4 holds for every activation there.
    """
    untrained = [problem.untrained() for problem in problems]
    claims = [{**claim, "problem": problem} for claim, problem in zip(claims, untrained)]
    place: dict[Problem, int] = {}
    cells = np.array([place.setdefault(problem, len(place)) for problem in untrained])
    return risks_of(_distinct_errors(tuple(place), d).take(cells), claims)


@lru_cache(maxsize=16)
def _distinct_errors(problems: tuple[Problem, ...], d: int | None) -> RidgeBatch:
    """`small_errors`, the same for all rates of a step."""
    return small_errors(problems, d)


def risk(problems: Sequence[Problem], claims: Sequence[Any], d: int | None) -> list[Risk]:
    """No step, or one with η = Θ(1)."""
    return risks_of(small_errors(problems, d), claims, untrained_risk(problems, claims, d))


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
            **claim,
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
    r"""Everything is linear: with κ, s, K above,

    .. math:: m(x) = μ_1^*(1 - sK(s))\,x \ \text{(teacher)},\qquad
        m(x) = μ_1^*ρ\Bigl(1 - \frac{s g_1}{1 + sθ_1^2 g_1 g_2}\Bigr) x \ \text{(spike)},\qquad
        b^2 = R + 2P - Eσ^{*2} - m(1)^2 .
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
    alone = summed(sized) if len(sized.steps) > 1 else sized
    features, teacher = GaussianFeatures.of([alone]), teacher_moments(problem.teacher)
    errors, rank = ridge_errors(features), problem.teacher.rank
    learned = 1.0 - errors.unlearned[0]  # 1 − sK
    linear = linear_frame(problem.teacher)[0] if rank > 1 else np.ones(1)
    number = direction_of(along, rank)
    if number is None:
        overlap = math.sqrt(features.alignment[0])
        cosines, slope = overlap * linear, teacher.linear * overlap * _along_spike(features)
    else:
        cosines, slope = np.eye(rank)[number], teacher.linear * linear[number] * learned
    power = errors.test[0] + 2.0 * teacher.linear**2 * learned - teacher.second_moment  # E f̂²
    return LearnedFunction(
        **claim,
        solution=_solution(errors.residual[0], errors.iterations[0]),
        x=points,
        mean=slope * points,
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
    a, b = g1(s, features.width), g2(s, features.width)
    return float((1.0 - s * a / (1.0 + s * features.strength**2 * a * b))[0])
