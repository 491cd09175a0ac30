"""The test error on fresh points, with its standard error and its parts by degree."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from giantsteps.simulation._engine._arrays import Array, Arrays


@dataclass(frozen=True)
class PointError:
    """Errors of several predictors of one network, or of each network of a batch."""

    mean: Array  # (…, cells): R = E(f̂ − f*)², without noise
    standard_error: Array  # (…, cells): of ``mean`` over the test points, given the network
    #: (…, cells, degrees + 1): the parts of R on He_k(⟨x, β*⟩); None for a teacher of several
    #: directions or none known.
    by_degree: Array | None
    #: (…, cells): share of the points with sign(f̂) ≠ f*; None unless f* takes the values ±1 only.
    misclassified: Array | None = None


@dataclass
class PointErrors:
    r"""Monte-Carlo average of (f̂ − f*)² over test points that come in chunks.

    .. math:: R = E e^2, \qquad R[k] = (E[e\, He_k(u)])^2/k!, \qquad e = \hat f − f^*, u = ⟨x, β_*⟩

    The square of a sample mean m of variance v/n overshoots by v/n; by_degree is the unbiased
    m² − v/n, which may be slightly negative where a part is zero. Sums stay on the device.
    """

    arrays: Arrays  # the arrays in use
    degrees: int  # highest k of by_degree
    binary: bool = False  # whether to count wrong signs
    _points: int = 0
    _sums: list[Array] = field(default_factory=list)

    def add(self, predicted: Array, coordinates: Array | None, target: Array) -> None:
        """Predictions (…, rows, cells) in float64, the teacher's coordinates (…, rows, rank) or
        None, and its noiseless values (…, rows)."""
        xp = self.arrays.xp
        errors = predicted - target[..., None]
        squares = errors**2
        terms = [xp.sum(squares, axis=-2), xp.sum(squares**2, axis=-2)]
        if self.binary:
            wrong = xp.sign(predicted) != xp.sign(target)[..., None]
            terms.append(xp.sum(self.arrays.wide(wrong), axis=-2))
        stacked = xp.stack(terms, axis=-1)
        if coordinates is not None and coordinates.shape[-1] == 1:
            basis = _hermite(xp, coordinates[..., 0], self.degrees)
            parts = [xp.matrix_transpose(errors) @ basis, xp.matrix_transpose(squares) @ basis**2]
            stacked = xp.concat([stacked, *parts], axis=-1)
        self._sums = [self._sums[0] + stacked] if self._sums else [stacked]
        self._points += errors.shape[-2]

    def finish(self) -> PointError:
        """The averages."""
        xp, points = self.arrays.xp, self._points
        total = self._sums[0] / points
        mean, rest = total[..., 0], max(points - 1, 1)
        zero = xp.zeros_like(mean)
        spread = total[..., 1] - mean**2
        spread = xp.sqrt(xp.where(spread > 0, spread, zero) / rest)
        known = 3 if self.binary else 2
        wrong = total[..., 2] if self.binary else None
        if total.shape[-1] == known:
            return PointError(mean, spread, None, wrong)
        first = total[..., known : known + self.degrees + 1]
        second = total[..., known + self.degrees + 1 :] - first**2
        parts = first**2 - xp.where(second > 0, second, xp.zeros_like(second)) / rest
        return PointError(mean, spread, parts, wrong)


def _hermite(xp: Any, u: Array, degrees: int) -> Array:
    """He_k(u)/√k! for k = 0 … degrees, along a new last axis."""
    found = [xp.ones_like(u), u]
    for k in range(1, degrees):
        found.append((u * found[k] - math.sqrt(k) * found[k - 1]) / math.sqrt(k + 1))
    return xp.stack(found[: degrees + 1], axis=-1)
