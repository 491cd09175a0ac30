"""The risk of a run against formulas written out with explicit inverses, and its contracts."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation
from giantsteps.functions import as_function
from giantsteps.gaussian import hermite_coefficients, moments
from giantsteps.laws import EmpiricalLaw
from giantsteps.simulation import _risk


def make(activation: str = "tanh", teacher: str = "sin", /, **changes: Any) -> gs.Problem:
    problem = gs.Problem(
        activation=activation,
        teacher=teacher,
        noise_variance=0.1,
        width=1.2,
        steps=[gs.Step(samples=2.0, rate=1.0, exponent=0.5)],
        readout=gs.Ridge(samples=2.0, penalty=0.05),
    )
    return problem.replace(changes)


def explicit_readout(run: simulation.Run, penalty: float) -> tuple[np.ndarray, float]:
    """â by an explicit inverse, and the training error."""
    phi, y = run.arrays["Phi"], run.arrays["y"]
    samples, neurons = phi.shape
    inverse = np.linalg.inv(phi.T @ phi + samples * penalty / neurons * np.eye(neurons))
    a = inverse @ phi.T @ y
    return a, float(np.mean((y - phi @ a) ** 2))


# Known answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [0.7, 2.5])
@pytest.mark.parametrize("teacher", ["identity", "x + 0.5*he3(x)"])
def test_linear_network_has_a_closed_form(samples: float, teacher: str) -> None:
    # f̂(x) = ⟨x, v⟩ with v = W â/√N, so that R = ‖v − c₁β*‖² + E f*² − c₁²
    problem = make("identity", teacher, **{"readout.samples": samples})
    run = simulation.run(problem, 200, seed=0, test_samples="exact")
    a, train = explicit_readout(run, 0.05)
    v = run.arrays["W1"] @ a / math.sqrt(run.sizes.neurons)
    linear, link = run.arrays["beta"][:, 0], moments(as_function(teacher))
    expected = np.sum((v - link.linear * linear) ** 2) + link.second_moment - link.linear**2
    answer = run.risk()
    assert answer.test == pytest.approx(expected, rel=1e-9)
    assert answer.train == pytest.approx(train, rel=1e-9)
    assert answer.by_degree is not None
    assert answer.by_degree[1] == pytest.approx((v @ linear - link.linear) ** 2, rel=1e-8)
    sampled = simulation.risk(problem, 200, seed=0)
    assert sampled.standard_error is not None
    assert abs(sampled.test - expected) < 4 * sampled.standard_error
    # a Gaussian error of variance R has a standard error of R √(2/n_test)
    if teacher == "identity":
        assert sampled.standard_error == pytest.approx(expected * math.sqrt(2e-4), rel=0.1)


@pytest.mark.parametrize("activation", ["tanh", "relu", "max(x, x**2 - 1)"])
@pytest.mark.parametrize("samples", [0.6, 2.0])
def test_network_written_out(activation: str, samples: float) -> None:
    problem = make(activation, **{"readout.samples": samples, "steps.0.rate": 0.3})
    run = simulation.run(problem, 80, seed=3, test_samples=3000)
    a, train = explicit_readout(run, 0.05)
    sigma = as_function(activation)
    predicted = sigma(run.arrays["X_test"] @ run.arrays["W1"]) @ a / math.sqrt(run.sizes.neurons)
    squares = (predicted - run.arrays["f_test"]) ** 2
    answer = run.risk()
    assert answer.test == pytest.approx(squares.mean(), rel=1e-9)
    assert answer.standard_error == pytest.approx(squares.std(ddof=1) / math.sqrt(3000), rel=1e-6)
    assert answer.train == pytest.approx(train, rel=1e-8)
    assert answer.test_noisy == pytest.approx(answer.test + 0.1)
    along = run.arrays["X_test"] @ run.arrays["beta"][:, 0]
    error = predicted - run.arrays["f_test"]
    third = error * (along**3 - 3 * along)
    unbiased = (third.mean() ** 2 - third.var(ddof=1) / 3000) / 6
    assert answer.by_degree is not None
    assert answer.by_degree[3] == pytest.approx(unbiased, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("activation", ["tanh", "relu", "he2", "clip(x, -1, 1)"])
@pytest.mark.parametrize("second_layer", ["gaussian", "constant"])
def test_exact_risk_is_the_mean_over_points(activation: str, second_layer: str) -> None:
    problem = make(
        activation,
        "sign",
        **{"steps.0.rate": 0.5, "init": gs.Init(second_layer=second_layer)},
    )
    exact = simulation.risk(problem, 60, seed=1, test_samples="exact")
    sampled = simulation.risk(problem, 60, seed=1, test_samples=100_000)
    assert sampled.standard_error is not None
    assert exact.standard_error is not None
    assert np.abs(sampled.test - exact.test) < 3.5 * sampled.standard_error
    assert sampled.standard_error < 0.02 * exact.test
    assert exact.standard_error < 1e-6 * exact.test
    assert exact.train == pytest.approx(sampled.train, rel=1e-12)
    assert exact.by_degree is not None
    assert sampled.by_degree is not None
    atol = 0.02 * float(exact.test)
    np.testing.assert_allclose(exact.by_degree, sampled.by_degree, atol=atol)


def test_exact_risk_refuses_what_it_cannot_bound() -> None:
    problem = make(**{"steps.0.rate": 400.0})
    with pytest.raises(gs.NotConverged, match="test_samples=10_000"):
        simulation.risk(problem, 60, seed=0, test_samples="exact")


def test_sum_rule_by_degree() -> None:
    # A huge penalty leaves f̂ = 0, whose error on degree k is k! c*_k²
    teacher = "he1(x) + 0.5*he2(x) + 0.3*he4(x)"
    problem = make("tanh", teacher, **{"readout.penalty": 1e12})
    factorials = np.array([1, 1, 2, 6, 24])
    expected = factorials * hermite_coefficients(as_function(teacher), 4) ** 2
    exact = simulation.risk(problem, 30, seed=0, test_samples="exact")
    assert exact.by_degree is not None
    np.testing.assert_allclose(exact.by_degree, expected, atol=1e-9)
    assert exact.by_degree.sum() == pytest.approx(exact.test, abs=1e-9)
    # On points it is an unbiased estimate, with heavy tails: the mean of many.
    answers = (simulation.risk(problem, 30, seed, test_samples=20_000) for seed in range(60))
    found = np.stack([np.asarray(answer.by_degree) for answer in answers])
    error = found.std(axis=0, ddof=1) / math.sqrt(60)
    assert np.all(np.abs(found.mean(axis=0) - expected) < 4 * error)
    assert np.all(error < 0.15)
    degrees = simulation.run(problem, 30, 0, test_samples=50).risk(degrees=2).by_degree
    assert degrees is not None
    assert degrees.shape == (3,)


@pytest.mark.parametrize("samples", [0.5, 2.0])
def test_tangent_kernel_is_that_of_explicit_features(samples: float) -> None:
    problem = make("tanh", **{"readout.samples": samples, "steps.0.rate": 0.5})
    run = simulation.run(problem, 30, seed=0, test_samples=500)
    weights, y = run.arrays["W1"], run.arrays["y"]
    d, neurons = weights.shape

    def embed(x: np.ndarray) -> np.ndarray:
        slopes = 1 - np.tanh(x @ weights) ** 2
        return np.einsum("ni,nj->nij", x, slopes).reshape(len(x), -1) / math.sqrt(d * neurons)

    phi = embed(run.arrays["X"])
    shift = len(y) * 0.05 / neurons
    a = np.linalg.inv(phi.T @ phi + shift * np.eye(d * neurons)) @ phi.T @ y
    error = embed(run.arrays["X_test"]) @ a - run.arrays["f_test"]
    answer = run.risk(kind="tangent")
    assert answer.test == pytest.approx(np.mean(error**2), rel=1e-8)
    assert answer.train == pytest.approx(np.mean((y - phi @ a) ** 2), rel=1e-8)
    spectrum = run.kernel(top=3, kind="tangent")
    values, vectors = np.linalg.eigh(phi @ phi.T)
    assert isinstance(spectrum.bulk, EmpiricalLaw)
    np.testing.assert_allclose(spectrum.bulk.values, values, atol=1e-12)
    found = np.array([s.value for s in spectrum.spikes])
    np.testing.assert_allclose(found, values[:-4:-1], rtol=1e-10)
    overlaps = (vectors.T @ y)[:-4:-1] ** 2 / (y @ y)
    found = np.array([s.overlap for s in spectrum.spikes])
    np.testing.assert_allclose(found, overlaps, rtol=1e-7)
    assert spectrum.matrix == "tangent kernel"


# Curves, grids, pairs ------------------------------------------------------------------------


def test_a_curve_equals_separate_runs() -> None:
    problem = make()
    samples, penalties = [0.3, 1.2, 1.7, 20.0], [0.0, 0.05, 1.0]
    curve = simulation.run(problem, 60, seed=2, test_samples=500).risk(penalties, samples)
    assert curve.dims == ("readout.samples", "readout.penalty")
    assert isinstance(curve.test, np.ndarray)
    assert isinstance(curve.train, np.ndarray)
    assert curve.by_degree is not None
    assert curve.test.shape == (4, 3)
    assert curve.by_degree.shape == (4, 3, 5)
    for i, n in enumerate(samples):
        for j, penalty in enumerate(penalties):
            cell = problem.replace({"readout.samples": n, "readout.penalty": penalty})
            alone = simulation.risk(cell, 60, seed=2, test_samples=500)
            assert curve.test[i, j] == pytest.approx(alone.test, rel=1e-10)
            assert curve.train[i, j] == pytest.approx(alone.train, rel=1e-10, abs=1e-13)
            assert alone.by_degree is not None
            np.testing.assert_allclose(curve.by_degree[i, j], alone.by_degree, atol=1e-10)


def test_grid_equals_separate_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = gs.Grid(
        make(),
        {
            "steps.0.rate": [0.5, 1.0],
            "readout.samples": [0.5, 1.5],
            "readout.penalty": [0.01, 0.1],
        },
    )
    runs: list[Any] = []
    original = _risk.errors_of

    def counted(run: Any, *rest: Any) -> Any:
        runs.append(run)
        return original(run, *rest)

    monkeypatch.setattr(_risk, "errors_of", counted)
    answer = simulation.risk(grid, 50, seed=4, test_samples=300)
    assert len(runs) == 2  # one a rate
    assert isinstance(answer.test, np.ndarray)
    assert isinstance(answer.standard_error, np.ndarray)
    assert answer.test.shape == (2, 2, 2)
    for index in np.ndindex(2, 2, 2):
        alone = simulation.risk(grid[index], 50, seed=4, test_samples=300)
        assert answer.test[index] == pytest.approx(alone.test, rel=1e-10)
        assert answer.standard_error[index] == pytest.approx(alone.standard_error, rel=1e-10)
    del runs[:]
    initial = answer.initial
    assert len(runs) == 1  # the steps do not matter before the steps
    assert initial is not None
    assert isinstance(initial.test, np.ndarray)
    np.testing.assert_allclose(initial.test[0], initial.test[1], rtol=1e-14)
    assert isinstance(answer.gain, np.ndarray)
    assert answer.gain.shape == (2, 2, 2)


def test_initial_is_paired_and_simulated_when_read(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make()
    calls: list[Any] = []
    original = _risk.errors_of

    def counted(*given: Any) -> Any:
        calls.append(given)
        return original(*given)

    monkeypatch.setattr(_risk, "errors_of", counted)
    answer = simulation.risk(problem, 50, seed=0, test_samples=300)
    assert len(calls) == 1
    untrained = simulation.risk(problem.untrained(), 50, seed=0, test_samples=300)
    assert answer.initial is not None
    assert answer.initial.test == untrained.test
    assert answer.initial.train == untrained.train
    assert answer.initial.initial is None
    assert len(calls) == 3
    assert answer.initial is answer.initial
    assert len(calls) == 3
    assert (
        answer.initial.test
        == simulation.run(problem, 50, 0, test_samples=300).after(step=0).risk().test
    )
    # Asked for together with the rest, it comes from the same pass.
    del calls[:]
    together = simulation.risk(problem, 50, seed=0, test_samples=300, initial=True)
    assert len(calls) == 1
    assert together.initial is not None
    for one, other in ((together, answer), (together.initial, answer.initial)):
        assert one.test == pytest.approx(other.test, rel=1e-12)
        assert one.train == pytest.approx(other.train, rel=1e-12)
        assert one.by_degree is not None
        assert other.by_degree is not None
        np.testing.assert_allclose(one.by_degree, other.by_degree, atol=1e-13)


def test_initial_over_grids_and_where_memory_is_short() -> None:
    rates = gs.Grid(make(), {"steps.0.rate": [0.5, 1.0], "readout.penalty": [0.01, 0.1]})
    found = simulation.risk(rates, 50, seed=0, test_samples=300, initial=True).initial
    again = simulation.risk(rates, 50, seed=0, test_samples=300).initial
    assert found is not None
    assert again is not None
    np.testing.assert_allclose(found.test, again.test, rtol=1e-12)
    # Room for the features of one first layer, not of two.
    needed = simulation.run(make(), 400, 0, test_samples=300).cost().memory
    small = simulation.risk(make(), 400, 0, test_samples=300, initial=True, memory=needed)
    large = simulation.risk(make(), 400, 0, test_samples=300, initial=True)
    assert small.initial is not None
    assert large.initial is not None
    assert small.initial.test == pytest.approx(large.initial.test, rel=1e-10)


def test_answers_survive_a_process() -> None:
    answer = simulation.risk(make(), 40, seed=0, test_samples=300)
    copied = pickle.loads(pickle.dumps(answer))
    assert copied == answer
    assert answer.initial is not None
    assert copied.initial.test == answer.initial.test
    grid = gs.Grid(make(), {"readout.penalty": [0.1, 1.0]})
    over = simulation.risk(grid, 40, seed=0, test_samples=300)
    assert over[1].test == np.asarray(over.test)[1]
    initial, second = over.initial, over[1].initial
    assert initial is not None
    assert second is not None
    assert second.test == np.asarray(initial.test)[1]
    assert "initial.test" in over.to_columns()


def test_same_seed_same_bits_other_seed_other_network() -> None:
    first, again, other = (
        simulation.risk(make(), 50, seed=seed, test_samples=300) for seed in (7, 7, 8)
    )
    assert first == again
    assert first.test != other.test


# Devices, precision, memory ------------------------------------------------------------------


@pytest.mark.parametrize("samples", [0.5, 2.0])
def test_namespaces_agree(samples: float) -> None:
    torch = pytest.importorskip("torch")
    strict = pytest.importorskip("array_api_strict")
    problem = make("relu", **{"readout.samples": samples})
    reference = simulation.run(problem, 40, seed=0, test_samples=300)
    for device in ("torch", torch.device("cpu"), strict):
        run = simulation.run(problem, 40, seed=0, test_samples=300, device=device)
        assert run.risk().test == pytest.approx(reference.risk().test, rel=1e-10)
        assert run.risk().train == pytest.approx(reference.risk().train, rel=1e-10)
        exact = simulation.run(problem, 40, 0, test_samples="exact", device=device).risk().test
        assert exact == pytest.approx(reference.risk().test, rel=0.5)
        for question in ("weights", "kernel", "features"):
            expected = getattr(reference, question)(2)
            found = getattr(run, question)(2)
            np.testing.assert_allclose(found.bulk.values, expected.bulk.values, atol=1e-7)
            for mine, theirs in zip(found.spikes, expected.spikes):
                assert mine.value == pytest.approx(theirs.value, rel=1e-10)
                assert mine.overlap == pytest.approx(theirs.overlap, rel=1e-7)
        ratio = run.gradient().ratio
        assert ratio == pytest.approx(reference.gradient().ratio, rel=1e-9)
        tangent = run.risk(kind="tangent").test
        assert tangent == pytest.approx(reference.risk(kind="tangent").test, rel=1e-9)


@pytest.mark.parametrize("device", ["cpu", "torch"])
def test_single_precision(device: str) -> None:
    problem = make("relu", **{"width": 1.0})
    curve: dict[str, Any] = {"samples": [0.5, 1.0, 2.0], "penalties": [1e-7, 1e-3, 0.1]}
    options: dict[str, Any] = {"seed": 0, "test_samples": 2000}
    reference = simulation.run(problem, 200, **options).risk(**curve)
    narrow = simulation.run(problem, 200, device=device, dtype="float32", **options).risk(**curve)
    # At n = N a small penalty divides by almost nothing: products summed in float32 would be off
    # by tens of percent there.
    allowed = np.array([[1e-5] * 3, [1e-3, 1e-5, 1e-5], [1e-5] * 3])
    for name in ("test", "train"):
        ratio = getattr(narrow, name) / getattr(reference, name)
        assert np.all(np.abs(ratio - 1) < allowed), ratio - 1
        assert np.all(ratio != 1)


def test_devices_draw_the_same_numbers() -> None:
    pytest.importorskip("torch")
    there = simulation.risk(make(), 60, seed=0, test_samples=2000, device="torch")
    here = simulation.risk(make(), 60, seed=0, test_samples=2000)
    assert there.test == pytest.approx(here.test, rel=1e-11)


def test_gradient_and_data_of_a_float32_run_are_float32() -> None:
    run = simulation.run(make(), 30, seed=0, dtype="float32")
    assert {run.arrays[name].dtype for name in ("W0", "W1", "X", "Phi", "a")} == {
        np.dtype("float32")
    }
    assert run.arrays["y"].dtype == np.dtype("float64")


@pytest.mark.parametrize("given", [0, 1, -5, 2.5, True, "all"])
def test_refused_test_samples(given: Any) -> None:
    with pytest.raises(gs.InvalidProblem, match="test_samples"):
        simulation.run(make(), 30, 0, test_samples=given)


def test_refused_questions() -> None:
    without = gs.Problem(activation="tanh", teacher="sin", width=1.0)
    for question in ("risk", "kernel", "features", "learned_function"):
        with pytest.raises(gs.InvalidProblem, match="readout"):
            getattr(simulation, question)(without, 30, 0)
    with pytest.raises(gs.InvalidProblem, match="steps"):
        simulation.gradient(without, 30, 0)
    with pytest.raises(gs.InvalidProblem, match="kind"):
        simulation.risk(make(), 30, 0, kind="both")  # type: ignore[arg-type]
    with pytest.raises(gs.InvalidProblem, match="degrees"):
        simulation.risk(make(), 30, 0, degrees=-1)
    with pytest.raises(gs.InvalidProblem, match="along"):
        simulation.learned_function(make(), 30, 0, along="noise")
    with pytest.raises(gs.InvalidProblem, match="step = 2"):
        simulation.run(make(), 30, 0).after(2)
    with pytest.raises(gs.InvalidProblem, match="problem"):
        simulation.run("tanh", 30, 0)  # type: ignore[arg-type]
    with pytest.raises(gs.InvalidProblem, match="tangent"):
        simulation.risk(make(), 30, 0, kind="tangent", test_samples="exact")
    with pytest.raises(gs.InvalidProblem, match=r'tests = 3: .* options are "kind", .* "data"'):
        simulation.risk(make(), 30, 0, tests=3)  # type: ignore[call-arg]
    with pytest.raises(gs.InvalidProblem, match=r"rng = .*the same on every device"):
        simulation.run(make(), 30, 0, rng="host")  # type: ignore[call-arg]


def test_learned_function_along_the_teacher() -> None:
    # A linear network learns a line: its slope along β* is ⟨v, β*⟩
    problem = make("identity", "identity")
    run = simulation.run(problem, 100, seed=0)
    a, _ = explicit_readout(run, 0.05)
    v = run.arrays["W1"] @ a / math.sqrt(run.sizes.neurons)
    beta = run.arrays["beta"][:, 0]
    answer = run.learned_function(along="teacher", x=[-1.0, 0.0, 2.0], draws=20_000)
    slope = (answer.mean[2] - answer.mean[0]) / 3
    assert slope == pytest.approx(v @ beta, rel=1e-10)
    spread = np.sqrt(v @ v - (v @ beta) ** 2)
    np.testing.assert_allclose(answer.band, spread, rtol=0.03)
    assert answer.target is not None
    np.testing.assert_allclose(answer.target, [-1, 0, 2], atol=1e-12)
    spike = simulation.learned_function(problem, 100, seed=0)
    assert spike.along == "spike"
    assert spike.mean[-1] > spike.mean[0]
