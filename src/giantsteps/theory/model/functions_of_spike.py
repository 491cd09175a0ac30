"""Functions of the spike coordinates: what types of neurons and the teacher make of them (§5c)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from giantsteps.functions import Function
from giantsteps.gaussian import Smoothed, moments, smoothed
from giantsteps.types import FloatArray

__all__ = ["Wanted", "smoothed_by_symmetry", "teacher_given"]


@dataclass(frozen=True, eq=False)
class Wanted:
    """The teacher given the spike coordinates at K points: h, h₁, ½E[(z²−1)σ*] and E σ*²."""

    mean: FloatArray
    linear: FloatArray
    quadratic: FloatArray
    square: FloatArray


@lru_cache(maxsize=256)
def teacher_given(link: Function, mean: tuple[float, ...], std: float) -> Wanted:
    """The teacher given the spike coordinates: the same for all rates of a step."""
    found = smoothed(link, np.array(mean), std)
    return Wanted(found.mean, found.linear, found.quadratic, found.second_moment)


def smoothed_by_symmetry(function: Function, mean: FloatArray, std: FloatArray) -> Smoothed:
    """``smoothed`` at broadcast (mean, std), each distinct pair once and by parity in the mean."""
    shape = np.broadcast_shapes(mean.shape, std.shape)
    parity = moments(function)
    folded = parity.is_odd or parity.is_even
    pairs = np.stack(
        [
            np.broadcast_to(np.abs(mean) if folded else mean, shape).ravel(),
            np.broadcast_to(std, shape).ravel(),
        ],
        axis=1,
    )
    distinct, index = np.unique(pairs, axis=0, return_inverse=True)
    values = smoothed(function, distinct[:, 0], distinct[:, 1])
    sign = np.where(mean < 0, -1.0, 1.0) if folded else 1.0
    outer, inner = (sign, 1.0) if parity.is_odd else (1.0, sign)
    index = index.reshape(shape)
    return Smoothed(
        mean=values.mean[index] * outer,
        linear=values.linear[index] * inner,
        quadratic=values.quadratic[index] * outer,
        second_moment=values.second_moment[index],
        residual_variance=values.residual_variance[index],
        std=values.std[index],
    )
