"""Real solutions outside a bulk, and its edges, where two of them meet (theory §5d)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from giantsteps.types import Array, FloatArray

#: Rounds of a search for a fold, how many of them may fail in a row, and rounds of Newton's method.
_ROUNDS, _FAILURES, _CORRECTIONS = 20, 9, 8
#: How far beyond a bracket, relative to its width, a search for a fold in it may go.
_ROOM = 4.0
#: A residual that falls so much in a round goes on with the derivatives of an earlier one, and
#: begins with them if it is so much smaller than one.
_QUICK = 0.1
_TOLERANCE, _ENOUGH = 1e-13, 1e-10
#: Largest relative change of the parameter in one round, and what is left of a change that failed.
_STRIDE, _SHORTER = 0.5, 0.3
#: On the way down to the largest edge: rounds, how much of x one takes at most, how much a stride
#: may grow, and the shortest one, relative to the first.
_DESCENT, _SHARE, _GROWTH, _SHORTEST = 200, 0.5, 2.0, 1e-8
#: Least share of x that is left after one round.
_LEAST = 0.2
#: How much s²|dx/ds| may grow in one, and a relative change of s that is not shortened for it.
_GROWS, _SMALL = 1.001, 1e-3
#: What is a last round there, and how well the others are solved.
_NEAR, _LOOSE = 1e-3, 1e-6

#: A residual that must fall to be worth another round, after the first two.
_HOPELESS = 1e-2
#: How much a round of Newton's method must gain to be worth another one.
_GAIN = 0.3

#: Arrays whose first axis runs over the points x.
State = tuple[Array, ...]


class Linearised(NamedTuple):
    """Equations at a point: the residual, one number per point x, and what costs more than it."""

    gap: FloatArray
    step: Callable[[Any], State]  # Newton's at fixed x, with the derivatives of a point nearby
    tangent: Callable[[], State]  # du/dx
    point: Any  # whose derivatives may be used nearby


class Branch(Protocol):
    """Equations F(u, x) = 0 for unknowns u that are real at real x outside the bulk."""

    def linearised(self, state: State, x: Array) -> Linearised:
        """The equations around a point."""

    def parameter(self, state: State) -> Array:
        """A linear function of u that grows with x between two parts of the bulk."""

    def regular(self, state: State, x: FloatArray) -> Array:
        """Whether no denominator has changed its sign on the way from x = ∞, one per point."""


def settle(branch: Branch, state: State, x: FloatArray) -> tuple[State, FloatArray]:
    """Newton's method at fixed x; the state and its residual."""
    best, least, last = state, np.full(len(x), np.inf), np.full(len(x), np.inf)
    derivatives, slow = None, 0
    with np.errstate(all="ignore"):
        while True:
            here = branch.linearised(state, x)
            # As close as rounding allows where another round gains nothing.
            done = (here.gap <= _TOLERANCE) | ((least <= _ENOUGH) & ~(here.gap < _GAIN * least))
            better = here.gap < least
            best = tuple(np.where(_column(better, old), new, old) for old, new in zip(best, state))
            least = np.where(better, here.gap, least)
            if slow == _CORRECTIONS or done.all():
                break
            if not np.all(done | (here.gap <= _QUICK * last)):
                derivatives, slow = here.point, slow + 1
            last = here.gap
            state = _moved(state, here.step(derivatives), ~done)
    return best, least


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
        The edges, or NaN where the search has failed: at once where s does not grow with x, on
        another branch, or where x leaves the bracket.
    """
    x = np.array(x, dtype=float)
    outside, room = x.copy(), _ROOM * np.abs(within - x)
    with np.errstate(all="ignore"):
        s = branch.parameter(state)
        slope = 1.0 / branch.parameter(branch.linearised(state, x).tangent())
        change = (within - x) / slope
        done, failures = np.zeros(len(x), dtype=bool), np.where(slope > 0, 0.0, np.inf)
        for _ in range(_ROUNDS):
            if np.all(done | (failures > _FAILURES)):
                break
            limit = _STRIDE * np.abs(s)
            change = np.where(done, 0.0, np.clip(change, -limit, limit))
            found, new_x, there = _correct(branch, state, x, s + change)
            new = 1.0 / branch.parameter(there.tangent())
            good = (there.gap <= _ENOUGH) & ~done & (failures <= _FAILURES)
            curve = (new - slope) / np.where(change == 0, 1.0, change)
            state = tuple(np.where(_column(good, u), v, u) for u, v in zip(state, found))
            s, x = np.where(good, s + change, s), np.where(good, new_x, x)
            slope = np.where(good, new, slope)
            onwards = np.where(curve == 0, 0.0, -slope / curve)
            change = np.where(good, onwards, _SHORTER * change)
            done |= good & (np.abs(slope * change) <= _TOLERANCE * np.abs(x))
            strayed = np.minimum(np.abs(x - outside), np.abs(x - within)) > room
            failures = np.where(good & ~strayed, 0.0, failures + np.where(strayed, np.inf, 1.0))
        between = (x - within) * (x - outside) <= 0
        return np.asarray(np.where(done & between, x, np.nan))


class Descent(NamedTuple):
    """Real solutions above the bulk, the largest x first, the edge (NaN: not found), and whether it
    is a pole.
    """

    x: FloatArray
    states: State
    edge: float
    pole: bool


def descend(
    branch: Branch, state: State, x: float, lowest: float, share: float = _SHARE
) -> Descent:
    """The branch of real solutions from a point above the bulk down to its largest edge.

    Above the bulk there is one branch, on which x is a smooth function of the parameter s up to its
    minimum: the first fold on the way down is the edge, however little mass there is below it. As s
    is the transform of a positive measure, s²|dx/ds| falls on the way: where it grows, a round has
    jumped over the fold to another branch, and no edge is found. A quadrature with weights of both
    signs may have a pole in its place: the edge is there.

    Parameters
    ----------
    branch : Branch
    state : State
        The solution at ``x``, a single point.
    x : float
        A point above the bulk.
    lowest : float
        A point that the edge cannot be below: the mean.
    share : float
        Of x that the first round takes.
    """
    here = np.array([float(x)])
    path, states, edge, pole = [float(x)], [state], np.nan, False
    with np.errstate(all="ignore"):
        s = branch.parameter(state)
        start = branch.linearised(state, here)
        known = start.point, start.tangent()
        slope = 1.0 / branch.parameter(known[1])
        first, bent = s**2 * slope, np.array([np.inf])
        before: State = ()  # s, x and the unknowns at the point before
        change = -share * here / slope
        down, shortest = np.sign(change[0]), _SHORTEST * abs(change[0])
        beyond = np.inf  # how far s may go, where a pole was met
        for _ in range(_DESCENT):
            near = abs(slope[0] * change[0]) <= _NEAR * here[0]
            tolerance = _TOLERANCE if near else _LOOSE
            ahead, guess = _ahead((s, here, *state), before, (slope, *known[1]), change)
            found, new_x, there = _correct(branch, guess, ahead, s + change, tolerance, known)
            fell = _LEAST * path[-1] <= new_x[0] <= path[-1] * (1.0 + _ENOUGH)
            solved = bool(there.gap[0] <= max(tolerance, _ENOUGH))
            regular = solved and new_x[0] >= lowest and bool(branch.regular(found, new_x)[0])
            good, rate = fell and regular, slope
            if good:
                along = there.tangent()
                rate = 1.0 / branch.parameter(along)
                grew = (s + change) ** 2 * rate / (s**2 * slope)
                good = bool(grew[0] <= _GROWS)
                if not good and abs(change[0]) <= _SMALL * abs(s[0]):
                    break
            if not good:
                if abs(change[0]) <= shortest:
                    pole = bool(np.isfinite(beyond))
                    break
                if solved and not regular:
                    beyond = min(beyond, down * (s + change)[0])
                change = 0.5 * change
                continue
            before = s, here, *state
            stride, s, state, here = abs(change[0]), s + change, found, new_x
            known, slope, old = (there.point, along), rate, bent
            # With one pole beyond the fold this is linear in s.
            bent = 1.0 / np.sqrt(1.0 - s**2 * slope / first)
            change = change * (1.0 - bent) / (bent - old)
            if near and abs(slope[0] * change[0]) <= _TOLERANCE * here[0]:
                edge = float(here[0])
                break
            if slope[0] * down < 0:  # not beyond the fold
                path.append(float(here[0]))
                states.append(state)
                most = min(_GROWTH * stride, abs(_SHARE * here[0] / slope[0]))
                most = min(most, 0.5 * (beyond - down * s[0]))
                if most <= shortest:
                    pole = True
                    break
                onwards = change[0] * down > 0
                change = np.array([down * (min(abs(change[0]), most) if onwards else most)])
    parts = tuple(np.concatenate(found) for found in zip(*states))
    return Descent(np.array(path), parts, path[-1] if pole else edge, pole)


def _ahead(
    here: State, before: State, along: State, change: FloatArray
) -> tuple[FloatArray, State]:
    """x and u where s has changed so much: parabolas through the points here and before, each
    (s, x, u), with the slope dx/ds and the tangent du/dx here.
    """
    slope, back = along[0], before[0] - here[0] if before else change
    found = []
    for number, (value, rate) in enumerate(zip(here[1:], along), start=1):
        rate = rate if number == 1 else _column(slope, rate) * rate
        moved = value + _column(change, rate) * rate
        if before:
            bend = before[number] - value - _column(back, rate) * rate
            moved = moved + _column((change / back) ** 2, rate) * bend
        found.append(moved)
    return found[0], tuple(found[1:])


def _correct(
    branch: Branch,
    state: State,
    x: FloatArray,
    goal: FloatArray,
    tolerance: float = _TOLERANCE,
    known: tuple[Any, State] | None = None,
) -> tuple[State, FloatArray, Linearised]:
    """Newton's method for (u, x) at given s, with the equations where it ends.

    With the derivatives and du/dx of a point that is known it begins with them, if it is close,
    and takes others only where it is slow.
    """
    (derivatives, tangent), last, slow = known or (None, ()), np.ones(len(x)), 0
    while True:
        here = branch.linearised(state, x)
        missing = goal - branch.parameter(state)
        done = (here.gap <= tolerance) & (np.abs(missing) <= tolerance * np.abs(goal))
        hopeless = (here.gap > _HOPELESS) & ~(here.gap < last) & (slow > 2)
        if slow == _CORRECTIONS or np.all(done | hopeless):
            break
        if derivatives is None or not np.all(done | (here.gap <= _QUICK * last)):
            derivatives, slow = here.point if known else None, slow + 1
            tangent = here.tangent()
        last = here.gap
        step = here.step(derivatives)
        move = (missing - branch.parameter(step)) / branch.parameter(tangent)
        state = tuple(u + a + _column(move, b) * b for u, a, b in zip(state, step, tangent))
        x = x + move
    return state, x, here


def _moved(state: State, step: State, which: Array) -> State:
    return tuple(u + np.where(_column(which, a), a, 0.0) for u, a in zip(state, step))


def _column(values: Array, like: Array) -> Array:
    return np.asarray(values.reshape(len(values), *(1,) * (like.ndim - 1)))
