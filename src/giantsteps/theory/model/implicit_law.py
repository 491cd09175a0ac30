"""A law that is known through its Stieltjes transform in the upper half-plane (theory §5d)."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from giantsteps.errors import NotConverged
from giantsteps.laws import Law
from giantsteps.theory.model.densities import HEIGHT, LARGEST, Densities, OutsideBranch
from giantsteps.theory.model.piece import Piece, nodes
from giantsteps.theory.solver.bulk import Bulk
from giantsteps.theory.solver.fold import Descent, State, descend, follow_to_fold, settle
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
#: The first point above the bulk, over the mean; how often it is put further up, by how much.
_FAR, _UP, _FURTHER = 30.0, 12, 10.0
#: The first point above a likely edge, over it, and how far from it the edge may be.
_ABOVE, _LIKELY = 1.2, 0.05
#: No edge of a bulk is below its mean (but for rounding and weights of both signs).
_MEAN = 0.9
#: The last point of a scan below the largest edge, and how far one of the last interval goes.
_BELOW, _LAST = 1e-4, 10.0
#: Rounds of the search for an edge, and points of one.
_SECTIONS, _WITHIN = 14, 7
#: How well an edge is known, if it is no fold, and a residual that is good enough for a real
#: solution.
_EDGE_TOLERANCE, _NARROW, _SOLVED = 1e-9, 1e-6, 1e-10
#: Intervals that are many, heights over which their density is averaged, and the mass that this may
#: move out of the support.
_MANY, _HEIGHTS, _AVERAGED = 6, (0.02, 0.3), 0.15
#: Points of a scan after which that is done as well, and how often intervals are split.
_SCANNED, _SPLITS = 200, 4
#: Missing mass that calls for another scan or is no answer; where samples have weights of both
#: signs, which are no law.
_LOST, _LOST_BY_SIGNS = 1e-3, 0.02


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
    atoms : tuple of (location, mass)
    lost : float
        Missing mass, relative, that calls for another scan, or is no answer.
    likely : float, optional
        Where the largest edge is likely to be: that of a coarser resolution.
    """

    def __init__(
        self,
        branch: OutsideBranch,
        atoms: tuple[tuple[float, float], ...] = (),
        lost: float = _LOST,
        likely: float | None = None,
    ) -> None:
        self._branch, self._scale, self._atoms = branch, branch.scale, atoms
        self._may_lose, self._likely = lost, likely
        #: Edges, and whether the outside is above.
        self._found: list[tuple[float, bool]] = []

    @cached_property
    def _densities(self) -> Densities:
        return Densities(self._branch.of_density, self._continuous, self._may_lose)

    def __repr__(self) -> str:
        shown = " ∪ ".join(f"[{low:.6g}, {high:.6g}]" for low, high in self.support)
        return f"ImplicitLaw({shown}, atoms={self.atoms})"

    def __eq__(self, other: object) -> bool:
        """The law of the same equations: the same atoms, mean and largest edge to the last bit."""
        if not isinstance(other, ImplicitLaw):
            return NotImplemented
        mine, theirs = (self._atoms, self._scale), (other._atoms, other._scale)
        return self is other or (mine == theirs and self.edge == other.edge)

    def __hash__(self) -> int:
        return hash((self._atoms, self._scale))

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
        return float(self._edges(self._branch, x[last + 1], x[last])[0])

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

    @staticmethod
    def _near(branch: OutsideBranch, x: FloatArray) -> State:
        """Close to a real solution at x outside the bulk."""
        parts = branch.above(x * (1 + 1j * HEIGHT))
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
            again, left = settle(self._branch, self._near(self._branch, x[bad]), x[bad])
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
        inner = self._branch.of_density
        return inner.transform(inner.above(z), z)

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
        inside = self._densities.inside(x)
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
            np.insert(inside, between + 1, self._densities.inside(new)),
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
        branch = self._branch
        below = branch.of_density if branch.many_nodes else branch
        found = self._edges(below, x[outer], x[inner])
        edges = [*[0.0] * grounded, *found, *[self.edge] * top]
        return [(float(lo), float(hi)) for lo, hi in np.reshape(edges, (-1, 2))]

    def _edges(self, branch: OutsideBranch, outside: FloatArray, within: FloatArray) -> FloatArray:
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
                state, gap = settle(branch, self._near(branch, outside[todo]), outside[todo])
                found = follow_to_fold(branch, state, outside[todo], within[todo])
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
            hit = self._densities.inside(points[:, 1:-1].ravel()).reshape(len(todo), -1)
            first = np.where(hit.any(axis=1), hit.argmax(axis=1), _WITHIN) + 1
            rows = np.arange(len(todo))
            outside[todo], within[todo] = points[rows, first - 1], points[rows, first]
        raise NotConverged(
            "the edges of a law", float(np.isnan(edges).mean()), _SECTIONS, "another rate"
        )

    @capped(1)
    def last(self) -> tuple[float, float, float]:
        """The interval that ends at the edge, and its mass, without the rest of the support.

        Zero and one where it is longer than a factor of ten.
        """
        x, inside = self._scan(self.edge / _LAST, self.edge * (1 - _BELOW), _RATIOS[0])
        lower, upper = self._intervals(x, inside)[-1]
        if not lower:
            return 0.0, upper, 1.0
        (*_, piece), _ = self._densities.resolved([(lower, upper)], False)
        return lower, upper, piece.mass

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
                pieces, (more, flags) = self._densities.resolved(
                    self._intervals(x, inside), not again
                )
                if not more.size:
                    break
                where = np.searchsorted(x, more)  # an interval was several
                x, inside = np.insert(x, where, more), np.insert(inside, where, flags)
                if _runs(inside) > _MANY:
                    break
            if self._densities.lost(pieces) <= self._may_lose:
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
        piece, angle = Piece(lower, self.edge), nodes(LARGEST)
        points = piece.point(angle)
        z = points * np.exp(1j * width)
        density = (z * self._transform(z)).imag / ((np.pi - width) * points)
        found = piece.with_density(np.maximum(density, 0.0))
        lost = self._densities.lost([found])
        if lost > _AVERAGED:
            raise NotConverged("the mass of a law", lost, len(x), "another width or rate")
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
        with self._branch.work.set_aside():  # the caller's own points do not count
            values = self._transform(raised)
        return np.where(lower, values.conj(), values).reshape(z.shape)


def may_lose(bulk: Bulk) -> float:
    """Mass, relative, that a law of this bulk may miss: more if its samples are no law."""
    signed = any(np.any(batch.weights < 0) for batch in bulk.batches)
    return _LOST_BY_SIGNS if signed else _LOST


def _runs(inside: Array) -> int:
    """How many runs of points are inside."""
    return int(np.count_nonzero(inside & ~np.concatenate([[False], inside[:-1]])))
