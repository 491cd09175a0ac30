r"""How the squared norms of neurons vary after two steps on one batch (theory §7).

A neuron is w₀ + n⁻¹Σ_i θ_i x_i beside its lean, θ = s₁yσ'(g) + s₂rσ'(h) − E θ, and sample i moves
its squared norm by n⁻¹[2θg + θ²/α₀]. As after one step (§5b), with t = E[gθ] and θ = tg + R(ν − Eν)
+ n,

.. math:: d\,\mathrm{Cov}(w, ‖w‖²) = (I + K_t)λ + n^{-1}Σ_i ζ_ix_i,\qquad λ = n^{-1}Σ_i l_ix_i,

l = 2(1 + E t)E[(g² − 1)θ] + 2ωE[g∂θ] + E[gθ²]/α₀, ∂ the derivative in ν, ω = Var ν, and
ζ = (2(1 + E t)E[gθn] + E[θ²n]/α₀)/α₀ + ωm with m = 2(1 + E t)E[g∂θ] + 2ωE[∂²θ] + E[∂θ²]/α₀.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from giantsteps.functions import Function
from giantsteps.gaussian import coordinate_rule, gauss_rule, moments
from giantsteps.theory.steps.several.response import lengths
from giantsteps.theory.steps.several.samples import Samples
from giantsteps.types import FloatArray

#: Nodes of ν; widest panel, reach, error and least weight of the quadrature of g.
_FIELD, _PANEL, _REACH, _ERROR, _PRUNED = 5, 4.0, 6.0, 1e-6, 1e-8
#: Samples at a time.
_CHUNK = 64


#: Signs of the means of `_moments` under (θ, g, ν) → −(θ, g, ν), (15, 1).
_TURNED = np.array([1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, 1, 1.0])[:, None]


@dataclass(frozen=True, eq=False)
class ReusedNorms:
    """The norms of each type; functions of the samples, (T, Y).

    ======  ==========  ============================================================
    symbol  attribute   meaning
    ======  ==========  ============================================================
    l       linear      λ, the part of ‖w‖² that is linear in w₀
    ζ       own         what samples have in common with their own part of the norm
    e       stretch     what the initial norm makes of the lean
    f       growth      and of the squared norm, (T,)
    v       spread      d Var ‖w‖² without τ(Σ²), which is 2τ(Σ²) larger, (T,)
    ======  ==========  ============================================================
    """

    linear: FloatArray
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
) -> ReusedNorms:
    """The norms after two steps on one batch, of bulks with the squared norms ``totals``."""
    sigma = moments(activation)
    rows, known = [], {}
    for value, total in zip(values.tolist(), totals.tolist()):
        # For an odd σ, (A, g, ν) → −(A, g, ν) turns θ into −θ: half of a symmetric law is enough.
        turned = sigma.is_odd and value < 0
        size = abs(value) if turned else value
        moved = rates[0] * size, rates[1] * size
        grown = float(lengths(sigma, samples.law, np.array([moved[0]]))[0]) - 1.0
        if size not in known:
            known[size] = _moments(activation, samples, moved, grown)
        found = known[size] * (_TURNED if turned else 1.0)
        rows.append(_type(activation, samples, found, rates[0] * value, grown, total))
    linear, own, stretch, growth, spread = (np.stack(part) for part in zip(*rows))
    return ReusedNorms(linear, own, stretch, growth, spread)


def _moments(
    activation: Function, samples: Samples, moved: tuple[float, float], grown: float
) -> FloatArray:
    """Means over (g, ν) at each sample, (15, Y)."""
    alpha, (s1, s2), sigma = samples.law.samples, moved, moments(activation)
    rule = gauss_rule(activation.derivative, width=_PANEL, reach=_REACH, tolerance=_ERROR)
    rule = rule.pruned(_PRUNED)
    g, chances = rule.nodes, rule.weights / rule.weights.sum()
    hidden = coordinate_rule(1, nodes=_FIELD if grown > 0 else 1)
    z, width = hidden.nodes[:, 0], math.sqrt(grown)
    slope = np.asarray(activation.derivative(g), dtype=float)[:, None] + 0.0 * z
    first, field = ((part + 0.0 * slope).ravel() for part in (g[:, None], z))
    weights, slope = (chances[:, None] * hidden.weights).ravel(), slope.ravel()
    inverse = 1.0 / width if width > 0 else 0.0
    he2, he3 = first**2 - 1.0, first**3 - 3 * first
    both, twice = first * field * inverse, (field**2 - 1.0) * inverse**2
    tests = np.stack([first, field * inverse, he2, he3, both, twice], axis=1) * weights[:, None]
    plain = tests[:, :2]
    found = []
    for start in range(0, len(samples.label), _CHUNK):
        some = slice(start, start + _CHUNK)
        label = samples.label[some, None]
        h = first + s1 * label * slope / alpha + width * field
        h = h + s1 * sigma.linear * samples.step[some, None]
        theta = s2 * samples.residual[some, None] * activation.derivative(h) + s1 * label * slope
        theta = theta - (theta @ weights)[:, None]
        known = theta @ tests
        square = theta**2
        n = theta - known[:, :1] * first - known[:, 1:2] * (width**2 * inverse) * field
        crossed, own = theta * n, n**2
        ends = np.stack(
            [
                crossed @ plain[:, 0],
                (square * n) @ weights,
                own @ weights,
                own @ plain[:, 0],
                own @ (first**2 * weights),
                (own * n) @ plain[:, 0],
                own**2 @ weights,
            ],
            axis=1,
        )
        found.append(np.concatenate([known, square @ plain, ends], axis=1))
    return np.concatenate(found).T


def _type(
    activation: Function,
    samples: Samples,
    found: FloatArray,
    s1: float,
    grown: float,
    total: float,
) -> tuple[FloatArray, ...]:
    alpha = samples.law.samples
    t, big, bent, cube, mixed, twice, lean, drift, both, third = found[:10]
    square, skew, wide, cubic, fourth = found[10:]

    def mean(values: FloatArray) -> float:
        return float(values @ samples.weights)

    inner = 1.0 + mean(t)
    linear = 2 * inner * bent + 2 * grown * mixed + lean / alpha
    moves = 2 * inner * mixed + 2 * grown * twice + drift / alpha  # m
    own = (2 * inner * both + third / alpha) / alpha + grown * moves
    h2 = moments(activation.derivative).quadratic
    shifted = s1 * h2 * samples.step  # what the initial norm adds to the mean of ν
    stretch = bent / 2 + big * shifted
    p = inner + t / alpha
    excess = p**2 - inner**2
    # E[(g² − 1)(2pgn + n²/α)]/2
    even = p * cube + (wide - square) / (2 * alpha)
    plain = total - mean(square) / alpha  # N₂
    growth = plain + mean(even) + mean(moves * shifted)
    pulled = samples.frame(2 * p * bent + skew / alpha)
    spread = -2 * plain**2 + 4 * mean(even * excess)
    spread += 4 / alpha * mean(p**2 * (wide - square))
    spread += 4 / alpha**2 * mean(p * cubic)
    spread += mean(fourth - 3 * square**2) / alpha**3
    spread += float(pulled @ pulled) + grown * float((samples.frame(moves) ** 2).sum())
    return linear, own, stretch, np.array(growth), np.array(spread)
