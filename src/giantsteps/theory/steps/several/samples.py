"""The samples of a batch that is used twice, as nodes, and sums over them (theory §7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, ndtri

from giantsteps.functions import SingleIndex
from giantsteps.gaussian import Rule, tensor_rule
from giantsteps.theory.model.rules import bounded_normal, graded_rule
from giantsteps.theory.steps.labels import largest_label
from giantsteps.theory.steps.several.sample_law import SampleLaw
from giantsteps.types import FloatArray

#: Nodes of u, of the noise and of what v has beside u, by resolution; weights below so many tails
#: count for nothing.
_COUNTS, _LEAST = ((10, 3, 5), (14, 3, 6), (19, 4, 8), (25, 5, 10)), 1e-4


@dataclass(frozen=True, eq=False)
class Samples:
    """Nodes of the law of (y, v) with their residuals; arrays of shape (Y,).

    Given b, a sample has the coordinate y/√(α₀E y²) + z on the direction of b beside the teacher,
    z ~ N(0, 1) with v = κu + √(E y²/α₀)z, and what is beside both directions is independent of
    (y, v) but for Σ y x = 0.

    ======  ==========  ==================================
    symbol  attribute   meaning
    ======  ==========  ==================================
    y, v    label,      and the residual r of the second
            step,       step
            residual
    \\       take        functions on the law's grid (T, Y', V') at the nodes, (T, Y)
    \\       weights     E f = Σ weights f
    \\       along,      E[u f] and E[u² f]
            square
    ======  ==========  ==================================
    """

    law: SampleLaw
    take: Callable[[FloatArray], FloatArray]
    label: FloatArray
    step: FloatArray
    residual: FloatArray
    weights: FloatArray
    along: FloatArray
    square: FloatArray

    @classmethod
    def of(cls, law: SampleLaw, residual: FloatArray, least: float) -> Samples:
        """The nodes of a law that have more than the ``least`` weight."""
        nodes = np.abs(law.mass) > least
        scale = law.mass[nodes].sum()
        label, step, seen = np.broadcast_arrays(law.label, law.step, residual)
        return cls(
            law=law,
            take=lambda values: np.broadcast_to(values, (len(values), *nodes.shape))[:, nodes],
            label=label[nodes],
            step=step[nodes],
            residual=seen[nodes],
            weights=law.mass[nodes] / scale,
            along=law.along[0][nodes] / scale,
            square=law.square[nodes] / scale,
        )

    @classmethod
    def bounded(
        cls,
        law: SampleLaw,
        residual: FloatArray,
        teacher: SingleIndex,
        noise_variance: float,
        tail: float,
        level: int,
        shift: float,
    ) -> Samples:
        """Nodes with positive weights: a bulk of them has edges.

        Of labels and v the ``tail`` of the largest is moved to their quantiles; E y² and E[u y]
        stay what they are.
        """
        counts = _COUNTS[min(level, len(_COUNTS) - 1)]
        none = Rule(np.zeros(1), np.ones(1))
        rules = [
            _coordinate(teacher, counts[0], tail),
            bounded_normal(counts[1], tail) if noise_variance else none,
            bounded_normal(counts[2], tail),
        ]
        rule = tensor_rule(rules).pruned(_LEAST * tail)
        weights, drawn = rule.weights / rule.weights.sum(), rule.nodes.T
        # No sample is among the largest in all of them.
        far = math.sqrt(chdtri(3 if noise_variance else 2, tail)) / np.linalg.norm(drawn, axis=0)
        u, noise, z = drawn * np.minimum(far, 1.0)
        top = largest_label(teacher, noise_variance, shift, tail)
        label = np.asarray(teacher(u[:, None]), dtype=float) - shift
        label = label + math.sqrt(noise_variance) * noise
        label = np.clip(label, -top, top)
        label = label * math.sqrt(law.label_moment / float(weights @ label**2))
        linear, most = float(law.linear[0]), float(-ndtri(tail / 2)) * math.sqrt(law.norm_squared)
        step = np.clip(linear * u + law.spread * z, -most, most)
        lost = linear - float((weights * u) @ label)
        by_label, by_step = (
            grid.spread(at[:, None], np.ones(1))[0] for grid, at in zip(law.grids, (label, step))
        )

        def take(values: FloatArray) -> FloatArray:
            full = np.broadcast_to(values, (len(values), *law.mass.shape)) @ by_step.T
            return np.asarray(np.einsum("tyj,jy->tj", full, by_label))

        return cls(
            law=law,
            take=take,
            label=label,
            step=step,
            residual=take(residual[None])[0],
            weights=weights,
            along=weights * (u + lost * label / law.label_moment),
            square=weights * u**2,
        )

    def coordinates(self) -> tuple[FloatArray, FloatArray]:
        """First and second moments of the coordinates on the teacher and on b beside it."""
        own, linear = self.label / (self.law.samples * self.law.spread), float(self.law.linear[0])
        w, along, square, v = self.weights, self.along, self.square, self.step
        z1 = (v * w - linear * along) / self.law.spread
        z2 = (v * v * w - 2 * v * linear * along + linear**2 * square) / self.law.spread**2
        both = own * along + (v * along - linear * square) / self.law.spread
        last = own**2 * w + 2 * own * z1 + z2
        return np.stack([along, own * w + z1]), np.array([[square, both], [both, last]])

    def conditioned(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums n⁻¹Σ a x as a part along b, on the two directions, and sums without y."""
        share = sums @ (self.weights * self.label) / float(self.weights @ self.label**2)
        return np.outer(share, self.law.direction), sums - np.outer(share, self.label)

    def passed_on(self, by: FloatArray, sums: FloatArray) -> FloatArray:
        """K_a n⁻¹Σ m x without coinciding samples, for a and m of each type, as sums over the
        batch: functions (T, Y).
        """
        first, _ = self.coordinates()
        carry, beside = self.conditioned(sums)
        seen = (carry + beside @ first.T) @ (first / self.weights)
        own = (beside - sums) / self.law.samples
        return np.asarray(by * (seen + own) + (by @ self.weights)[:, None] * sums)

    def frame(self, values: FloatArray) -> FloatArray:
        """E[x f] on the two directions without a sample's own part in b, (…, 2)."""
        teacher = values @ self.along
        rest = values @ (self.weights * self.step) - teacher * float(self.law.linear[0])
        return np.stack([teacher, rest / self.law.spread], axis=-1)

    def inner(self, one: FloatArray, other: FloatArray) -> FloatArray:
        """Inner products of sums n⁻¹Σ a x over the batch, (T, T')."""
        first, _ = self.coordinates()
        (left, a), (right, b) = map(self.conditioned, (one, other))
        noise = (a * self.weights) @ b.T / self.law.samples
        return np.asarray((left + a @ first.T) @ (right + b @ first.T).T + noise)


def _coordinate(teacher: SingleIndex, count: int, tail: float) -> Rule:
    """u ~ N(0, 1) with its largest values moved to their quantile; panels end at kinks of f*."""
    reach = float(-ndtri(tail / 2))
    places = tuple(teacher.link.breakpoints(-reach, reach).tolist())
    if not places:
        return bounded_normal(count, tail)
    inside = graded_rule(0, 2 * reach, places, reach, (count,), 2 * reach)
    nodes = np.concatenate([[-reach], inside.nodes, [reach]])
    weights = np.concatenate([[tail / 2], (1.0 - tail) * inside.weights, [tail / 2]])
    return Rule(nodes / math.sqrt(float(weights @ nodes**2)), weights)
