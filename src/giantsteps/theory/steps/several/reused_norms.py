r"""How the squared norms of neurons vary after two steps on one batch (theory §7).

A neuron is w₀ + n⁻¹Σ_i θ_i x_i beside its lean. What the first step adds is passed on by the second
one, of which a sample sees ν with b = 1 + E R, R = E ∂θ, ∂ the derivative in ν:
θ = b s₁yσ'(g) + s₂rσ'(h) − P̄R̄g − E θ, where P̄ = s₁h₁E y is what the other samples pass on of g
itself. With t = E[gθ] and n = θ − tg − R(ν − Eν), sample i moves the squared norm by n⁻¹F,

.. math:: F = 2θ(ag + bν) + θ²/α_0,\qquad a = 1 + E t,

of which f = 2nX + n²/α₀, X = (a + t/α₀)g + (b + R/α₀)ν, is not Gaussian. As after one step (§5b)

.. math:: d\,\mathrm{Cov}(w, ‖w‖²) = (I + K_t)(λ + K_Pμ) + n^{-1}Σ_i ζ_ix_i,\qquad
          λ = n^{-1}Σ_i l_ix_i,\quad μ = n^{-1}Σ_i m_ix_i,

K_Pμ without coinciding samples, with l = E[gf], m = E[νf]/ω, ζ = E[nF]/α₀ + bω_hm, ω = Var ν and
ω_h what φ makes of it. The variance is that of the Gaussian parts and of f.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from giantsteps.functions import Function
from giantsteps.gaussian import coordinate_rule, gauss_rule, moments
from giantsteps.theory.steps.several.response import gains, widths
from giantsteps.theory.steps.several.samples import Samples
from giantsteps.types import FloatArray

#: Nodes of ν; widest panel, reach, error and least weight of the quadrature of g.
_FIELD, _PANEL, _REACH, _ERROR, _PRUNED = 5, 4.0, 6.0, 1e-6, 1e-8
#: Samples at a time.
_CHUNK = 64


@dataclass(frozen=True, eq=False)
class ReusedNorms:
    """The norms of each type; functions of the samples, (T, Y).

    ======  ==========  ============================================================
    symbol  attribute   meaning
    ======  ==========  ============================================================
    l       linear      the part of ‖w‖² that is linear in w₀ …
    m       moves       … and in ν
    ζ       own         what samples have in common with their own part of the norm
    e       stretch     what the initial norm makes of the lean
    f       growth      and of the squared norm, (T,)
    v       spread      d Var ‖w‖² without τ(Σ²), which is 2τ(Σ²) larger, (T,)
    ======  ==========  ============================================================
    """

    linear: FloatArray
    moves: FloatArray
    own: FloatArray
    stretch: FloatArray
    growth: FloatArray
    spread: FloatArray


def reused_norms(
    activation: Function,
    samples: Samples,
    values: FloatArray,
    rates: tuple[float, float],
    totals: FloatArray,
    passed: FloatArray,
) -> ReusedNorms:
    """The norms after two steps on one batch, of bulks with the squared norms ``totals``; E R of
    each type is ``passed``.
    """
    odd = moments(activation).is_odd
    rows, known = [], {}
    for value, total, more in zip(values.tolist(), totals.tolist(), passed.tolist()):
        # For an odd σ, (A, g, ν) → −(A, g, ν) turns θ into −θ: half of a symmetric law is enough.
        size, sign = (abs(value), -1.0) if odd and value < 0 else (value, 1.0)
        if size not in known:
            moved = rates[0] * size, rates[1] * size
            known[size] = _type(activation, samples, moved, 1.0 + more, total)
        linear, moves, own, stretch, growth, spread = known[size]
        rows.append((sign * linear, sign * moves, sign * own, sign * stretch, growth, spread))
    return ReusedNorms(*(np.stack(part) for part in zip(*rows)))


def _type(
    activation: Function,
    samples: Samples,
    moved: tuple[float, float],
    passed: float,
    total: float,
) -> tuple[FloatArray, ...]:
    alpha, (s1, s2), sigma = samples.law.samples, moved, moments(activation)
    grown, turned = (float(f(sigma, samples.law, np.array([s1]))[0]) for f in (widths, gains))
    width = math.sqrt(grown)
    rule = gauss_rule(activation.derivative, width=_PANEL, reach=_REACH, tolerance=_ERROR)
    rule = rule.pruned(_PRUNED)
    hidden = coordinate_rule(1, nodes=_FIELD if grown > 0 else 1)
    slope = np.repeat(np.asarray(activation.derivative(rule.nodes), dtype=float), len(hidden.nodes))
    g, z = np.repeat(rule.nodes, len(hidden.nodes)), np.tile(hidden.nodes[:, 0], len(rule.nodes))
    weights = np.outer(rule.weights / rule.weights.sum(), hidden.weights).ravel()
    plain = np.stack([g, z, g**2 - 1.0], axis=1) * weights[:, None]

    def thetas(some: slice) -> FloatArray:
        label, step = samples.label[some, None], samples.step[some, None]
        h = turned * g + s1 * label * slope / alpha + width * z + s1 * sigma.linear * step
        theta = s2 * samples.residual[some, None] * activation.derivative(h)
        theta = theta + passed * s1 * label * slope - (passed - 1.0) * (turned - 1.0) * g
        return np.asarray(theta - (theta @ weights)[:, None])

    def mean(values: FloatArray) -> float:
        return float(values @ samples.weights)

    chunks = [slice(i, i + _CHUNK) for i in range(0, len(samples.label), _CHUNK)]
    t, big, bent = np.concatenate([thetas(some) @ plain for some in chunks]).T
    gain, ends = 1.0 + mean(t), []  # a; R ω^½ is ``big``
    for some in chunks:
        theta, own_t, own_r = thetas(some), t[some, None], big[some, None]
        n = theta - own_t * g - own_r * z
        seen = (gain + own_t / alpha) * g + (passed * width + own_r / alpha) * z  # X
        f = n * (2.0 * seen + n / alpha)
        moves = theta * (2.0 * (gain * g + passed * width * z) + theta / alpha)  # F
        square = n**2
        ends.append(
            np.concatenate(
                [
                    f @ plain,
                    np.stack(
                        [
                            (n * moves) @ weights,
                            square @ weights,
                            f**2 @ weights,
                            (seen**2 - gain**2 * g**2) * f @ weights,
                        ],
                        axis=1,
                    ),
                ],
                axis=1,
            )
        )
    linear, drift, even, own, square, local, mixed = np.concatenate(ends).T
    inverse = 1.0 / width if width > 0 else 0.0
    shifted = s1 * moments(activation.derivative).quadratic * samples.step
    # What the initial norm adds to the mean of ν, and to that of the slopes themselves.
    first = (passed - 1.0) * s1 * samples.label * moments(activation.derivative).quadratic
    stretch = bent / 2 - first + big * inverse * shifted
    plain_norm = total - mean(square) / alpha  # N₂
    growth = plain_norm + mean(even) / 2 + inverse * mean(drift * shifted)
    # X² and f have these variances where they are independent and Gaussian.
    p, q = gain + t / alpha, passed * width + big / alpha
    usual = 4 * square * (p**2 + q**2) + 3 * (square / alpha) ** 2
    quadratic = mixed - (p**2 + q**2 - gain**2) * square / alpha
    spread = -2 * plain_norm**2 + 2 * mean(quadratic) + mean(local - usual) / alpha
    spread += float((samples.frame(linear) ** 2).sum() + (samples.frame(drift) ** 2).sum())
    others = 1.0 - (2 * sigma.quadratic) ** 2 / sigma.derivative_variance if grown > 0 else 0.0
    own = own / alpha + passed * others * width * drift
    return linear, drift * inverse, own, stretch, np.array(growth), np.array(spread)
