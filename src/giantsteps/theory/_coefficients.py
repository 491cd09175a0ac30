"""Functions of the spike coordinates: what types of neurons and the teacher make of them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from giantsteps.functions import Function
from giantsteps.gaussian import Smoothed, moments, smoothed

__all__ = ["COEFFICIENTS", "Coefficients", "smoothed_by_symmetry", "teacher_given"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Coefficients:
    """Functions of the spike coordinates at given points (theory §5c); shapes as in System."""

    mean: NDArray
    linear: NDArray
    residual: NDArray
    norm: NDArray
    length: NDArray
    target: NDArray
    target_linear: NDArray
    target_square: NDArray


#: Their names, in order.
COEFFICIENTS = tuple(field.name for field in fields(Coefficients))


@lru_cache(maxsize=256)
def teacher_given(link: Function, mean: tuple[float, ...], std: float) -> Smoothed:
    """The teacher given the spike coordinates: the same for all rates of a step."""
    return smoothed(link, np.array(mean), std)


def smoothed_by_symmetry(function: Function, mean: NDArray, std: NDArray) -> Smoothed:
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
