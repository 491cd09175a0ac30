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

__all__ = ["NumericalDerivative", "numerical_derivative", "scan"]

Value = Callable[[Any, Any], Any]  # value(xp, x)
POINTS = 9


@dataclass(frozen=True)
class NumericalDerivative:
    """f'(x) ≈ h⁻¹ Σ_j L_j'((x − s)/h) f(s + j h), j = 0..8, L_j Lagrange's polynomials.

    The nine points s, ..., s + 8h surround x, and move aside (x off their centre) or together
    (h smaller) where they would straddle a breakpoint.  At a breakpoint: the slope to its right.

    Parameters
    ----------
    value : callable
        ``value(xp, x)``.
    breaks : tuple of float
        The breakpoints of f, sorted.
    step : float
        h away from breakpoints.
    """

    value: Value
    breaks: tuple[float, ...]
    step: float

    def __call__(self, xp: Any, x: Any) -> Any:
        dtype = x.dtype
        x = xp.astype(x, xp.float64, copy=False)
        if self.breaks:
            left, right = xp.full_like(x, -np.inf), xp.full_like(x, np.inf)
            for point in self.breaks:
                left = xp.where(x >= point, point, left)
            for point in reversed(self.breaks):
                right = xp.where(x < point, point, right)
            h = xp.minimum((right - left) / (POINTS - 1), self.step)
            start = xp.maximum(x - (POINTS // 2) * h, left)
            start = xp.minimum(start, right - (POINTS - 1) * h)
            place = (x - start) / h
        else:
            h, start, place = self.step, x - (POINTS // 2) * self.step, POINTS / 2 - 0.5
        total = 0.0
        for j, weight in enumerate(_lagrange_slopes()):
            total = total + weight(place) * self.value(xp, start + j * h)
        return xp.astype(total / h, dtype, copy=False)


@cache
def _lagrange_slopes() -> tuple[Polynomial, ...]:
    """L_j' for the nodes 0..8, as polynomials."""
    slopes = []
    for j in range(POINTS):
        others = [k for k in range(POINTS) if k != j]
        polynomial = Polynomial.fromroots(others)
        slopes.append((polynomial / polynomial(float(j))).deriv())
    return tuple(slopes)


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


def scan(value: Value, known: Sequence[float] = ()) -> tuple[float, ...]:
    """The points of [-16, 16] where a piecewise smooth callable is not smooth.

    Parameters
    ----------
    value : callable
        ``value(xp, x)``.
    known : sequence of float
        Points that need not be found.

    Raises
    ------
    InvalidProblem
        When the callable is rough everywhere, or breaks at too many places to tell apart.
    """

    def f(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(value(np, x), dtype=float)

    ends = np.sort(np.concatenate([LOWER + CELL * np.arange(CELLS + 1), known]))
    size = float(np.nanmax(np.abs(f(np.linspace(-4.03, 4.01, 161)))))
    cells = np.stack([ends[:-1], ends[1:]], axis=1)
    for depth in (6, 4, 4):
        for _ in range(depth):
            cells = _halved(_unresolved(f, cells, size))
        cells = _unresolved(f, cells, size)
        clusters = _clusters(cells)
        if len(clusters) > 64:
            break
        if all(count <= 2 for _, _, count in clusters):
            found = [_locate(f, a, b) for a, b, _ in clusters]
            return tuple(float(x) for x in found if all(abs(x - k) > 1e-9 for k in known))
    raise InvalidProblem(
        "kinks",
        None,
        f"given, together with jumps: the callable is not smooth in {len(clusters)} places, "
        f"the first of them near x = {clusters[0][0]:.6g}",
    )


def _unresolved(
    f: Callable[[np.ndarray], np.ndarray], cells: np.ndarray, size: float
) -> np.ndarray:
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


def _locate(f: Callable[[np.ndarray], np.ndarray], a: float, b: float) -> float:
    """The point of (a, b) where f goes over from its left continuation to its right one."""
    for _ in range(2):
        reach = 0.05
        left = Chebyshev.fit(x := a - reach * (1 + NODES) / 2, f(x), 12)
        right = Chebyshev.fit(x := b + reach * (1 + NODES) / 2, f(x), 12)
        while a < (middle := 0.5 * (a + b)) < b:
            here = f(np.array([middle]))[0]
            if abs(here - left(middle)) <= abs(here - right(middle)):
                a = middle
            else:
                b = middle
        point = b
        a, b = point - 1e-5, point + 1e-5
    return point
