"""The direction and the strength of the first step, and its spike in the weights (theory §2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from giantsteps.answers import Solution, Spectrum, Spike
from giantsteps.functions import Function
from giantsteps.gaussian import hermite_coefficients, moments
from giantsteps.laws import MarchenkoPastur, outlier
from giantsteps.problem import Problem
from giantsteps.theory.model.teacher import teacher_moments
from giantsteps.theory.steps.labels import labels

#: Nodes of a continuous spectrum of the inputs.
EIGENVALUES = 28
#: Resolution of the labels of other losses, of which only moments are asked.
_SMOOTH, _LEVEL = 0.25, 3
#: Half the distance of the outputs by which their slope is known.
_APART = 1e-4


@dataclass(frozen=True)
class FirstStep:
    r"""The rank-one part √N G ≈ μ₁ b aᵀ of the first gradient.

    .. math::
        b = X^\top r/n_0,\quad r = -\ell'(f_0; y),\qquad
        \|b\|^2 \to μ_1^{*2} + E y_0^2/α_0,\qquad
        ρ^2 = μ_1^{*2}/\|b\|^2,\qquad
        θ_1 = η\,|μ_1|\,\|b\|\,\sqrt{E A^2}

    On inputs with a covariance both parts of ‖b‖² are multiplied by means of Σ^{1−2p}, over the
    shares τ of Σ^{1/2}β* and over all directions (theory §10); p is that of the preconditioner.

    =======  ===============  ==================================================
    symbol   attribute        meaning
    =======  ===============  ==================================================
    ‖b‖²     ``norm_squared`` squared length of the step's direction
    ρ²       ``alignment``    its squared cosine with β*
    Ey₀²     ``label_moment`` second moment of the labels it sees, y − c₀ E A for the squared loss
    Ey₀      ``label_mean``   their mean
    θ₁       ``strength``     singular value of η μ₁ b aᵀ; inf where η → ∞
    =======  ===============  ==================================================

    References: theory §0, §2; ba2022.
    """

    norm_squared: float
    alignment: float
    label_moment: float
    label_mean: float
    strength: float


def link_of(problem: Problem) -> Function:
    """The teacher's link σ* of a rank-one teacher."""
    link: Function = problem.teacher.link  # type: ignore[attr-defined]
    return link


def first_step(problem: Problem, neurons: int | None = None, d: int | None = None) -> FirstStep:
    """Direction and strength of the first step of ``problem``.

    * ``problem``: with at least one step.
    * ``neurons``: N, for η = rate · N^exponent; without it a positive exponent has infinite
      strength.
    * ``d``: dimension of inputs with a covariance; their limit without it.
    """
    step = problem.steps[0]
    activation, law = moments(problem.activation), problem.init.second_layer
    linear, label_mean, label_moment = _residual(problem, activation.mean * law.mean)
    signal, noise, seen_of_signal = _reach(problem, d)
    norm_squared = linear**2 * signal + label_moment / step.samples * noise
    if neurons is not None:
        rate = step.learning_rate(neurons)
    else:
        rate = step.rate if step.exponent == 0 else (math.inf if step.rate else 0.0)
    scale = abs(activation.linear) * math.sqrt(norm_squared * law.second_moment)
    return FirstStep(
        norm_squared=norm_squared,
        alignment=linear**2 * seen_of_signal / norm_squared if norm_squared else 0.0,
        label_moment=label_moment,
        label_mean=label_mean,
        strength=rate * scale if scale else 0.0,
    )


def by_chance(problem: Problem, d: int) -> float:
    r"""What the mean of ⟨b, β*⟩²/‖b‖² has at d beyond its limit, to first order in 1/d; the squares
    are added over the directions of the teacher. Inputs with a covariance have that of isotropic
    ones.

    b is made of n samples: A = ⟨b, β*⟩ has the covariance V/n, V = Cov(u r), and apart from it
    ‖b‖² is B = χ²_{d−R} E_n r²/n. So the mean of A²/(A² + B) has, beyond that of the means,

    .. math:: \frac{B\,\mathrm{tr}\,V - 4B\,A^⊤VA/Q}{nQ^2} +
              \frac{A^2}{Q^3}\mathrm{Var} B +
              \frac{2(A^2 - B)}{Q^3} A·\mathrm{Cov}(A, B),\qquad Q = A^2 + B:

    a step that sees nothing of the teacher (A = 0) has tr V/((d − R)E r²) of it by chance.
    """
    step, directions = problem.steps[0], problem.teacher.rank
    samples = step.samples * d
    law = labels(
        problem.teacher,
        problem.noise_variance,
        moments(problem.activation).mean * problem.init.second_layer.mean,
        _SMOOTH,
        level=_LEVEL,
        loss=step.loss,
    )
    along, square = law.teacher(1), law.moment(2)
    spread = law.second @ law.nodes**2 - np.outer(along, along)
    signal, rest = float(along @ along), (d - directions) * square / samples
    whole = signal + rest
    if not whole:
        return 0.0
    uneven = (law.moment(4) / square**2 - 1) / samples + 2 / (d - directions)
    together = float(along @ (law.teacher(3) - square * along)) * rest / (square * samples)
    own = rest * (np.trace(spread) - 4 * (along @ spread @ along) / whole) / samples
    more = signal * rest**2 * uneven + 2 * (signal - rest) * together
    found = signal / whole + own / whole**2 + more / whole**3
    return float(min(max(found, 0.0), 1.0)) - signal / (signal + square / step.samples)


def _residual(problem: Problem, output: float) -> tuple[float, float, float]:
    """E[u r], E r and E r² of r = −ℓ'(f₀; y), the labels that the first step sees; f₀ → c₀ E A."""
    if problem.steps[0].loss != "squared":
        law = labels(
            problem.teacher,
            problem.noise_variance,
            output,
            _SMOOTH,
            level=_LEVEL,
            loss=problem.steps[0].loss,
        )
        return float(np.linalg.norm(law.teacher(1))), law.moment(1), law.moment(2)
    teacher = teacher_moments(problem.teacher)
    second = teacher.second_moment - 2 * output * teacher.mean + output**2
    return teacher.linear, teacher.mean - output, second + problem.noise_variance


def curvature(problem: Problem) -> float:
    """E ℓ''(f₀; y) of the first step, by which the initial output changes its residuals; one for
    the squared loss.
    """
    step = problem.steps[0]
    if step.loss == "squared":
        return 1.0
    output, variance = initial_output(problem)
    below, above = (
        labels(
            problem.teacher,
            problem.noise_variance,
            at,
            _SMOOTH,
            _LEVEL,
            loss=step.loss,
            output_variance=variance,
        ).moment(1)
        for at in (output - _APART, output + _APART)
    )
    return (below - above) / (2 * _APART)


def initial_output(problem: Problem) -> tuple[float, float]:
    r"""Mean and variance of the output f₀ that the first step meets: c₀ E A, and for an unscaled
    network

    .. math:: \operatorname{Var} f_0 = E A²\,E σ² + 2βc_2²(E A)² ,

    with its mean over the inputs, c₀ Σ a_j, which differs between networks, and with what the
    neurons see of the norm of the input together.
    """
    activation, law = moments(problem.activation), problem.init.second_layer
    if problem.init.output == "scaled":
        return activation.mean * law.mean, 0.0
    variance = law.second_moment * (activation.variance + activation.mean**2)
    if law.mean:
        second = float(hermite_coefficients(problem.activation, 2)[2])
        variance += 2.0 * problem.width * (second * law.mean) ** 2
    return activation.mean * law.mean, variance


def _reach(problem: Problem, d: int | None) -> tuple[float, float, float]:
    """Στλ^{1−2p}, Σνλ^{1−2p} and (Στλ^{−p})²/Στλ^{−1}: one each where Σ = I."""
    if problem.inputs.isotropic:
        return 1.0, 1.0, 1.0
    values, shares, teacher = problem.inputs.directions(EIGENVALUES, d)
    power = problem.steps[0].precondition
    reach = values ** (1 - 2 * power)
    seen = float(teacher @ values**-power) ** 2 / float(teacher @ (1 / values))
    return float(teacher @ reach), float(shares @ reach), seen


def spikes_of(problem: Problem) -> tuple[Spike, ...]:
    """The outlier of W₀ + θ₁b̂âᵀ, if there is one; infinite where θ₁ is."""
    step = first_step(problem)
    value, left, right, present = outlier(step.strength, problem.width)
    overlaps = {"teacher": step.alignment * left, "gradient": left, "second_layer": right}
    return (Spike(value=value, overlaps=overlaps),) if present else ()


def weights(problems: Sequence[Problem], claims: Sequence[Any], d: int | None) -> list[Spectrum]:
    """No step, or in the limit one whose strength θ₁ (finite or infinite) meets the bulk of W₀."""
    sized = problems if d is None else [problem.realised(d) for problem in problems]
    return [
        closed_form(problem.width, spikes_of(problem) if problem.steps else (), claim)
        for problem, claim in zip(sized, claims, strict=True)
    ]


def closed_form(width: float, spikes: tuple[Spike, ...], claim: Any) -> Spectrum:
    """The spectrum of weights with the bulk of W₀."""
    return Spectrum(
        **claim,
        solution=Solution(status="closed form", error=1e-12),
        matrix="weights",
        bulk=MarchenkoPastur(width).singular_values(),
        spikes=spikes,
    )
