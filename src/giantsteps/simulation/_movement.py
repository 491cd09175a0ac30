"""How far each step of a run moves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from giantsteps.answers import Movement
from giantsteps.errors import InvalidProblem
from giantsteps.simulation._engine._arrays import Array
from giantsteps.simulation._engine._largest import largest_of

if TYPE_CHECKING:
    from giantsteps.simulation._networks import Networks


def movement(networks: Networks) -> list[Movement]:
    """The movement of each step, on the test points, for each network; weights are held before and
    after one step.
    """
    if not networks.problem.steps:
        raise InvalidProblem("steps", (), "at least one step for this question")
    if not networks.test_samples:
        data = networks.data
        allowed = "a number of points" if data is None else "given with X_test and y_test"
        raise InvalidProblem("test_samples" if data is None else "data", data, allowed)
    backend, rows = networks.backend, []
    after = networks.start()
    before = backend.xp.asarray(after, copy=True)
    for _ in networks.steps(after):
        pair = backend.wide(after) - backend.wide(before), backend.wide(before)
        norms = [backend.to_host(backend.xp.linalg.matrix_norm(matrix)) for matrix in pair]
        tops = [largest_of(backend, matrix, 1)[0][..., 0] for matrix in pair]
        ratios = [norms[0] / norms[1], tops[0] / tops[1]]
        rows.append(np.stack([*ratios, *_on_points(networks, before, after)], axis=-1))
        before = backend.xp.asarray(after, copy=True)
    fields = ("weights", "spectral", "preactivations", "features", "output")
    found = np.stack(rows, axis=-1).reshape(networks.count, len(fields), len(rows))
    return [Movement(**networks.facts(), **dict(zip(fields, each))) for each in found]


def _on_points(networks: Networks, before: Array, after: Array) -> list[np.ndarray]:
    """Root mean squares over the test points: pre-activations, features (relative), output."""
    backend, xp = networks.backend, networks.backend.xp
    second_layer = networks.network.second_layer[..., None]
    activation, neurons = networks.problem.activation, networks.sizes.neurons
    scale = networks.problem.init.output_scale(neurons)
    held = networks.step_bytes + 2 * networks.weight_bytes
    points = networks.test_samples
    assert points

    def total(matrix: Array) -> Array:
        return xp.sum(matrix**2, axis=(-2, -1))

    sums: Array = 0.0
    for start, stop in networks.chunks(points, held, "the movement", 2 * neurons):
        inputs = networks.network.test_batch(start, stop)[0]
        old, new = inputs @ before, inputs @ after
        first = total(backend.wide(new - old))
        old, new = backend.transform(activation, old), backend.transform(activation, new)
        changes = scale * backend.wide((new - old) @ second_layer)
        wide = backend.wide(old)
        parts = [first, total(backend.wide(new) - wide), total(wide), total(changes)]
        sums = sums + xp.stack(parts, axis=-1)
    moved, changed, size, output = np.moveaxis(backend.to_host(sums), -1, 0)
    ratios = (moved / (points * neurons), changed / size, output / points)
    return [np.sqrt(ratio) for ratio in ratios]
