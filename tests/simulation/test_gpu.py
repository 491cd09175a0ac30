"""Runs on a GPU, by PyTorch; skipped where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation
from giantsteps.simulation._engine import _memory, _torch_arrays
from giantsteps.simulation._engine._arrays import Arrays
from giantsteps.simulation._engine._devices import resolve
from giantsteps.simulation._engine._memory import BLOCK
from giantsteps.simulation._network._streams import Role, Streams

pytestmark = pytest.mark.gpu


@pytest.fixture
def device() -> str:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return "cuda"


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
    solved = arrays.to_host(arrays.solve(gram, 2.0, arrays.asarray(rhs, wide=True))[0])
    np.testing.assert_allclose(
        solved, np.linalg.solve(expected + 2 * np.eye(1100), rhs), atol=1e-12
    )
    assert not bool(arrays.solve(gram, -1e4, arrays.asarray(rhs, wide=True))[1])
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
    assert found.by_degree is not None
    assert expected.by_degree is not None
    np.testing.assert_allclose(found.by_degree, expected.by_degree, atol=tolerance)
    assert found.initial is not None
    assert expected.initial is not None
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
    options: dict[str, Any] = {"inputs": "rademacher", "test_samples": 1000}
    curve: dict[str, Any] = {"samples": [0.5, 2.0], "penalties": [0.0, 0.1]}
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


def test_draws_are_those_of_the_host(device: str, dtype: str) -> None:
    """Word for word, by the kernel and not by a copy."""
    arrays = resolve(device, dtype)
    if device == "cuda":
        assert _torch_arrays._kernel(dtype, arrays.device) is not None
    streams, host = Streams((3, 2**70), arrays), Streams((3, 2**70), resolve("cpu", dtype))
    for start, stop, width in [(0, 3000, 70), (1, 2, 3), (17, 18, 1), (999, 2001, 333)]:
        found = arrays.to_host(streams.normal(Role.STEP_INPUTS, 2, start, stop, width))
        expected = host.normal(Role.STEP_INPUTS, 2, start, stop, width)
        assert found.dtype == dtype
        # log and exp, which one variate in a hundred needs, may differ in the last bit
        np.testing.assert_allclose(found, expected, rtol=4 * arrays.epsilon, atol=0)
        assert np.mean(found != expected) < 1e-2


def test_a_seed_means_the_same_everywhere(device: str) -> None:
    """Relative 1e-9 between NumPy and CUDA, for every kind of step."""
    for rule in ("gradient", "sign", "normalized", "muon", "adam"):
        problem = make(**{"steps.0.rule": rule})
        expected = simulation.risk(problem, 400, 5).test
        assert simulation.risk(problem, 400, 5, device=device).test == pytest.approx(
            expected, rel=1e-9
        )


@pytest.mark.parametrize("initial", [False, True])
def test_batches(device: str, dtype: str, initial: bool) -> None:
    options: dict[str, Any] = {
        "device": device,
        "dtype": dtype,
        "test_samples": 3000,
        "initial": initial,
    }
    found: list[Any] = simulation.batch("risk", make(), 250, range(20), **options)
    tolerance = 1e-10 if dtype == "float64" else 1e-5
    for seed, answer in enumerate(found):
        alone = simulation.risk(make(), 250, seed, **options)
        assert answer.test == pytest.approx(alone.test, rel=tolerance)
        if initial:
            assert alone.initial is not None
            assert answer.initial.test == pytest.approx(alone.initial.test, rel=tolerance)


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
    after = arrays.free_memory()
    assert during is not None
    assert after is not None
    assert before - during >= 2**30
    # what the library keeps of it counts as free
    assert abs(after - before) < 2**28
    with pytest.raises(gs.InvalidProblem, match="the device has"):
        simulation.run(make(), 1_000_000, 0, device=device).cost()


def test_cost(device: str) -> None:
    cost = simulation.run(make(), 2000, 0, device=device).cost()
    assert 0 < cost.seconds < 10
