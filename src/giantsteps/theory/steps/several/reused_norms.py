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

from dataclasses import dataclass

import numpy as np

from giantsteps.functions import Function
from giantsteps.gaussian import coordinate_rule, gauss_rule, moments
from giantsteps.theory.steps.several.response import gains, widths
from giantsteps.theory.steps.several.samples import Samples
from giantsteps.types import FloatArray

#: Nodes of ν; widest panel, without and with kinks of σ', reach, error and least weight of the
#: quadrature of g.
_FIELD, _PANELS, _REACH, _ERROR, _PRUNED = 5, (9.0, 4.0), 6.0, 1e-6, 1e-11
#: Samples at a time.
_CHUNK = 128


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
    sigma, law, alpha = moments(activation), samples.law, samples.law.samples
    # For an odd σ, (A, g, ν) → −(A, g, ν) turns θ into −θ: half of a symmetric law is enough.
    sizes, some, where = np.unique(
        np.abs(values) if sigma.is_odd else values, return_index=True, return_inverse=True
    )
    b, s1, s2 = 1.0 + passed[some], rates[0] * sizes, rates[1] * sizes
    grown = widths(sigma, law, s1)
    width, turned = np.sqrt(grown), gains(sigma, law, s1)
    seen, one, two, three, four = _moments(activation, samples, (s1, s2), width, turned, b)
    own_c, gain = seen[..., 1:3], 1.0 + seen[..., 1] @ samples.weights  # (t, R ω^½); a
    plain = np.stack([gain, b * width], axis=-1)[:, None]
    x = plain + own_c / alpha  # X = x·c, F = θ(2 plain·c + θ/α₀)

    def along(form: FloatArray, *vectors: FloatArray) -> FloatArray:
        """A symmetric form of c, given flat, on vectors."""
        for v in vectors:
            form = form.reshape(*form.shape[:2], 2, -1)
            form = v[..., :1] * form[..., 0, :] + v[..., 1:] * form[..., 1, :]
        return form

    (n1, n2, n3), (m1, m2) = (
        (one[..., 1:3], one[..., 3:7], one[..., 7:]),
        (two[..., 1:3], two[..., 3:]),
    )
    square, curved = two[..., 0], 2 * along(n3, x) + m2 / alpha  # E n², E[fcc]
    linear, drift = np.moveaxis(2 * along(n2, x) + m1 / alpha, -1, 0)  # E[fc]
    even = curved[..., 0] - 2 * along(n1, x)[..., 0] - square / alpha
    own = 2 * (along(m1, plain) + along(n2, own_c, plain))
    own = own + (three[..., :1] + 2 * along(m1, own_c) + along(n2, own_c, own_c)) / alpha
    local = 4 * (along(m2, x, x) + along(three[..., 1:], x) / alpha)[..., 0] + four / alpha**2
    mixed = along(curved, x, x)[..., 0] - gain[:, None] ** 2 * curved[..., 0]
    inverse = np.divide(1.0, width, out=np.zeros_like(width), where=width > 0)
    bend = moments(activation.derivative).quadratic
    shifted = (inverse * s1 * bend)[:, None] * samples.step
    # What the initial norm adds to the mean of ν, and to that of the slopes themselves.
    stretch = seen[..., 3] / 2 - np.outer((b - 1.0) * s1 * bend, samples.label)
    stretch = stretch + own_c[..., 1] * shifted
    plain_norm = totals[some] - square @ samples.weights / alpha  # N₂
    growth = plain_norm + (even / 2 + drift * shifted) @ samples.weights
    # X² and f have these variances where they are independent and Gaussian.
    size = (x**2).sum(axis=-1)
    usual = 4 * square * size + 3 * (square / alpha) ** 2
    quadratic = 2 * (mixed - (size - gain[:, None] ** 2) * square / alpha)
    spread = (quadratic + (local - usual) / alpha) @ samples.weights - 2 * plain_norm**2
    spread = spread + sum((samples.frame(part) ** 2).sum(axis=-1) for part in (linear, drift))
    others = 1.0 - (2 * sigma.quadratic) ** 2 / sigma.derivative_variance if grown.any() else 0.0
    own = own[..., 0] / alpha + (b * others * width)[:, None] * drift
    sign = np.where(sigma.is_odd & (values < 0), -1.0, 1.0)[:, None]
    return ReusedNorms(
        linear=sign * linear[where],
        moves=sign * (inverse[:, None] * drift)[where],
        own=sign * own[where],
        stretch=sign * stretch[where],
        growth=growth[where],
        spread=spread[where],
    )


def _moments(
    activation: Function,
    samples: Samples,
    moved: tuple[FloatArray, FloatArray],
    width: FloatArray,
    gain: FloatArray,
    passed: FloatArray,
) -> list[FloatArray]:
    """E θ before it is centred, E[θc] and E[θ(g² − 1)], c = (g, ν/ω^½); and of n, n², n³ and n⁴
    the means with 1, c, cc and ccc, fewer for the higher powers: (U, Y, …).
    """
    alpha, linear = samples.law.samples, moments(activation).linear
    panel = _PANELS[bool(activation.derivative.breakpoints(-_REACH, _REACH).size)]
    rule = gauss_rule(activation.derivative, width=panel, reach=_REACH, tolerance=_ERROR)
    rule, hidden = rule.pruned(_PRUNED), coordinate_rule(1, nodes=_FIELD)
    slope = np.repeat(np.asarray(activation.derivative(rule.nodes), dtype=float), _FIELD)
    c = np.stack([np.repeat(rule.nodes, _FIELD), np.tile(hidden.nodes[:, 0], len(rule.nodes))])
    weights = np.outer(rule.weights / rule.weights.sum(), hidden.weights).ravel()
    tables = [weights[None]]
    for _ in range(3):
        tables.append((tables[-1][:, None] * c).reshape(-1, len(slope)))
    table = np.concatenate(tables).T
    first = np.stack([*table[:, :3].T, weights * (c[0] ** 2 - 1.0)], axis=1)
    types: list[list[FloatArray]] = []
    for s1, s2, spread, turned, b in zip(*moved, width, gain, passed):
        around, parts = turned * c[0] + spread * c[1], []
        for start in range(0, len(samples.label), _CHUNK):
            some = slice(start, start + _CHUNK)
            kick = np.outer(s1 * samples.label[some], slope)
            h = kick / alpha + around + (s1 * linear) * samples.step[some, None]
            theta = (s2 * samples.residual[some, None]) * np.asarray(activation.derivative(h))
            theta += b * kick - (b - 1.0) * (turned - 1.0) * c[0]
            theta -= (theta @ weights)[:, None]
            seen = theta @ first
            n = theta - seen[:, 1:3] @ c
            square = n * n
            powers = ((n, 15), (square, 7), (square * n, 3))
            means = [power @ table[:, :count] for power, count in powers]
            parts.append([seen, *means, (square * square) @ weights])
        types.append([np.concatenate(part) for part in zip(*parts)])
    return [np.stack(part) for part in zip(*types)]
