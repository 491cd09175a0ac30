"""The nonlinear part of the equivalent model by a safeguarded Newton method (theory §5c)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from giantsteps.theory.solver.numbers import are_numbers, solve_numbers
from giantsteps.theory.solver.state import Equations, State
from giantsteps.types import Array

TOLERANCE = 1e-13
#: At complex λ_s, for densities.
_OF_DENSITY = 1e-10
#: The tolerance that rounding leaves to an ill-conditioned cell.
_ENOUGH = 1e-11
_WARM_UP = 1
#: Rounds of a cell, within so many operations, a few seconds; and operations of a round beyond
#: which there is none.
_ROUNDS, _FEWEST = 120, 10
_WORK, _LARGEST = 6_000_000_000, 750_000_000
#: Rounds in which the residual of a cell that goes on has halved, or its point has come down.
_PATIENCE = 25
_ROUNDING = 1e-12
#: With n > N the solution hardly changes below this penalty.
_TINY = 1e-9
#: A residual that falls so much in a round goes on with the same derivatives.
_QUICK = 0.1
#: Shares of a Newton step that are tried before a plain one.
_SHARES = (1.0, 0.5, 0.2)


@dataclass(frozen=True, eq=False)
class Solved:
    """Where the solver stopped, cell by cell: the point, residual, rounds and success."""

    state: State
    residual: Array
    iterations: Array
    converged: Array


@np.errstate(all="ignore")  # a cell whose numbers leave the range has no finite residual
def solve_state(
    equations: Equations,
    penalty: Array,
    start: tuple[Array, Array, Array] | None = None,
    rounds: int | None = None,
) -> Solved:
    """Solve for (V₁, τ, 𝔤) at the penalties λ_s (B,), real and positive or complex.

    For λ_s > 0 the map is monotone and subhomogeneous: its plain iteration converges from
    everywhere, and Newton's method from above. A Newton step that leaves the cone (V > 0, τ > 0;
    for complex λ_s = −z the upper half-plane) or makes the residual worse is replaced by a plain
    one. Each cell is frozen when it has converged, so no cell sees its neighbours; with a start at
    complex λ_s they decide together when derivatives are taken anew.
    """
    if start is None:
        current, taken = _first(equations, penalty)
    else:
        v1, tau, inner = (np.asarray(part, np.result_type(part, penalty)) for part in start)
        current, taken = equations.at(v1, tau, penalty, inner), np.zeros(len(penalty), dtype=int)
    dtype = np.result_type(current.v1, current.tau, penalty)
    parts = [np.array(part, dtype=dtype) for part in (current.v1, current.tau, current.active)]
    cells = len(penalty)
    residual, iterations = np.full(cells, np.inf), taken.copy()
    active = np.arange(cells)
    tolerance = _OF_DENSITY if np.iscomplexobj(penalty) else TOLERANCE
    marks, since, last = np.full(cells, np.inf), np.zeros(cells, dtype=int), parts[1].copy()
    # Near a start at complex λ_s cells go on with derivatives of an earlier round, if all gain.
    nearby = start is not None and np.iscomplexobj(penalty)
    by, before, going = None, np.full(cells, np.inf), np.ones(cells, dtype=bool)
    rounds = rounds or _allowed(equations, penalty)
    count = 0
    for count in range(rounds):
        gap = current.gap
        better = (gap < residual[active]) & going
        residual[active[better]] = gap[better]
        iterations[active] = taken[active] + count
        for part, new in zip(parts, (current.v1, current.tau, current.active)):
            part[active[better]] = new[better]
        # Converged, or as close as rounding allows: the last step did not help.
        keep = ~((gap <= tolerance) | (~better & (residual[active] <= _ENOUGH)))
        halved = residual[active] < 0.5 * marks[active]
        marks[active[halved]] = residual[active[halved]]
        down = np.all((current.tau <= last[active]).real, axis=1)  # on its way from above
        since[active[halved | down]] = count
        last[active] = current.tau
        keep &= (count - since[active] <= _PATIENCE) & (np.isfinite(gap) | (count == 0)) & going
        if not keep.any():
            if len(active) == cells and better.all() and np.all(residual <= _ENOUGH):
                return Solved(current, residual, iterations, residual <= _ENOUGH)
            break
        if by is None or not np.all(gap[keep] <= _QUICK * before[keep]):
            if not keep.all():
                active, gap = active[keep], gap[keep]
                current, keep = current.take(keep), keep[keep]
            by = current if nearby else None
        before, going = gap, keep
        current = _step(current, start is None and count < _WARM_UP, by)
    left = np.flatnonzero(residual > _ENOUGH)
    again_for = rounds - count - 1 if rounds < _ROUNDS else rounds
    if start is None and left.size and again_for and not np.iscomplexobj(penalty):
        # A first guess may lie below the solution, from where an ill-conditioned cell creeps.
        rest = equations.take(left)
        point = rest.above(penalty[left])
        again = solve_state(rest, penalty[left], (point.v1, point.tau, point.active), again_for)
        residual[left], iterations[left] = again.residual, iterations[left] + again.iterations
        for part, new in zip(parts, (again.state.v1, again.state.tau, again.state.active)):
            part[left] = new
    state = equations.at(parts[0], parts[1], penalty, parts[2])
    return Solved(state, residual, iterations, residual <= _ENOUGH)


def _allowed(equations: Equations, penalty: Array) -> int:
    """Rounds, fewer where each takes long; one where it takes too long to go on."""
    work = equations.system.work
    if np.iscomplexobj(penalty) or np.any(penalty < 0):
        return _ROUNDS
    return 1 if work > _LARGEST else min(max(_WORK // work, _FEWEST), _ROUNDS)


def _first(equations: Equations, penalty: Array) -> tuple[State, Array]:
    """Where to start, and rounds taken so far: at the solution where all unknowns are numbers;
    else above it, or for n > N and next to no penalty close to it.
    """
    rounds = np.zeros(len(penalty), dtype=int)
    if np.iscomplexobj(penalty) or np.any(penalty < 0):
        return equations.above(penalty), rounds
    guess = equations.guess(penalty)
    if are_numbers(equations):
        point, rounds = solve_numbers(equations, penalty, *guess)
        known = np.isfinite(point).all(axis=0)
        if known.all():
            v1, tau, active = point[:, :, None]
            return equations.at(v1, tau, penalty, active[:, :, None]), rounds
    start = equations.at(*guess, penalty)
    tiny = np.flatnonzero((penalty > 0) & (penalty < _TINY) & (equations.system.ratio > 1))
    parts = [np.array(part) for part in (start.v1, start.tau, start.active)]
    if tiny.size:
        near = solve_state(equations.take(tiny), np.full(len(tiny), _TINY)).state
        for part, found in zip(parts, (near.v1, near.tau, near.active)):
            part[tiny] = found
    if are_numbers(equations):
        for part, found in zip(parts, point):
            part[known] = found[known].reshape(-1, *part.shape[1:])
    return equations.at(parts[0], parts[1], penalty, parts[2]), rounds


def _step(current: State, plain: bool, by: State | None) -> State:
    """A Newton step where it helps, shortened if need be, and a plain step elsewhere; with the
    derivatives of an earlier point, if there is one.
    """
    image = (*current.image, 0.5 * (current.active + current.dyson.image))
    if plain:
        return current.move(*image)
    goal = current.newton(by)
    bold = current.move(*goal)
    good = _helps(current, bold)
    if good.all():
        return bold
    here = (current.v1, current.tau, current.active)
    chosen = [part.copy() for part in image]
    waiting = np.ones(len(current.tau), dtype=bool)
    for share in _SHARES:
        if share < 1:
            bold = current.move(*(a + share * (b - a) for a, b in zip(here, goal)))
            good = _helps(current, bold)
        good &= waiting
        for part, new in zip(chosen, (bold.v1, bold.tau, bold.active)):
            part[good] = new[good]
        waiting &= ~good
        if not waiting.any():
            break
    return current.move(*chosen)


def _helps(current: State, bold: State) -> Array:
    """Whether a step stays in the cone and comes closer to the solution.

    At complex λ_s the residual may rise on the way, and to stay in the half-plane is enough.
    """
    if np.iscomplexobj(bold.penalty):
        return np.asarray(_inside(bold) & np.isfinite(bold.gap))
    closer = bold.gap < current.gap
    if not closer.all():
        closer |= _descends(current, bold)
    return np.asarray(_inside(bold) & closer)


def _descends(current: State, bold: State) -> Array:
    """Whether the step went down and stays above the solution, on its way from above."""
    return np.all((bold.tau <= current.tau) & (bold.image[1] <= bold.tau), axis=1)


def _inside(point: State) -> Array:
    """Whether V and τ are positive, or, at complex λ_s, in the upper half-plane."""
    part = np.imag if np.iscomplexobj(point.penalty) else np.real
    size = np.abs(point.variance).max(axis=1, keepdims=True)
    upper = np.all(part(point.tau) > -_ROUNDING * np.abs(point.tau), axis=1)
    return upper & np.all(part(point.variance) > -_ROUNDING * size, axis=1)
