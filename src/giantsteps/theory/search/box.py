"""Minima of functions of several variables inside a box, as searches in lockstep."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import lsq_linear

from giantsteps.theory.search.walk import Found, Search
from giantsteps.types import FloatArray

_ROUNDS = 60
#: Sizes of the interpolation: the model of one is the start of the next.
_SIZES = (1e-2, 1e-3)
_SMALLEST_RADIUS = 1e-7


def minimum_in_box(
    start: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    scale: FloatArray,
    step: Callable[[FloatArray, float], FloatArray],
    snap: Callable[[FloatArray], FloatArray],
) -> Search[Found]:
    r"""Trust region with a quadratic model, inside a box.

    .. math:: \min_{|s_i| \le r\,\text{scale}_i,\ l \le x+s \le u}\; g·s + \tfrac12 s·Hs

    g and H interpolate f on (m+1)(m+2)/2 points around x; an indefinite H is made positive.

    * ``start``, ``lower``, ``upper``, ``scale``: (m,). Where to start, the box, and the size of the
      first steps.
    * ``step``: (x, size) ↦ distance of the interpolation points around x, per coordinate: about the
      size, which shrinks towards the end.
    * ``snap``: points (P, m) ↦ where they are really evaluated: sizes of finite networks are
      integers.
    """
    x, radius, evaluations, tried = snap(start[None])[0], 1.0, 1, math.inf
    value = float((yield x[None])[0])
    sizes = list(_SIZES)
    for _ in range(_ROUNDS):
        size = np.minimum(step(x, sizes[0]), 0.25 * (upper - lower))
        centre = snap(np.clip(x, lower + size, upper - size)[None])[0]
        points = snap(centre + _stencil(len(x)) * size)
        values = yield points
        evaluations += len(values)
        if not np.all(np.isfinite(values)):  # the edge of what the theory covers
            break
        gradient, hessian = _interpolate((points - centre) / size, values)
        gradient, hessian = gradient / size, hessian / np.outer(size, size)
        hessian = _positive(hessian * np.outer(scale, scale)) / np.outer(scale, scale)
        here, moved = x - centre, False
        while radius > _SMALLEST_RADIUS and not moved:
            low = np.maximum(lower, x - radius * scale) - centre
            high = np.minimum(upper, x + radius * scale) - centre
            trial = snap((centre + _bounded_step(gradient, hessian, low, high))[None])
            there = trial[0] - centre
            gain = _model(gradient, hessian, here) - _model(gradient, hessian, there)
            tried = float(np.max(np.abs(there - here) / scale))
            if gain <= 1e-11 * (abs(value) + 1e-3):
                break
            reached = float((yield trial)[0])
            evaluations += 1
            ratio = (value - reached) / gain
            if ratio > 0.75:
                radius *= 2.0
            elif not ratio > 0.25:
                radius *= 0.25
            if ratio > 0.05:
                x, value, moved = trial[0], reached, True
        if not moved:
            if len(sizes) == 1:
                break
            sizes.pop(0)
            radius = max(radius, 1e-2)
    return Found(x, value, tried, evaluations)


def _stencil(size: int) -> FloatArray:
    """0, ±e_i, and e_i + e_j: as many points as a quadratic has coefficients."""
    unit = np.eye(size)
    pairs = [unit[i] + unit[j] for i in range(size) for j in range(i)]
    return np.concatenate([np.zeros((1, size)), unit, -unit, np.reshape(pairs, (-1, size))])


def _interpolate(points: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradient and Hessian at 0 of the quadratic through the values."""
    size = points.shape[1]
    rows, columns = np.triu_indices(size)
    products = points[:, rows] * points[:, columns] * np.where(rows == columns, 0.5, 1.0)
    design = np.concatenate([np.ones((len(points), 1)), points, products], axis=1)
    coefficients = np.linalg.solve(design, values)
    hessian = np.zeros((size, size))
    hessian[rows, columns] = hessian[columns, rows] = coefficients[1 + size :]
    return coefficients[1 : 1 + size], hessian


def _positive(matrix: FloatArray) -> FloatArray:
    """The matrix with its eigenvalues replaced by their sizes, none below 1e-6 of the largest."""
    values, vectors = np.linalg.eigh(matrix)
    sizes = np.maximum(np.abs(values), 1e-6 * max(float(np.abs(values).max()), 1e-12))
    return (vectors * sizes) @ vectors.T


def _bounded_step(
    gradient: FloatArray, hessian: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """argmin g·s + ½ s·Hs over low ≤ s ≤ high, as bounded least squares."""
    factor = np.linalg.cholesky(hessian).T
    wanted = -np.linalg.solve(factor.T, gradient)
    apart = np.maximum(high, low + 1e-12 * (1.0 + np.abs(low)))
    return np.clip(lsq_linear(factor, wanted, (low, apart), method="bvls").x, low, high)


def _model(gradient: FloatArray, hessian: FloatArray, s: FloatArray) -> float:
    return float(gradient @ s + 0.5 * s @ hessian @ s)
