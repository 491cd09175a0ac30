"""Functions of the spike coordinates: what types of neurons and the teacher make of them (§5c)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from giantsteps.functions import Function, SingleIndex, Teacher
from giantsteps.gaussian import Smoothed, coordinate_rule, moments, smoothed
from giantsteps.types import Array, FloatArray


@dataclass(frozen=True, eq=False)
class Wanted:
    """The teacher given the spike coordinates at K points: h, h₁ = E[z f*], ½E[(|z|²−E)f*] and
    E f*².
    """

    mean: FloatArray
    linear: FloatArray  # (E, K)
    quadratic: FloatArray
    square: FloatArray


#: Nodes on each axis of z by how many there are, and values of the teacher at a time.
HIDDEN = {2: 32, 3: 16}
_AT_ONCE = 1 << 20


def left_of_teacher(overlap: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What spikes with cosines Γ (R, r) leave of the teacher: L = (I − ΓΓᵀ)^{1/2}, and its inverse.

    u = Γk + Lz. Of directions that the spikes leave nothing of, the inverse leaves nothing either.
    """
    values, vectors = np.linalg.eigh(np.eye(len(overlap)) - overlap @ overlap.T)
    root = np.sqrt(np.maximum(values, 0.0))
    some = root > 1e-12
    inverse = np.where(some, 1.0 / np.where(some, root, 1.0), 0.0)
    return (vectors * root) @ vectors.T, (vectors * inverse) @ vectors.T


def teacher_given(teacher: Teacher, along: FloatArray, beside: FloatArray) -> Wanted:
    """The teacher at u = along + beside · z, along (R, K) and beside (R, E), E = R."""
    if isinstance(teacher, SingleIndex):
        return _link_given(teacher.link, tuple(along[0].tolist()), float(beside[0, 0]))
    rule = coordinate_rule(len(beside), nodes=HIDDEN[len(beside)])
    z = rule.nodes
    bent = ((z * z).sum(axis=1) - len(beside)) / 2
    functions = np.concatenate([np.ones((1, len(z))), z.T, bent[None]]) * rule.weights
    parts = []
    for some in np.array_split(along, -(-along.shape[1] * len(z) // _AT_ONCE) or 1, axis=1):
        values = np.asarray(teacher(some.T[:, None] + z @ beside.T), dtype=float)
        parts.append(np.concatenate([functions @ values.T, [values**2 @ rule.weights]]))
    found = np.concatenate(parts, axis=1)
    return Wanted(found[0], found[1:-2], found[-2], found[-1])


@lru_cache(maxsize=256)
def _link_given(link: Function, mean: tuple[float, ...], std: float) -> Wanted:
    """One direction: the same for all rates of a step."""
    found = smoothed(link, np.array(mean), std)
    return Wanted(found.mean, found.linear[None], found.quadratic, found.second_moment)


#: Nodes of a panel of width 2s: Gaussian smoothing on the scale s leaves nothing finer.
_ORDER = 20


def smoothed_by_symmetry(function: Function, mean: FloatArray, std: FloatArray) -> Smoothed:
    """``smoothed`` at means (T, K) and standard deviations (T, 1), equal rows once.

    Odd and even functions are folded. Rows with many points are interpolated: a table of Chebyshev
    panels is exact to rounding.
    """
    parity = moments(function)
    folded = parity.is_odd or parity.is_even
    rows, index = _distinct(np.abs(mean) if folded else mean, std[:, 0])
    table = np.stack(_rows(function, rows), axis=1)  # (5, rows, K)
    sign = np.where(mean < 0, -1.0, 1.0) if folded else 1.0
    outer, inner = (sign, 1.0) if parity.is_odd else (1.0, sign)
    values = table[:, index]
    return Smoothed(
        mean=values[0] * outer,
        linear=values[1] * inner,
        quadratic=values[2] * outer,
        second_moment=values[3],
        residual_variance=values[4],
        std=np.broadcast_to(std, mean.shape),
    )


def _distinct(
    mean: FloatArray, std: FloatArray
) -> tuple[list[tuple[FloatArray, float]], list[int]]:
    """Rows (means, standard deviation) that differ, and which of them each row is."""
    place: dict[bytes, int] = {}
    rows: list[tuple[FloatArray, float]] = []
    index: list[int] = []
    for m, s in zip(mean, std):
        key = np.append(m, s).tobytes()
        if key not in place:
            place[key] = len(rows)
            rows.append((m, float(s)))
        index.append(place[key])
    return rows, index


def _rows(function: Function, rows: list[tuple[FloatArray, float]]) -> list[FloatArray]:
    """The five moments of each row, means (K,) and one standard deviation: (5, K)."""
    tables = [_Table.of(mean, std) for mean, std in rows]
    wanted = [mean if table is None else table.points for table, (mean, _) in zip(tables, rows)]
    stds = np.repeat([std for _, std in rows], [len(points) for points in wanted])
    # All rows in one call: it does not let them see each other.
    found = _stacked(smoothed(function, np.concatenate(wanted), stds))
    parts = np.split(found, np.cumsum([len(points) for points in wanted])[:-1], axis=1)
    return [
        part if table is None else table.interpolate(part) for table, part in zip(tables, parts)
    ]


@dataclass(frozen=True, eq=False)
class _Table:
    """Chebyshev panels of width 2s, and where the means of a row are in them."""

    points: FloatArray  # flat
    which: Array
    local: FloatArray

    @classmethod
    def of(cls, mean: FloatArray, std: float) -> _Table | None:
        """The table of a row, unless it has so few means that none is worth it."""
        if not std > 0 or len(mean) <= _ORDER:
            return None
        panel = np.floor(mean / (2 * std))
        present, which = np.unique(panel, return_inverse=True)
        if _ORDER * len(present) >= len(mean):
            return None
        middle = (2 * present + 1) * std
        points = (middle[:, None] + std * _chebyshev()[0]).ravel()
        return cls(points, which, mean / std - 2 * panel - 1)

    def interpolate(self, values: FloatArray) -> FloatArray:
        """Moments (5, K) at the means from those at the points."""
        series = values.reshape(5, -1, _ORDER) @ _chebyshev()[1].T  # (5, panels, order)
        powers = np.polynomial.chebyshev.chebvander(self.local, _ORDER - 1)
        moved = np.einsum("kj,pkj->pk", powers, series[:, self.which])
        moved[3:] = np.maximum(moved[3:], 0.0)
        return moved


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
def _chebyshev() -> tuple[FloatArray, FloatArray]:
    """Nodes on [−1, 1], and the matrix from values there to coefficients."""
    angle = (np.arange(_ORDER) + 0.5) * np.pi / _ORDER
    transform = 2.0 / _ORDER * np.cos(np.outer(np.arange(_ORDER), angle))
    transform[0] /= 2
    return np.cos(angle), transform
