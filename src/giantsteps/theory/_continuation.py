"""Continuation from large Im z to the real axis, where resolvents are hard to solve for."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from giantsteps.errors import NotConverged

__all__ = ["Solver", "State", "continuation"]

#: Stages of the continuation, and Im z/|z| before the last one.
_STAGES, _LAST = 7, 1e-2
#: Rounds for the last one, and the factor of Im z where they do not suffice.
_ATTEMPT, _SHRINK = 12, 0.1
_ENOUGH = 1e-9

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
    follows it. Close to an edge the last jump is too far, and those points come down slowly.

    Raises
    ------
    NotConverged
        Naming ``what`` and the point.
    """
    size = np.abs(z)
    top = 10.0 * (size + scale)
    start: State | None = None
    for share in np.linspace(0.0, 1.0, _STAGES):
        height = np.maximum(z.imag, top * (_LAST * size / top) ** share)
        start, _ = solver(z.real + 1j * height, start, None)
    assert start is not None
    state, residual = solver(z, start, _ATTEMPT)
    late = np.flatnonzero(~(residual <= _ENOUGH))
    if not late.size:
        return state
    target, height = z[late], height[late]
    some = tuple(part[late] for part in start)
    while np.any(height > target.imag):
        height = np.maximum(_SHRINK * height, target.imag)
        some, residual = solver(target.real + 1j * height, some, None)
    if not np.all(residual <= _ENOUGH):
        worst = int(np.argmax(residual))
        raise NotConverged(
            f"{what} at z = {target[worst]:.6g}",
            float(residual[worst]),
            _STAGES,
            "another rate, or bulk='isotropic'",
        )
    for part, found in zip(state, some):
        part[late] = found
    return state
