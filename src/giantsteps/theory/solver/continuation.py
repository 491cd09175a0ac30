"""Continuation from negative z to the positive axis, where resolvents are hard to solve for."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from giantsteps.errors import NotConverged

#: Ratio of neighbouring rungs, and the largest power of z that a part of a state follows.
_RUNG, _POWER = 10**-0.5, 2.0
#: What is left of a way from a rung (in log z) after each of a few big steps, and their rounds.
_BIG, _ON_THE_WAY = (0.4, 0.1), 2
#: Rounds at the end and from a neighbour; what careful steps leave of a way at first, at best and
#: at worst; and below what the goal is tried, of which that much is left where it fails.
_ATTEMPT, _NEARBY, _LEAVES, _BEST, _WORST, _LAST = 20, 12, 0.3, 0.1, 0.99, 0.02
_ENOUGH = 1e-6
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
    """States at points z of the upper half-plane, each followed from a point of the imaginary axis.

    At z = −scale every start leads to the solution; from there it is followed to i·scale, and up
    and down a ladder of points of the imaginary axis, where nothing is singular and states are
    close to powers of z. From the nearest rung Newton's method takes a few big steps to z, along a
    line in log z: in the half-plane the solution is unique, so that a point which has converged
    there is right. Where that fails (close to an edge) careful steps are taken. What was solved
    before is remembered, and points close to it start there.

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
        self._ladder: dict[int, State] = {}

    def __call__(self, z: NDArray, start: State | None = None) -> State:
        """The states at z (Z,), Im z > 0; ``start`` is close to them, if it is given; if it is
        empty, nothing that was solved before is.

        Raises
        ------
        NotConverged
            Naming the equations and the point.
        """
        near = np.arange(len(z) if start else 0)
        if start is None:
            near, start = self._neighbours(z)
        missing = np.arange(len(z))
        if near.size:
            found, residual = self._solver(z[near], start, _NEARBY)
            good = residual <= _ENOUGH
            state = tuple(np.empty((len(z), *part.shape[1:]), dtype=part.dtype) for part in found)
            for part, new in zip(state, found):
                part[near[good]] = new[good]
            missing = np.setdiff1d(missing, near[good])
        if missing.size:
            fresh = self._from_rungs(z[missing])
            if missing.size == len(z):
                state = fresh
            for part, new in zip(state, fresh):
                part[missing] = new
        self._remember(z, state)
        return state

    def _neighbours(self, z: NDArray) -> tuple[NDArray, State]:
        """Which of z have known points nearby, and the states there."""
        if not self._known.size:
            return np.empty(0, dtype=int), ()
        distance = np.abs(z[:, None] - self._known)
        nearest = distance.argmin(axis=1)
        close = np.flatnonzero(distance[np.arange(len(z)), nearest] <= _CLOSE * np.abs(z))
        return close, tuple(part[nearest[close]] for part in self._states)

    def _from_rungs(self, z: NDArray) -> State:
        """Solve from the nearest rungs."""
        numbers = np.rint(np.log(np.abs(z) / self._scale) / np.log(_RUNG)).astype(int)
        for number in np.unique(numbers):
            self._climb(int(number))
        parts = zip(*(self._ladder[number] for number in numbers.tolist()))
        start = tuple(np.concatenate(part) for part in parts)
        return self._walk(start, self._rung(numbers), z)

    def _rung(self, numbers: NDArray) -> NDArray:
        return np.asarray(1j * self._scale * _RUNG ** np.asarray(numbers, dtype=float))

    def _climb(self, number: int) -> None:
        """Solve at a rung and at all between it and the first one."""
        if not self._ladder:
            left = np.array([-self._scale + 0j])
            state = tuple(part.astype(complex) for part in self._solver(left.real, None, None)[0])
            self._ladder[0] = self._walk(state, left, self._rung(np.zeros(1)))
        side = 1 if number > 0 else -1
        for this in range(side, number + side, side):
            if this not in self._ladder:
                before, goal = self._ladder[this - side], self._rung(np.array([this]))
                state, residual = before, np.array([np.inf])
                if this != side:
                    start = _onwards(self._ladder[this - 2 * side], before)
                    state, residual = self._solver(goal, start, _NEARBY)
                if not residual[0] <= _ENOUGH:
                    state = self._walk(before, self._rung(np.array([this - side])), goal)
                self._ladder[this] = state

    def _walk(self, start: State, here: NDArray, goal: NDArray) -> State:
        """Follow states in a few big steps; those that fail in careful ones."""
        way = np.log(here) - np.log(goal)
        state = start
        for left in _BIG:
            state, _ = self._solver(goal * np.exp(left * way), state, _ON_THE_WAY)
        state, residual = self._solver(goal, state, _ATTEMPT)
        late = np.flatnonzero(~(residual <= _ENOUGH))
        if late.size:
            some = tuple(part[late] for part in start)
            for part, found in zip(state, self._carefully(some, way[late], goal[late])):
                part[late] = found
        return state

    def _carefully(self, state: State, way: NDArray, goal: NDArray) -> State:
        """Follow states in steps that shorten where they fail."""
        state = tuple(part.copy() for part in state)
        left, leaves = np.ones(len(goal)), np.full(len(goal), _LEAVES)
        near = np.full(len(goal), _LAST)  # what is left where the goal itself is tried
        while (todo := np.flatnonzero(left > 0)).size:
            trial = leaves[todo] * left[todo]
            trial = np.where(trial < near[todo], 0.0, trial)
            z = goal[todo] * np.exp(trial * way[todo])
            found, residual = self._solver(z, tuple(part[todo] for part in state), _ATTEMPT)
            good = residual <= _ENOUGH
            for part, new in zip(state, found):
                part[todo[good]] = new[good]
            left[todo[good]] = trial[good]
            leaves[todo] = np.where(good, np.maximum(leaves[todo] ** 2, _BEST), leaves[todo] ** 0.5)
            near[todo] = np.where(good | (trial > 0), near[todo], _LAST * left[todo])
            if np.any(leaves[todo] > _WORST):
                worst = int(np.argmax(leaves[todo]))
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
        self._known = np.concatenate([z, self._known])[:_MEMORY]
        self._states = tuple(
            np.concatenate([new, old])[:_MEMORY] for old, new in zip(self._states, state)
        )


def _onwards(old: State, new: State) -> State:
    """States one rung further: each part is a power of z, if it is a small one."""
    found = []
    for one, two in zip(old, new):
        with np.errstate(all="ignore"):
            ratio = two / one
            small = np.abs(np.log(ratio)) <= -_POWER * np.log(_RUNG)
        found.append(np.where(small, two * ratio, two))
    return tuple(found)
