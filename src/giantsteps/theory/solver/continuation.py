"""Continuation from large Im z to the real axis, where resolvents are hard to solve for."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from giantsteps.errors import NotConverged

__all__ = ["Continuation", "Solver", "State"]

#: Stages of the continuation, and Im z/|z| before the last one.
_STAGES, _LAST = 7, 1e-2
#: Rounds of a stage, and the factor of Im z where the stages do not suffice.
_ATTEMPT, _SHRINK = 20, 0.1
_ENOUGH = 1e-9
_SHORTEST = 0.99
#: Relative distance of a known point that is worth starting from, and how many are kept.
_CLOSE, _MEMORY = 0.3, 1024

#: Arrays whose first axis runs over the points z.
State = tuple[NDArray, ...]


class Solver(Protocol):
    """Solves for the state at points z in the upper half-plane."""

    def __call__(
        self, z: NDArray, start: State | None, rounds: int | None
    ) -> tuple[State, NDArray]:
        """The state and its residual, one number a point."""


class Continuation:
    """States at points z of the upper half-plane, each followed down from Im z ≫ |z| + scale.

    Far from the real axis every start leads to the solution; on the way down Newton's method
    follows it. Where a few big steps are too few (close to an edge), careful ones are taken. What
    was solved before is remembered, and points close to it start there.

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

    def __call__(self, z: NDArray) -> State:
        """The states at z (Z,), Im z > 0.

        Raises
        ------
        NotConverged
            Naming the equations and the point.
        """
        state, missing = self._from_neighbours(z)
        if missing.size:
            fresh = self._from_above(z[missing])
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
        found, residual = self._solver(z[close], start, _ATTEMPT)
        good = residual <= _ENOUGH
        state = tuple(np.empty((len(z), *part.shape[1:]), dtype=part.dtype) for part in found)
        for part, new in zip(state, found):
            part[close[good]] = new[good]
        return state, np.setdiff1d(everything, close[good])

    def _from_above(self, z: NDArray) -> State:
        size = np.abs(z)
        top = 10.0 * (size + self._scale)
        state: State | None = None
        for share in np.linspace(0.0, 1.0, _STAGES):
            height = np.maximum(z.imag, top * (_LAST * size / top) ** share)
            state, _ = self._solver(z.real + 1j * height, state, _ATTEMPT)
        assert state is not None
        state, residual = self._solver(z, state, _ATTEMPT)
        late = np.flatnonzero(~(residual <= _ENOUGH))
        if late.size:
            some = _descend(self._solver, z[late], top[late], self._what)
            for part, found in zip(state, some):
                part[late] = found
        return state

    def _remember(self, z: NDArray, state: State) -> None:
        if not self._states:
            self._known, self._states = z, state
            return
        self._known = np.concatenate([self._known, z])[-_MEMORY:]
        self._states = tuple(
            np.concatenate([old, new])[-_MEMORY:] for old, new in zip(self._states, state)
        )


def _descend(solver: Solver, z: NDArray, height: NDArray, what: str) -> State:
    """Come down to z from Re z + i height, in steps that shorten where they fail."""
    height = height.copy()
    state, _ = solver(z.real + 1j * height, None, None)
    factor = np.full(len(z), _SHRINK)
    while np.any(height > z.imag):
        active = np.flatnonzero(height > z.imag)
        trial = np.maximum(factor[active] * height[active], z.imag[active])
        start = tuple(part[active] for part in state)
        found, residual = solver(z.real[active] + 1j * trial, start, _ATTEMPT)
        good = residual <= _ENOUGH
        moved = active[good]
        for part, new in zip(state, found):
            part[moved] = new[good]
        height[moved] = trial[good]
        factor[active[~good]] **= 0.5
        if np.any(factor > _SHORTEST):
            worst = int(np.argmax(factor))
            raise NotConverged(
                f"{what} at z = {z[worst]:.6g}",
                float(np.max(residual)),
                _ATTEMPT,
                "another rate, or bulk='isotropic'",
            )
    return state
