"""The samples of a batch that is used twice, as nodes, and sums over them (theory §7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from giantsteps.theory.steps.several.sample_law import SampleLaw
from giantsteps.types import FloatArray


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
    \\       weights     E f = Σ weights f
    \\       along,      E[u f] and E[u² f]
            square
    ======  ==========  ==================================
    """

    law: SampleLaw
    nodes: FloatArray
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
            nodes=nodes,
            label=label[nodes],
            step=step[nodes],
            residual=seen[nodes],
            weights=law.mass[nodes] / scale,
            along=law.along[0][nodes] / scale,
            square=law.square[nodes] / scale,
        )

    def take(self, values: FloatArray) -> FloatArray:
        """Functions of (y, v) at the nodes, (T, Y)."""
        return np.broadcast_to(values, (len(values), *self.nodes.shape))[:, self.nodes]

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
        """E[x f] on the two directions without a sample's own part in b."""
        teacher = float(values @ self.along)
        rest = float(values @ (self.weights * self.step)) - teacher * float(self.law.linear[0])
        return np.array([teacher, rest / self.law.spread])

    def inner(self, one: FloatArray, other: FloatArray) -> FloatArray:
        """Inner products of sums n⁻¹Σ a x over the batch, (T, T')."""
        first, _ = self.coordinates()
        (left, a), (right, b) = map(self.conditioned, (one, other))
        noise = (a * self.weights) @ b.T / self.law.samples
        return np.asarray((left + a @ first.T) @ (right + b @ first.T).T + noise)
