"""The nonlinear part of the equivalent model: resolvent traces by a safeguarded Newton method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from giantsteps.theory._resolvent import Equations, Resolvent

__all__ = ["Solved", "solve"]

TOLERANCE = 1e-12
_WARM_UP = 3
_ROUNDS = 120
_ROUNDING = 1e-12
#: Shares of a Newton step that are tried before a plain one.
_LENGTHS = (1.0, 0.5, 0.2)


@dataclass(frozen=True, eq=False)
class Solved:
    """Where the solver stopped: (V1, τ), residual, rounds and success, cell by cell."""

    v1: NDArray
    tau: NDArray
    residual: NDArray
    iterations: NDArray
    converged: NDArray


def solve(
    equations: Equations,
    penalty: NDArray,
    start: tuple[NDArray, ...] | None = None,
    rounds: int | None = None,
    guarded: bool = True,
) -> Solved:
    """Solve for (V1, τ) at the penalties λ_s (B,), real and positive or complex.

    For λ_s > 0 the map is monotone and subhomogeneous: its plain iteration converges from
    everywhere, and Newton's method from above. A Newton step that leaves the cone (V > 0, τ > 0;
    for complex λ_s = −z the upper half-plane) or makes the residual worse is replaced by a plain
    one. Each cell is frozen when it has converged, so no cell sees its neighbours. Without guard
    (real λ_s = −x outside the bulk, from a start nearby) every step is Newton's.
    """
    v1, tau = equations.start(penalty) if start is None else start
    dtype = np.result_type(v1.dtype, penalty.dtype)
    v1, tau = v1.astype(dtype), np.array(tau, dtype=dtype)
    cells = len(penalty)
    residual, iterations = np.full(cells, np.inf), np.zeros(cells, dtype=int)
    active = np.arange(cells)
    current = equations.at(v1, tau, penalty)
    for count in range(rounds or _ROUNDS):
        gap = current.gap
        residual[active], iterations[active] = gap, count
        v1[active], tau[active] = current.v1, current.tau
        keep = ~(gap <= TOLERANCE)
        if not keep.any():
            break
        if not keep.all():
            active = active[keep]
            current = current.take(keep)
        if guarded:
            current = _step(current, plain=start is None and count < _WARM_UP)
        else:
            current = current.move(*current.newton())
    return Solved(v1, tau, residual, iterations, residual <= TOLERANCE)


def _step(current: Resolvent, plain: bool) -> Resolvent:
    """A Newton step where it helps, shortened if need be, and a plain step elsewhere."""
    v1, tau = current.image
    if plain:
        return current.move(v1, tau)
    goal = current.newton()
    v1, tau = v1.copy(), tau.copy()
    waiting = np.ones(len(tau), dtype=bool)
    for length in _LENGTHS:
        bold = current.move(
            current.v1 + length * (goal[0] - current.v1),
            current.tau + length * (goal[1] - current.tau),
        )
        with np.errstate(invalid="ignore", over="ignore"):
            good = _inside(bold) & ((bold.gap < current.gap) | _descends(current, bold))
        if length == 1 and good.all():
            return bold
        good &= waiting
        v1[good], tau[good] = bold.v1[good], bold.tau[good]
        waiting &= ~good
        if not waiting.any():
            break
    return current.move(v1, tau)


def _descends(current: Resolvent, bold: Resolvent) -> NDArray:
    """Whether the step went down and stays above the solution, on its way from above."""
    if np.iscomplexobj(bold.penalty):
        return np.zeros(len(bold.penalty), dtype=bool)
    return np.all((bold.tau <= current.tau) & (bold.image[1] <= bold.tau), axis=1)


def _inside(point: Resolvent) -> NDArray:
    """Whether V and τ are positive, or, at complex λ_s, in the upper half-plane."""
    part = np.imag if np.iscomplexobj(point.penalty) else np.real
    size = np.abs(point.spread).max(axis=1, keepdims=True)
    upper = np.all(part(point.tau) > -_ROUNDING * np.abs(point.tau), axis=1)
    return upper & np.all(part(point.spread) > -_ROUNDING * size, axis=1)
