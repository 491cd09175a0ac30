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

import numpy as np

from ..errors import InvalidProblem
from ._calculus import differentiate, expand
from ._expression import parse_atom
from ._polynomial import with_simple_roots
from ._tree import ADD, DIV, POW, SUB, Call, Const, Node, postorder, substitute

Values = Callable[[np.ndarray], np.ndarray]

GRID_STEP = 1 / 64
COARSEST = 1 << 15  # points, however long the interval
GRID_GROWTH = 1.618  # irrational, so that no oscillation is in step with two grids
MAX_GRID = 1 << 19
ROUNDING = 4 * np.finfo(float).eps
MERGE = 1e-14
MAX_WORK = 200_000_000  # numbers computed, about a second
INSIDE = 1e-13  # how closely the ends of a piece are approached; on them the other side is seen


class Edges:
    """The breakpoints of a tree on an interval, and which of them may be jumps.

    * ``root``: the tree.
    * ``lower``, ``upper``: the interval.
    * ``values``: ``values(tree)`` is a vectorised function of a NumPy array.
    """

    def __init__(
        self, root: Node, lower: float, upper: float, values: Callable[[Node], Values]
    ) -> None:
        self.lower, self.upper = lower, upper
        self._functions, self._work = cache(values), 0
        self._known: dict[Node, tuple[np.ndarray, np.ndarray]] = {}
        self.breakpoints, self.suspects = self._of(root)

    def values(self, tree: Node) -> Values:
        """The function of a tree, which counts what it computes.

        Raises
        ------
        InvalidProblem
            When called, once all breakpoints have cost more than `MAX_WORK` operations.
        """
        function, size = self._functions(tree), sum(1 for _ in postorder(tree))

        def counted(x: np.ndarray) -> np.ndarray:
            self._work += size * x.size
            if self._work > MAX_WORK:
                raise InvalidProblem(
                    "expression",
                    f"{self._work:.0e} operations to find its kinks, jumps and poles",
                    "simpler: nest fewer functions that have them",
                )
            return function(x)

        return counted

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

        ends = np.concatenate([[self.lower], breaks, [self.upper]])
        reduced = with_simple_roots(edge, level)
        if reduced is not None:
            return _roots_between(_Sides(reduced), _Sides(reduced.deriv()), ends)
        sides = _Sides(gap, self._magnitude(edge, level))
        slopes = _Sides(self.values(slope), self._magnitude(slope, 0.0))
        known = _touching(gap, breaks, np.full_like(breaks, GRID_STEP))
        return np.concatenate([_roots_between(sides, slopes, ends), known])

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


def _roots_between(sides: _Sides, slopes: _Sides, ends: np.ndarray) -> np.ndarray:
    """The isolated roots of u, analytic between consecutive ends; slopes belong to u'."""
    fineness, crossings, turns = 1.0, -1, -1
    while True:
        grid = _Grid.between(ends, fineness)
        before, crossings = (crossings, turns), grid.changes(sides)
        turns = grid.changes(slopes)
        last = grid.x.size * GRID_GROWTH > MAX_GRID
        # slopes that never settle are rounding; levels that do not are oscillations
        if before == (crossings, turns) or (last and before[0] == crossings):
            corners, spacing = grid.roots(slopes)
            roots, _ = grid.with_points(corners, spacing).roots(sides)
            return np.concatenate([roots, _touching(sides.u, corners, spacing)])
        if last:
            break
        fineness *= GRID_GROWTH
    raise InvalidProblem(
        "expression",
        f"{crossings} oscillations in [{ends[0]:g}, {ends[-1]:g}]",
        "slow enough that its kinks and jumps can be told apart",
    )


@dataclass(frozen=True)
class _Grid:
    """Points between ends, sorted, with the number of their piece and its spacing."""

    x: np.ndarray
    piece: np.ndarray
    spacing: np.ndarray

    @classmethod
    def between(cls, ends: np.ndarray, fineness: float) -> _Grid:
        """Equally spaced points in each piece, whose ends are approached from inside."""
        lower, upper = ends[:-1], ends[1:]
        inside = np.minimum(INSIDE * np.maximum(1.0, np.abs(ends).max()), (upper - lower) / 8)
        lower, upper = lower + inside, upper - inside
        step = max(GRID_STEP, (ends[-1] - ends[0]) / COARSEST)
        counts = (fineness * np.maximum(8, (upper - lower) / step)).astype(int) + 1
        piece = np.repeat(np.arange(counts.size), counts)
        place = np.arange(piece.size) - np.repeat(np.cumsum(counts) - counts, counts)
        spacing = ((upper - lower) / (counts - 1))[piece]
        return cls(np.minimum(lower[piece] + spacing * place, upper[piece]), piece, spacing)

    def with_points(self, x: np.ndarray, spacing: np.ndarray) -> _Grid:
        """This grid and further points, which lie between its own."""
        position = np.searchsorted(self.x, x)
        piece = self.piece[np.minimum(position, self.x.size - 1)]
        return _Grid(
            np.insert(self.x, position, x),
            np.insert(self.piece, position, piece),
            np.insert(self.spacing, position, spacing),
        )

    def changes(self, sides: _Sides) -> int:
        """How often the sign changes inside a piece."""
        signs = sides.signs(self.x)
        return int(
            np.count_nonzero((signs[1:] != signs[:-1]) & (self.piece[1:] == self.piece[:-1]))
        )

    def roots(self, sides: _Sides) -> tuple[np.ndarray, np.ndarray]:
        """Roots between points of opposite sign, and at short runs of zeros between others.

        Returns the roots and the spacing of the grid around them.
        """
        signs = sides.signs(self.x)
        solid = np.flatnonzero(signs)
        left, right = solid[:-1], solid[1:]
        near = self.x[right] - self.x[left] < 2.5 * self.spacing[left]
        near &= self.piece[left] == self.piece[right]
        opposite = signs[left] * signs[right] < 0
        start, stop = left[near & opposite], right[near & opposite]
        lower, upper, below = self.x[start], self.x[stop], signs[start]
        for _ in range(100):
            middle = 0.5 * (lower + upper)
            if not np.any((lower < middle) & (middle < upper)):
                break
            keep = np.sign(sides.u(middle)) * below > 0
            lower, upper = np.where(keep, middle, lower), np.where(keep, upper, middle)
        touched = ((left + right) // 2)[near & ~opposite & (right - left > 1)]
        places = np.concatenate([start, touched])
        found = np.concatenate([upper, self.x[touched]])
        order = np.argsort(found)
        return found[order], self.spacing[places][order]


def _touching(u: Values, points: np.ndarray, spacing: np.ndarray) -> np.ndarray:
    """Those of the given points (turning points, breakpoints) where u is zero but not beside."""
    beside = np.fmax(np.abs(u(points - spacing)), np.abs(u(points + spacing)))
    return points[(np.abs(u(points)) <= 1e-12 * beside) & (beside > 0)]


def _merged(parts: list[np.ndarray]) -> np.ndarray:
    """Sorted, with points that differ by rounding listed once."""
    points = np.sort(np.concatenate(parts))
    if points.size < 2:
        return points
    gap = np.diff(points) > MERGE * np.maximum(1.0, np.abs(points[1:]))
    return points[np.concatenate([[True], gap])]
