"""What figures compute by themselves from one network, as `Memory.kept` asks for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from giantsteps import simulation
from giantsteps.problem import Problem
from giantsteps.simulation._engine._devices import resolve
from giantsteps.simulation._engine._largest import largest_of
from giantsteps.simulation._readout._ridge import ridge_curve
from giantsteps.theory import risk_of_weights

__all__ = ["leading_vectors", "risk_of_its_weights", "spiked_ridge"]


def leading_vectors(
    problem: Problem, d: int, seed: int, *, device: str | None, top: int
) -> dict[str, Any]:
    """``labels`` ỹ, ``projection`` z = ⟨x, b⟩/‖b‖, and the ``top`` left singular ``vectors`` of Φ
    times √n, of the readout's samples."""
    run = simulation.run(problem, d, seed, device=device)
    xp, matrices = run.backend.xp, run.arrays
    direction = matrices["b"]
    unit = run.backend.narrow(direction / xp.linalg.vector_norm(direction))
    _, left, _ = largest_of(run.backend, matrices["Phi"], top)
    found = {"labels": matrices["y"], "projection": matrices["X"] @ unit}
    host = {name: run.backend.to_host(value) for name, value in found.items()}
    return host | {"vectors": run.backend.to_host(left) * math.sqrt(left.shape[0])}


def risk_of_its_weights(
    problem: Problem, d: int, seed: int, *, device: str | None, samples: Sequence[float]
) -> dict[str, Any]:
    """``test`` error of Gaussian features with the covariance of the network's own weights, for
    each number of readout ``samples`` n/d."""
    run = simulation.run(problem, d, seed, device=device)
    weights = run.backend.to_host(run.trained.weights)
    teacher = run.backend.to_host(run.arrays["beta"])
    cells = [problem.replace({"readout.samples": alpha}) for alpha in samples]
    return {"test": [risk_of_weights(weights, teacher, cell).test for cell in cells]}


def spiked_ridge(
    problem: Problem,
    d: int,
    seed: int,
    *,
    device: str | None,
    spike: float,
    readouts: Sequence[tuple[float, float]],
) -> dict[str, Any]:
    """``test`` error of ridge regression on W = W₀ + spike · β* 1ᵀ, the columns of W₀ on the unit
    sphere, for each pair of samples n/d and penalty λ."""
    arrays, rng, neurons = resolve(device), np.random.default_rng(seed), problem.at(d).neurons
    weights = rng.standard_normal((d, neurons))
    weights /= np.linalg.norm(weights, axis=0)
    weights[0] += spike  # the first axis is the teacher's
    sizes = [round(alpha * d) for alpha, _ in readouts]
    most = max(sizes)
    x = rng.standard_normal((most + 4 * d, d))
    wanted = arrays.asarray(np.asarray(problem.teacher(x[:, :1]), dtype=float))
    features = arrays.transform(problem.activation, arrays.asarray(x) @ arrays.asarray(weights))
    features = features / math.sqrt(neurons)
    cells: dict[int, list[float]] = {}
    for size, (_, penalty) in zip(sizes, readouts):
        cells.setdefault(size, []).append(penalty)
    fits, _ = ridge_curve(arrays, [(features[:most], wanted[:most, None])], neurons, cells)
    errors = [
        arrays.xp.mean((features[most:] @ fits[n, penalty].coefficients - wanted[most:]) ** 2)
        for n, (_, penalty) in zip(sizes, readouts)
    ]
    return {"test": [float(error) for error in errors]}
