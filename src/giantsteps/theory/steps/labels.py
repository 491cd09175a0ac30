r"""The labels of a batch as a quadrature (theory §5b).

A sample enters the operators of the bulk through its residual r alone; its coordinates u = ⟨x, β*⟩
on the teacher's R directions matter through E[u f(r)] and E[uuᵀ f(r)]. A fine quadrature of (u, ε)
is carried over to Gauss quadratures of r on panels that narrow towards zero, where functions of r
may be steep. Their weights are positive, as those of samples are: otherwise the equations of the
readout may have several solutions, and a bulk no edge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from giantsteps.functions import Function, SingleIndex, Teacher
from giantsteps.gaussian import Rule, gauss_rule, normal_panels
from giantsteps.problem import Step
from giantsteps.theory.model.teacher import single_link, teacher_rule
from giantsteps.theory.solver.once import once
from giantsteps.theory.steps.several.conditional import conditional_rule
from giantsteps.types import FloatArray

#: Distinct labels up to which each is a node.
_FEW = 24
#: Panels: growth of their widths, and nodes on each, for each resolution.
_GROWTH, _ORDERS = 3.0, (8, 12, 16, 22)
_NOISE = (24, 40, 64, 96)
_NEGLIGIBLE, _PRUNED = 1e-18, 1e-13
#: Standard deviations beyond which nothing counts.
_FAR = 9.0
#: Width of the widest panel of u.
_WIDEST = 2.5
#: Losses whose residual depends on y − f alone.
_OF_DIFFERENCES = ("squared", "huber")
#: An output beyond every margin.
_BEYOND = 1e200
#: Points of a grid that finds the quantile of |y|.
_FINE = 20001


@dataclass(frozen=True, eq=False)
class Labels:
    """E f(r) = Σ weights f, E[u f(r)] = Σ first f, E[uuᵀ f(r)] = Σ second f.

    Shapes are (Y,), (R, Y) and (R, R, Y).
    """

    nodes: FloatArray
    weights: FloatArray
    first: FloatArray
    second: FloatArray

    def moment(self, power: int) -> float:
        """E r^power."""
        if power not in self._moments:
            self._moments[power] = float(self.weights @ self.nodes**power)
        return self._moments[power]

    @once
    def _moments(self) -> dict[int, float]:
        """Those that were asked for: a batch's labels serve many rates."""
        return {}

    def teacher(self, power: int) -> FloatArray:
        """E[u r^power], (R,)."""
        if power not in self._teacher:
            self._teacher[power] = self.first @ self.nodes**power
        return self._teacher[power]

    @once
    def _teacher(self) -> dict[int, FloatArray]:
        return {}

    @property
    def signal(self) -> float:
        """E[u r] of a teacher of one direction."""
        return float(self.teacher(1)[0])


@lru_cache(maxsize=128)
def labels(
    teacher: Teacher,
    noise_variance: float,
    shift: float,
    finest: float,
    level: int = 1,
    tail: float = 0.0,
    loss: str = "squared",
    output_variance: float = 0.0,
) -> Labels:
    """The law of r = −ℓ'(f₀; y), y = f*(u) + ε: y − f₀ for the squared loss.

    * ``teacher``: f*.
    * ``noise_variance``: Δ.
    * ``shift``, ``output_variance``: mean and variance of the output f₀ of the network at
      initialisation, which is normal.
    * ``finest``: functions of r are analytic up to this distance from the real line, near zero.
    * ``level``: resolution, from 0.
    * ``loss``: as in `Step`.
    * ``tail``: share of the largest |r| that is cut off. The bulk of the weights has no edge where
      labels are unbounded; that of n₀ samples is the one of labels up to the largest of n₀ draws,
      tail = 1/(2n₀). E r² and E[u r] stay what they are.
    """
    link = single_link(teacher)
    rule = teacher_rule(teacher) if link is None else None
    if loss in _OF_DIFFERENCES:  # an output is noise to them
        noise_variance, output_variance = noise_variance + output_variance, 0.0
    top, kinks = math.inf, _kinks(loss, shift, output_variance)
    noisy = noise_variance + output_variance > 0
    if tail:
        top = largest_label(teacher, noise_variance, shift, tail)
    if math.isfinite(top):
        kinks = (*kinks, shift - top, shift + top)
    if link is not None:
        places = _crossings(link, kinks) if kinks and not noise_variance else []
        rule = gauss_rule(link, breakpoints=places, width=3.5).pruned(_NEGLIGIBLE)
        if tail and not noisy:
            rule = _by_label(link, rule, shift, finest, top, places, level)
        rule = Rule(rule.nodes[:, None], rule.weights)
    assert rule is not None
    u, w = rule.nodes, rule.weights / rule.weights.sum()
    y = np.asarray(teacher(u), dtype=float)
    if noise_variance > 0:
        scale = math.sqrt(noise_variance)
        g, v = _noise((np.array(kinks)[:, None] - y) / scale, level)
        y, w = (y[:, None] + scale * g).ravel(), (w[:, None] * v).ravel()
        u = np.repeat(u, g.shape[1], axis=0)
        if teacher.rank > 1:  # of millions of points most have no weight
            some = w > _PRUNED
            u, w, y = u[some], w[some] / w[some].sum(), y[some]
    output = np.full_like(y, shift)
    if output_variance:
        outputs, v = _outputs(loss, y, shift, math.sqrt(output_variance), level)
        output, w = outputs.ravel(), (w[:, None] * v).ravel()
        u, y = np.repeat(u, v.shape[1], axis=0), np.repeat(y, v.shape[1])
        some = w > _PRUNED
        u, w, y, output = u[some], w[some] / w[some].sum(), y[some], output[some]
    step = Step(samples=1.0, rate=1.0, loss=loss)
    whole, r = (
        step.residual(output, np.clip(y, shift - most, shift + most)) for most in (math.inf, top)
    )
    square, kept = float(w @ whole**2), float(w @ r**2)
    if kept != square:
        r = r * math.sqrt(square / kept)
    distinct, where = np.unique(r, return_inverse=True)
    if len(distinct) <= _FEW or (tail and not noisy and link is not None):
        found = _labels(
            distinct, [np.bincount(where, one).astype(float) for one in _measures(u, w)]
        )
    else:
        count = _ORDERS[level] // 2 + 2 if tail else _ORDERS[level]
        found = _compressed(r, u, w, _edges(r, finest), count)
    lost = (w * (whole - r)) @ u
    if not np.any(lost):
        return found
    # The step would take what E[u r] loses for a teacher.
    back = lost[:, None] * found.weights * found.nodes / found.moment(2)
    return replace(found, first=found.first + back)


def _measures(u: FloatArray, w: FloatArray) -> list[FloatArray]:
    """w, wu and wuuᵀ."""
    pairs = (u[:, :, None] * u[:, None]).reshape(len(u), -1)
    return [w, *(w * part for part in (*u.T, *pairs.T))]


def _labels(nodes: FloatArray, sums: Sequence[FloatArray] | FloatArray) -> Labels:
    """From such measures of nodes."""
    found = np.asarray(sums, dtype=float)
    rank = math.isqrt(len(found) - 1)  # 1 + R + R²
    second = found[1 + rank :].reshape(rank, rank, -1)
    return Labels(nodes, found[0], found[1 : 1 + rank], second)


def _by_label(
    link: Function,
    rule: Rule,
    shift: float,
    finest: float,
    top: float,
    places: list[float],
    level: int,
) -> Rule:
    """u by panels on which the label is on one panel: each node is one."""
    low, high = (float(one) for one in (rule.nodes.min(), rule.nodes.max()))
    y = np.clip(np.asarray(link(rule.nodes), dtype=float) - shift, -top, top)
    inside = _crossings(link, tuple((_edges(y, finest)[1:-1] + shift).tolist()))
    fixed = [*link.breakpoints(low, high), *places, *inside]
    edges = np.unique([low, *(place for place in fixed if low < place < high), high])
    edges = np.concatenate([edges[:1], edges[1:][np.diff(edges) > 1e-9]])
    counts = np.ceil(np.diff(edges) / _WIDEST).astype(int)
    starts = np.repeat(edges[:-1], counts)
    half = np.repeat(np.diff(edges) / counts, counts)[:, None] / 2
    number = np.concatenate([np.arange(count) for count in counts])[:, None]
    x, unit = np.polynomial.legendre.leggauss(_ORDERS[level])
    nodes = (starts[:, None] + 2 * half * number + half * (1 + x)).ravel()
    return Rule(nodes, (half * unit).ravel() * np.exp(-(nodes**2) / 2)).pruned(_NEGLIGIBLE)


def _compressed(
    r: FloatArray, u: FloatArray, w: FloatArray, edges: FloatArray, count: int
) -> Labels:
    """Gauss quadratures of a measure on points r, one on each panel, and its atoms at both ends."""
    ends = edges[[0, -1]]
    panel = np.searchsorted(edges[1:-1], r) + 1
    panel = np.where(r == ends[0], 0, np.where(r == ends[1], len(edges), panel))
    order = np.argsort(panel, kind="stable")
    counts = np.bincount(panel, minlength=len(edges) + 1)
    rows = np.repeat(np.arange(len(counts)), counts)
    columns = np.arange(len(r)) - np.repeat(np.cumsum(counts) - counts, counts)
    points, weights, *z = (np.zeros((len(counts), counts.max())) for _ in range(2 + u.shape[1]))
    for array, values in zip((points, weights, *z), (r, w, *u.T), strict=True):
        array[rows, columns] = values[order]
    mass = weights.sum(axis=1)
    some = mass > _NEGLIGIBLE
    share = weights[some] / mass[some][:, None]
    rule = conditional_rule(points[some], share, np.stack(z)[:, some], count)
    parts = [rule.weights, rule.first, rule.second]
    scaled = [mass[some][:, None] * part for part in parts]
    used = scaled[0] > _NEGLIGIBLE
    return Labels(rule.nodes[used], *(part[..., used] for part in scaled))


def _kinks(loss: str, shift: float, output_variance: float = 0.0) -> tuple[float, ...]:
    """Labels at which the residual has a kink or a jump, or is not analytic in the mean."""
    if output_variance:
        return (0.0,) if loss == "hinge" else ()
    if loss == "huber":
        return (shift - 1.0, shift + 1.0)
    return (1.0 / shift,) if loss == "hinge" and shift else ()


def _outputs(
    loss: str, y: FloatArray, mean: float, deviation: float, level: int
) -> tuple[FloatArray, FloatArray]:
    """Values of a normal output beside each label, and their weights, (Y, V)."""
    if loss == "hinge":  # all that counts is whether yf < 1
        size = np.abs(y) * deviation
        inside = ndtr(np.divide(1.0 - mean * y, size, out=np.full_like(y, _FAR), where=size > 0))
        beyond = np.copysign(_BEYOND, y)
        return np.stack([0.0 * y, beyond], axis=1), np.stack([inside, 1.0 - inside], axis=1)
    g, v = _noise(np.zeros((0, len(y))), max(level - 1, 0))
    return np.broadcast_to(mean + deviation * g, (len(y), g.shape[1])), np.repeat(v, len(y), axis=0)


def _crossings(link: Function, values: tuple[float, ...]) -> list[float]:
    """Where a function takes some values."""
    grid = np.linspace(-_FAR, _FAR, 2001)
    found = []
    for value in values:
        gap = np.asarray(link(grid), dtype=float) - value
        for i in np.flatnonzero(gap[1:] * gap[:-1] < 0):
            root = brentq(lambda x, value=value: float(link(x)) - value, grid[i], grid[i + 1])
            found.append(float(root))
    return found


def _noise(breaks: FloatArray, level: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of N(0, 1) for each column of places to split at, (U, V) or (1, V)."""
    if not len(breaks):
        g, v = np.polynomial.hermite_e.hermegauss(_NOISE[level])
        g, v = g[v > _NEGLIGIBLE], v[v > _NEGLIGIBLE]
        return g[None], v[None] / v.sum()
    ends = np.full((1, breaks.shape[1]), _FAR)
    edges = np.concatenate([-ends, np.clip(np.sort(breaks, axis=0), -_FAR, _FAR), ends]).T
    return normal_panels(edges, _NOISE[level])


def largest_label(teacher: Teacher, noise_variance: float, shift: float, tail: float) -> float:
    """The |y − shift| that labels exceed with a given probability; infinite if it is the largest.

    The set of u is one of intervals, between which a fine grid tells; of several directions a
    quadrature does.
    """
    if not isinstance(teacher, SingleIndex):
        return _largest_of_several(teacher, noise_variance, shift, tail)
    u = np.linspace(-_FAR, _FAR, _FINE)
    away = np.abs(np.asarray(teacher.link(u), dtype=float) - shift)
    scale = math.sqrt(noise_variance)
    cells = np.diff(ndtr(u))

    def beyond(top: float) -> float:
        if scale:
            outside = ndtr((away - top) / scale) + ndtr(-(away + top) / scale)
            return float(cells @ (outside[1:] + outside[:-1]) / 2) - tail
        over = away - top
        low, high = np.minimum(over[1:], over[:-1]), np.maximum(over[1:], over[:-1])
        # The share of a cell on which a linear function is positive.
        share = np.clip(high / np.where(high > low, high - low, 1.0), 0.0, 1.0)
        return float(cells @ np.where(high > low, share, high > 0)) - tail

    highest = float(away.max()) + _FAR * scale
    if not beyond(highest) < 0 or not beyond(0.0) > 0:
        return math.inf
    return float(brentq(beyond, 0.0, highest, xtol=1e-13 * highest))


def _largest_of_several(
    teacher: Teacher, noise_variance: float, shift: float, tail: float
) -> float:
    rule = teacher_rule(teacher)
    away = np.abs(np.asarray(teacher(rule.nodes), dtype=float) - shift)
    scale, weights = math.sqrt(noise_variance), rule.weights / rule.weights.sum()
    if not scale:
        order = np.argsort(away, kind="stable")
        top = float(np.interp(1.0 - tail, np.cumsum(weights[order]), away[order]))
        return top if top < away.max() else math.inf

    def beyond(top: float) -> float:
        outside = ndtr((away - top) / scale) + ndtr(-(away + top) / scale)
        return float(weights @ outside) - tail

    return float(brentq(beyond, 0.0, float(away.max()) + _FAR * scale, xtol=1e-12))


def _edges(r: FloatArray, finest: float) -> FloatArray:
    """Panels that grow with |r| on both sides of zero, as far as the labels go."""
    low, high = float(r.min()), float(r.max())
    start = min(finest, max(-low, high))
    steps = start * _GROWTH ** np.arange(0.0, 60.0)
    inside = np.concatenate([-steps[::-1], [0.0], steps])
    margin = 1e-6 * (high - low)
    inside = inside[(inside > low + margin) & (inside < high - margin)]
    return np.concatenate([[low], inside, [high]])
