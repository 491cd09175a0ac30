r"""The effective penalty κ and the degrees of freedom of Gaussian-equivalent features (theory §4).

The features act like Φ̄ = N^{-1/2}(μ₁ X̃ W + μ₂ Z); the bulk of W alone decides on κ, whatever the
step added to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from giantsteps.errors import NotConverged
from giantsteps.gaussian import moments
from giantsteps.laws import traces
from giantsteps.problem import Problem
from giantsteps.theory.model.teacher import teacher_moments
from giantsteps.theory.steps.first import first_step
from giantsteps.types import FloatArray as Array

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
    μ₀*²    ``teacher_mean``       mean of σ*, squared
    ‖m‖²    ``mean_strength``      of the features' mean; inf where it grows with N
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
    teacher_mean: Array
    mean_strength: Array

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
                    0.0 if teacher.is_centered else teacher.mean**2,
                    _mean_strength(problem),
                )
            )
        return cls(*np.array(rows, dtype=float).reshape(-1, 12).T)


def _mean_strength(problem: Problem) -> float:
    """‖m‖² of the features' mean m = c₀𝟙 + c₂(‖w‖² − 1), with Σ(‖w_j‖² − 1)² → 2β."""
    sigma = moments(problem.activation)
    if not sigma.is_centered:
        return math.inf
    return 2.0 * problem.width * sigma.quadratic**2 * (problem.init.weights == "gaussian")


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
    found = traces(s, f.width)
    q1, q1_slope = found.right / f.linear, found.right_slope / f.linear**2
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


def shrinkage(f: GaussianFeatures, kappa: Array) -> Array:
    """λ/κ = 1 − df₁, by which residuals shrink on the training set, without cancellation."""
    df1, _ = freedom(f, kappa)
    found = np.where(kappa > 0, f.penalty / np.where(kappa > 0, kappa, 1.0), 1 - df1)
    return np.asarray(np.minimum(found, 1.0))
