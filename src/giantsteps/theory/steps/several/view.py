"""What a step sees of its samples (theory §7)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from giantsteps.functions import SingleIndex, Teacher
from giantsteps.gaussian import (
    Smoothed,
    coordinate_rule,
    hermite_rule,
    normal_panels,
    tensor_rule,
)
from giantsteps.problem import Problem, Step
from giantsteps.theory.model.classification import jumps_of_link
from giantsteps.theory.model.functions_of_spike import (
    Wanted,
    smoothed_by_symmetry,
    teacher_given,
)
from giantsteps.theory.model.rules import (
    bounded_normal,
    mapped_rule,
    product_rule,
    steepness_of,
)
from giantsteps.theory.steps.several.conditional import Conditional, conditional_rule
from giantsteps.theory.steps.several.trained import (
    Trained,
)
from giantsteps.types import FloatArray

#: Nodes of r at each k, by resolution.
RESIDUALS, FINE_RESIDUALS = (4, 5, 6, 7, 8), (6, 7, 8, 9, 9)
#: Nodes of z and of the noise behind r.
_HIDDEN, _NOISE = {1: 24, 2: 16, 3: 10}, 8
#: Where z ends if its quadrature is split at jumps of the labels, and nodes of a part.
REACH, _SPLIT = 7.0, 16
#: Gauss–Hermite nodes of a batch along its first spike and beside it, by resolution, and weights
#: that are nothing; the same where errors shall be resolved to 1e-6.
_ALONG, _BESIDE, _PRUNED = (14, 18, 24, 32, 42), (6, 8, 10, 13, 16), 1e-9
_FINE_ALONG, _FINE_BESIDE = (30, 38, 46, 54, 60), (5, 6, 8, 10, 12)
#: Nodes on each side of zero along two spikes, by resolution.
_SPLIT_ALONG = ((5, 6, 8, 10, 13), (3, 3, 4, 5, 6))
#: Nodes where neurons lean little, by resolution, and weights that are nothing there.
_FEW, _FAINT = (6, 7, 8, 9, 10), 1e-4
#: Step of derivatives in the mean of h, in units of its standard deviation.
_STEP = 1e-3
#: The finest resolution.
FINEST = len(_ALONG) - 1


@dataclass(frozen=True, eq=False)
class View:
    """What neurons and teacher do at points k (K, r), and the residuals of a step there."""

    problem: Problem
    trained: Trained
    step: Step
    points: FloatArray
    weights: FloatArray

    @cached_property
    def wanted(self) -> Wanted:
        trained = self.trained
        return teacher_given(self.problem.teacher, trained.overlap @ self.points.T, trained.beside)

    @cached_property
    def output(self) -> FloatArray:
        """f(k)."""
        trained = self.trained
        scale = np.sqrt(trained.totals)[:, None]
        seen = smoothed_by_symmetry(self.problem.activation, trained.spikes @ self.points.T, scale)
        return np.asarray((trained.probabilities * trained.values) @ seen.mean)

    @cached_property
    def slope(self) -> Smoothed:
        """Moments of σ'(S_A·k + √c_A z), (T, K)."""
        return self._slopes(self.trained.spikes @ self.points.T)

    def _slopes(self, mean: FloatArray) -> Smoothed:
        scale = np.sqrt(self.trained.totals)[:, None]
        return smoothed_by_symmetry(self.problem.activation.derivative, mean, scale)

    @cached_property
    def _bent(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The third derivative of ζ in the mean of h, and the first two of E σ'², (T, K)."""
        step, c = _STEP * np.sqrt(self.trained.totals)[:, None], self.trained.totals[:, None]
        step = np.where(self.trained.values[:, None] < 0, -step, step)  # equal rows are seen once
        mean, count = self.trained.spikes @ self.points.T, len(self.points)
        found = self._slopes(np.concatenate([mean - step, mean + step], axis=1))  # symmetric nodes
        (low, high), (less, more) = (
            (part[:, :count], part[:, count:]) for part in (found.quadratic, found.second_moment)
        )
        bent = (more + less - 2 * self.slope.second_moment) / step**2
        return (high - low) / (step * c), (more - less) / (2 * step), bent

    def slopes_near(self, stretch: FloatArray, growth: FloatArray) -> Smoothed:
        """The moments where leans and squared norms of neurons are a little larger, to first
        order: means E f of Gaussians have ∂E f/∂c = ½∂²E f.
        """
        slope, c, (third, tilt, bent) = self.slope, self.trained.totals[:, None], self._bent
        along, grown = stretch @ self.points.T, growth[:, None]
        xi = slope.linear / np.sqrt(c) + 2 * slope.quadratic / c * along + third / 2 * grown
        scale = np.sqrt(c + grown)
        return replace(
            slope,
            mean=slope.mean + slope.linear / np.sqrt(c) * along + slope.quadratic / c * grown,
            linear=scale * xi,
            second_moment=slope.second_moment + tilt * along + bent / 2 * grown,
            std=scale,
        )

    @cached_property
    def _hidden(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """r at a quadrature of (z, noise), (K, Q), its weights (K, Q) and z (R, K, Q), or with
        K = 1.
        """
        trained, problem = self.trained, self.problem
        along = self.points @ trained.overlap.T
        z, chances = _hidden_rule(problem.teacher, along, trained.beside)
        noise = coordinate_rule(1, nodes=_NOISE if problem.noise_variance else 1)
        e = math.sqrt(problem.noise_variance) * noise.nodes[:, 0]
        u = along[:, None] + np.moveaxis(z, 0, -1) @ trained.beside.T
        labels = np.asarray(problem.teacher(u), dtype=float)[:, :, None] + e
        output = np.broadcast_to(self.output[:, None, None], labels.shape)
        r = self.step.residual(output, labels).reshape(len(labels), -1)
        weights = (chances[:, :, None] * noise.weights).reshape(len(chances), -1)
        return r, weights, np.repeat(z, len(e), axis=2)

    @cached_property
    def _plain(self) -> bool:
        return self.step.loss == "squared"

    @cached_property
    def residual(self) -> FloatArray:
        """E[r | k]."""
        if self._plain:
            return np.asarray(self.wanted.mean - self.output)
        r, weights, _ = self._hidden
        return np.asarray((r * weights).sum(axis=1))

    @cached_property
    def beside(self) -> FloatArray:
        """E[z r | k], z the teacher's coordinates beside the spikes, (R, K)."""
        if self._plain:
            return self.wanted.linear
        r, weights, z = self._hidden
        return np.asarray((r * weights * z).sum(axis=-1))

    @cached_property
    def square(self) -> FloatArray:
        """E[r² | k]."""
        if self._plain:
            wanted, noise = self.wanted, self.problem.noise_variance
            spread = np.maximum(wanted.square - wanted.mean**2, 0.0)
            return np.asarray(spread + noise + (wanted.mean - self.output) ** 2)
        r, weights, _ = self._hidden
        return np.asarray((r**2 * weights).sum(axis=1))

    def residuals(self, count: int, top: float = math.inf) -> Conditional:
        """The law of r at each k, with so many nodes; |r| up to ``top``, E r² what it is."""
        r, weights, z = self._hidden
        cut = np.clip(r, -top, top)
        if not np.array_equal(cut, r):
            square, left = (self.weights @ (x**2 * weights).sum(axis=1) for x in (r, cut))
            cut = cut * math.sqrt(float(square / left))
        return conditional_rule(cut, weights, z, count)

    def largest_residual(self, tail: float) -> float:
        """The |r| that samples exceed with a probability."""
        r, weights, _ = self._hidden
        share = (self.weights[:, None] * weights).ravel()
        order = np.argsort(np.abs(r).ravel())
        return float(np.interp(1.0 - tail, np.cumsum(share[order]), np.abs(r).ravel()[order]))


def _hidden_rule(
    teacher: Teacher, along: FloatArray, beside: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """z ~ N(0, I) and its weights, (R, 1, Q) and (1, Q), or at each of K points along (K, R) with
    parts that end at jumps of the labels.
    """
    rank = len(beside)
    jumps = np.zeros((len(along), 0))
    if isinstance(teacher, SingleIndex):
        jumps = jumps_of_link(teacher.link, along[:, 0], float(beside[0, 0]))
    if not jumps.shape[1]:
        rule = coordinate_rule(rank, nodes=_HIDDEN[rank])
        return rule.nodes.T[:, None], rule.weights[None] / rule.weights.sum()
    z, weights = split_normal(jumps)
    return z[None], weights


def split_normal(jumps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """z ~ N(0, 1) by quadratures with parts that end at jumps (P, J), and weights: (P, Q) each."""
    ends = np.broadcast_to(np.array([-REACH, 0.0, REACH]), (len(jumps), 3))
    edges = np.sort(np.clip(np.concatenate([ends, jumps], axis=1), -REACH, REACH), axis=1)
    return normal_panels(edges, _SPLIT)


def sample_nodes(
    rank: int, level: int, tail: float = 0.0, fine: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Nodes k (K, r) and weights that stand for the samples of a batch.

    ``tail`` is the share of each coordinate that is moved to its quantile.
    """
    axes_of = (_FINE_ALONG, _FINE_BESIDE) if fine else (_ALONG, _BESIDE)
    counts = [nodes[level] for nodes in axes_of[:rank]]
    axes = [bounded_normal(count, tail) if tail else hermite_rule(count) for count in counts]
    rule = tensor_rule(axes).pruned(_PRUNED)
    return rule.nodes, rule.weights / rule.weights.sum()


def few_nodes(rank: int, level: int) -> tuple[FloatArray, FloatArray]:
    """The same before all steps, when neurons lean little."""
    rule = coordinate_rule(rank, nodes=_FEW[level]).pruned(_FAINT)
    return rule.nodes, rule.weights / rule.weights.sum()


def remembered_nodes(
    trained: Trained, level: int, tail: float = 0.0, fine: bool = False
) -> tuple[FloatArray, FloatArray]:
    """The same, split at zero along both spikes where the teacher has several directions."""
    if trained.teachers == 1 or tail:
        return sample_nodes(trained.rank, level, tail, fine)
    slopes = trained.spikes / np.sqrt(trained.totals)[:, None]
    near = steepness_of(slopes, trained.probabilities)
    rule = product_rule([mapped_rule(c[level], one) for c, one in zip(_SPLIT_ALONG, near)])
    rule = rule.pruned(_PRUNED)
    return rule.nodes, rule.weights / rule.weights.sum()


def coordinates_of(view: View, law: Conditional) -> tuple[FloatArray, FloatArray]:
    """E[κ f] and E[κκᵀ f] over the samples, κ on spikes and remainder: (E, Y), (E, E, Y)."""
    k, w = view.points, view.weights
    rank, total = k.shape[1], k.shape[1] + len(law.first)
    first = np.concatenate([(w * k.T)[:, :, None] * law.weights, w[:, None] * law.first])
    second = np.empty((total, total, *law.weights.shape))
    for i in range(rank):
        for j in range(rank):
            second[i, j] = (w * k[:, i] * k[:, j])[:, None] * law.weights
        second[i, rank:] = second[rank:, i] = (w * k[:, i])[:, None] * law.first
    second[rank:, rank:] = w[:, None] * law.second
    return first.reshape(total, -1), second.reshape(total, total, -1)
