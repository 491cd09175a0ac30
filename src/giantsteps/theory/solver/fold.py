"""Real solutions outside a bulk, and its edges, where two of them meet (theory §5d)."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from giantsteps.types import Array, FloatArray

_ROUNDS, _CORRECTIONS = 40, 8
_TOLERANCE, _ENOUGH = 1e-13, 1e-10
#: Largest relative change of the parameter in one round.
_STRIDE = 0.5

#: Arrays whose first axis runs over the points x.
State = tuple[Array, ...]


class Branch(Protocol):
    """Equations F(u, x) = 0 for unknowns u that are real at real x outside the bulk."""

    def linearised(self, state: State, x: FloatArray) -> tuple[State, State, FloatArray]:
        """The Newton step at fixed x, du/dx, and the residual, one number per point."""

    def parameter(self, state: State) -> FloatArray:
        """A linear function of u that grows with x between two parts of the bulk."""


def settle(branch: Branch, state: State, x: FloatArray) -> tuple[State, FloatArray]:
    """Newton's method at fixed x; the state and its residual."""
    with np.errstate(all="ignore"):
        for _ in range(_CORRECTIONS):
            step, _, gap = branch.linearised(state, x)
            done = gap <= _TOLERANCE
            if done.all():
                return state, gap
            state = _moved(state, step, ~done)
        return state, branch.linearised(state, x)[2]


def follow_to_fold(branch: Branch, state: State, x: FloatArray, within: FloatArray) -> FloatArray:
    r"""Edges of the bulk from points outside it, all side by side.

    An edge is a fold: as a function of s, a linear function of the unknowns, x passes through an
    extremum there while all else is smooth. A secant method finds dx/ds = 0, and Newton's method
    solves for (u, x) at given s, so that nothing diverges near the edge.

    Parameters
    ----------
    branch : Branch
    state : State
        Solutions at ``x``.
    x : ndarray of shape (E,)
        Points outside the bulk.
    within : ndarray of shape (E,)
        Points inside it, beyond the edges that are looked for.

    Returns
    -------
    ndarray of shape (E,)
        The edges, or NaN where the search has failed.
    """
    x = np.array(x, dtype=float)
    outside = x.copy()
    with np.errstate(all="ignore"):
        s = branch.parameter(state)
        slope = 1.0 / branch.parameter(branch.linearised(state, x)[1])
        change = (within - x) / slope
        done, lost = np.zeros(len(x), dtype=bool), np.zeros(len(x), dtype=bool)
        for _ in range(_ROUNDS):
            change = np.where(done | lost, 0.0, change)
            limit = _STRIDE * np.abs(s)
            change = np.clip(change, -limit, limit)
            goal = s + change
            state, x, new, gap = _correct(branch, state, x, goal)
            lost |= ~(gap <= _ENOUGH)
            curve = (new - slope) / np.where(change == 0, 1.0, change)
            s, slope = goal, new
            change = np.where(curve == 0, 0.0, -slope / curve)
            done |= ~lost & (np.abs(slope * change) <= _TOLERANCE * np.abs(x))
            if np.all(done | lost):
                break
        between = (x - within) * (x - outside) <= 0
        return np.asarray(np.where(done & between, x, np.nan))


def _correct(
    branch: Branch, state: State, x: FloatArray, goal: FloatArray
) -> tuple[State, FloatArray, FloatArray, FloatArray]:
    """Newton's method for (u, x) at given s; also dx/ds and the residual."""
    for _ in range(_CORRECTIONS):
        step, tangent, gap = branch.linearised(state, x)
        missing = goal - branch.parameter(state)
        if np.all((gap <= _TOLERANCE) & (np.abs(missing) <= _TOLERANCE * np.abs(goal))):
            break
        slope = 1.0 / branch.parameter(tangent)
        move = (missing - branch.parameter(step)) * slope
        state = tuple(u + a + _column(move, b) * b for u, a, b in zip(state, step, tangent))
        x = x + move
    _, tangent, gap = branch.linearised(state, x)
    return state, x, 1.0 / branch.parameter(tangent), gap


def _moved(state: State, step: State, which: Array) -> State:
    return tuple(u + np.where(_column(which, a), a, 0.0) for u, a in zip(state, step))


def _column(values: Array, like: Array) -> Array:
    return np.asarray(values.reshape(len(values), *(1,) * (like.ndim - 1)))
