"""Measures of one network that only figures need: neurons, directions, kernels, covariances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import to_device

from giantsteps import simulation
from giantsteps.functions import Function
from giantsteps.gaussian import moments
from giantsteps.problem import Problem
from giantsteps.types import FloatArray

#: Penalties that a kernel may choose from, relative to the mean of its diagonal.
_PENALTIES = np.geomspace(1e-4, 10.0, 11)


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


def _host(values: Any) -> FloatArray:
    return np.asarray(to_device(values, "cpu"), dtype=float)
