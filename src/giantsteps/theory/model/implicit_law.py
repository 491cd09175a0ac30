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
from giantsteps.theory.solver.fold import Branch, State, follow_to_fold, settle
from giantsteps.types import FloatArray

#: Points of the scan for intervals, more if some mass is missing.
_SCANS = (47, 141, 423)
_LOWEST, _HIGHEST = 1e-5, 1e2
#: Points of a scan from above that are solved together.
_CHUNK = 16
#: Im z over x, and x·Im m above which a point is inside.
_HEIGHT, _INSIDE = 1e-7, 1e-4
_BISECTIONS = 30
#: How well an edge is known, and a residual that is good enough for a real solution.
_EDGE_TOLERANCE, _SOLVED = 1e-9, 1e-10
#: How far around a guess an edge is looked for.
_AROUND = 0.02
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

    def near(self, x: FloatArray) -> State:
        """An approximate real solution at x (E,)."""


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
    around : float, optional
        Where the largest edge is looked for first: that of the same law at another resolution.
    """

    def __init__(
        self,
        transform: Callable[[NDArray], NDArray],
        branch: OutsideBranch,
        scale: float,
        atoms: tuple[tuple[float, float], ...] = (),
        around: float | None = None,
    ) -> None:
        self._transform = transform
        self._branch = branch
        self._scale = float(scale)
        self._atoms = atoms
        self._around = around

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
        if self._around is not None:
            ends = self._around * np.array([1.0 + _AROUND, 1.0 - _AROUND])
            outside, within = self._inside(ends)
            if within and not outside:
                return float(self._edges(ends[:1], ends[1:])[0])
        x = self._points(_SCANS[1])
        for end in range(len(x), 0, -_CHUNK):
            # The last point again: what lies above it is known to be outside.
            some = np.arange(max(end - _CHUNK, 0), min(end + 1, len(x)))
            last = np.flatnonzero(self._inside(x[some]))[-1:]
            if last.size:
                return float(self._edges(x[some[last] + 1], x[some[last]])[0])
        raise self._no_support(0.0, len(x))

    def _points(self, count: int) -> NDArray:
        """Points of a scan: over seven decades, or more below a heavy tail."""
        x = self._scale * np.geomspace(_LOWEST, _HIGHEST, count)
        if self._inside(x[-1:])[0]:
            x = np.concatenate([x, x[-1] * np.geomspace(1.0, _HIGHEST, count)[1:]])
            if self._inside(x[-1:])[0]:
                raise self._no_support(1.0, len(x))
        return x

    def _scan(self, count: int) -> tuple[NDArray, NDArray]:
        """Points, and which of them are inside."""
        x = self._points(count)
        inside = self._inside(x)
        if not inside.any():
            raise self._no_support(0.0, len(x))
        return x, inside

    @staticmethod
    def _no_support(share: float, count: int) -> NotConverged:
        return NotConverged("the support of a law", share, count, "another width or rate")

    def _intervals(self, count: int) -> list[tuple[float, float]]:
        """Where a scan finds density, with exact edges."""
        x, inside = self._scan(count)
        starts = np.flatnonzero(inside & ~np.concatenate([[False], inside[:-1]]))
        ends = np.flatnonzero(inside & ~np.concatenate([inside[1:], [False]]))
        # A run that starts with the scan reaches down to zero.
        grounded = int(starts[0] == 0)
        outer = np.stack([starts - 1, ends + 1], axis=1).ravel()[grounded:]
        inner = np.stack([starts, ends], axis=1).ravel()[grounded:]
        edges = self._edges(x[outer], x[inner])
        if grounded:
            edges = np.concatenate([[0.0], edges])
        return [(float(lo), float(hi)) for lo, hi in edges.reshape(-1, 2)]

    def _inside(self, x: NDArray) -> NDArray:
        return np.asarray(x * self._transform(x * (1 + 1j * _HEIGHT)).imag > _INSIDE)

    def _edges(self, outside: NDArray, within: NDArray) -> NDArray:
        """Folds between points outside and inside; brackets are halved where a search fails."""
        edges = np.full(len(outside), np.nan)
        for _ in range(_BISECTIONS):
            todo = np.flatnonzero(np.isnan(edges))
            state, gap = settle(self._branch, self._branch.near(outside[todo]), outside[todo])
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
