"""The rule of a step: what is made of a gradient before it is added to the weights (theory §0)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from giantsteps.problem import Step
from giantsteps.simulation._engine._arrays import Array, Arrays

_BETA = (0.9, 0.999)  # Adam's: of the first and of the second moment
_EPSILON = 1e-8  # Adam's, relative to the root mean square of the gradient


@dataclass
class Optimizer:
    """Turns gradients into updates, step after step; Adam's moments are its state."""

    arrays: Arrays  # the arrays in use
    #: (d,): eigenvalues of Σ, for preconditioned steps; None if all are one.
    variances: Array | None = None
    _moments: list[Array] = field(default_factory=list)
    _count: int = 0

    def update(self, step: Step, gradient: Array) -> Array:
        """ΔW of a step from √N G, (…, d, N) in float64, which may be overwritten."""
        if step.precondition and self.variances is not None:
            gradient *= self.variances[:, None] ** -step.precondition
        found = RULES[step.rule].made(self, gradient)
        found *= step.learning_rate(gradient.shape[-1])
        return found

    # Each but the gradient's own returns a matrix of Frobenius norm one (Adam's about one), or
    # zero for a gradient that is zero.

    def _gradient(self, gradient: Array) -> Array:
        return gradient

    def _normalized(self, gradient: Array) -> Array:
        gradient /= _norm(self.arrays, gradient)
        return gradient

    def _sign(self, gradient: Array) -> Array:
        return self.arrays.xp.sign(gradient) / math.sqrt(_entries(gradient))

    def _muon(self, gradient: Array) -> Array:
        """UVᵀ over the singular values that are not zero, divided by the root of their number."""
        xp = self.arrays.xp
        left, values, right = xp.linalg.svd(gradient, full_matrices=False)
        cutoff = max(gradient.shape[-2:]) * float(np.finfo(np.float64).eps) * values[..., :1]
        used = self.arrays.wide(values > cutoff)
        rank = xp.maximum(xp.sum(used, axis=-1), xp.ones_like(used[..., 0]))
        return (left * (used / xp.sqrt(rank)[..., None])[..., None, :]) @ right

    def _adam(self, gradient: Array) -> Array:
        xp = self.arrays.xp
        if not self._moments:
            self._moments = [xp.zeros_like(gradient), xp.zeros_like(gradient)]
        self._count += 1
        first, second = self._moments
        first += (1 - _BETA[0]) * (gradient - first)
        second += (1 - _BETA[1]) * (gradient**2 - second)
        entries = _entries(gradient)
        epsilon = _EPSILON / math.sqrt(entries) * _norm(self.arrays, gradient)
        corrected = [1 - beta**self._count for beta in _BETA]
        root = xp.sqrt(second / corrected[1])
        root += epsilon
        return first / (corrected[0] * math.sqrt(entries)) / root


class Rule(NamedTuple):
    """What `Optimizer` makes of a gradient by one rule."""

    made: Callable[[Optimizer, Array], Array]
    held: int = 0  # matrices (d, N) in float64 that it holds beside the weights and the gradient
    coordinatewise: bool = False  # whether it acts on coordinates, and so bends the direction


#: Every rule of `Step`, by name.
RULES = {
    "gradient": Rule(Optimizer._gradient),
    "normalized": Rule(Optimizer._normalized),
    "sign": Rule(Optimizer._sign, held=1, coordinatewise=True),
    "muon": Rule(Optimizer._muon, held=6),
    "adam": Rule(Optimizer._adam, held=4, coordinatewise=True),
}


def _entries(matrix: Array) -> int:
    return int(matrix.shape[-2] * matrix.shape[-1])


def _norm(arrays: Arrays, matrix: Array) -> Array:
    """The Frobenius norm, (…, 1, 1); one for a matrix of zeros."""
    xp = arrays.xp
    norm = xp.linalg.matrix_norm(matrix, keepdims=True)
    return xp.where(norm > 0, norm, xp.ones_like(norm))
