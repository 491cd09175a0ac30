"""What a run has learned after each of its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from giantsteps.answers import Trajectory
from giantsteps.errors import InvalidProblem
from giantsteps.problem import integer
from giantsteps.simulation._cost import fits_memory
from giantsteps.simulation._engine._arrays import Array
from giantsteps.simulation._engine._largest import largest_of
from giantsteps.simulation._risk import cells_of, errors_of
from giantsteps.simulation._spectrum import teacher_overlaps

if TYPE_CHECKING:
    from giantsteps.simulation._networks import Networks


def trajectory(networks: Networks, top: int = 1) -> list[Trajectory]:
    """Errors and leading singular values after 0 … t steps, for each network.

    Weights of all stages are kept, and readout and test points drawn once, where memory allows;
    otherwise each stage draws them again and only its own weights are held.
    """
    problem = networks.problem
    if not problem.steps:
        raise InvalidProblem("steps", (), "at least one step for this question")
    top = integer(top, "top", "an integer >= 1")
    xp, count = networks.backend.xp, len(problem.steps) + 1
    cells = None if problem.readout is None else cells_of(problem, networks.d)
    together = cells is not None and fits_memory(networks, cells, count)
    weights = networks.start()
    stages: list[Array] = []
    spikes: list[tuple[list[np.ndarray], list[np.ndarray | None]]] = []
    errors: list[dict[str, Any]] = []

    def look(number: int) -> None:
        spikes.append(_leading(networks, weights, top))
        if cells is None:
            return
        if together:
            stages.append(weights if number == count - 1 else xp.asarray(weights, copy=True))
        else:
            (found,) = errors_of(networks, [weights], cells, 0)
            errors.extend(found.to_host(networks).values())

    look(0)
    for number, _ in enumerate(networks.steps(weights), start=1):
        look(number)
    if cells is not None and together:
        for found in errors_of(networks, stages, cells, 0):
            errors.extend(found.to_host(networks).values())
    answers = []
    for at in range(networks.count):
        values, overlaps = zip(*((value[at], overlap[at]) for value, overlap in spikes))
        leaves: dict[str, Any] = {
            name: np.array([np.ravel(stage[name])[at] for stage in errors])
            for name in ("test", "train")
            if errors
        }
        answers.append(
            Trajectory(
                **networks.facts(),
                **leaves,
                value=np.stack(values),
                overlap=None if overlaps[0] is None else np.stack(overlaps),
            )
        )
    return answers


def _leading(
    networks: Networks, weights: Array, top: int
) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
    """Leading singular values, and squared components of their left vectors in span β*, for each
    network."""
    values, left, _ = largest_of(networks.backend, weights, top)
    overlaps = [
        None if beta is None else teacher_overlaps(beta, u)
        for beta, u in zip(networks.each(networks.network.teacher), networks.each(left))
    ]
    return networks.each(values), overlaps
