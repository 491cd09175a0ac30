"""How the equations behind an answer were solved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from giantsteps.answers._leaves import Leaf, Record, as_leaf


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution(Record):
    """How a system of equations was solved.

    Attributes
    ----------
    status : str
        ``"converged"``, ``"closed form"``, …
    residual : float or ndarray
        Residual of the equations; over a grid one number per cell, or one for all.
    iterations : float or ndarray
        Iterations of the solver, of the shape of ``residual``.
    error : float or ndarray
        Estimate of the relative error of the answer itself, from its quadratures (by a second
        resolution), its linear systems and its truncations. NaN where there is none.
    """

    status: str
    residual: Leaf = 0.0
    iterations: Leaf = 0.0
    error: Leaf = np.nan

    def __post_init__(self) -> None:
        names = ("residual", "iterations", "error")
        values: Any = [getattr(self, name) for name in names]
        if all(type(value) is float for value in values):
            return
        values = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in values))
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, as_leaf(value, np.shape(value), name))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the leaves, ``()`` for one number."""
        return np.shape(self.residual)


def union(groups: Any) -> tuple[str, ...]:
    """Every entry once, in the order first seen."""
    return tuple(dict.fromkeys(entry for group in groups for entry in group))


def stack_solutions(
    shape: tuple[int, ...], solutions: Sequence[Solution | None]
) -> Solution | None:
    known = [solution for solution in solutions if solution is not None]
    if len(known) < len(solutions) or not known:
        return None
    return Solution(
        status=", ".join(union([solution.status] for solution in known)),
        residual=np.reshape([solution.residual for solution in known], shape),
        iterations=np.reshape([solution.iterations for solution in known], shape),
        error=np.reshape([solution.error for solution in known], shape),
    )
