r"""The covariance of neurons after two steps on one batch (theory §7).

With σ'(g) = μ₁ + h₁g + φ and σ'(h) = ζ + Tg + C(ν − Eν) + eφ + χ, ν what the other samples add to h
in the first step, a neuron is beside its lean

.. math:: w = [I + K_P + K_Q + K_RK_P]\,w_0 + n^{-1}Σ_i(ψφ_i + s_2rχ_i)x_i
              + s_1K_R\,n^{-1}Σ_i yφ_ix_i ,\qquad K_a = n^{-1}Σ_i a(i)\,x_ix_i^⊤,

P = s₁h₁y, R = s₂rC, Q = s₂rT − P̄R − PR/α₀ and ψ = s₁y + s₂re − s₁yR/α₀. A product K_aK_b is
K_{ab}/α₀ where its two samples are the same, and beside āK_b + b̄K_a − āb̄, but for what is of second
order in both a − ā and b − b̄. That is kept in the products of the first bracket.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from giantsteps.functions import Function
from giantsteps.gaussian import moments
from giantsteps.theory.steps.several.response import Response, widths
from giantsteps.theory.steps.several.samples import Samples
from giantsteps.types import FloatArray


@dataclass(frozen=True, eq=False)
class Parts:
    """What two steps make of a neuron's weights: functions of the samples, (T, Y).

    ======  =========  ===================================================
    symbol  attribute  meaning
    ======  =========  ===================================================
    P       first
    Q       tilt
    R       second
    ψ       own        in front of φ …
    v_h     noise      … whose variance it is
    χ       fresh      (s₂r)²E χ²
    s₁      moved      (T,)
    ======  =========  ===================================================
    """

    first: FloatArray
    tilt: FloatArray
    second: FloatArray
    own: FloatArray
    noise: float
    fresh: FloatArray
    moved: FloatArray


@dataclass(frozen=True, eq=False)
class Products:
    """Σ_A = (I + K_w)² + K_v + K_RK_P' + K_P'K_R + pK_R²: functions of the samples, (T, Y).

    Of the two products in the middle without coinciding samples and means.

    ======  =========  ====================================
    symbol  attribute  meaning
    ======  =========  ====================================
    w       factor
    v       linear
    P'      first      (1 + E w)P + P(w − E w)/α₀
    R       second     without its mean
    p       square     E P²/α₀, (T,)
    ======  =========  ====================================
    """

    factor: FloatArray
    linear: FloatArray
    first: FloatArray
    second: FloatArray
    square: FloatArray


def parts_of_neurons(
    activation: Function,
    samples: Samples,
    response: Response,
    values: FloatArray,
    rates: tuple[float, float],
) -> Parts:
    """What the batch makes of the weights of each type."""
    alpha, sigma = samples.law.samples, moments(activation)
    y, residual = samples.label, samples.residual
    zeta, tilt, bend = map(samples.take, (response.slope, response.tilt, response.curvature))
    echo, square = samples.take(response.echo), samples.take(response.slope_square)
    s1, s2 = ((rate * values)[:, None] for rate in rates)
    curved = 2 * sigma.quadratic  # h₁
    noise = sigma.derivative_variance - curved**2  # v_h
    seen = echo - sigma.linear * zeta - curved * tilt  # E[φσ'(h)]
    share = seen / noise if noise > 1e-12 * sigma.derivative_variance else np.zeros_like(seen)
    grown = widths(sigma, samples.law, s1[:, 0])[:, None]
    fresh = square - zeta**2 - tilt**2 - bend**2 * grown - share * seen
    p, big = s1 * curved * y, s2 * residual * bend
    return Parts(
        first=p,
        tilt=s2 * residual * tilt - big * (p @ samples.weights)[:, None] - p * big / alpha,
        second=big,
        own=s1 * y + s2 * residual * share - s1 * y * big / alpha,
        noise=noise,
        fresh=(s2 * residual) ** 2 * fresh,
        moved=s1[:, 0],
    )


def products(parts: Parts, samples: Samples) -> Products:
    """Covariances by products of two sums at most."""
    alpha, y, weights = samples.law.samples, samples.label, samples.weights
    p, big, own, s1 = parts.first, parts.second, parts.own, parts.moved[:, None]

    def mean(values: FloatArray) -> FloatArray:
        return (values @ weights)[:, None]

    loose = big - mean(big)
    factor = parts.tilt + p * (1.0 + big / alpha + mean(big)) + mean(p) * loose
    echoed = p * (factor - mean(factor)) / alpha
    crossed, label = y * own, y**2 + 0.0 * s1
    linear = own**2 + 2 * s1 * (crossed * big / alpha + mean(big) * crossed + mean(crossed) * big)
    triple = mean(big) ** 2 * label + 2 * mean(big) * mean(label) * big
    triple = triple + 2 / alpha * (mean(big * label) * big + mean(big) * big * label)
    triple = triple + mean(label) * big**2 / alpha + big**2 * label / alpha**2
    linear = (parts.noise * (linear + s1**2 * triple) + parts.fresh) / alpha
    linear = linear + 2 * mean(echoed) * loose
    first = (1.0 + mean(factor)) * p + echoed
    return Products(factor, linear, first, loose, (p**2 @ weights) / alpha)


def with_factors(
    parts: Products,
    probabilities: FloatArray,
    samples: Samples,
    tolerance: float,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Few functions whose products are exact (C, Y), w in them (T, C), their products (T, pairs),
    and the rest as functions of the samples (T, Y).
    """
    types, weights, alpha = len(parts.factor), samples.weights, samples.law.samples
    stacked = np.concatenate([parts.factor, parts.first, parts.second])
    root = np.tile(np.sqrt(probabilities), 3)[:, None]
    left, size, _ = np.linalg.svd(root * stacked * np.sqrt(np.abs(weights)), full_matrices=False)
    count = int((size > tolerance).sum())
    basis = (left[:, :count] / size[:count]).T @ (root * stacked)
    shares = left[:, :count] * size[:count] / root
    w, p, big = (shares[k * types : (k + 1) * types] for k in range(3))
    pairs = [(a, b) for a in range(count) for b in range(a, count)]
    squares = np.zeros((types, len(pairs)))
    for k, (a, b) in enumerate(pairs):
        squares[:, k] = w[:, a] * w[:, b] + p[:, a] * big[:, b] + p[:, b] * big[:, a]
        squares[:, k] += parts.square * big[:, a] * big[:, b]
    linear = parts.linear + 2 * parts.factor
    means = basis @ weights

    def rest(f: FloatArray, known: FloatArray) -> FloatArray:
        """K_f² without what the factors have."""
        part = known @ basis
        once = (f @ weights)[:, None] * f - (known @ means)[:, None] * part
        return (f**2 - part**2) / alpha + 2 * once

    linear = linear + rest(parts.factor, w) + parts.square[:, None] * rest(parts.second, big)
    linear = (
        linear - ((p @ means)[:, None] * (big @ basis) + (big @ means)[:, None] * (p @ basis)) * 2
    )
    linear = linear - 2 * (p @ basis) * (big @ basis) / alpha
    return basis, w, squares, linear
