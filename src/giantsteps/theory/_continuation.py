"""Continuation from large Im z to the real axis, where resolvents are hard to solve for."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from giantsteps.errors import NotConverged

__all__ = ["Solver", "State", "continuation"]

#: Stages of the continuation, and Im z/|z| before the last one.
_STAGES, _LAST = 7, 1e-2
#: Rounds of a stage, and the factor of Im z where the stages do not suffice.
_ATTEMPT, _SHRINK = 20, 0.1
_ENOUGH = 1e-9
_SHORTEST = 0.99

#: Arrays whose first axis runs over the points z.
State = tuple[NDArray, ...]


class Solver(Protocol):
    """Solves for the state at points z in the upper half-plane."""

    def __call__(
        self, z: NDArray, start: State | None, rounds: int | None
    ) -> tuple[State, NDArray]:
        """The state and its residual, one number a point."""


def continuation(solver: Solver, z: NDArray, scale: float, what: str) -> State:
    """The states at z (Z,), Im z > 0, each followed down from Im z ≫ |z| + scale.

    Far from the real axis every start leads to the solution; on the way down Newton's method
    follows it. Where a few big steps are too few (close to an edge), careful ones are taken.

    Raises
    ------
    NotConverged
        Naming ``what`` and the point.
    """
    size = np.abs(z)
    top = 10.0 * (size + scale)
    state: State | None = None
    for share in np.linspace(0.0, 1.0, _STAGES):
        height = np.maximum(z.imag, top * (_LAST * size / top) ** share)
        state, _ = solver(z.real + 1j * height, state, _ATTEMPT)
    assert state is not None
    state, residual = solver(z, state, _ATTEMPT)
    late = np.flatnonzero(~(residual <= _ENOUGH))
    if late.size:
        some = _descend(solver, z[late], top[late], what)
        for part, found in zip(state, some):
            part[late] = found
    return state


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
