"""Quadratures for the coordinates and the second layer of the equivalent model (theory §5c)."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.special import ndtri

from giantsteps.functions import Function
from giantsteps.gaussian import Rule, hermite_rule, normal_panels, tensor_rule
from giantsteps.types import FloatArray

#: Resolutions, from 0: nodes of a panel, and Gauss–Hermite nodes of a smooth axis. The last one is
#: for answers that there would not be otherwise.
_ORDERS = (8, 12, 17, 24, 34, 46)
_AXES = (9, 12, 16, 21, 27, 35)
LEVELS = len(_ORDERS)
#: Nodes on each side of zero of a mapped rule, by resolution, and how many more each octave of
#: steepness needs; panels resolve what these do not.
_SIDES = ((6, 3.0), (8, 4.0), (11, 5.0))
#: Resolution from which on that of the second axis is no more than most neurons need.
_FINE = 2
#: Few types are felt one by one, many only together: their nodes, relative to those of many.
_FEW, _MORE = 4, 1.35
#: Channels of the types that are kept, relative to the largest; what is lost is their square.
CHANNELS = (1e-3, 1e-4, 2e-5, 1e-5, 1e-6, 3e-7)
#: Functions that vary on this scale need no panels, and weights below this no nodes.
_SMOOTH, _NEGLIGIBLE = 4.0, 1e-15
#: The same of three coordinates and more, of whose nodes most lie in corners: a part in 1e6 of the
#: errors.
_OF_MANY = 1e-9
#: Panels that end at a kink begin so far from it.
_BESIDE = (0.0625, 0.25)
#: Panels grow by this factor away from a steep place, up to this width.
_GROWTH, _WIDEST = 4.0, 4.25


@lru_cache(maxsize=512)
def graded_rule(
    level: int,
    width: float = 4.25,
    places: tuple[float, ...] = (0.0,),
    reach: float = 8.5,
    orders: tuple[int, ...] = _ORDERS,
    widest: float = _WIDEST,
    kink: float = 0.0,
) -> Rule:
    """z ~ N(0, 1) by Gauss–Legendre panels that narrow towards places where functions are steep.

    * ``level``: resolution, from 0.
    * ``width``: scale on which functions vary at the places.
    * ``places``: panels end there.
    * ``reach``: where the rule ends.
    * ``orders``: nodes of a panel, by resolution.
    * ``widest``: width of the widest panel.
    * ``kink``: functions have kinks at plus and minus this; 0: they have none.
    """
    edges = [np.array([-reach, reach])]
    steps = []
    widest = max(widest, width)
    step = width
    while step < 2 * reach:
        steps.append(step)
        step *= _GROWTH
    around = np.concatenate([-np.array(steps)[::-1], [0.0], steps])
    inside = [p for p in places if -reach < p < reach]
    edges += [p + around for p in inside]
    merged = _merged(np.concatenate(edges), np.array([-reach, *inside, reach]), width)
    if kink:
        # Resolvents are almost singular there, too.
        beside = kink * (1.0 - np.array([0.0, *_BESIDE]))
        kept = np.abs(np.abs(merged) - kink) > (1.0 - max(_BESIDE)) * kink
        merged = np.unique(np.concatenate([-beside, merged[kept], beside]))
    merged = _split(merged[(merged >= -reach) & (merged <= reach)], widest)
    return Rule(*normal_panels(merged, orders[level]))


@lru_cache(maxsize=256)
def mapped_rule(count: int, steepness: float) -> Rule:
    """z ~ N(0, 1) by Gauss's rule in asinh(az), a the steepness, on each side of zero.

    Functions of Saz, S of all sizes, vary on all scales down to 1/a next to zero: in the new
    variable they are smooth.

    * ``count``: nodes on each side.
    * ``steepness``: a.
    """
    z, density = _half_normal()
    u = np.arcsinh(steepness * z) / steepness
    found, weights = _gauss(u, density, count)
    nodes, half = np.sinh(steepness * found) / steepness, weights / 2.0
    return Rule(np.concatenate([-nodes[::-1], nodes]), np.concatenate([half[::-1], half]))


@lru_cache(maxsize=64)
def bounded_normal(count: int, tail: float) -> Rule:
    """z ~ N(0, 1) with the largest |z| moved to their quantile, and with variance one.

    Gauss's rule up to there, and an atom at each end.
    """
    reach = float(-ndtri(tail / 2))
    fine = graded_rule(LEVELS - 1, reach=reach)
    inside, weights = _gauss(fine.nodes, fine.weights, count)
    nodes = np.concatenate([[-reach], inside, [reach]])
    weights = np.concatenate([[tail / 2], (1.0 - tail) * weights, [tail / 2]])
    return Rule(nodes / math.sqrt(float(weights @ nodes**2)), weights)


def _gauss(u: FloatArray, density: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Gauss's rule of a measure on many points, by Stieltjes' procedure."""
    diagonal, beside = np.zeros(count), np.zeros(count)
    before, current = np.zeros_like(u), np.ones_like(u)
    for degree in range(count):
        beside[degree] = math.sqrt(float(density @ current**2))
        current = current / beside[degree]
        diagonal[degree] = float(density @ (u * current**2))
        step = beside[degree] if degree else 0.0
        before, current = current, (u - diagonal[degree]) * current - step * before
    found, vectors = eigh_tridiagonal(diagonal, beside[1:])
    shares = np.asarray(vectors[0] ** 2, dtype=float)
    return np.asarray(found, dtype=float), shares / shares.sum()


@lru_cache(maxsize=1)
def _half_normal() -> tuple[FloatArray, FloatArray]:
    """|z|, z ~ N(0, 1), to rounding for functions on all scales: nodes and weights."""
    edges = np.concatenate([[0.0], 12.0 * 0.25 ** np.arange(12.0, -1.0, -1.0)])
    return normal_panels(edges, 60)


def largest_draw(draws: float) -> float:
    """|z| that half a draw of so many from N(0, 1) exceeds."""
    return float(-ndtri(0.25 / max(draws, 1.0)))


def octave(steepness: float) -> float:
    """The steepness to a power of two, so that close problems share their nodes."""
    return float(2.0 ** round(math.log2(min(max(steepness, 1 / 64), 2.0**20))))


def _merged(edges: FloatArray, fixed: FloatArray, width: float) -> FloatArray:
    """Edges in order, without those too close to one that is needed or to the one before."""
    kept: list[float] = sorted({float(edge) for edge in fixed})
    for edge in np.unique(edges):
        distance = min(abs(edge - other) for other in kept)
        own = max(width, 0.5 * min(abs(edge - place) for place in fixed[1:-1]))
        if distance > 0.6 * own:
            kept.append(float(edge))
    return np.array(sorted(kept))


def _split(edges: FloatArray, widest: float) -> FloatArray:
    """Panels of at most the widest width."""
    parts = [edges[:1]]
    for left, right in pairwise(edges):
        count = int(np.ceil((right - left) / widest - 1e-9))
        parts.append(left + (right - left) * np.arange(1, count + 1) / count)
    return np.concatenate(parts)


@lru_cache(maxsize=128)
def axes_rule(level: int, widths: tuple[float, ...]) -> Rule:
    """k ~ N(0, I_r) by a product of rules, nodes of shape (K, r).

    * ``level``: resolution, from 0.
    * ``widths``: scale on which functions vary along each axis: panels where it is short, else
      Gauss–Hermite.
    """
    smooth = hermite_rule(_AXES[level])
    axes = [graded_rule(level, width) if width < _SMOOTH else smooth for width in widths]
    return product_rule(axes)


def smooth_rule(count: int, rank: int) -> Rule:
    """k ~ N(0, I_r) by a product of Gauss–Hermite rules, nodes of shape (K, r)."""
    return product_rule([hermite_rule(count)] * rank)


def product_rule(axes: list[Rule]) -> Rule:
    """Independent coordinates, nodes of shape (K, r), those that weigh something."""
    return tensor_rule(axes).pruned(_NEGLIGIBLE if len(axes) < 3 else _OF_MANY)


@lru_cache(maxsize=256)
def _mapped_product(counts: tuple[int, ...], steepness: tuple[float, ...]) -> Rule:
    """`mapped_rule` along each axis."""
    rule = product_rule([mapped_rule(count, one) for count, one in zip(counts, steepness)])
    rule.nodes.setflags(write=False)
    rule.weights.setflags(write=False)
    return rule


def width_of(steepness: float) -> float:
    """The octave of the scale on which functions of S·k/√c vary, S/√c the steepness."""
    width = 3.0 / max(steepness, 0.25)
    return 2.0 ** math.floor(math.log2(width)) if width < _WIDEST else _WIDEST


def steepness_of(slopes: FloatArray, probabilities: FloatArray) -> list[float]:
    """What `mapped_rule` should know of functions of S·k/√c, S/√c the slopes (T, r)."""
    return [octave(0.5 * math.sqrt(float(size))) for size in probabilities @ slopes**2]


def spike_rule(
    level: int,
    spikes: FloatArray,
    totals: FloatArray,
    overlap: FloatArray,
    link: Function | None = None,
    probabilities: FloatArray | None = None,
    kink: float = 0.0,
) -> Rule:
    """k ~ N(0, I_r) for neurons with leans S_t and squared norms c_t, nodes of shape (K, r).

    Where the spikes see most of the teacher, E[σ*(γ·k + √(1−|γ|²)z) | k] is steep beside kinks and
    jumps of σ*: panels along γ narrow towards them.

    * ``level``: resolution, from 0.
    * ``spikes``, ``totals``: (T, r), (T,).
    * ``overlap``: (r,): γ.
    * ``link``: σ*; without it the teacher is taken as smooth.
    * ``probabilities``: (T,): of the types; without them panels, which reach further than averages
      need.
    * ``kink``: distance from zero at which functions have a kink; 0: nowhere.
    """
    scale, rank = np.sqrt(totals)[:, None], len(overlap)
    size = math.sqrt(float(overlap @ overlap))
    rest = math.sqrt(max(1.0 - size * size, 0.0))
    kinks: FloatArray = np.zeros(0)
    if link is not None and size:
        kinks = link.breakpoints(-8.5 * size, 8.5 * size)
    steep = len(kinks) > 0 and rest < size
    mapped = not steep and level < len(_SIDES) and (rank == 1 or link is None)
    if mapped and probabilities is not None:
        few = _MORE if len(totals) <= _FEW else 1.0
        least, more = _SIDES[level]
        near = steepness_of(spikes / scale, probabilities)
        counts = [math.ceil((least + more * math.log2(1.0 + 2.0 * one)) * few) for one in near]
        return _mapped_product(tuple(counts), tuple(near))
    frame = _frame(overlap / size) if steep and rank > 1 else np.eye(rank)
    steepness = (np.abs(spikes @ frame.T) / scale).max(axis=0)
    if probabilities is not None and rank > (2 if level < _FINE else 1):
        # Beyond the first axis only few neurons lean far: what most of them see is enough.
        usual = np.sqrt(probabilities @ (spikes @ frame.T / scale) ** 2)
        steepness[1:] = np.minimum(steepness, 2.0 * usual)[1:]
    widths = tuple(width_of(float(slope)) for slope in steepness)
    if not steep:
        return (
            axes_rule(level, widths)
            if rank > 1
            else _column(graded_rule(level, widths[0], kink=kink))
        )
    length = float(overlap[0]) if rank == 1 else size
    narrow = min(widths[0], max(2.0 * rest / size, 1e-3))
    # Octaves, so that close problems share their nodes.
    narrow = 2.0 ** math.floor(math.log2(narrow)) if narrow < widths[0] else narrow
    places = tuple(sorted({0.0, *(float(kink) / length for kink in kinks)}))
    first = graded_rule(level, narrow, places, kink=kink)
    if rank == 1:
        return _column(first)
    others = axes_rule(level, widths[1:])
    nodes = np.concatenate(
        [
            np.repeat(first.nodes[:, None], len(others.weights), axis=0),
            np.tile(others.nodes, (len(first.nodes), 1)),
        ],
        axis=1,
    )
    weights = np.multiply.outer(first.weights, others.weights).ravel()
    return Rule(nodes @ frame, weights).pruned(_NEGLIGIBLE)


def _column(rule: Rule) -> Rule:
    return Rule(rule.nodes[:, None], rule.weights)


def _frame(direction: FloatArray) -> FloatArray:
    """An orthonormal basis, rows, that begins with a direction."""
    rank = len(direction)
    frame = np.linalg.qr(np.column_stack([direction, np.eye(rank)]))[0].T
    frame[0] = direction
    return np.asarray(frame)
