"""The density of a law on one interval as a cosine series (theory §5d)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from giantsteps.types import FloatArray

#: An interval that spans more than this is one in log x.
_WIDE = 10.0
#: Neighbours that values between the nodes are interpolated from.
_NEIGHBOURS = 5


class Piece(NamedTuple):
    """Density on one interval: mass dθ = Σ c_j cos(jθ) dθ, x from lower to upper with θ."""

    lower: float
    upper: float
    series: FloatArray = np.zeros(1)

    @property
    def mass(self) -> float:
        return float(self.series[0]) * np.pi

    @property
    def _logarithmic(self) -> bool:
        return self.upper > _WIDE * self.lower > 0

    def angle(self, x: FloatArray) -> FloatArray:
        lower, upper = self.lower, self.upper
        if self._logarithmic:
            x, lower, upper = np.log(x), np.log(lower), np.log(upper)
        return np.asarray(np.arccos(np.clip((lower + upper - 2 * x) / (upper - lower), -1.0, 1.0)))

    def point(self, angle: FloatArray) -> FloatArray:
        share = (1 - np.cos(angle)) / 2
        if self._logarithmic:
            return np.asarray(self.lower * (self.upper / self.lower) ** share)
        return self.lower + (self.upper - self.lower) * share

    def slope(self, angle: FloatArray) -> FloatArray:
        """dx/dθ."""
        if self._logarithmic:
            return self.point(angle) * np.log(self.upper / self.lower) * np.sin(angle) / 2
        return np.asarray((self.upper - self.lower) * np.sin(angle) / 2)

    def with_density(self, density: FloatArray) -> Piece:
        """The piece with a density that is known at the nodes."""
        angle = nodes(len(density))
        series = 2 / len(angle) * np.cos(np.outer(np.arange(len(angle)), angle))
        series = series @ (density * self.slope(angle))
        series[0] /= 2
        return self._replace(series=series)

    def density(self, x: FloatArray) -> FloatArray:
        """At points inside the interval."""
        angle = self.angle(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            mass = chebyshev.chebval(np.cos(angle), self.series) / self.slope(angle)
        return np.asarray(np.maximum(np.nan_to_num(mass, nan=0.0, posinf=0.0), 0.0))


def nodes(count: int) -> FloatArray:
    """Angles at which a density is computed; every third of three times as many, from the second
    on, is one of them.
    """
    return np.asarray((np.arange(count) + 0.5) * np.pi / count)


@lru_cache(maxsize=16)
def between(count: int, finer: int) -> FloatArray:
    """What takes values at so many nodes to more nodes: polynomials through the nearest ones.

    In θ what has a soft edge in x is smooth, whatever its parity.
    """
    places = (np.arange(finer) + 0.5) * count / finer - 0.5
    size = min(_NEIGHBOURS, count)
    first = np.clip(np.rint(places).astype(int) - size // 2, 0, count - size)
    near = first[:, None] + np.arange(size)
    weights = np.ones(near.shape)
    for other in range(size):
        rest = near[:, [other]]
        ratio = (places[:, None] - rest) / np.where(near == rest, 1, near - rest)
        weights *= np.where(near == rest, 1.0, ratio)
    found = np.zeros((finer, count))
    np.put_along_axis(found, near, weights, axis=1)
    return found
