"""Functions of the spike coordinates: what types of neurons and the teacher make of them (§5c)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from giantsteps.functions import Function, SingleIndex, Teacher
from giantsteps.gaussian import (
    Smoothed,
    coordinate_rule,
    moments,
    smoothed,
    smoothed_around,
    table_nodes,
)
from giantsteps.theory.model.teacher import teacher_rule
from giantsteps.types import Array, FloatArray


@dataclass(frozen=True, eq=False)
class Wanted:
    """The teacher given the spike coordinates at K points: h, h₁ = E[z f*], ½E[(|z|²−R)f*] and
    E f*².
    """

    mean: FloatArray
    linear: FloatArray  # (R, K)
    quadratic: FloatArray
    square: FloatArray


#: Panels up to which a table is worth it.
_PANELS = 10_000
#: Points up to which none is.
_FEW = 48
#: Rounding of symmetric nodes, relative to the largest.
_SAME = 1e-14
#: Nodes on each axis of z by how many there are, and values of the teacher at a time.
_HIDDEN = {2: 32, 3: 16}
_AT_ONCE = 1 << 20


def left_of(cosines: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What directions with cosines Γ (R, r) leave of R others: L = (I − ΓΓᵀ)^{1/2}, its inverse.

    Coordinates on the R are Γk + Lz. Where nothing is left, the inverse has nothing either.
    """
    if len(cosines) == 1:
        left = math.sqrt(max(1.0 - float(cosines[0] @ cosines[0]), 0.0))
        return np.array([[left]]), np.array([[1.0 / left if left > 1e-12 else 0.0]])
    values, vectors = np.linalg.eigh(np.eye(len(cosines)) - cosines @ cosines.T)
    root = np.sqrt(np.maximum(values, 0.0))
    some = root > 1e-12
    inverse = np.where(some, 1.0 / np.where(some, root, 1.0), 0.0)
    return (vectors * root) @ vectors.T, (vectors * inverse) @ vectors.T


def teacher_given(teacher: Teacher, along: FloatArray, beside: FloatArray) -> Wanted:
    """The teacher at u = along + beside · z, along (R, K) and beside (R, R)."""
    if isinstance(teacher, SingleIndex):
        return _link_given(teacher.link, tuple(along[0].tolist()), float(beside[0, 0]))
    whole = not along.any() and bool(np.all(beside == np.eye(len(beside))))
    if whole:  # no spike knows of the teacher: its own quadrature is split at its kinks
        rule, points = teacher_rule(teacher), along[:, :1]
    else:
        rule, points = coordinate_rule(len(beside), nodes=_HIDDEN[len(beside)]), along
    z = rule.nodes
    bent = ((z * z).sum(axis=1) - len(beside)) / 2
    functions = np.concatenate([np.ones((1, len(z))), z.T, bent[None]]) * rule.weights
    parts = []
    for some in np.array_split(points, -(-points.shape[1] * len(z) // _AT_ONCE) or 1, axis=1):
        values = np.asarray(teacher(some.T[:, None] + z @ beside.T), dtype=float)
        parts.append(np.concatenate([functions @ values.T, [values**2 @ rule.weights]]))
    found = np.concatenate(parts, axis=1)
    if whole:
        found = np.repeat(found, along.shape[1], axis=1)
    return Wanted(found[0], found[1:-2], found[-2], found[-1])


@lru_cache(maxsize=256)
def _link_given(link: Function, mean: tuple[float, ...], std: float) -> Wanted:
    """One direction: the same for all rates of a step."""
    found = _moments(link, np.array([mean]), np.array([[std]]))[:4, 0]
    return Wanted(found[0], found[1:2], found[2], found[3])


def smoothed_by_symmetry(function: Function, mean: FloatArray, std: FloatArray) -> Smoothed:
    """``smoothed`` at means (T, K) and standard deviations (T, 1), equal rows once.

    Odd and even functions are folded. Many points are interpolated: a table of Chebyshev panels is
    exact to rounding.
    """
    parity = moments(function)
    folded = parity.is_odd or parity.is_even
    # Where nodes are symmetric, half of them have all values.
    half, mirrored = -(-mean.shape[1] // 2), False
    if folded:
        apart = np.abs(mean[:, :half] + mean[:, : -half - 1 : -1]).max(initial=0.0)
        mirrored = bool(apart <= _SAME * np.abs(mean).max(initial=0.0))
    seen = mean[:, :half] if mirrored else mean
    seen = np.abs(seen) if folded else seen
    if len(seen) == 1:
        values = _moments(function, seen, std)
    else:
        rows = np.concatenate([seen, std], axis=1)
        place: dict[bytes, int] = {}
        index = [place.setdefault(row.tobytes(), len(place)) for row in rows]
        if len(place) < len(rows):
            rows = rows[np.unique(index, return_index=True)[1]]
        values = _moments(function, rows[:, :-1], rows[:, -1:])
        if len(place) < len(index):
            values = values[:, index]
    if mirrored:
        values = np.concatenate([values, values[..., mean.shape[1] - half - 1 :: -1]], axis=-1)
    sign = np.where(mean < 0, -1.0, 1.0) if folded else 1.0
    outer, inner = (sign, 1.0) if parity.is_odd else (1.0, sign)
    return Smoothed(
        mean=values[0] * outer,
        linear=values[1] * inner,
        quadratic=values[2] * outer,
        second_moment=values[3],
        residual_variance=values[4],
        std=std,
    )


def _moments(function: Function, mean: FloatArray, std: FloatArray) -> FloatArray:
    """The five moments, (5, R, K), at means (R, K) and standard deviations (R, 1)."""
    if not np.all(std > 0):
        return _stacked(smoothed(function, mean, std))
    if mean.size <= _FEW:
        few = smoothed_around(function, mean.ravel(), np.repeat(std, mean.shape[1]), 1)
        return (
            _stacked(smoothed(function, mean, std)) if few is None else few.reshape(5, *mean.shape)
        )
    if mean.shape[1] <= len(table_nodes()):
        return _stacked(smoothed(function, mean, std))
    scaled = mean / std
    panel = np.floor(0.5 * scaled)
    local = scaled - 2 * panel - 1
    if np.ptp(panel) > _PANELS:
        return _stacked(smoothed(function, mean, std))
    first, span = int(panel.min()), int(np.ptp(panel)) + 1
    owned = (panel.astype(int) - first + span * np.arange(len(mean))[:, None]).ravel()
    there = np.bincount(owned) > 0
    present, which = np.flatnonzero(there), (np.cumsum(there) - 1)[owned]
    scale = std[present // span]
    centre = scale * (2 * (present % span + first)[:, None] + 1)
    values = smoothed_around(function, centre[:, 0], scale[:, 0])
    if values is None:
        if len(table_nodes()) * len(present) >= mean.size:
            return _stacked(smoothed(function, mean, std))
        values = _stacked(smoothed(function, centre + scale * table_nodes(), scale))
    found = _interpolated(values.swapaxes(0, 1), which, local.ravel())
    return found.reshape(-1, *mean.shape)


def _interpolated(values: FloatArray, which: Array, local: FloatArray) -> FloatArray:
    """Moments (5, points) at places in panels from those at their nodes, (P, 5, nodes)."""
    series = values @ _to_coefficients().T
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(1, len(series)))
    powers = np.polynomial.chebyshev.chebvander(local[order], series.shape[2] - 1).T
    parts = zip(series, np.split(powers, ends, axis=1), strict=True)
    found = np.empty((series.shape[1], len(local)))
    found[:, order] = np.concatenate([one @ some for one, some in parts], axis=1)
    found[3:] = np.maximum(found[3:], 0.0)
    return found


def _stacked(found: Smoothed) -> FloatArray:
    return np.stack(
        [
            found.mean,
            found.linear,
            found.quadratic,
            found.second_moment,
            found.residual_variance,
        ]
    )


@lru_cache(maxsize=1)
def _to_coefficients() -> FloatArray:
    """The matrix from values at Chebyshev nodes to coefficients."""
    nodes = table_nodes()
    transform = 2.0 / len(nodes) * np.polynomial.chebyshev.chebvander(nodes, len(nodes) - 1).T
    transform[0] /= 2
    return np.asarray(transform)
