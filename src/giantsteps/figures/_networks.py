"""What figures compute by themselves from one network, as `Simulations.computed` asks for it:
neurons, directions, singular vectors, kernels, covariances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace, to_device

from giantsteps import simulation
from giantsteps.functions import Function
from giantsteps.gaussian import moments
from giantsteps.problem import Problem
from giantsteps.theory import risk_of_weights
from giantsteps.types import FloatArray

#: Penalties that a kernel may choose from, relative to the mean of its diagonal.
_PENALTIES = np.geomspace(1e-4, 10.0, 11)


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


def neurons(problem: Problem, d: int, seed: int, *, device: str | None = None) -> dict[str, Any]:
    """Neurons ``before`` and ``after`` all steps in the plane of the teacher and a direction at
    right angles to it, of shape (2, N), and the ``loss`` on the first batch after each step."""
    arrays = simulation.run(problem, d, seed, device=device).arrays
    last = len(problem.steps)
    teacher = _host(arrays["beta"])[:, 0]
    other = np.random.default_rng(seed).standard_normal(d)
    other -= teacher * (teacher @ other)
    plane = np.stack([teacher, other / np.linalg.norm(other)])
    x, y, readout = (_host(arrays[name]) for name in ("X0", "y0", "a"))
    weights = [_host(arrays[f"W{number}"]) for number in range(last + 1)]
    scale = 1 / math.sqrt(len(readout))
    losses = [np.mean((y - problem.activation(x @ w) @ readout * scale) ** 2) for w in weights]
    return {"before": plane @ weights[0], "after": plane @ weights[-1], "loss": losses}


def direction_overlaps(
    problem: Problem, d: int, seed: int, *, device: str | None = None
) -> dict[str, Any]:
    """Squared length of each of the teacher's directions in the span of as many leading left
    singular vectors of the weights, after 0, 1, … steps: (steps + 1, directions)."""
    arrays = simulation.run(problem, d, seed, device=device).arrays
    teacher = _host(arrays["beta"])
    count = teacher.shape[1]
    found = []
    for number in range(len(problem.steps) + 1):
        weights = _host(arrays[f"W{number}"])
        vectors = np.linalg.eigh(weights @ weights.T)[1][:, -count:]
        found.append(np.sum((vectors.T @ teacher) ** 2, axis=0))
    return {"overlap": np.stack(found)}


def covariance_gap(
    problem: Problem, d: int, seed: int, *, device: str | None = None
) -> dict[str, Any]:
    """‖Σ_Φ − Σ̄_Φ‖ in operator norm for σ = erf: Σ_Φ = E σ(Wᵀx)σ(Wᵀx)ᵀ, in closed form, against
    Σ̄_Φ = μ₁² WᵀW + μ₂² I of Gaussian features with the same weights."""
    arrays = simulation.run(problem, d, seed, device=device).arrays
    weights = _host(arrays[f"W{len(problem.steps)}"])
    gram = weights.T @ weights
    size = 1 + 2 * np.diagonal(gram)
    exact = 2 / np.pi * np.arcsin(2 * gram / np.sqrt(size[:, None] * size))
    sigma = moments(problem.activation)
    linear = sigma.linear**2 * gram + sigma.residual_variance * np.eye(len(gram))
    return {"gap": [float(np.linalg.norm(exact - linear, 2))]}


def kernel_errors(
    problem: Problem, d: int, seed: int, *, device: str | None = None, samples: Sequence[float]
) -> dict[str, Any]:
    """Test errors of ridge regression with kernels at their best penalty, for each n/d: a
    ``gaussian`` one, an ``exponential`` one of the inner product, and the ``tangent`` kernel of
    the untrained network, both layers."""
    arrays = simulation.run(problem, d, seed, device=device).arrays
    weights, readout, teacher = (_host(arrays[name]) for name in ("W0", "a", "beta"))
    rng = np.random.default_rng(seed)
    most, tests = round(max(samples) * d), 2000
    x = rng.standard_normal((most + tests, d))
    wanted = np.asarray(problem.teacher(x @ teacher), dtype=float)
    noise = math.sqrt(problem.noise_variance) * rng.standard_normal(most)
    kernels = _kernels(problem.activation, x, x[:most], weights, readout)
    return {
        name: [
            _best(kernel, wanted, noise, round(alpha * d), most) for alpha in samples
        ]
        for name, kernel in kernels.items()
    }  # fmt: skip


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


def _kernels(
    sigma: Function, x: FloatArray, train: FloatArray, weights: FloatArray, readout: FloatArray
) -> dict[str, FloatArray]:
    """Kernels between all points and those that may be trained on."""
    d, count = weights.shape
    inner = x @ train.T / d
    squares = np.sum(x**2, axis=1) / d
    distance = squares[:, None] + squares[: len(train)] - 2 * inner
    before = x @ weights
    features, slopes = sigma(before), sigma.derivative(before)
    tangent = features @ features[: len(train)].T / count
    moved = (slopes * readout**2) @ slopes[: len(train)].T
    return {
        "gaussian": np.exp(-distance / 2),
        "exponential": np.exp(inner),
        "tangent": tangent + inner * d * moved / count,
    }


def _best(kernel: FloatArray, wanted: FloatArray, noise: FloatArray, n: int, most: int) -> float:
    """The least test error over the penalties."""
    values, vectors = np.linalg.eigh(kernel[:n, :n])
    seen = vectors.T @ (wanted[:n] + noise[:n])
    across = kernel[most:, :n] @ vectors
    scale = float(np.trace(kernel[:n, :n])) / n
    errors = [
        np.mean((across @ (seen / (values + scale * penalty)) - wanted[most:]) ** 2)
        for penalty in _PENALTIES
    ]
    return float(min(errors))


def _on(device: str | None, values: FloatArray) -> Any:
    """An array of NumPy, or of PyTorch on its device."""
    if device in (None, "cpu"):
        return values
    import torch

    return torch.as_tensor(values, device="cpu" if device == "torch" else device)


def _host(values: Any) -> FloatArray:
    return np.asarray(to_device(values, "cpu"), dtype=float)
