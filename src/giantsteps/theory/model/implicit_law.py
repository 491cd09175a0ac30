"""A law that is known through its Stieltjes transform in the upper half-plane (theory §5d)."""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from giantsteps.errors import NotConverged
from giantsteps.laws import Law
from giantsteps.theory.model.piece import Piece, between, nodes
from giantsteps.theory.solver.bulk import Bulk
from giantsteps.theory.solver.fold import Branch, Descent, State, descend, follow_to_fold, settle
from giantsteps.threads import capped
from giantsteps.types import Array, FloatArray

#: Least number of points of the first scan for intervals and the largest ratio of neighbours in it;
#: that on the way through an interval, and that of all if mass is missing.
_SCAN, _COARSE, _RATIOS = 8, 3.0, (1.3, 1.1)
#: How far below the mean intervals are looked for, if mass may be there: so much.
_DECADES, _BELOW_ALL = 12, 2e-4
#: From one decade to the next below so many, mass that falls like this is that of a hard edge,
#: and mass that hardly falls is spread too far to be found.
_HARD_BELOW, _HARD, _SLOW = 4, 0.33, 0.8
#: Im z over x. Outside, imaginary parts are those of the first derivative times Im z; a point is
#: inside where they are this many times as large.
_HEIGHT, _INSIDE = 1e-5, 3.0
#: The first point above the bulk, over the mean; how often it is put further up, by how much.
_FAR, _UP, _FURTHER = 30.0, 12, 10.0
#: The first point above a likely edge, over it, and how far from it the edge may be.
_ABOVE, _LIKELY = 1.2, 0.05
#: No edge of a bulk is below its mean (but for rounding and weights of both signs).
_MEAN = 0.9
#: The last point of a scan below the largest edge.
_BELOW = 1e-4
#: Rounds of the search for an edge, and points of one.
_SECTIONS, _WITHIN = 14, 7
#: How well an edge is known, if it is no fold, and a residual that is good enough for a real
#: solution.
_EDGE_TOLERANCE, _NARROW, _SOLVED = 1e-9, 1e-6, 1e-10
#: Points on an interval: at first, how many times as many where they are too few, when they may be
#: enough, and at most.
_SMALLEST, _MORE, _FEW, _LARGEST = 8, 3, 24, 216
#: Im z over x for a density.
_AT_THE_AXIS = 1e-9
_SERIES_TOLERANCE = 1e-4
#: An imaginary part, relative to that of a start, that may be one of a solution on another sheet.
_GONE = 1e-3
#: Mass per log x, relative to the largest, that may be none: solutions are known that well.
_EMPTY, _AT_AN_END = 1e-4, 1.01
#: An interval with less mass is noise; with less of all, intervals are missing.
_NO_MASS, _FOUND = 1e-9, 0.5
#: Intervals that are many, heights over which their density is averaged, and the mass that this may
#: move out of the support.
_MANY, _HEIGHTS, _AVERAGED = 6, (0.02, 0.3), 0.15
#: Points of a scan after which that is done as well, and how often intervals are split.
_SCANNED, _SPLITS = 200, 4
#: Missing mass that calls for another scan or is no answer; where samples have weights of both
#: signs, which are no law.
_LOST, _LOST_BY_SIGNS = 1e-3, 0.02


class OutsideBranch(Branch, Protocol):
    """The equations of the transform, in the half-plane and at real points outside the support."""

    def above(self, z: Array, start: State | None = None) -> State:
        """The solution at z (E,) in the upper half-plane: from a start nearby, else from what is
        known; with an empty start from the imaginary axis.
        """

    def transform(self, state: State, z: Array) -> Array:
        """m(z) from the solution."""

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
    branch : OutsideBranch
        The equations of m.
    inner : OutsideBranch
        Those that the density is taken from: the same, or close to them and cheaper.
    scale : float
        Mean of the continuous part: where to look for it.
    atoms : tuple of (location, mass)
    lost : float
        Missing mass, relative, that calls for another scan, or is no answer.
    likely : float, optional
        Where the largest edge is likely to be: that of a coarser resolution.
    """

    def __init__(
        self,
        branch: OutsideBranch,
        inner: OutsideBranch,
        scale: float,
        atoms: tuple[tuple[float, float], ...] = (),
        lost: float = _LOST,
        likely: float | None = None,
    ) -> None:
        self._branch, self._inner = branch, inner
        self._scale = float(scale)
        self._atoms = atoms
        self._may_lose, self._likely = lost, likely
        #: Edges, and whether the outside is above; intervals whose density is known.
        self._found: list[tuple[float, bool]] = []
        self._kept: dict[tuple[float, float], tuple[Piece, FloatArray]] = {}

    def __repr__(self) -> str:
        shown = " ∪ ".join(f"[{low:.6g}, {high:.6g}]" for low, high in self.support)
        return f"ImplicitLaw({shown}, atoms={self.atoms})"

    @property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        return self._atoms

    @cached_property
    def support(self) -> tuple[tuple[float, float], ...]:
        return tuple((piece.lower, piece.upper) for piece in self._pieces)

    @cached_property
    @capped(1)
    def edge(self) -> float:
        """Largest point of the support, found from above without the rest of it."""
        if np.isfinite(self._descent.edge):
            return self._descent.edge
        x, inside = self._scan(self._lowest, float(self._descent.x[0]), _RATIOS[1])
        last = np.flatnonzero(inside)[-1:]
        if not last.size or last[0] == len(x) - 1:
            raise self._no_support(float(last.size), len(x))
        return float(self._edges(x[last + 1], x[last])[0])

    @cached_property
    def _descent(self) -> Descent:
        """Real solutions from far above the bulk, or from above a likely edge, down to its edge."""
        starts = [self._scale * _FAR * _FURTHER**power for power in range(_UP)]
        if self._likely is not None:
            starts.insert(0, self._likely * _ABOVE)
        for start in starts:
            x = np.array([start])
            with np.errstate(all="ignore"):
                state, gap = settle(self._branch, self._branch.far(x), x)
                slope = self._branch.parameter(self._branch.linearised(state, x).tangent())
                # Far above, the parameter is a multiple of 1/x.
                good = (gap <= _SOLVED) & (slope * self._branch.parameter(state) < 0)
                if not (good[0] and self._branch.regular(state, x)[0]):
                    continue
                near = self._likely is not None and start == starts[0]
                share = {"share": 0.5 * (1.0 - 1.0 / _ABOVE)} if near else {}
                found = descend(self._branch, state, start, _MEAN * self._scale, **share)
            if not near or abs(found.edge * _ABOVE / start - 1.0) <= _LIKELY:
                return found
        raise self._no_support(1.0, _UP)

    def _near(self, x: FloatArray) -> State:
        """Close to a real solution at x outside the bulk."""
        parts = self._branch.above(x * (1 + 1j * _HEIGHT))
        return tuple(np.ascontiguousarray(part.real) for part in parts)

    def outside(self, x: FloatArray) -> State:
        """The real solutions of the equations at points x (X,) above the bulk."""
        known, states = self._known
        # From the nearest known one above x, if there is one.
        order = np.argsort(-known)
        place = np.searchsorted(-known[order], -x, side="right") - 1
        start = tuple(part[order[np.maximum(place, 0)]] for part in states)
        first = np.flatnonzero(place < 0)
        if first.size:
            for part, found in zip(start, self._branch.far(x[first])):
                part[first] = found
        state, gap = settle(self._branch, start, x)
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

    def _transform(self, z: NDArray) -> NDArray:
        return self._inner.transform(self._inner.above(z), z)

    @property
    def _continuous(self) -> float:
        """Mass outside the atoms."""
        return 1.0 - sum(mass for _, mass in self.atoms)

    @cached_property
    def _lowest(self) -> float:
        """A point with next to no mass below it, by μ(0, x) ≤ 2x Im m(ix); or with a density like
        x^{-1/2} there, which an interval from zero on resolves.
        """
        grounded = sum(mass for place, mass in self.atoms if place == 0)
        lowest, before = self._scale, np.inf
        for decade in range(2, _DECADES):
            x = np.array([self._scale * 10.0**-decade])
            try:
                below = 2.0 * float((x * self._transform(1j * x).imag)[0] - grounded)
            except NotConverged:  # the scan starts higher, and the mass says whether it may
                break
            lowest = float(x[0])
            if below <= max(_BELOW_ALL * self._continuous, _HARD * before * (decade > _HARD_BELOW)):
                break
            if decade > _HARD_BELOW and below > _SLOW * before:
                break
            before = below
        return lowest

    def _scan(self, lowest: float, highest: float, ratio: float) -> tuple[FloatArray, Array]:
        """Points, in ascending order, and which of them are inside an interval.

        A coarse scan, refined around the edges between its points.
        """
        count = max(_SCAN, math.ceil(math.log(highest / lowest) / math.log(_COARSE)))
        x = np.geomspace(lowest, highest, count)
        inside = self._inside(x)
        while (
            between := np.flatnonzero((x[1:] > ratio * x[:-1]) & (inside[1:] ^ inside[:-1]))
        ).size:
            x, inside = self._added(x, inside, between)
        return x, inside

    def _added(self, x: FloatArray, inside: Array, between: Array) -> tuple[FloatArray, Array]:
        """The scan with points in the middle of some of its gaps."""
        new = np.sqrt(x[between] * x[between + 1])
        return (
            np.insert(x, between + 1, new),
            np.insert(inside, between + 1, self._inside(new)),
        )

    def _intervals(self, x: FloatArray, inside: Array) -> list[tuple[float, float]]:
        """Where a scan finds density, with exact edges."""
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
            state = self._inner.above(z)
            slope = self._inner.parameter(self._inner.linearised(state, z).tangent())
            size = np.abs(self._inner.parameter(state).imag)
            return np.asarray(size > _INSIDE * z.imag * np.abs(slope))

    def _edges(self, outside: FloatArray, within: FloatArray) -> FloatArray:
        """Folds between points outside and inside; brackets are narrowed where a search fails."""
        above = outside > within
        edges = np.full(len(outside), np.nan)
        for edge, side in self._found:
            known = (above == side) & ((outside - edge) * (within - edge) <= 0)
            edges[known] = edge
        outside, within = outside.copy(), within.copy()
        for _ in range(_SECTIONS):
            todo = np.flatnonzero(np.isnan(edges))
            if todo.size:
                state, gap = settle(self._branch, self._near(outside[todo]), outside[todo])
                found = follow_to_fold(self._branch, state, outside[todo], within[todo])
                edges[todo] = np.where(gap <= _SOLVED, found, np.nan)
                close = np.abs(outside - within) <= _NARROW * outside
                edges = np.where(np.isnan(edges) & close, outside, edges)
                todo = np.flatnonzero(np.isnan(edges))
            if not todo.size:
                self._found += zip(edges.tolist(), above.tolist())
                return edges
            share = np.arange(1, _WITHIN + 1) / (_WITHIN + 1)
            ratio = (within[todo] / outside[todo])[:, None]
            points = np.concatenate(
                [outside[todo, None], outside[todo, None] * ratio**share, within[todo, None]],
                axis=1,
            )
            hit = self._inside(points[:, 1:-1].ravel()).reshape(len(todo), -1)
            first = np.where(hit.any(axis=1), hit.argmax(axis=1), _WITHIN) + 1
            rows = np.arange(len(todo))
            outside[todo], within[todo] = points[rows, first - 1], points[rows, first]
        raise NotConverged(
            "the edges of a law", float(np.isnan(edges).mean()), _SECTIONS, "another rate"
        )

    @cached_property
    @capped(1)
    def _pieces(self) -> tuple[Piece, ...]:
        x, inside = self._scan(self._lowest, self.edge * (1 - _BELOW), _RATIOS[0])
        inside[-1] |= self._descent.pole  # below one there may be two solutions
        for again, ratio in enumerate(_RATIOS):
            while again and (wide := np.flatnonzero(x[1:] > ratio * x[:-1])).size:
                x, inside = self._added(x, inside, wide)
            if _runs(inside) > _MANY or len(x) > _SCANNED:
                break
            for _ in range(1 + _SPLITS):
                pieces, (more, flags) = self._resolved(self._intervals(x, inside), not again)
                if not more.size:
                    break
                where = np.searchsorted(x, more)  # an interval was several
                x, inside = np.insert(x, where, more), np.insert(inside, where, flags)
                if _runs(inside) > _MANY:
                    break
            if self._lost(pieces) <= self._may_lose:
                return self._normalised(pieces)
        return self._normalised([self._averaged(x, inside)])

    def _normalised(self, pieces: list[Piece]) -> tuple[Piece, ...]:
        scale = self._continuous / sum(piece.mass for piece in pieces)
        return tuple(piece._replace(series=piece.series * scale) for piece in pieces)

    def _averaged(self, x: FloatArray, inside: Array) -> Piece:
        """The density averaged over the distances of many small intervals.

        They belong to nodes of a quadrature of samples that are far between for what they have,
        and the law has no gaps. With z = xe^{iθ} the averages Im[z m(z)]/(π − θ) of the density in
        log x are those with a kernel of width θ and mass one.
        """
        if not inside.any():
            raise self._no_support(0.0, len(x))
        first = int(np.argmax(inside))
        lower = float(x[max(first - 1, 0)])
        count = max(_runs(inside), 1)
        width = min(max(math.log(self.edge / lower) / count, _HEIGHTS[0]), _HEIGHTS[1])
        piece, angle = Piece(lower, self.edge), nodes(_LARGEST)
        points = piece.point(angle)
        z = points * np.exp(1j * width)
        density = (z * self._transform(z)).imag / ((np.pi - width) * points)
        found = piece.with_density(np.maximum(density, 0.0))
        lost = self._lost([found])
        if lost > _AVERAGED:
            raise NotConverged("the mass of a law", lost, len(x), "another width or rate")
        return found

    def _lost(self, pieces: list[Piece]) -> float:
        return abs(sum(piece.mass for piece in pieces) / self._continuous - 1)

    def _resolved(
        self, intervals: list[tuple[float, float]], first: bool
    ) -> tuple[list[Piece], tuple[FloatArray, Array]]:
        """The densities on intervals, on more points where a series has not converged.

        Also points that show that an interval is several, and which of them are inside: those
        without density in wide gaps, or in all of them where mass is missing, and their neighbours.
        At ``first`` no more points are spent where most of the mass is elsewhere.
        """
        kept = [self._kept.get(ends) for ends in intervals]
        pieces = [Piece(*ends) if old is None else old[0] for ends, old in zip(intervals, kept)]
        known = [np.zeros(0) if old is None else old[1] for old in kept]
        states: list[State] = [()] * len(pieces)
        count, todo = _SMALLEST, [i for i, old in enumerate(kept) if old is None]
        gaps = [self._gaps(piece, density) for piece, density in zip(pieces, known)]
        while todo and count <= _LARGEST:
            angle, coarse = nodes(count), count // _MORE
            new = np.flatnonzero((count == _SMALLEST) | (np.arange(count) % _MORE != 1))
            z = np.concatenate([pieces[i].point(angle[new]) for i in todo]) * (
                1 + 1j * _AT_THE_AXIS
            )
            start = None
            if count > _SMALLEST:
                rows = between(coarse, count)[new]
                start = _joined([tuple(_times(rows, part) for part in states[i]) for i in todo])
            state = self._above(z, start)
            density = self._inner.transform(state, z).imag / np.pi
            rest = []
            for place, i in enumerate(todo):
                here = slice(place * len(new), (place + 1) * len(new))
                known[i] = _merged(new, density[here], known[i])
                old = states[i] or (np.zeros(0),) * len(state)
                states[i] = tuple(_merged(new, part[here], was) for part, was in zip(state, old))
                pieces[i] = pieces[i].with_density(known[i])
                tail = np.abs(pieces[i].series[-count // 8 :]).max()
                if count < _FEW or tail > _SERIES_TOLERANCE * np.abs(pieces[i].series).max():
                    rest.append(i)
                else:
                    self._kept[intervals[i]] = pieces[i], known[i]
            count, todo = count * _MORE, rest
            if count == _FEW:
                continue
            gaps = [self._gaps(piece, density) for piece, density in zip(pieces, known)]
            missing = sum(piece.mass for piece in pieces) < _FOUND * self._continuous
            if (first and missing) or any(gap.wide for gap in itertools.chain(*gaps)):
                break
        lost = self._lost(pieces) > self._may_lose
        shown = [gap for gap in itertools.chain(*gaps) if gap.wide or lost]
        points = np.concatenate([np.zeros(0), *(gap.x for gap in shown)])
        flags = np.concatenate([np.zeros(0, dtype=bool), *(gap.inside for gap in shown)])
        return [piece for piece in pieces if piece.mass > _NO_MASS], (points, flags)

    def _above(self, z: Array, start: State | None) -> State:
        """The solution at z from a start; on a way of its own where its imaginary part is gone."""
        state = self._inner.above(z, start)
        if start is not None:
            share = self._inner.parameter(state).imag / self._inner.parameter(start).imag
            gone = np.flatnonzero(~(share > _GONE))
            if gone.size:
                for part, found in zip(state, self._inner.above(z[gone], ())):
                    part[gone] = found
        return state

    def _gaps(self, piece: Piece, density: FloatArray) -> list[_Gap]:
        """Gaps on an interval."""
        x = piece.point(nodes(len(density)))
        empty = x * density <= _EMPTY * (x * density).max(initial=0.0)
        if not empty.any() or empty.all():
            return []
        empty[empty] = ~self._inside(x[empty])
        ends = np.flatnonzero(np.diff(np.concatenate([[False], empty, [False]]).astype(int)))
        beside = np.concatenate([[piece.lower], x, [piece.upper]])
        found = []
        for first, last in ends.reshape(-1, 2).tolist():
            run = slice(max(first - 1, 0), last + 1)
            wide = bool(beside[last + 1] > _RATIOS[0] * beside[first])
            # At an end of the interval that may be the error of an edge.
            inner = first > 0 and last < len(x)
            if inner or beside[last + 1] > _AT_AN_END * beside[first]:
                found.append(_Gap(x[run], ~empty[run], wide))
        return found

    def density(self, x: ArrayLike) -> NDArray:
        x = np.asarray(x, dtype=float)
        out = np.zeros(x.shape)
        for piece in self._pieces:
            # Closer to an edge than it is known, 0/0 would be noise.
            here = x > piece.lower * (1 + _EDGE_TOLERANCE)
            here &= x < piece.upper * (1 - _EDGE_TOLERANCE)
            out[here] = piece.density(x[here])
        return out

    @capped(1)
    def stieltjes(self, z: ArrayLike) -> NDArray:
        z = np.asarray(z, dtype=complex)
        flat = z.ravel()
        lower = flat.imag < 0
        raised = np.where(lower, flat.conj(), flat)
        tiny = 1e-12 * np.maximum(np.abs(raised.real), self._scale * 1e-6)
        raised = np.where(raised.imag > tiny, raised, raised.real + 1j * tiny)
        values = self._transform(raised)
        return np.where(lower, values.conj(), values).reshape(z.shape)


class _Gap(NamedTuple):
    """A run of points without density, with its neighbours, and whether it is wide."""

    x: FloatArray
    inside: Array
    wide: bool


def may_lose(bulk: Bulk) -> float:
    """Mass, relative, that a law of this bulk may miss: more if its samples are no law."""
    signed = any(np.any(batch.weights < 0) for batch in bulk.batches)
    return _LOST_BY_SIGNS if signed else _LOST


def _runs(inside: Array) -> int:
    """How many runs of points are inside."""
    return int(np.count_nonzero(inside & ~np.concatenate([[False], inside[:-1]])))


def _joined(states: list[State]) -> State:
    """The states of several sets of points as one."""
    return tuple(np.concatenate(parts) for parts in zip(*states))


def _times(rows: FloatArray, values: Array) -> Array:
    """A matrix times values whose first axis runs over points."""
    return np.asarray((rows @ values.reshape(len(values), -1)).reshape(-1, *values.shape[1:]))


def _merged(places: Array, new: Array, known: Array) -> Array:
    """New values at their places, and what is known at the others."""
    values = np.empty((len(new) + len(known), *new.shape[1:]), dtype=new.dtype)
    values[places] = new
    if len(known):
        values[np.setdiff1d(np.arange(len(values)), places)] = known
    return values
