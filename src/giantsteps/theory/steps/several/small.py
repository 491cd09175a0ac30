r"""Any number of small steps (exponent 0): they add up to one (theory §7).

A step with η = Θ(1) moves a neuron by O(N^{-1/2}), the output f by O(N^{-1/2}) and the slopes
σ'(XW) by no more. So the residual stays y and every gradient is that of the initial weights,

.. math:: W_t = W_0 + μ_1\, B\, a^\top + o(1),\qquad B = \sum_s η_s b_s,\qquad
          \|B\|^2 \to \Bigl(\sum_s η_s\Bigr)^2 μ_1^{*2}
          + \sum_{\text{batches}} \Bigl(\sum_{s ∈ \text{batch}} η_s\Bigr)^2 E y^2/α_{batch} :

the limit of one step with the sum of the rates, on as many samples as make its noise the same
(t equal fresh steps: t times the samples; one batch t times: its samples).

At finite N the output is followed to first order in tη/√N. It is linear, f = ε⟨x, B⟩ with
ε = μ₁² E A²/√N, on a new sample; on a sample of the current batch the neurons remember more, and
the residuals of a batch (n × d inputs X, H = XXᵀ/n) obey

.. math:: r_{s+1} = \Bigl(1 - \frac{η_s E A^2}{\sqrt N}
          \bigl[μ_1^2 H + \mathrm{Var}σ'/α\bigr]\Bigr) r_s ,\qquad b_s = X^\top r_s/n,

so that a batch adds P(Σ̂)Xᵀr/n to B, P a polynomial and Σ̂ = XᵀX/n a Wishart matrix.

References: theory §2, §4, §7; ba2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from giantsteps.gaussian import moments
from giantsteps.problem import Problem, Step
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.model.teacher import linear_cosines, teacher_moments
from giantsteps.theory.steps.several.summed import batches
from giantsteps.theory.steps.sized import at_size
from giantsteps.types import FloatArray


@dataclass
class _Drift:
    """What the steps so far have made of B and of the neurons' lengths."""

    along: float = 0.0  # ⟨B, β*⟩
    square: float = 0.0  # ‖B‖²
    growth: float = 0.0  # (c_t − 1) N/(A_t² Var σ')
    #: What is left of W₀a: the first output is μ₁⟨x, W₀a⟩/√N, and the steps unlearn it.
    memory: float = 1.0


def _drift(problem: Problem, d: int) -> _Drift:
    neurons, sized = problem.at(d).neurons, problem.realised(d)
    sigma, teacher = moments(sized.activation), teacher_moments(sized.teacher)
    pace = sized.init.second_layer.second_moment / math.sqrt(neurons)
    label = teacher.second_moment + sized.noise_variance
    drift = _Drift()
    for batch in batches(sized):
        _descend(
            drift,
            batch,
            pace,
            sigma.linear**2,
            sigma.derivative_variance,
            teacher.linear,
            label,
        )
    return drift


def many_small_steps(problem: Problem, d: int, **others: Any) -> SpikedFeatures:
    """The equivalent model after any number of steps with exponent 0, E σ = 0 or E A = 0, at d.

    The steps unlearn the first output: along the second layer W₀ becomes W₀(1 − δ ââᵀ), 1 − δ the
    memory, which changes the penalty like the pull of one step (theory §5b).
    """
    sized, neurons, shared = at_size(problem, d, **others)
    drift, sigma = _drift(problem, d), moments(sized.activation)
    values, probabilities = sized.init.second_layer.types()
    length = math.sqrt(drift.square)
    movement, power = values / math.sqrt(neurons), sized.init.second_layer.second_moment
    unlearned = (1.0 - drift.memory**2) / power if power else 0.0
    return SpikedFeatures(
        probabilities=probabilities,
        spikes=(sigma.linear * length * movement)[:, None],
        overlap=linear_cosines(sized.teacher, drift.along / length if length else 0.0),
        bulk=1.0 + movement**2 * sigma.derivative_variance * drift.growth,
        second_layer=values,
        pull=-unlearned * np.outer(values, values)[None],
        **shared,
    )


def _descend(
    drift: _Drift,
    batch: list[Step],
    pace: float,
    linear: float,
    variance: float,
    teacher: float,
    label: float,
) -> None:
    r"""The steps of one batch: with δ = μ₁*β* − εB the slope of the residual and e its rest,

    .. math:: \|ΔB\|^2 = \|δ\|^2 ∫λ^2P^2 + \frac{E e^2}{α} ∫λP^2,\qquad
              ⟨ΔB, ·⟩ = ⟨δ, ·⟩ ∫λP

    over the law of Σ̂, and n⁻¹‖P(H) r‖² adds to the lengths.
    """
    samples = batch[0].samples
    power, total = Polynomial([1.0]), Polynomial([0.0])
    for step in batch:
        total = total + step.rate * power
        damping = Polynomial([variance / samples, linear])
        power = power * (1.0 - step.rate * pace * damping)
    nodes, weights = _wishart(1.0 / samples, len(batch) + 2)
    gain = total(nodes)
    feedback = pace * linear  # ε
    slope_along = teacher - feedback * drift.along
    slope_inner = teacher * drift.along - feedback * drift.square
    slope_square = teacher**2 - 2 * feedback * teacher * drift.along + feedback**2 * drift.square
    rest = label - teacher**2
    first = float(weights @ (nodes * gain))
    drift.growth += (
        slope_square * float(weights @ (nodes * gain**2))
        + rest * float(weights @ gain**2 / samples + (1.0 - 1.0 / samples) * total(0.0) ** 2)
    ) / samples
    drift.square += (
        2 * first * slope_inner
        + slope_square * float(weights @ (nodes * gain) ** 2)
        + rest / samples * float(weights @ (nodes * gain**2))
    )
    drift.along += first * slope_along
    drift.memory *= 1.0 - feedback * first


def _wishart(ratio: float, count: int) -> tuple[FloatArray, FloatArray]:
    """Gauss quadrature for the d eigenvalues of XᵀX/n, d/n = ratio: exact to degree 2·count − 1.

    The Jacobi matrix of the Marchenko–Pastur law has diagonal 1, 1 + ratio, 1 + ratio, … and
    √ratio beside it, with or without an atom at zero.
    """
    diagonal = np.full(count, 1.0 + ratio)
    diagonal[0] = 1.0
    beside = np.full(count - 1, math.sqrt(ratio))
    nodes, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return nodes, vectors[0] ** 2
