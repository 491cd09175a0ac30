"""The solver of the equivalent model against direct draws of that very model."""

from __future__ import annotations

import numpy as np
import pytest

from giantsteps.problem import Ridge
from giantsteps.theory import SpikedFeatures

from .commuting import along_directions

D, SEEDS, TEST = 220, 250, 1200
READOUT = Ridge(samples=1.6, penalty=0.05)
VARIANCES = [[0.5, 1.6], [1.2, 0.4]]
WEIGHTS = np.array([0.4, 0.6])
ONE = np.array([[0.75, 0.2], [0.2, 0.25]])
TWO = np.array([[0.6, 0.1, 0.1], [0.1, 0.5, -0.15], [0.1, -0.15, 0.3]])


def special(rank: int) -> np.ndarray:
    """How much of the spikes and the teacher lies along each of the two directions."""
    part = ONE if rank == 1 else TWO
    return np.stack([part, np.eye(rank + 1) - part])


def model(rank: int) -> SpikedFeatures:
    """Two types, two bulk directions, one or two spikes that are not generic in them."""
    spikes = [[1.2], [-0.7]] if rank == 1 else [[1.2, 0.5], [-0.7, 0.8]]
    return SpikedFeatures(
        activation="tanh",
        teacher="sin",
        noise_variance=0.1,
        width=1.25,
        neurons=1.25 * D,
        probabilities=[0.4, 0.6],
        spikes=spikes,
        overlap=[0.6] if rank == 1 else [0.5, 0.4],
        bulk=along_directions(WEIGHTS, VARIANCES, special(rank), VARIANCES),
    )


def draw(given: SpikedFeatures, seed: int) -> tuple[float, float]:
    """Test and train error of ridge regression on one draw of the model."""
    rng = np.random.default_rng(seed)
    sizes = [round(D * WEIGHTS[0]), D - round(D * WEIGHTS[0])]
    group = np.repeat([0, 1], sizes)
    frame = np.zeros((D, given.rank + 1))
    for i, size in enumerate(sizes):
        root = np.linalg.cholesky(special(given.rank)[i])
        basis, _ = np.linalg.qr(rng.standard_normal((size, given.rank + 1)))
        frame[group == i] = basis @ root.T
    beta = frame @ np.append(given.overlap, given.remainder)
    neurons, samples = round(1.25 * D), round(READOUT.samples * D)
    types = np.repeat([0, 1], [round(0.4 * neurons), neurons - round(0.4 * neurons)])
    spread = np.sqrt(np.array(VARIANCES)[types][:, group].T / D)
    w = spread * rng.standard_normal((D, neurons)) + frame[:, :-1] @ given.spikes[types].T
    x = rng.standard_normal((samples, D))
    y = np.sin(x @ beta) + np.sqrt(0.1) * rng.standard_normal(samples)
    phi = np.tanh(x @ w) / np.sqrt(neurons)
    gram = phi.T @ phi / samples + READOUT.penalty / neurons * np.eye(neurons)
    a = np.linalg.solve(gram, phi.T @ y / samples)
    x_test = rng.standard_normal((TEST, D))
    error = np.tanh(x_test @ w) @ a / np.sqrt(neurons) - np.sin(x_test @ beta)
    return float(np.mean(error**2)), float(np.mean((phi @ a - y) ** 2))


@pytest.mark.agreement
@pytest.mark.parametrize("rank", [1, 2])
def test_draws_have_the_errors_of_the_theory(rank: int) -> None:
    given = model(rank)
    theory = given.risk(READOUT)
    drawn = np.array([draw(given, seed) for seed in range(SEEDS)])
    error = drawn.std(axis=0, ddof=1) / np.sqrt(SEEDS)
    wanted = np.array([theory.test, theory.train])
    assert np.all(3 * error / wanted <= 0.02)
    assert np.all(np.abs(drawn.mean(axis=0) - wanted) <= 3 * error)
