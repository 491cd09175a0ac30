"""What figures compute by themselves from one network, as `Simulations.computed` asks for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace, to_device

from giantsteps import simulation
from giantsteps.problem import Problem
from giantsteps.theory import risk_of_weights
from giantsteps.types import FloatArray


def leading_direction(
    problem: Problem, d: int, seed: int, *, device: str | None = None
) -> dict[str, Any]:
    """The first left singular ``vector`` of the weights, and the ``teacher``'s direction, both
    times √d."""
    arrays = simulation.run(problem, d, seed, device=device).arrays
    weights = arrays[f"W{len(problem.steps)}"]
    xp = array_namespace(weights)
    _, vectors = xp.linalg.eigh(weights @ xp.matrix_transpose(weights))
    scale = math.sqrt(d)
    return {
        "vector": scale * _host(vectors[:, -1]),
        "teacher": scale * _host(arrays["beta"])[:, 0],
    }


def leading_vectors(
    problem: Problem, d: int, seed: int, *, device: str | None = None, top: int
) -> dict[str, Any]:
    """``labels`` ỹ, ``projection`` z = ⟨x, b⟩/‖b‖, and the ``top`` left singular ``vectors`` of Φ
    times √n, of the readout's samples."""
    arrays = simulation.run(problem, d, seed, device=device).arrays
    features, direction = arrays["Phi"], _host(arrays["b"])
    xp = array_namespace(features)
    wide, transposed = features.shape[0] <= features.shape[1], xp.matrix_transpose(features)
    _, vectors = xp.linalg.eigh(features @ transposed if wide else transposed @ features)
    leading = _host(vectors[:, -top:])[:, ::-1]
    if not wide:
        leading = _host(features) @ leading
        leading /= np.linalg.norm(leading, axis=0)
    return {
        "labels": _host(arrays["y"]),
        "projection": _host(arrays["X"]) @ (direction / np.linalg.norm(direction)),
        "vectors": leading * math.sqrt(features.shape[0]),
    }


def risk_of_its_weights(
    problem: Problem, d: int, seed: int, *, device: str | None = None, samples: Sequence[float]
) -> dict[str, Any]:
    """``test`` error of Gaussian features with the covariance of the network's own weights, for
    each number of readout ``samples`` n/d."""
    arrays = simulation.run(problem, d, seed, device=device).arrays
    weights, teacher = _host(arrays[f"W{len(problem.steps)}"]), _host(arrays["beta"])
    cells = [problem.replace({"readout.samples": alpha}) for alpha in samples]
    return {"test": [risk_of_weights(weights, teacher, cell).test for cell in cells]}


def spiked_ridge(
    problem: Problem,
    d: int,
    seed: int,
    *,
    device: str | None = None,
    spike: float,
    readouts: Sequence[tuple[float, float]],
) -> dict[str, Any]:
    """``test`` error of ridge regression on W = W₀ + spike · β* 1ᵀ, the columns of W₀ on the unit
    sphere, for each pair of samples n/d and penalty λ."""
    most = max(round(alpha * d) for alpha, _ in readouts)
    features, wanted, neurons = _spiked_features(device, problem, d, seed, spike, most + 4 * d)
    errors = []
    for alpha, penalty in readouts:
        n = round(alpha * d)
        fitted = _ridge(features[:n], wanted[:n], n * penalty / neurons)
        errors.append(float(((features[most:] @ fitted - wanted[most:]) ** 2).mean()))
    return {"test": errors}


def _spiked_features(
    device: str | None, problem: Problem, d: int, seed: int, spike: float, count: int
) -> tuple[Any, Any, int]:
    """Features and labels of so many samples, and the number of neurons."""
    rng, neurons = np.random.default_rng(seed), problem.at(d).neurons
    weights = rng.standard_normal((d, neurons))
    weights /= np.linalg.norm(weights, axis=0)
    weights[0] += spike  # the first axis is the teacher's
    x = rng.standard_normal((count, d))
    wanted = _on(device, np.asarray(problem.teacher(x[:, :1]), dtype=float))
    features = problem.activation(_on(device, x) @ _on(device, weights)) / math.sqrt(neurons)
    return features, wanted, neurons


def _ridge(features: Any, labels: Any, penalty: float) -> Any:
    """The minimiser of ‖y − Φa‖² + penalty ‖a‖², by the smaller of the two Gram matrices."""
    xp = array_namespace(features)
    transposed = xp.matrix_transpose(features)
    wide = features.shape[0] <= features.shape[1]
    gram = features @ transposed if wide else transposed @ features
    size = gram.shape[0]
    gram = gram + penalty * xp.eye(size, dtype=gram.dtype, device=gram.device)
    right = labels if wide else transposed @ labels
    solved = xp.linalg.solve(gram, right[:, None])[:, 0]
    return transposed @ solved if wide else solved


def _on(device: str | None, values: FloatArray) -> Any:
    """An array of NumPy, or of PyTorch on its device."""
    if device in (None, "cpu"):
        return values
    import torch

    return torch.as_tensor(values, device="cpu" if device == "torch" else device)


def _host(values: Any) -> FloatArray:
    return np.asarray(to_device(values, "cpu"), dtype=float)
