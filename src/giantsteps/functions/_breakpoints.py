"""Where a tree is not smooth: the roots of the arguments of its non-smooth atoms.

An atom such as abs breaks where its argument u(x) crosses 0, max(u, v) where u − v does, a quotient
where its denominator does.  Between its own breakpoints u is analytic, so its roots are found from
the sign changes of u and u' on a grid that is refined until their number no longer changes: u is
monotone between the roots of u', and a root without a change of sign is a root of u' as well.
Brackets are closed by bisection to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from ..errors import InvalidProblem
from ._calculus import differentiate, expand
from ._expression import parse_atom
from ._polynomial import with_simple_roots
from ._tree import ADD, DIV, POW, SUB, Call, Const, Node, postorder, substitute

__all__ = ["Edges"]

Values = Callable[[np.ndarray], np.ndarray]

GRID_STEP = 1 / 64
GRID_GROWTH = 1.618  # irrational, so that no oscillation is in step with two grids
MAX_GRID = 1 << 20
ROUNDING = 4 * np.finfo(float).eps
MERGE = 1e-14


class Edges:
    """The breakpoints of a tree on an interval, and which of them may be jumps.

    Parameters
    ----------
    root : Node
        The tree.
    lower, upper : float
        The interval.
    values : callable
        ``values(tree)`` is a vectorised function of a NumPy array.
    """

    def __init__(
        self, root: Node, lower: float, upper: float, values: Callable[[Node], Values]
    ) -> None:
        self.lower, self.upper, self.values = lower, upper, cache(values)
        self._known: dict[Node, tuple[np.ndarray, np.ndarray]] = {}
        self.breakpoints, self.suspects = self._of(root)

    def _of(self, root: Node) -> tuple[np.ndarray, np.ndarray]:
        """Breakpoints of a tree, and the subset where it may jump."""
        for node in postorder(root):
            if node in self._known:
                continue
            points, suspects = [np.empty(0)], [np.empty(0)]
            if isinstance(node, Call):
                if node.atom.definition is not None:
                    self._known[node] = self._of(expand(node))
                    continue
                for arg in node.args:
                    points.append(self._known[arg][0])
                    suspects.append(self._known[arg][1])
                for edge, level, jump in _edges(node):
                    found = self._roots(edge, level)
                    points.append(found)
                    suspects.extend([found] * jump)
            self._known[node] = (_merged(points), _merged(suspects))
        return self._known[root]

    def _roots(self, edge: Node, level: float) -> np.ndarray:
        """Every x in the interval with edge(x) = level."""
        if isinstance(edge, Const):
            return np.empty(0)
        slope = differentiate(edge)
        breaks = self._of(edge)[0]
        u = self.values(edge)
        if isinstance(slope, Const) and breaks.size == 0:
            if slope.value == 0.0:
                return np.empty(0)
            start = float(u(np.zeros(1))[0])
            root = (level - start) / slope.value
            return np.array([root]) if self.lower <= root <= self.upper else np.empty(0)

        def gap(x: np.ndarray) -> np.ndarray:
            return u(x) - level

        reduced = with_simple_roots(edge, level)
        if reduced is not None:
            return _piece_roots(_Sides(reduced), _Sides(reduced.deriv()), self.lower, self.upper)
        sides = _Sides(gap, self._magnitude(edge, level))
        slopes = _Sides(self.values(slope), self._magnitude(slope, 0.0))
        ends = np.concatenate([[self.lower], breaks, [self.upper]])
        found = [_piece_roots(sides, slopes, a, b) for a, b in pairwise(ends)]
        found.append(_touching(gap, breaks, GRID_STEP, self.lower, self.upper))
        return np.concatenate(found)

    def _magnitude(self, edge: Node, level: float) -> Values:
        """The size of what cancels in edge − level; differences below its rounding are zero."""
        terms = [edge]
        if isinstance(edge, Call) and edge.atom in (ADD, SUB):
            terms = list(edge.args)
        parts = [self.values(term) for term in terms if not isinstance(term, Const)]
        constant = abs(level) + sum(abs(t.value) for t in terms if isinstance(t, Const))
        return lambda x: constant + sum((np.abs(part(x)) for part in parts), np.zeros_like(x))


@dataclass(frozen=True)
class _Sides:
    """A function u whose sign is asked for; u is zero where it is below the rounding of size."""

    u: Values
    size: Values = np.abs

    def signs(self, x: np.ndarray) -> np.ndarray:
        values = np.nan_to_num(self.u(x))
        return np.where(np.abs(values) <= ROUNDING * self.size(x), 0.0, np.sign(values))


def _edges(node: Call) -> list[tuple[Node, float, bool]]:
    """What must cross which level for this call to break, and whether it may jump there."""
    atom, args = node.atom, node.args
    if atom == DIV:
        return [(args[1], 0.0, True)]
    if atom == POW:
        base, exponent = args
        if not isinstance(exponent, Const):
            return [(base, 0.0, True)]
        whole = exponent.value == int(exponent.value)
        return [] if whole and exponent.value >= 0 else [(base, 0.0, exponent.value < 0)]
    if not atom.kinks and not atom.jumps:
        return []
    edge = substitute(parse_atom(atom.edge, atom.variables), dict(zip(atom.variables, args)))
    kinks = [(edge, level, False) for level in atom.kinks]
    return kinks + [(edge, level, True) for level in atom.jumps]


def _piece_roots(sides: _Sides, slopes: _Sides, a: float, b: float) -> np.ndarray:
    """The isolated roots of u in [a, b], where u is analytic inside; slopes belong to u'."""
    if b <= a:
        return np.empty(0)
    count = max(65, int((b - a) / GRID_STEP))
    crossings, turns = -1, -1
    while True:
        x, spacing = np.linspace(a, b, count, retstep=True)
        levels = sides.signs(x)
        if not levels.any():
            return np.empty(0)  # zero throughout
        before, crossings = (crossings, turns), _changes(levels)
        turns = _changes(slopes.signs(x))
        last = count * GRID_GROWTH > MAX_GRID
        # slopes that never settle are rounding; levels that do not are oscillations
        if before == (crossings, turns) or (last and before[0] == crossings):
            corners = _crossings(slopes.u, x, slopes.signs(x), spacing)
            x = np.unique(np.concatenate([x, corners]))
            roots = _crossings(sides.u, x, sides.signs(x), spacing)
            return np.concatenate([roots, _touching(sides.u, corners, spacing, a, b)])
        if last:
            break
        count = int(count * GRID_GROWTH)
    raise InvalidProblem(
        "expression",
        f"{crossings} oscillations in [{a:g}, {b:g}]",
        "slow enough that its kinks and jumps can be told apart",
    )


def _changes(signs: np.ndarray) -> int:
    return int(np.count_nonzero(signs[1:] != signs[:-1]))


def _crossings(u: Values, x: np.ndarray, signs: np.ndarray, spacing: float) -> np.ndarray:
    """Roots between grid points of opposite sign, and at short runs of zeros between others."""
    solid = np.flatnonzero(signs)
    left, right = solid[:-1], solid[1:]
    isolated = x[right] - x[left] < 2.5 * spacing
    opposite = signs[left] * signs[right] < 0
    bracket = isolated & opposite
    lower, upper, below = x[left[bracket]], x[right[bracket]], signs[left[bracket]]
    for _ in range(100):
        middle = 0.5 * (lower + upper)
        if not np.any((lower < middle) & (middle < upper)):
            break
        keep = np.sign(u(middle)) * below > 0
        lower, upper = np.where(keep, middle, lower), np.where(keep, upper, middle)
    touched = isolated & ~opposite & (right - left > 1)
    return np.concatenate([upper, x[(left + right)[touched] // 2]])


def _touching(u: Values, points: np.ndarray, spacing: float, a: float, b: float) -> np.ndarray:
    """Those of the given points (turning points, breakpoints) where u is zero but not beside."""
    beside = np.fmax(
        np.abs(u(np.maximum(points - spacing, a))), np.abs(u(np.minimum(points + spacing, b)))
    )
    return points[(np.abs(u(points)) <= 1e-12 * beside) & (beside > 0)]


def _merged(parts: list[np.ndarray]) -> np.ndarray:
    """Sorted, with points that differ by rounding listed once."""
    points = np.sort(np.concatenate(parts))
    if points.size < 2:
        return points
    gap = np.diff(points) > MERGE * np.maximum(1.0, np.abs(points[1:]))
    return points[np.concatenate([[True], gap])]
