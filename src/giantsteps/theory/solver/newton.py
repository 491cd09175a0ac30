"""The nonlinear part of the equivalent model by a safeguarded Newton method (theory §5c)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from giantsteps.theory.solver.iterate import ENOUGH, iterate
from giantsteps.theory.solver.numbers import are_numbers, solve_numbers
from giantsteps.theory.solver.state import Equations, State
from giantsteps.types import Array

#: Plain rounds at the start.
_WARM_UP = 1
#: Rounds of a cell, within so many operations, a few seconds; and operations of a round beyond
#: which there is none.
_ROUNDS, _FEWEST = 120, 10
_WORK, _LARGEST = 6_000_000_000, 750_000_000
#: With n > N the solution hardly changes below this penalty.
_TINY = 1e-9


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
    warm_up = _WARM_UP if start is None else 0
    rounds = rounds or _allowed(equations, penalty)
    found = iterate(current, rounds, warm_up)
    parts, residual, iterations = found.parts, found.residual, taken + found.rounds
    if found.point is not None:
        return Solved(found.point, residual, iterations, residual <= ENOUGH)
    left = np.flatnonzero(residual > ENOUGH)
    again_for = rounds - found.last - 1 if rounds < _ROUNDS else rounds
    if start is None and left.size and again_for and not np.iscomplexobj(penalty):
        # A first guess may lie below the solution, from where an ill-conditioned cell creeps.
        rest = equations.take(left)
        point = rest.above(penalty[left])
        again = solve_state(rest, penalty[left], (point.v1, point.tau, point.active), again_for)
        residual[left], iterations[left] = again.residual, iterations[left] + again.iterations
        for part, new in zip(parts, (again.state.v1, again.state.tau, again.state.active)):
            part[left] = new
    state = equations.at(parts[0], parts[1], penalty, parts[2])
    return Solved(state, residual, iterations, residual <= ENOUGH)


def _allowed(equations: Equations, penalty: Array) -> int:
    """Rounds, fewer where each takes long; one where it takes too long to go on."""
    work = equations.system.work
    if np.iscomplexobj(penalty) or (penalty < 0).any():
        return _ROUNDS
    return 1 if work > _LARGEST else min(max(_WORK // work, _FEWEST), _ROUNDS)


def _first(equations: Equations, penalty: Array) -> tuple[State, Array]:
    """Where to start, and rounds taken so far: at the solution where all unknowns are numbers;
    else above it, or for n > N and next to no penalty close to it.
    """
    rounds = np.zeros(len(penalty), dtype=int)
    if np.iscomplexobj(penalty) or (penalty < 0).any():
        return equations.above(penalty), rounds
    if are_numbers(equations):
        point, rounds = solve_numbers(equations, penalty)
        known = np.isfinite(point).all(axis=0)
        if known.all():
            v1, tau, active = point[:, :, None]
            return equations.at(v1, tau, penalty, active[:, :, None]), rounds
    start = equations.at(*equations.guess(penalty), penalty)
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
