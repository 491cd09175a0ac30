"""Continuation from negative z to the positive axis, where resolvents are hard to solve for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from giantsteps.errors import NotConverged

#: Arguments of z on the way from −|z|, as shares of π.
_ANGLES = (0.7, 0.4, 0.2, 0.08, 0.02)
#: Rounds on the way, at the end and from a neighbour, and the first factor of careful steps.
_ON_THE_WAY, _ATTEMPT, _NEARBY, _SHRINK = 3, 20, 12, 0.3
_ENOUGH = 1e-6
_SHORTEST = 0.99
#: Relative distance of a known point that is worth starting from, and how many are kept.
_CLOSE, _MEMORY = 0.3, 1024

#: Arrays whose first axis runs over the points z.
State = tuple[NDArray, ...]


class Solver(Protocol):
    """Solves for the state at points z in the upper half-plane, or at negative real z."""

    def __call__(
        self, z: NDArray, start: State | None, rounds: int | None
    ) -> tuple[State, NDArray]:
        """The state and its residual, one number per point."""


class Continuation:
    """States at points z of the upper half-plane, each followed along a circle from −|z|.

    At z = −scale every start leads to the solution; from there it is followed to −|z|, and on the
    way to the positive axis Newton's method follows it. Where a few big steps are too few (close to
    an edge), careful ones are taken. What was solved before is remembered, and points close to it
    start there.

    Parameters
    ----------
    solver : Solver
    scale : float
        Size of the eigenvalues.
    what : str
        The equations, for messages.
    """

    def __init__(self, solver: Solver, scale: float, what: str) -> None:
        self._solver, self._scale, self._what = solver, scale, what
        self._known = np.empty(0, dtype=complex)
        self._states: State = ()
        self._rungs = np.array([scale])

    @cached_property
    def _ladder(self) -> State:
        """States at minus the rungs, one below the other, as far down as was asked."""
        return self._solver(-self._rungs[:1], None, None)[0]

    def __call__(self, z: NDArray) -> State:
        """The states at z (Z,), Im z > 0.

        Raises
        ------
        NotConverged
            Naming the equations and the point.
        """
        state, missing = self._from_neighbours(z)
        if missing.size:
            fresh = self._around(z[missing])
            if missing.size == len(z):
                state = fresh
            else:
                for part, found in zip(state, fresh):
                    part[missing] = found
        self._remember(z, state)
        return state

    def _from_neighbours(self, z: NDArray) -> tuple[State, NDArray]:
        """Solve from the nearest known points, and say which of z have none or failed."""
        everything = np.arange(len(z))
        if not self._known.size:
            return (), everything
        distance = np.abs(z[:, None] - self._known)
        nearest = distance.argmin(axis=1)
        close = np.flatnonzero(distance[everything, nearest] <= _CLOSE * np.abs(z))
        if not close.size:
            return (), everything
        start = tuple(part[nearest[close]] for part in self._states)
        found, residual = self._solver(z[close], start, _NEARBY)
        good = residual <= _ENOUGH
        state = tuple(np.empty((len(z), *part.shape[1:]), dtype=part.dtype) for part in found)
        for part, new in zip(state, found):
            part[close[good]] = new[good]
        return state, np.setdiff1d(everything, close[good])

    def _around(self, z: NDArray) -> State:
        """Solve along the circle, in a few big steps or in careful ones."""
        size, angle = np.abs(z), np.angle(z)
        left = state = self._on_the_left(size)
        for share in _ANGLES:
            turned = np.maximum(np.pi * share, angle)
            state, _ = self._solver(size * np.exp(1j * turned), state, _ON_THE_WAY)
        state, residual = self._solver(z, state, _ATTEMPT)
        late = np.flatnonzero(~(residual <= _ENOUGH))
        if late.size:

            def point(turn: NDArray, which: NDArray) -> NDArray:
                there = late[which]
                turned = size[there] * np.exp(1j * turn)
                return np.where(turn == angle[there], z[there], turned)

            start = tuple(part[late].astype(complex) for part in left)
            some = self._walk(start, np.full(len(late), np.pi), angle[late], point)
            for part, found in zip(state, some):
                part[late] = found
        return state

    def _on_the_left(self, size: NDArray) -> State:
        """The states at −size: above the scale from any start, below it from the rung above."""
        while self._rungs[-1] > size.min():
            lower = self._rungs[-1:] * _SHRINK
            start = tuple(part[-1:].copy() for part in self._ladder)
            rung = self._walk(start, self._rungs[-1:], lower, lambda x, which: -x)
            self._rungs = np.concatenate([self._rungs, lower])
            self._ladder = tuple(np.concatenate(pair) for pair in zip(self._ladder, rung))
        above = np.flatnonzero(size >= self._scale)
        below = np.flatnonzero(size < self._scale)
        nearest = np.searchsorted(-self._rungs, -size[below], side="right") - 1
        state = tuple(
            np.empty((len(size), *part.shape[1:]), dtype=part.dtype) for part in self._ladder
        )
        if above.size:
            found, _ = self._solver(-size[above], None, None)
            for part, new in zip(state, found):
                part[above] = new
        if below.size:
            start = tuple(part[nearest] for part in self._ladder)
            found = self._walk(start, self._rungs[nearest], size[below], lambda x, which: -x)
            for part, new in zip(state, found):
                part[below] = new
        return state

    def _walk(
        self,
        state: State,
        here: NDArray,
        goal: NDArray,
        point: Callable[[NDArray, NDArray], NDArray],
    ) -> State:
        """Follow states along paths whose parameter falls, in steps that shorten where they
        fail.
        """
        here, factor = here.copy(), np.full(len(here), _SHRINK)
        while np.any(here > goal):
            todo = np.flatnonzero(here > goal)
            trial = np.maximum(factor[todo] * here[todo], goal[todo])
            z = point(trial, todo)
            found, residual = self._solver(z, tuple(part[todo] for part in state), _ATTEMPT)
            good = residual <= _ENOUGH
            moved = todo[good]
            for part, new in zip(state, found):
                part[moved] = new[good]
            here[moved] = trial[good]
            factor[todo[~good]] **= 0.5
            if np.any(factor > _SHORTEST):
                worst = int(np.argmax(factor[todo]))
                raise NotConverged(
                    f"{self._what} at z = {z[worst]:.6g}",
                    float(residual[worst]),
                    _ATTEMPT,
                    "another rate or width",
                )
        return state

    def _remember(self, z: NDArray, state: State) -> None:
        if not self._states:
            self._known, self._states = z, state
            return
        self._known = np.concatenate([self._known, z])[-_MEMORY:]
        self._states = tuple(
            np.concatenate([old, new])[-_MEMORY:] for old, new in zip(self._states, state)
        )
