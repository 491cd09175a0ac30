"""What can be learnt about a callable by calling it: its derivative, and where it is not smooth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.chebyshev import Chebyshev, chebpts1, chebvander

from ..errors import InvalidProblem

Value = Callable[[Any, Any], Any]  # value(xp, x)
Values = Callable[[np.ndarray], np.ndarray]
SIDE = 4  # points on each side of a difference


@dataclass(frozen=True)
class NumericalDerivative:
    """f'(x) ≈ h⁻¹ Σ_j L_j'((x − m)/h) [f(m + j h) − f(m)], j = −4..4, L_j Lagrange's polynomials.

    The nine points surround x = m, and move aside (m away from x) or together (h smaller) where
    they would straddle a breakpoint.  At a breakpoint: the slope to its right.
    """

    value: Value  # ``value(xp, x)``
    breaks: tuple[float, ...]  # the breakpoints of f, sorted
    step: float  # h away from breakpoints

    def __call__(self, xp: Any, x: Any) -> Any:
        dtype = x.dtype
        x = xp.astype(x, xp.float64, copy=False)
        if self.breaks:
            left, right = xp.full_like(x, -np.inf), xp.full_like(x, np.inf)
            for point in self.breaks:
                left = xp.where(x >= point, point, left)
            for point in reversed(self.breaks):
                right = xp.where(x < point, point, right)
            h = xp.minimum((right - left) / (2 * SIDE), self.step)
            middle = xp.minimum(xp.maximum(x, left + SIDE * h), right - SIDE * h)
            place = (x - middle) / h
        else:
            h, middle, place = self.step, x, 0.0
        centre = self.value(xp, middle)
        total = 0.0
        for j, slope in _lagrange_slopes().items():
            weight: Any = 0.0
            for coefficient in reversed(slope):
                weight = weight * place + coefficient
            total = total + weight * (self.value(xp, middle + j * h) - centre)
        return xp.astype(total / h, dtype, copy=False)


@cache
def _lagrange_slopes() -> dict[int, list[float]]:
    """The coefficients of L_j' for the nodes −4..4; that of j = 0 is not needed."""
    nodes = range(-SIDE, SIDE + 1)
    slopes = {}
    for j in nodes:
        polynomial = Polynomial.fromroots([k for k in nodes if k != j])
        slopes[j] = (polynomial / polynomial(float(j))).deriv().coef.tolist()
    del slopes[0]
    return slopes


def numerical_derivative(value: Value, breaks: Sequence[float]) -> NumericalDerivative:
    """The numerical derivative with the step for which halving it changes least."""
    x = np.linspace(-4.03, 4.01, 161)
    points = tuple(sorted(breaks))
    candidates = [NumericalDerivative(value, points, 2.0**-k) for k in range(3, 15)]
    with np.errstate(all="ignore"):
        slopes = [candidate(np, x) for candidate in candidates]
        changes = [np.max(np.abs(b - a)) for a, b in pairwise(slopes)]
    return candidates[int(np.argmin(np.nan_to_num(changes, nan=np.inf)))]


# The cells of a scan: an edge at no simple number, where a kink would hide between two cells.
LOWER, CELL, CELLS = -16.0 - 0.0314159265, 0.25, 129
NODES = chebpts1(17)
TO_COEFFICIENTS = np.linalg.inv(chebvander(NODES, 16))
RESOLVED = 1e-12
MAX_ROUGH = 256  # cells that no halving resolves: two a breakpoint, if they are isolated


def scan(value: Value, known: Sequence[float] = ()) -> tuple[float, ...]:
    """The points of [-16, 16] where a piecewise smooth callable is not smooth.

    * ``value``: ``value(xp, x)``.
    * ``known``: points that need not be found.

    Raises
    ------
    InvalidProblem
        When the callable is rough everywhere, or breaks at too many places to tell apart.
    """

    def f(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(value(np, x), dtype=float)

    ends = np.sort(np.concatenate([LOWER + CELL * np.arange(CELLS + 1), known]))
    size = float(np.max(np.nan_to_num(np.abs(f(np.linspace(-4.03, 4.01, 161))))))
    cells = np.stack([ends[:-1], ends[1:]], axis=1)
    for depth in (6, 4, 4):
        for _ in range(depth):
            cells = _halved(_unresolved(f, cells, size))
        cells = _unresolved(f, cells, size)
        clusters = _clusters(cells)
        if len(cells) > MAX_ROUGH:
            break
        found = [_locate(f, a, b, r) for (a, b, _), r in zip(clusters, _reaches(clusters))]
        points = [x for x in found if x is not None]
        if len(points) == len(clusters):
            return tuple(x for x in points if all(abs(x - k) > 1e-9 for k in known))
    raise InvalidProblem(
        "kinks",
        None,
        "given, together with jumps: the callable has more, or worse, than isolated kinks and "
        f"jumps (the first near x = {clusters[0][0]:.6g})",
    )


def _unresolved(f: Values, cells: np.ndarray, size: float) -> np.ndarray:
    """The cells on which a polynomial of degree 16 does not represent f."""
    half, middle = np.diff(cells, axis=1) / 2, cells.mean(axis=1, keepdims=True)
    values = f((middle + half * NODES).ravel()).reshape(-1, NODES.size)
    tail = np.abs(values @ TO_COEFFICIENTS.T[:, -4:]).max(axis=1)
    return cells[tail > RESOLVED * np.abs(values).max(axis=1) + 1e-15 * size]


def _halved(cells: np.ndarray) -> np.ndarray:
    middle = cells.mean(axis=1)
    return np.stack([cells[:, 0], middle, middle, cells[:, 1]], axis=1).reshape(-1, 2)


def _clusters(cells: np.ndarray) -> list[tuple[float, float, int]]:
    """Runs of adjacent cells: (lower end, upper end, number of cells)."""
    runs: list[tuple[float, float, int]] = []
    for a, b in cells.tolist():
        if runs and a - runs[-1][1] < 1e-9:
            runs[-1] = (runs[-1][0], b, runs[-1][2] + 1)
        else:
            runs.append((a, b, 1))
    return runs


def _reaches(clusters: list[tuple[float, float, int]]) -> list[tuple[float, float]]:
    """How far f is smooth to the left and to the right of each cluster, at most 0.05."""
    gaps = [min(0.05, b[0] - a[1]) for a, b in pairwise(clusters)]
    return list(zip([0.05, *gaps], [*gaps, 0.05]))


def _locate(f: Values, a: float, b: float, reach: tuple[float, float]) -> float | None:
    """The point of (a, b) where f goes over from its left continuation to its right one.

    None when the two do not make up f: it breaks twice here, or more badly than by a jump or kink.
    """
    left, right = _continued(f, a, -reach[0]), _continued(f, b, reach[1])
    point = _takeover(f, left, right, a, b)
    x = np.linspace(a, b, 33)
    x = x[np.abs(x - point) > 1e-9]
    wrong = np.abs(f(x) - np.where(x < point, left(x), right(x)))
    if not np.all(wrong <= 1e-8 * np.max(np.abs(f(x)))):
        return None
    # Once more from closer by, where continuing loses no digits.
    a, b = point - min(1e-5, reach[0] / 4), point + min(1e-5, reach[1] / 4)
    return _takeover(f, _continued(f, a, -reach[0]), _continued(f, b, reach[1]), a, b)


def _takeover(f: Values, left: Chebyshev, right: Chebyshev, a: float, b: float) -> float:
    """Bisection: f is closer to left below the point, and to right above it."""
    while a < (middle := 0.5 * (a + b)) < b:
        here = f(np.array([middle]))[0]
        if abs(here - left(middle)) <= abs(here - right(middle)):
            a = middle
        else:
            b = middle
    return b


def _continued(f: Values, end: float, reach: float) -> Chebyshev:
    """The polynomial that represents f on the interval from end to end + reach."""
    x = end + reach * (1 + NODES) / 2
    return Chebyshev.fit(x, f(x), 12)
