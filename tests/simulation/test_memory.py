"""The memory budget: what it is, that it holds, that chunks do not change an answer."""

from __future__ import annotations

import re
import subprocess
import sys
import tracemalloc

import pytest

import giantsteps as gs
from giantsteps import simulation
from giantsteps.simulation import _cost, _spectrum
from giantsteps.simulation._engine import _memory
from giantsteps.simulation._engine._memory import as_bytes, in_words
from giantsteps.simulation._network._streams import Streams


def make(samples: float, width: float = 1.0) -> gs.Problem:
    return gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.1,
        width=width,
        steps=[gs.Step(samples=5000 / 100, rate=1.0)],
        readout=gs.Ridge(samples=samples, penalty=0.05),
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2GB", 2_000_000_000),
        ("512 MiB", 2**29),
        ("1.5gb", 1_500_000_000),
        ("100000", 100_000),
        (3e6, 3_000_000),
        (7, 7),
        (None, None),
        ("2G", 2_000_000_000),
    ],
)
def test_sizes(given: object, expected: int | None) -> None:
    assert as_bytes(given) == expected


@pytest.mark.parametrize("given", ["lots", "-1GB", 0, -5, True, "GB", "1e3 parsecs", [1]])
def test_refused_sizes(given: object) -> None:
    with pytest.raises(gs.InvalidProblem, match="memory"):
        as_bytes(given)


def test_in_words() -> None:
    assert [in_words(size) for size in (12, 3400, 2.5e9, 4e12)] == [
        "12 bytes",
        "3.4 kB",
        "2.5 GB",
        "4e+03 GB",
    ]


@pytest.mark.parametrize("samples", [40.0, 0.7])
def test_chunks_change_nothing_but_rounding(
    samples: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make(samples)
    small = simulation.risk(problem, 100, seed=0, memory="70MB")
    monkeypatch.setattr(_memory, "ROWS_ON_HOST", 10**6)
    whole = simulation.risk(problem, 100, seed=0)
    assert small.test == pytest.approx(whole.test, rel=1e-10)
    assert small.train == pytest.approx(whole.train, rel=1e-10)
    assert small.by_degree == pytest.approx(whole.by_degree, abs=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_budget_holds(dtype: str) -> None:
    # 30,000 samples of dimension 400 would be 96 MB, and their features as many again.
    problem = make(75.0).replace({"steps.0.samples": 20.0})
    run = simulation.run(problem, 400, seed=0, memory="90MB", dtype=dtype)
    tracemalloc.start()
    try:
        run.risk()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 90e6 - _memory.OVERHEAD + 2e6
    assert peak < run.cost().memory <= 90e6


@pytest.mark.skipif(sys.platform == "win32", reason="the system does not say")
def test_the_budget_holds_for_a_whole_process() -> None:
    # 30,000 samples of dimension 500 would be 120 MB, and their features as many again.
    script = """
import resource, giantsteps as gs
from giantsteps import simulation
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def risk(d, **options):
    problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
                         readout=gs.Ridge(samples=60.0, penalty=0.1))
    return simulation.risk(problem, d, 0, test_samples=2000, **options).test
risk(20)
before = peak()
test = risk(500, memory="120MB")
print(test, peak() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    test, kilobytes = map(float, done.stdout.split())
    unit = 1 if sys.platform == "darwin" else 1024
    assert kilobytes * unit < 120e6
    problem = make(60.0).untrained().replace({"noise_variance": 0.0, "readout.penalty": 0.1})
    assert test == pytest.approx(simulation.risk(problem, 500, 0, test_samples=2000).test, rel=1e-8)


def test_too_small_a_budget_is_an_early_error(monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulation.run(make(3.0), 2000, seed=0, memory="100MB")
    monkeypatch.setattr(Streams, "normal", lambda *given: pytest.fail("drawn before the check"))
    questions = (run.cost, run.risk, run.gradient, run.weights, lambda: run.kernel(kind="tangent"))
    for ask in (*questions, lambda: _spectrum.bulk(run, "weights")):
        with pytest.raises(gs.InvalidProblem, match=r"memory = .* at least .*B for .* d = 2000"):
            ask()


def test_more_than_the_machine_has() -> None:
    with pytest.raises(gs.InvalidProblem, match="the device has"):
        simulation.run(make(3.0), 3_000_000, seed=0).cost()


def test_cost() -> None:
    cost = simulation.run(make(3.0), 1000, seed=0).cost()
    flops = 4 * 50_000e6 + 2 * 3000e6 + 3000e6 + 1e9 / 3 + 2 * 10_000e6
    assert cost.flops == pytest.approx(flops)
    assert re.fullmatch(r"[\d.]+ MB, 229 GFLOP, [\d.]+ s", str(cost))


def test_cost_of_a_curve() -> None:
    run = simulation.run(make(3.0), 1000, seed=0)
    cost = run.cost(penalties=[0.1, 1.0], samples=[0.5, 2.0, 3.0])
    factors = 2 * (0.5**3 + 1 + 1) * 1e9 / 3
    assert cost.flops == pytest.approx(run.cost().flops - 1e9 / 3 + factors)
    assert cost.memory > run.cost().memory
    with pytest.raises(gs.InvalidProblem, match="readout"):
        simulation.run(make(3.0).replace({"readout": None}), 1000, 0).cost()


def test_time_is_that_of_the_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    speed = _cost.Speed(product=1e-9, draw=1e-6, activation=1e-5, derivative=1e-4)
    monkeypatch.setattr(_cost, "measure_speed", lambda *given: speed)
    cost = simulation.run(make(3.0), 1000, seed=0).cost()
    steps, rows = 50_000, 50_000 + 3000 + 10_000
    elementwise = (rows + 1000) * 1e-3 + rows * 1e-2 + steps * 1e-1
    assert cost.seconds == pytest.approx(cost.flops * 1e-9 + elementwise)


@pytest.mark.parametrize("device", ["cpu", "torch"])
def test_trials(device: str) -> None:
    if device == "torch":
        pytest.importorskip("torch")
    run = simulation.run(make(3.0), 100, seed=0, device=device)
    speed = _cost.measure_speed(run.backend, run.problem.activation, True)
    assert speed is _cost.measure_speed(run.backend, run.problem.activation, True)
    # No processor makes 1e13 operations a second, and none fewer than 1e8.
    assert 1e-13 < speed.product < 1e-8
    assert all(1e-13 < each < 1e-5 for each in (speed.draw, speed.activation, speed.derivative))
