"""Densities on intervals, from a Stieltjes transform next to the real axis (theory §5d)."""

from __future__ import annotations

import itertools
from typing import NamedTuple, Protocol

import numpy as np

from giantsteps.theory.model.piece import Piece, between, nodes
from giantsteps.theory.solver.fold import Branch, State
from giantsteps.theory.solver.work import Work
from giantsteps.types import Array, FloatArray

#: Im z over x. Outside, imaginary parts are those of the first derivative times Im z; a point is
#: inside where they are this many times as large.
HEIGHT, _INSIDE = 1e-5, 3.0
#: Points on an interval: at first, how many times as many where they are too few, when they may be
#: enough, and at most.
_SMALLEST, _MORE, _FEW, LARGEST = 8, 3, 24, 216
#: Im z over x for a density.
_AT_THE_AXIS = 1e-9
_SERIES_TOLERANCE = 1e-4
#: An imaginary part, relative to that of a start, that may be one of a solution on another sheet.
_GONE = 1e-3
#: Mass per log x, relative to the largest, that may be none: solutions are known that well.
_EMPTY, _AT_AN_END = 1e-4, 1.01
#: An interval with less mass is noise, with at most so much of all it is not looked into; with less
#: of all, intervals are missing.
_NO_MASS, _NOTHING, _FOUND = 1e-9, 1e-6, 0.5
#: A gap that spans more than this is wide.
_WIDE = 1.3


class OutsideBranch(Branch, Protocol):
    """The equations of the transform, in the half-plane and at real points outside the support."""

    work: Work

    @property
    def scale(self) -> float:
        """Mean of the continuous part: where to look for it."""

    @property
    def many_nodes(self) -> bool:
        """Whether edges below the largest are those of `of_density`."""

    @property
    def of_density(self) -> OutsideBranch:
        """Those that the density is taken from: the same, or close to them and cheaper."""

    def above(self, z: Array, start: State | None = None) -> State:
        """The solution at z (E,) in the upper half-plane: from a start nearby, else from what is
        known; with an empty start from the imaginary axis.
        """

    def transform(self, state: State, z: Array) -> Array:
        """m(z) from the solution."""

    def far(self, x: FloatArray) -> State:
        """Close to the real solution at x (E,) far above the support."""


class Densities:
    """The densities of a law on intervals of its support, and the gaps between them.

    Parameters
    ----------
    branch : OutsideBranch
        The equations of the transform.
    mass : float
        Of all intervals.
    lost : float
        Missing mass, relative, that is too much.
    """

    def __init__(self, branch: OutsideBranch, mass: float, lost: float) -> None:
        self._branch, self._mass, self._may_lose = branch, mass, lost
        #: Intervals whose density is known.
        self._kept: dict[tuple[float, float], tuple[Piece, FloatArray]] = {}

    def inside(self, x: FloatArray) -> Array:
        """Which points are inside an interval of the support."""
        z = x * (1 + 1j * HEIGHT)
        with np.errstate(all="ignore"):
            state = self._branch.above(z)
            slope = self._branch.parameter(self._branch.linearised(state, z).tangent())
            size = np.abs(self._branch.parameter(state).imag)
            return np.asarray(size > _INSIDE * z.imag * np.abs(slope))

    def lost(self, pieces: list[Piece]) -> float:
        """Missing mass, relative."""
        return abs(sum(piece.mass for piece in pieces) / self._mass - 1)

    def resolved(
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
        while todo and count <= LARGEST:
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
            density = self._branch.transform(state, z).imag / np.pi
            rest = []
            for place, i in enumerate(todo):
                here = slice(place * len(new), (place + 1) * len(new))
                known[i] = _merged(new, density[here], known[i])
                old = states[i] or (np.zeros(0),) * len(state)
                states[i] = tuple(_merged(new, part[here], was) for part, was in zip(state, old))
                pieces[i] = pieces[i].with_density(known[i])
                tail = np.abs(pieces[i].series[-count // 8 :]).max()
                rough = tail > _SERIES_TOLERANCE * np.abs(pieces[i].series).max()
                if count < _FEW or (rough and not self._is_nothing(pieces[i], known[i])):
                    rest.append(i)
                else:
                    self._kept[intervals[i]] = pieces[i], known[i]
            count, todo = count * _MORE, rest
            if count == _FEW:
                continue
            gaps = [self._gaps(piece, density) for piece, density in zip(pieces, known)]
            missing = sum(piece.mass for piece in pieces) < _FOUND * self._mass
            if (first and missing) or any(gap.wide for gap in itertools.chain(*gaps)):
                break
        lost = self.lost(pieces) > self._may_lose
        shown = [gap for gap in itertools.chain(*gaps) if gap.wide or lost]
        points = np.concatenate([np.zeros(0), *(gap.x for gap in shown)])
        flags = np.concatenate([np.zeros(0, dtype=bool), *(gap.inside for gap in shown)])
        return [piece for piece in pieces if piece.mass > _NO_MASS], (points, flags)

    def _is_nothing(self, piece: Piece, density: FloatArray) -> bool:
        """Whether an interval has no mass to speak of, however its density falls between points."""
        most = float(np.max(density, initial=0.0)) * (piece.upper - piece.lower)
        return most <= _NOTHING * self._mass

    def _above(self, z: Array, start: State | None) -> State:
        """The solution at z from a start; on a way of its own where its imaginary part is gone."""
        state = self._branch.above(z, start)
        if start is not None:
            share = self._branch.parameter(state).imag / self._branch.parameter(start).imag
            gone = np.flatnonzero(~(share > _GONE))
            if gone.size:
                for part, found in zip(state, self._branch.above(z[gone], ())):
                    part[gone] = found
        return state

    def _gaps(self, piece: Piece, density: FloatArray) -> list[_Gap]:
        """Gaps on an interval."""
        x = piece.point(nodes(len(density)))
        empty = x * density <= _EMPTY * (x * density).max(initial=0.0)
        if not empty.any() or empty.all() or self._is_nothing(piece, density):
            return []
        empty[empty] = ~self.inside(x[empty])
        ends = np.flatnonzero(np.diff(np.concatenate([[False], empty, [False]]).astype(int)))
        beside = np.concatenate([[piece.lower], x, [piece.upper]])
        found = []
        for first, last in ends.reshape(-1, 2).tolist():
            run = slice(max(first - 1, 0), last + 1)
            wide = bool(beside[last + 1] > _WIDE * beside[first])
            # At an end of the interval that may be the error of an edge.
            inner = first > 0 and last < len(x)
            if inner or beside[last + 1] > _AT_AN_END * beside[first]:
                found.append(_Gap(x[run], ~empty[run], wide))
        return found


class _Gap(NamedTuple):
    """A run of points without density, with its neighbours, and whether it is wide."""

    x: FloatArray
    inside: Array
    wide: bool


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
