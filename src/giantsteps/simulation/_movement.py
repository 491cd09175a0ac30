"""How far each step of a run moves it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from giantsteps.answers import Movement
from giantsteps.errors import InvalidProblem
from giantsteps.simulation._engine._arrays import Array
from giantsteps.simulation._engine._largest import largest_of

if TYPE_CHECKING:
    from giantsteps.simulation._run import Run

__all__ = ["movement"]


def movement(run: Run) -> Movement:
    """The movement of each step, on the test points; weights are held before and after one step."""
    if not run.problem.steps:
        raise InvalidProblem("steps", (), "at least one step for this question")
    if not run.test_samples:
        allowed = "a number of points" if run.data is None else "given with X_test and y_test"
        raise InvalidProblem("test_samples" if run.data is None else "data", run.data, allowed)
    xp = run.backend.xp
    after, rows = run.start(), []
    before = xp.asarray(after, copy=True)
    for _ in run.steps(after):
        moved = run.backend.wide(after) - run.backend.wide(before)
        norms = [_norm(run, moved), _norm(run, before)]
        tops = [float(largest_of(run.backend, matrix, 1)[0][0]) for matrix in (moved, before)]
        rows.append([norms[0] / norms[1], tops[0] / tops[1], *_on_points(run, before, after)])
        before = xp.asarray(after, copy=True)
    weights, spectral, preactivations, features, output = np.transpose(rows)
    return Movement(
        **run.facts(),
        weights=weights,
        spectral=spectral,
        preactivations=preactivations,
        features=features,
        output=output,
    )


def _norm(run: Run, matrix: Array) -> float:
    return float(run.backend.xp.linalg.matrix_norm(run.backend.wide(matrix)))


def _on_points(run: Run, before: Array, after: Array) -> tuple[float, float, float]:
    """Root mean squares over the test points: pre-activations, features (relative), output."""
    backend, xp = run.backend, run.backend.xp
    second_layer, activation = run.network.second_layer, run.problem.activation
    scale = run.problem.init.output_scale(run.sizes.neurons)
    sums = np.zeros(4)
    held = run.step_bytes + 2 * run.weight_bytes
    assert run.test_samples
    for start, stop in run.chunks(run.test_samples, held, "the movement", 2 * run.sizes.neurons):
        inputs = run.network.test_batch(start, stop)[0]
        old, new = inputs @ before, inputs @ after
        moved = backend.wide(new - old)
        first = xp.sum(moved**2)
        old, new = backend.transform(activation, old), backend.transform(activation, new)
        changes = scale * backend.wide((new - old) @ second_layer)
        wide = backend.wide(old)
        parts = [first, xp.sum((backend.wide(new) - wide) ** 2), xp.sum(wide**2)]
        sums += [float(part) for part in (*parts, xp.sum(changes**2))]
    points = run.test_samples
    return (
        math.sqrt(sums[0] / (points * run.sizes.neurons)),
        math.sqrt(sums[1] / sums[2]),
        math.sqrt(sums[3] / points),
    )
