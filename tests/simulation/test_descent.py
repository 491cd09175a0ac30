"""The gradient against automatic differentiation and against its formula written out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps.functions import as_function
from giantsteps.simulation import run
from giantsteps.simulation._engine._arrays import Arrays
from giantsteps.simulation._network._gradient import gradient

ACTIVATIONS = ["tanh", "relu", "identity", "softplus(x) - 0.3*x**2"]


def batches(arrays: Arrays, x: np.ndarray, y: np.ndarray, chunk: int) -> list[tuple[Any, Any]]:
    wide = arrays.xp.float64
    return [
        (arrays.asarray(x[i : i + chunk]), arrays.xp.asarray(y[i : i + chunk], dtype=wide))
        for i in range(0, len(y), chunk)
    ]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gradient_by_automatic_differentiation(arrays: Arrays, name: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    d, neurons, samples = 7, 5, 23
    x, y = rng.standard_normal((samples, d)), rng.standard_normal(samples)
    weights, a = rng.standard_normal((d, neurons)), rng.standard_normal(neurons)
    activation = as_function(name)

    first_layer = torch.tensor(weights, requires_grad=True)
    output = activation(torch.tensor(x) @ first_layer) @ torch.tensor(a) / math.sqrt(neurons)
    (0.5 * torch.mean((torch.tensor(y) - output) ** 2)).backward()
    expected = -math.sqrt(neurons) * first_layer.grad.numpy()
    direction = x.T @ (y - output.detach().numpy()) / samples

    for chunk in (samples, 6):
        found = gradient(
            arrays,
            batches(arrays, x, y, chunk),
            samples,
            arrays.asarray(weights),
            arrays.asarray(a),
            activation,
            gs.Step(samples=1, rate=1).residual,
            1 / math.sqrt(neurons),
        )
        np.testing.assert_allclose(arrays.to_host(found.update), expected, rtol=0, atol=1e-13)
        np.testing.assert_allclose(arrays.to_host(found.direction), direction, rtol=0, atol=1e-13)


def problem(batch: str) -> gs.Problem:
    return gs.Problem(
        activation="tanh(x) + 0.2*x**2",
        teacher="sin",
        noise_variance=0.3,
        width=1.5,
        steps=[
            gs.Step(samples=2.0, rate=0.7, exponent=0.25),
            gs.Step(samples=2.0, rate=1.3, exponent=0.5, batch=batch),
        ],
        readout=gs.Ridge(samples=1.0, penalty=0.1),
    )


@pytest.mark.parametrize("batch", ["fresh", "previous"])
def test_two_steps_written_out(batch: str) -> None:
    network = run(problem(batch), 40, seed=1)
    arrays = network.arrays
    sigma = as_function("tanh(x) + 0.2*x**2")
    neurons, weights, a = 60, arrays["W0"].copy(), arrays["a"]
    for number, (rate, exponent) in enumerate([(0.7, 0.25), (1.3, 0.5)]):
        x, y = arrays[f"X{number}"], arrays[f"y{number}"]
        f = sigma(x @ weights) @ a / np.sqrt(neurons)
        back = np.outer(y - f, a) / np.sqrt(neurons) * sigma.derivative(x @ weights)
        step = x.T @ back / len(y)
        weights += rate * neurons**exponent * np.sqrt(neurons) * step
        np.testing.assert_allclose(arrays[f"W{number + 1}"], weights, rtol=0, atol=1e-12)
    assert np.array_equal(arrays["X0"], arrays["X1"]) == (batch == "previous")
    assert np.array_equal(arrays["y0"], arrays["y1"]) == (batch == "previous")


def test_labels_and_initial_laws() -> None:
    network = run(problem("fresh"), 300, seed=2)
    arrays = network.arrays
    beta = arrays["beta"]
    assert beta.shape == (300, 1)
    assert np.linalg.norm(beta) == pytest.approx(1, abs=1e-14)
    for x, y in [("X0", "y0"), ("X1", "y1"), ("X", "y")]:
        noise = arrays[y] - np.sin(arrays[x] @ beta[:, 0])
        assert noise.var() == pytest.approx(0.3, rel=4 * math.sqrt(2 / noise.size))
    np.testing.assert_array_equal(arrays["f_test"], np.sin(arrays["X_test"] @ beta[:, 0]))
    # N(0, 1/d) entries, and A_j/√N
    assert (arrays["W0"] ** 2).mean() * 300 == pytest.approx(1, rel=0.02)
    assert (arrays["a"] ** 2).sum() == pytest.approx(1, rel=4 * math.sqrt(2 / 450))
    with pytest.raises(gs.InvalidProblem, match="arrays = 'W3'"):
        arrays["W3"]


def test_arrays_cannot_be_changed() -> None:
    network = run(problem("fresh"), 30, seed=0)
    for name, array in network.arrays.items():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
        assert np.any(network.arrays[name] != 0)


def test_sphere_and_vocabulary() -> None:
    law = gs.Vocabulary([-1.0, 2.0], [0.25, 0.75])
    changed = problem("fresh").replace({"init": gs.Init(weights="sphere", second_layer=law)})
    arrays = run(changed, 1000, seed=0).arrays
    np.testing.assert_allclose(np.linalg.norm(arrays["W0"], axis=0), 1, rtol=1e-14)
    values = arrays["a"] * math.sqrt(1500)
    np.testing.assert_allclose(np.unique(np.round(values, 12)), [-1, 2])
    assert np.mean(values > 0) == pytest.approx(0.75, abs=4 * math.sqrt(0.1875 / 1500))


def test_networks_are_nested_in_their_width() -> None:
    narrow = run(problem("fresh"), 100, seed=5).arrays
    wide = run(problem("fresh").replace({"width": 15.0}), 100, seed=5).arrays
    np.testing.assert_array_equal(wide["W0"][:, :150], narrow["W0"])
    np.testing.assert_allclose(wide["a"][:150] * math.sqrt(10), narrow["a"], rtol=1e-14)
    np.testing.assert_array_equal(wide["X"], narrow["X"])
    np.testing.assert_array_equal(wide["beta"], narrow["beta"])
