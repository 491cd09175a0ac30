"""What a run has learned after each of its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from giantsteps.answers import Trajectory
from giantsteps.errors import InvalidProblem
from giantsteps.simulation._cost import fits_memory
from giantsteps.simulation._engine._arrays import Array
from giantsteps.simulation._engine._largest import largest_of
from giantsteps.simulation._risk import cells_of, errors_of
from giantsteps.simulation._spectrum import as_top, teacher_overlaps

if TYPE_CHECKING:
    from giantsteps.simulation._run import Run

__all__ = ["trajectory"]


def trajectory(run: Run, top: int) -> Trajectory:
    """Errors and leading singular values after 0 … t steps, from one run.

    Weights of all stages are kept, and readout and test points drawn once, where memory allows;
    otherwise each stage draws them again and only its own weights are held.
    """
    if not run.problem.steps:
        raise InvalidProblem("steps", (), "at least one step for this question")
    top = as_top(top, 1)
    xp, count = run.backend.xp, len(run.problem.steps) + 1
    cells = None if run.problem.readout is None else cells_of(run.problem, run.d)
    together = cells is not None and fits_memory(run, cells, count)
    weights = run.start()
    stages: list[Array] = []
    spikes: list[tuple[np.ndarray, np.ndarray | None]] = []
    errors: list[dict[str, Any]] = []

    def look(number: int) -> None:
        spikes.append(_leading(run, weights, top))
        if cells is None:
            return
        if together:
            stages.append(weights if number == count - 1 else xp.asarray(weights, copy=True))
        else:
            (found,) = errors_of(run, [weights], cells, 0)
            errors.extend(found.to_host(run).values())

    look(0)
    for number, _ in enumerate(run.steps(weights), start=1):
        look(number)
    if cells is not None and together:
        for found in errors_of(run, stages, cells, 0):
            errors.extend(found.to_host(run).values())
    leaves: dict[str, Any] = {
        name: np.array([stage[name] for stage in errors]) for name in ("test", "train") if errors
    }
    values, overlaps = zip(*spikes)
    return Trajectory(
        **run.facts(),
        **leaves,
        value=np.stack(values),
        overlap=None if overlaps[0] is None else np.stack(overlaps),
    )


def _leading(run: Run, weights: Array, top: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Leading singular values, and squared components of their left vectors in span β*."""
    values, left, _ = largest_of(run.backend, weights, top)
    return values, teacher_overlaps(run, run.backend.to_host(left))
