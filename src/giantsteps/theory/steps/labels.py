r"""The labels of a batch as a quadrature (theory §5b).

A sample enters the operators of the bulk through its residual r alone; its coordinates u = ⟨x, β*⟩
on the teacher's R directions matter through E[u f(r)] and E[uuᵀ f(r)]. A fine quadrature of (u, ε)
is carried over, by interpolation, to panels of r that narrow towards zero, where functions of r may
be steep.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq

from giantsteps.functions import Function, SingleIndex, Teacher
from giantsteps.gaussian import gauss_rule
from giantsteps.problem import Step
from giantsteps.theory.model.teacher import teacher_rule
from giantsteps.theory.solver.panel_grid import PanelGrid
from giantsteps.types import FloatArray

#: Distinct labels up to which each is a node.
_FEW = 24
#: Panels: growth of their widths, and nodes on each, for each resolution.
_GROWTH, _ORDERS = 3.0, (8, 12, 16, 22)
_NOISE = (24, 40, 64, 96)
_NEGLIGIBLE = 1e-18
#: Standard deviations beyond which nothing counts.
_FAR = 9.0


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
        return float(self.weights @ self.nodes**power)

    def teacher(self, power: int) -> FloatArray:
        """E[u r^power], (R,)."""
        return self.first @ self.nodes**power

    @property
    def signal(self) -> float:
        """E[u r] of a teacher of one direction."""
        return float(self.teacher(1)[0])

    @property
    def largest(self) -> float:
        """The largest |r|."""
        return float(np.abs(self.nodes).max())


@lru_cache(maxsize=128)
def labels(
    teacher: Teacher,
    noise_variance: float,
    shift: float,
    finest: float,
    level: int = 1,
    tail: float = 0.0,
    loss: str = "squared",
) -> Labels:
    """The law of r = −ℓ'(shift; y), y = f*(u) + ε: y − shift for the squared loss.

    Parameters
    ----------
    teacher : Teacher
        f*.
    noise_variance, shift : float
        Δ, and the output of the network at initialisation (c₀ E A).
    finest : float
        Functions of r are analytic up to this distance from the real line, near zero.
    level : int
        Resolution, from 0.
    loss : str
        As in `Step`.
    tail : float
        Share of the largest |r| that is cut off. The bulk of the weights has no edge where labels
        are unbounded; that of n₀ samples is the one of labels up to the largest of n₀ draws,
        tail = 1/(2n₀).
    """
    kinks = _kinks(loss, shift)
    if isinstance(teacher, SingleIndex):
        places = _crossings(teacher.link, kinks) if kinks and not noise_variance else []
        rule = gauss_rule(teacher.link, breakpoints=places, width=3.5).pruned(_NEGLIGIBLE)
        u = rule.nodes[:, None]
    else:
        rule = teacher_rule(teacher)
        u = rule.nodes
    w = rule.weights / rule.weights.sum()
    r = np.asarray(teacher(u), dtype=float)
    if noise_variance > 0:
        scale = math.sqrt(noise_variance)
        g, v = _noise((np.array(kinks)[:, None] - r) / scale, level)
        r, w = (r[:, None] + scale * g).ravel(), (w[:, None] * v).ravel()
        u = np.repeat(u, g.shape[1], axis=0)
    r = Step(samples=1.0, rate=1.0, loss=loss).residual(np.full_like(r, shift), r)
    if tail:
        u, r, w = _cut(u, r, w, tail)
    rank = teacher.rank
    pairs = (u[:, :, None] * u[:, None]).reshape(len(u), -1)
    functions = [w, *(w * part for part in (*u.T, *pairs.T))]
    distinct, where = np.unique(r, return_inverse=True)
    if len(distinct) <= _FEW:
        nodes = distinct
        sums = np.stack([np.bincount(where, part).astype(float) for part in functions])
    else:
        grid = PanelGrid(_edges(r, finest), _ORDERS[level])
        sums = np.stack(grid.spread(r, *functions))
        used = np.any(np.abs(sums) > _NEGLIGIBLE, axis=0)
        nodes, sums = grid.nodes[used], sums[:, used]
    return Labels(nodes, sums[0], sums[1 : 1 + rank], sums[1 + rank :].reshape(rank, rank, -1))


def _kinks(loss: str, shift: float) -> tuple[float, ...]:
    """Labels at which the residual has a kink or a jump."""
    if loss == "huber":
        return (shift - 1.0, shift + 1.0)
    return (1.0 / shift,) if loss == "hinge" and shift else ()


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
    x, unit = np.polynomial.legendre.leggauss(_NOISE[level])
    half = np.diff(edges, axis=1)[:, :, None] / 2
    nodes = (edges[:, :-1, None] + half * (1 + x)).reshape(len(edges), -1)
    weights = (half * unit).reshape(len(edges), -1) * np.exp(-(nodes**2) / 2)
    return nodes, weights / weights.sum(axis=1, keepdims=True)


def _cut(
    u: FloatArray, r: FloatArray, w: FloatArray, tail: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The quadrature with |r| up to the quantile 1 − tail: larger ones are moved there.

    What E[u r] loses by that, which the step would take for a teacher, all labels get back as a
    multiple of u.
    """
    order = np.argsort(np.abs(r), kind="stable")
    share = np.cumsum(w[order])
    top = float(np.interp(1.0 - tail, share / share[-1], np.abs(r)[order]))
    clipped = np.clip(r, -top, top)
    lost = (w * (r - clipped)) @ u
    return u, clipped + u @ lost if np.any(lost) else clipped, w


def _edges(r: FloatArray, finest: float) -> FloatArray:
    """Panels that grow with |r| on both sides of zero, as far as the labels go."""
    low, high = float(r.min()), float(r.max())
    start = min(finest, max(-low, high))
    steps = start * _GROWTH ** np.arange(0.0, 60.0)
    inside = np.concatenate([-steps[::-1], [0.0], steps])
    margin = 1e-6 * (high - low)
    inside = inside[(inside > low + margin) & (inside < high - margin)]
    return np.concatenate([[low], inside, [high]])
