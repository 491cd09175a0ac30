"""Runs on a GPU, by PyTorch and by CuPy; skipped where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation
from giantsteps.simulation._engine import _memory
from giantsteps.simulation._engine._arrays import Arrays
from giantsteps.simulation._engine._devices import resolve
from giantsteps.simulation._engine._memory import BLOCK
from giantsteps.simulation._network._streams import Role, Streams

pytestmark = pytest.mark.gpu


@pytest.fixture(params=["cuda", "cupy"])
def device(request: pytest.FixtureRequest) -> str:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    if request.param == "cupy":
        pytest.importorskip("cupy")
    return request.param


@pytest.fixture(params=["float64", "float32"])
def dtype(request: pytest.FixtureRequest) -> str:
    return request.param


def make(**changes: object) -> gs.Problem:
    problem = gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.1,
        width=1.2,
        steps=[gs.Step(samples=2.0, rate=1.0, exponent=0.5)],
        readout=gs.Ridge(samples=2.0, penalty=0.05),
    )
    return problem.replace(changes)


def normal(arrays: Arrays, *shape: int) -> tuple[Any, np.ndarray]:
    host = np.random.default_rng(sum(shape)).standard_normal(shape).astype(arrays.precision)
    return arrays.asarray(host), host.astype(float)


def test_linear_algebra(device: str, dtype: str) -> None:
    arrays = resolve(device, dtype)
    a, host = normal(arrays, 3000, 1100)
    gram = arrays.add_gram(arrays.zeros(1100, 1100), a)
    expected = host.T @ host
    full = arrays.to_host(arrays.mirror(gram))
    np.testing.assert_allclose(full, expected, rtol=0, atol=1e-9)
    b, other = normal(arrays, 3000, 40)
    found = arrays.to_host(arrays.add_product(arrays.zeros(1100, 40), a, b))
    np.testing.assert_allclose(found, host.T @ other, rtol=0, atol=1e4 * arrays.epsilon)
    exact = arrays.to_host(arrays.transposed_product(a, arrays.wide(b)))
    np.testing.assert_allclose(exact, host.T @ other, rtol=0, atol=1e-9)
    rhs = np.linspace(0, 1, 1100)
    solved = arrays.to_host(arrays.solve(gram, 2.0, arrays.asarray(rhs, wide=True)))
    np.testing.assert_allclose(
        solved, np.linalg.solve(expected + 2 * np.eye(1100), rhs), atol=1e-12
    )
    assert arrays.solve(gram, -1e4, arrays.asarray(rhs, wide=True)) is None
    values = arrays.to_host(arrays.eigvalsh(gram))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(expected), rtol=1e-10)


@pytest.mark.parametrize("samples", [0.5, 2.0])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_risk_is_that_of_the_host(device: str, dtype: str, samples: float, activation: str) -> None:
    problem = make(**{"readout.samples": samples, "activation": activation})
    expected = simulation.risk(problem, 300, 0)
    found = simulation.risk(problem, 300, 0, device=device, dtype=dtype)
    tolerance = 1e-10 if dtype == "float64" else 1e-4
    assert found.test == pytest.approx(expected.test, rel=tolerance)
    assert found.train == pytest.approx(expected.train, rel=tolerance)
    np.testing.assert_allclose(found.by_degree, expected.by_degree, atol=tolerance)
    assert found.initial.test == pytest.approx(expected.initial.test, rel=tolerance)


def test_every_question(device: str) -> None:
    host = simulation.run(make(), 300, 1, test_samples=1000)
    run = simulation.run(make(), 300, 1, test_samples=1000, device=device)
    for question in ("weights", "kernel", "features"):
        expected, found = getattr(host, question)(3), getattr(run, question)(3)
        np.testing.assert_allclose(found.bulk.values, expected.bulk.values, atol=1e-6)
        for mine, theirs in zip(found.spikes, expected.spikes):
            assert mine.value == pytest.approx(theirs.value, rel=1e-10)
            assert mine.overlaps == pytest.approx(theirs.overlaps, rel=1e-6, abs=1e-8)
    assert run.gradient().ratio == pytest.approx(host.gradient().ratio, rel=1e-9)
    tangent = run.risk(kind="tangent").test
    assert tangent == pytest.approx(host.risk(kind="tangent").test, rel=1e-9)
    exact = simulation.risk(make(), 300, 1, test_samples="exact", device=device).test
    assert exact == pytest.approx(
        simulation.risk(make(), 300, 1, test_samples="exact").test, rel=1e-10
    )
    mine = run.learned_function(x=[-1.0, 1.0]).mean
    np.testing.assert_allclose(mine, host.learned_function(x=[-1.0, 1.0]).mean, rtol=1e-8)


def test_curves_and_other_inputs(device: str) -> None:
    options = {"inputs": "rademacher", "test_samples": 1000}
    curve = {"samples": [0.5, 2.0], "penalties": [0.0, 0.1]}
    expected = simulation.run(make(), 200, 0, **options).risk(**curve).test
    found = simulation.run(make(), 200, 0, device=device, **options).risk(**curve).test
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_own_data(device: str) -> None:
    rng = np.random.default_rng(0)
    x, x_test = rng.standard_normal((500, 100)), rng.standard_normal((80, 100))
    data = gs.Data(x, np.sin(x[:, 0]), x_test, np.sin(x_test[:, 0]))
    expected = simulation.risk(make(), data=data).test
    assert simulation.risk(make(), data=data, device=device).test == pytest.approx(
        expected, rel=1e-9
    )


def test_draws_of_the_device(device: str, dtype: str) -> None:
    streams = Streams(3, resolve(device, dtype), "device")

    def rows(start: int, stop: int) -> np.ndarray:
        return streams.arrays.to_host(streams.normal(Role.STEP_INPUTS, 0, start, stop, 70))

    whole = rows(0, 3 * BLOCK)
    assert whole.dtype == dtype
    for start, stop in [(0, 5), (BLOCK, BLOCK + 1), (500, 2500)]:
        np.testing.assert_array_equal(rows(start, stop), whole[start:stop])
    scale = 1 / np.sqrt(whole.size)
    assert abs(whole.mean()) < 4 * scale
    assert abs((whole**2).mean() - 1) < 4 * np.sqrt(2) * scale
    assert abs((whole**4).mean() - 3) < 4 * np.sqrt(96) * scale
    host = Streams(3, resolve(), "host").normal(Role.STEP_INPUTS, 0, 0, 5, 70)
    assert np.all(whole[:5] != host)


def test_risk_with_draws_of_the_device(device: str) -> None:
    options = {"device": device}
    first, again = (simulation.risk(make(), 500, 0, **options) for _ in range(2))
    assert first.test == pytest.approx(again.test, rel=1e-12)
    assert first.test == pytest.approx(simulation.risk(make(), 500, 0).test, rel=0.15)


def test_chunks(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make(**{"readout.samples": 30.0})
    whole = simulation.risk(problem, 200, 0, device=device)
    monkeypatch.setattr(_memory, "ROWS_ON_GPU", BLOCK)
    chunked = simulation.risk(problem, 200, 0, device=device)
    assert chunked.test == pytest.approx(whole.test, rel=1e-10)


def test_memory_of_the_device(device: str) -> None:
    arrays = resolve(device)
    before = arrays.free_memory()
    assert before is not None
    assert before > 2**30
    held = arrays.zeros(2**27)  # 1 GiB
    during = arrays.free_memory()
    del held
    assert before - during >= 2**30
    # what the library keeps of it counts as free
    assert abs(arrays.free_memory() - before) < 2**28
    with pytest.raises(gs.InvalidProblem, match="the device has"):
        simulation.run(make(), 1_000_000, 0, device=device).cost()


def test_cost(device: str) -> None:
    cost = simulation.run(make(), 2000, 0, device=device).cost()
    assert 0 < cost.seconds < 10
