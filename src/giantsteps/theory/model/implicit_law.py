"""A law that is known through its Stieltjes transform in the upper half-plane (theory §5d)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray

from giantsteps.errors import NotConverged
from giantsteps.laws import Law
from giantsteps.theory.solver.fold import Branch, Descent, State, descend, follow_to_fold, settle
from giantsteps.types import Array, FloatArray

#: Points of the scan for intervals, more if some mass is missing.
_SCANS = (47, 141)
_LOWEST = 1e-5
#: Im z over x. Outside, imaginary parts are those of the first derivative times Im z; a point is
#: inside where they are this many times as large.
_HEIGHT, _INSIDE = 1e-5, 3.0
#: The first point above the bulk, over the mean; how often it is put further up, by how much.
_FAR, _UP, _FURTHER = 30.0, 12, 10.0
#: The last point of a scan below the largest edge.
_BELOW = 1e-4
_BISECTIONS = 30
#: How well an edge is known, and a residual that is good enough for a real solution.
_EDGE_TOLERANCE, _SOLVED = 1e-9, 1e-10
_SMALLEST, _LARGEST = 32, 128
_SERIES_TOLERANCE = 1e-7
#: Missing mass that calls for another scan, and that is not accepted.
_MISSED, _LOST = 2e-3, 0.02


class _Piece(NamedTuple):
    """Density on one interval: mass dθ = Σ c_j cos(jθ) dθ, x from lower to upper with θ."""

    lower: float
    upper: float
    logarithmic: bool
    series: NDArray

    @property
    def mass(self) -> float:
        return float(self.series[0]) * np.pi

    def angle(self, x: NDArray) -> NDArray:
        if self.logarithmic:
            x, lower, upper = np.log(x), np.log(self.lower), np.log(self.upper)
        else:
            lower, upper = self.lower, self.upper
        return np.arccos(np.clip((lower + upper - 2 * x) / (upper - lower), -1.0, 1.0))

    def point(self, angle: NDArray) -> NDArray:
        share = (1 - np.cos(angle)) / 2
        if self.logarithmic:
            return self.lower * (self.upper / self.lower) ** share
        return self.lower + (self.upper - self.lower) * share

    def slope(self, angle: NDArray) -> NDArray:
        """dx/dθ."""
        if self.logarithmic:
            return self.point(angle) * np.log(self.upper / self.lower) * np.sin(angle) / 2
        return (self.upper - self.lower) * np.sin(angle) / 2


class OutsideBranch(Branch, Protocol):
    """The equations of the transform at real points outside the support."""

    def above(self, z: Array) -> State:
        """The solution at z (E,) in the upper half-plane."""

    def far(self, x: FloatArray) -> State:
        """Close to the real solution at x (E,) far above the support."""


class ImplicitLaw(Law):
    r"""The law with Stieltjes transform m(z) = ∫ dμ/(x − z) on (0, ∞), and atoms.

    The density is Im m(x + i0)/π. Its intervals are found by a scan, finer if mass is missing; an
    edge is a fold of the real solutions outside (`giantsteps.theory.solver.fold`). On an interval
    the mass in the angle θ, x = lower + (upper − lower)(1 − cos θ)/2 (or the same in log x), is
    smooth at soft and hard edges alike and is kept as a cosine series.

    Parameters
    ----------
    transform : callable
        m at an array of complex z with Im z > 0.
    branch : OutsideBranch
        The same equations at real points outside the support.
    scale : float
        Mean of the continuous part: where to look for it.
    atoms : tuple of (location, mass)
    """

    def __init__(
        self,
        transform: Callable[[NDArray], NDArray],
        branch: OutsideBranch,
        scale: float,
        atoms: tuple[tuple[float, float], ...] = (),
    ) -> None:
        self._transform = transform
        self._branch = branch
        self._scale = float(scale)
        self._atoms = atoms

    def __repr__(self) -> str:
        shown = " ∪ ".join(f"[{low:.6g}, {high:.6g}]" for low, high in self.support)
        return f"ImplicitLaw({shown}, atoms={self.atoms})"

    @property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        return self._atoms

    @cached_property
    def support(self) -> tuple[tuple[float, float], ...]:
        return tuple((piece.lower, piece.upper) for piece in self._pieces)

    @property
    def masses(self) -> tuple[float, ...]:
        """Mass of each interval of the support."""
        return tuple(piece.mass for piece in self._pieces)

    @cached_property
    def edge(self) -> float:
        """Largest point of the support, found from above without the rest of it."""
        if np.isfinite(self._descent.edge):
            return self._descent.edge
        x = self._scale * np.geomspace(_LOWEST, self._descent.x[0] / self._scale, _SCANS[-1])
        last = np.flatnonzero(self._inside(x))[-1:]
        if not last.size or last[0] == len(x) - 1:
            raise self._no_support(float(last.size), len(x))
        return float(self._edges(x[last + 1], x[last])[0])

    @cached_property
    def _descent(self) -> Descent:
        """Real solutions from far above the bulk down to its edge."""
        x = np.array([self._scale * _FAR])
        for _ in range(_UP):
            with np.errstate(all="ignore"):
                state, gap = settle(self._branch, self._branch.far(x), x)
                slope = self._branch.parameter(self._branch.linearised(state, x)[1])
                # Far above, the parameter is a multiple of 1/x.
                good = (gap <= _SOLVED) & (slope * self._branch.parameter(state) < 0)
                if good[0] and self._branch.regular(state, x)[0]:
                    return descend(self._branch, state, float(x[0]))
            x = x * _FURTHER
        raise self._no_support(1.0, _UP)

    def _near(self, x: FloatArray) -> State:
        """Close to a real solution at x outside the bulk."""
        parts = self._branch.above(x * (1 + 1j * _HEIGHT))
        return tuple(np.ascontiguousarray(part.real) for part in parts)

    def outside(self, x: FloatArray) -> State:
        """The real solutions of the equations at points x (X,) above the bulk."""
        known, states = self._known
        # The nearest known one above x, or the first.
        order = np.argsort(-known)
        nearest = order[np.maximum(np.searchsorted(-known[order], -x, side="right") - 1, 0)]
        state, gap = settle(self._branch, tuple(part[nearest] for part in states), x)
        bad = np.flatnonzero(~(gap <= _SOLVED))
        if bad.size:
            again, left = settle(self._branch, self._near(x[bad]), x[bad])
            gap[bad] = left
            for part, found in zip(state, again):
                part[bad] = found
        good = gap <= _SOLVED
        pairs = zip(states, state)
        self._known = (
            np.concatenate([known, x[good]]),
            tuple(np.concatenate([old, new[good]]) for old, new in pairs),
        )
        return state

    @cached_property
    def _known(self) -> tuple[FloatArray, State]:
        """Real solutions above the bulk to start from."""
        return self._descent.x, self._descent.states

    @staticmethod
    def _no_support(share: float, count: int) -> NotConverged:
        return NotConverged("the support of a law", share, count, "another width or rate")

    def _intervals(self, count: int) -> list[tuple[float, float]]:
        """Where a scan finds density, with exact edges."""
        lowest = _LOWEST * min(self._scale, self.edge)
        x = np.geomspace(lowest, self.edge * (1 - _BELOW), count)
        inside = self._inside(x)
        if not inside.any():
            raise self._no_support(0.0, len(x))
        starts = np.flatnonzero(inside & ~np.concatenate([[False], inside[:-1]]))
        ends = np.flatnonzero(inside & ~np.concatenate([inside[1:], [False]]))
        # A run that starts with the scan reaches down to zero, one that ends with it to the edge.
        grounded, top = int(starts[0] == 0), int(ends[-1] == len(x) - 1)
        sides = slice(grounded, 2 * len(starts) - top)
        outer = np.stack([starts - 1, ends + 1], axis=1).ravel()[sides]
        inner = np.stack([starts, ends], axis=1).ravel()[sides]
        edges = [*[0.0] * grounded, *self._edges(x[outer], x[inner]), *[self.edge] * top]
        return [(float(lo), float(hi)) for lo, hi in np.reshape(edges, (-1, 2))]

    def _inside(self, x: NDArray) -> NDArray:
        z = x * (1 + 1j * _HEIGHT)
        with np.errstate(all="ignore"):
            state = self._branch.above(z)
            slope = self._branch.parameter(self._branch.linearised(state, z)[1])
            size = np.abs(self._branch.parameter(state).imag)
            return np.asarray(size > _INSIDE * z.imag * np.abs(slope))

    def _edges(self, outside: NDArray, within: NDArray) -> NDArray:
        """Folds between points outside and inside; brackets are halved where a search fails."""
        edges = np.full(len(outside), np.nan)
        if not len(outside):
            return edges
        for _ in range(_BISECTIONS):
            todo = np.flatnonzero(np.isnan(edges))
            state, gap = settle(self._branch, self._near(outside[todo]), outside[todo])
            found = follow_to_fold(self._branch, state, outside[todo], within[todo])
            edges[todo] = np.where(gap <= _SOLVED, found, np.nan)
            close = np.abs(outside - within) <= _EDGE_TOLERANCE * outside
            edges = np.where(np.isnan(edges) & close, outside, edges)
            todo = np.flatnonzero(np.isnan(edges))
            if not todo.size:
                return edges
            middle = np.sqrt(outside[todo] * within[todo])
            hit = self._inside(middle)
            within[todo] = np.where(hit, middle, within[todo])
            outside[todo] = np.where(hit, outside[todo], middle)
        raise NotConverged(
            "the edges of a law", float(np.isnan(edges).mean()), _BISECTIONS, "another rate"
        )

    @cached_property
    def _pieces(self) -> tuple[_Piece, ...]:
        wanted = 1.0 - sum(mass for _, mass in self.atoms)
        best: tuple[float, list[_Piece]] = (np.inf, [])
        for count in _SCANS:
            pieces = [self._resolve(lower, upper) for lower, upper in self._intervals(count)]
            lost = abs(sum(piece.mass for piece in pieces) / wanted - 1)
            if lost < best[0]:
                best = lost, pieces
            if lost <= _MISSED:
                break
        lost, pieces = best
        if lost > _LOST:
            raise NotConverged("the mass of a law", lost, _SCANS[-1], "another width or rate")
        found = sum(piece.mass for piece in pieces)
        return tuple(piece._replace(series=piece.series * (wanted / found)) for piece in pieces)

    def _resolve(self, lower: float, upper: float) -> _Piece:
        piece = _Piece(lower, upper, lower > 0 and upper > 10 * lower, np.zeros(1))
        count = _SMALLEST
        while True:
            angle = (np.arange(count) + 0.5) * np.pi / count
            x = piece.point(angle)
            mass = self._transform(x * (1 + 1j * 1e-12)).imag / np.pi * piece.slope(angle)
            series = 2 / count * np.cos(np.outer(np.arange(count), angle)) @ mass
            series[0] /= 2
            tail = np.abs(series[-count // 8 :]).max()
            if tail <= _SERIES_TOLERANCE * np.abs(series).max() or count >= _LARGEST:
                return piece._replace(series=series)
            count *= 2

    def density(self, x: ArrayLike) -> NDArray:
        x = np.asarray(x, dtype=float)
        out = np.zeros(x.shape)
        for piece in self._pieces:
            # Closer to an edge than it is known, 0/0 would be noise.
            here = x > piece.lower * (1 + _EDGE_TOLERANCE)
            here &= x < piece.upper * (1 - _EDGE_TOLERANCE)
            angle = piece.angle(x[here])
            with np.errstate(divide="ignore", invalid="ignore"):
                mass = chebyshev.chebval(np.cos(angle), piece.series) / piece.slope(angle)
            out[here] = np.maximum(np.nan_to_num(mass, nan=0.0, posinf=0.0), 0.0)
        return out

    def stieltjes(self, z: ArrayLike) -> NDArray:
        z = np.asarray(z, dtype=complex)
        flat = z.ravel()
        lower = flat.imag < 0
        raised = np.where(lower, flat.conj(), flat)
        tiny = 1e-12 * np.maximum(np.abs(raised.real), self._scale * 1e-6)
        raised = np.where(raised.imag > tiny, raised, raised.real + 1j * tiny)
        values = self._transform(raised)
        return np.where(lower, values.conj(), values).reshape(z.shape)
