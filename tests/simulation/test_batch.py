"""Many seeds together: each as it is alone, whatever the others are."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation
from giantsteps.simulation import _many, _networks
from giantsteps.simulation._engine import _machine, _torch_arrays
from giantsteps.simulation._engine._devices import resolve

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.1,
    width=1.5,
    steps=[gs.Step(samples=3.0, rate=1.0, exponent=0.5)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
)
SEEDS = [0, 7, 2**70, 3, 3]


def device_of(name: str) -> Any:
    if name == "cpu":
        return None
    pytest.importorskip("torch" if name == "torch" else name)
    return name if name == "torch" else importlib.import_module(name)


def same(one: Any, other: Any, rtol: float = 1e-10) -> None:
    for name in ("test", "train", "standard_error", "by_degree", "classification_error"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine is None) == (theirs is None)
        if mine is not None:
            np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("name", ["cpu", "torch", "array_api_strict"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"readout.samples": 0.5, "teacher": "sign"},
        {"steps.0.rule": "sign", "init.output": "unscaled", "steps.0.loss": "huber"},
        {"steps.0.rule": "muon", "inputs": gs.PowerLaw(0.4, 0.2), "steps.0.decay": 0.1},
        {"steps": [gs.Step(samples=2, rate=0.5, rule="adam")] * 2, "init.weights": "sphere"},
        {"readout.batch": "previous", "readout.samples": 3.0},
        {"teacher": gs.MultiIndex("x0 * x1", 2), "noise_variance": 0.0},
        {"steps": []},
    ],
    ids=lambda changes: "-".join(changes) or "plain",
)
def test_a_batch_is_its_seeds_alone(name: str, changes: dict[str, Any]) -> None:
    device, problem = device_of(name), PROBLEM.replace(changes)
    options: dict[str, Any] = {"device": device, "test_samples": 700}
    plain: list[Any] = simulation.batch("risk", problem, 40, SEEDS, **options)
    together: list[Any] = simulation.batch(
        "risk", problem, 40, SEEDS, initial=True, degrees=2, **options
    )
    assert len(plain) == len(together) == len(SEEDS)
    for seed, first, second in zip(SEEDS, plain, together):
        alone = simulation.risk(problem, 40, seed, **options)
        same(first, alone)
        assert second.test == pytest.approx(alone.test, rel=1e-10)
        assert second.by_degree is None or second.by_degree.shape == (3,)
        if problem.steps:
            same(first.initial, alone.initial)
            assert alone.initial is not None
            assert second.initial.test == pytest.approx(alone.initial.test, rel=1e-10)
        assert first.problem == alone.problem
        assert first.d == 40


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_rest_of_the_batch_plays_no_part(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    options: dict[str, Any] = {"device": "torch", "test_samples": 700, "dtype": dtype}
    tolerance = 1e-11 if dtype == "float64" else 1e-5
    first: list[Any] = simulation.batch("risk", PROBLEM, 40, range(7), **options)
    whole = [a.test for a in first]
    for together in (1, 2, 3):
        monkeypatch.setattr(_many, "networks_together", lambda *given, n=together: n)
        again: list[Any] = simulation.batch("risk", PROBLEM, 40, range(6, -1, -1), **options)
        part = [a.test for a in again]
        np.testing.assert_allclose(part[::-1], whole, rtol=tolerance)


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("weights", {"top": 2, "bulk": False}),
        ("kernel", {"top": 1}),
        ("gradient", {}),
        ("learned_function", {"along": "teacher"}),
        ("degrees_of_freedom", {}),
        ("movement", {"test_samples": 300}),
        ("trajectory", {"test_samples": 300}),
        ("risk", {"kind": "tangent", "test_samples": 300}),
        ("risk", {"test_samples": "exact"}),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_every_question(
    question: str, options: dict[str, Any], threads: int, monkeypatch: Any
) -> None:
    monkeypatch.setattr(_machine, "threads", lambda: threads)
    found: list[Any] = simulation.batch(question, PROBLEM, 40, [4, 1], **options)
    for seed, answer in zip([4, 1], found):
        alone = getattr(simulation, question)(PROBLEM, 40, seed, **options)
        mine, theirs = answer._variables(), alone._variables()
        assert mine.keys() == theirs.keys()
        for name, (_, values) in mine.items():
            np.testing.assert_allclose(values, theirs[name][1], rtol=1e-8, atol=1e-9)


#: Spikes, some clear of the bulk and some not, and what is asked of them.
MANY = [
    ("weights", {"top": 2, "bulk": False}, 150, {}),
    ("weights", {"top": 1, "bulk": False}, 40, {"teacher": gs.MultiIndex("x0 * x1", 2)}),
    ("weights", {"top": 1, "bulk": False}, 150, {"steps": []}),
    ("kernel", {"top": 2, "bulk": False}, 120, {}),
    ("kernel", {"top": 1, "bulk": False}, 150, {"readout.samples": 1.0}),
    ("features", {"top": 3, "bulk": False}, 120, {"activation": "softplus"}),
    ("features", {"top": 1, "bulk": False}, 150, {"readout.samples": 1.0, "steps": []}),
    ("gradient", {}, 120, {"steps.0.rule": "sign"}),
    ("learned_function", {"along": "teacher", "x": [0.5, 1.0]}, 40, {}),
    ("learned_function", {}, 40, {"inputs": gs.PowerLaw(0.4, 0.2)}),
    ("learned_function", {"x": [1.0]}, 120, {"steps": [gs.Step(samples=3.0, rate=2.0)] * 2}),
    ("degrees_of_freedom", {}, 40, {}),
    ("degrees_of_freedom", {}, 40, {"readout.samples": 0.7}),
    ("movement", {"test_samples": 300}, 120, {"steps": [gs.Step(samples=3.0, rate=2.0)] * 2}),
    ("trajectory", {"test_samples": 300}, 120, {"steps": [gs.Step(samples=3.0, rate=2.0)] * 2}),
    ("trajectory", {"top": 2}, 40, {"readout": None}),
]


@pytest.mark.parametrize("name", ["torch", "array_api_strict"])
@pytest.mark.parametrize(("question", "options", "d", "changes"), MANY)
def test_every_question_is_one_batch(
    name: str,
    question: str,
    options: dict[str, Any],
    d: int,
    changes: dict[str, Any],
    monkeypatch: Any,
) -> None:
    """Networks that are computed together answer as each does alone, with the processor's code."""
    device, problem, sizes = device_of(name), PROBLEM.replace(changes), []
    if name == "array_api_strict" and d > 100:
        pytest.skip("slow: the same code as with PyTorch")
    original = _networks.Networks

    def counted(*given: Any, **more: Any) -> Any:
        sizes.append(given[2])
        return original(*given, **more)

    monkeypatch.setattr(_many, "Networks", counted)
    found: list[Any] = simulation.batch(question, problem, d, [4, 1, 7], device=device, **options)
    assert sizes == [4, (4, 1, 7)]
    for seed, answer in zip([4, 1, 7], found):
        alone = getattr(simulation, question)(problem, d, seed, **options)
        assert type(answer) is type(alone)
        agree(answer, alone)
        if question == "weights" and problem.steps and seed == 1:
            agree(answer.initial, alone.initial)


def agree(one: Any, other: Any) -> None:
    """All numbers, those of the spikes included."""
    mine, theirs = one._variables(), other._variables()
    assert mine.keys() == theirs.keys()
    for name, (_, values) in mine.items():
        np.testing.assert_allclose(values, theirs[name][1], rtol=1e-7, atol=1e-9)
    for spike, expected in zip(getattr(one, "spikes", ()), getattr(other, "spikes", ())):
        assert spike.value == pytest.approx(expected.value, rel=1e-9)
        assert spike.overlaps == pytest.approx(expected.overlaps, rel=1e-6, abs=1e-8)
        assert spike.degree == expected.degree


def test_an_iteration_that_fails_is_done_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    original = _torch_arrays.TorchArrays.orthonormal

    def spoiled(self: Any, columns: Any) -> Any:
        found = original(self, columns).clone()
        if columns.ndim == 3:
            found[1] = float("nan")  # as where a block of vectors is dependent
        return found

    monkeypatch.setattr(_torch_arrays.TorchArrays, "orthonormal", spoiled)
    options: dict[str, Any] = {"top": 1, "bulk": False}
    found: list[Any] = simulation.batch(
        "weights", PROBLEM, 150, range(3), device="torch", **options
    )
    for seed, answer in enumerate(found):
        agree(answer, simulation.weights(PROBLEM, 150, seed, **options))


@pytest.mark.parametrize("initial", [False, True])
def test_a_grid_over_the_readout_is_one_batch(
    initial: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    grid = gs.Grid(PROBLEM, {"readout.samples": [0.5, 1.5, 4.0], "readout.penalty": [0.1, 1.0]})
    options: dict[str, Any] = {"device": "torch", "test_samples": 500, "initial": initial}
    alone = [simulation.risk(grid, 40, seed, **options) for seed in range(4)]
    sizes: list[Any] = []
    original = _networks.Networks

    def counted(*given: Any, **more: Any) -> Any:
        sizes.append(given[2])
        return original(*given, **more)

    monkeypatch.setattr(_many, "Networks", counted)
    found: list[Any] = simulation.batch("risk", grid, 40, range(4), **options)
    assert sizes == [0, (0, 1), (2, 3)]
    for one, other in zip(found, alone):
        assert one.problem == grid
        same(one, other)
        same(one.initial, other.initial)


def test_grids_and_data() -> None:
    grid = gs.Grid(PROBLEM, {"readout.penalty": [0.1, 1.0], "steps.0.rate": [0.5, 1.0]})
    found: list[Any] = simulation.batch("risk", grid, 40, [0, 1], test_samples=300)
    assert found[1].test[0, 1] == pytest.approx(
        simulation.risk(grid[0, 1], 40, 1, test_samples=300).test, rel=1e-10
    )
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 40))
    data = gs.Data(x, np.sin(x[:, 0]), x[:50], np.sin(x[:50, 0]))
    both: list[Any] = simulation.batch("risk", PROBLEM, None, [0, 1], data=data)
    one, two = both
    assert one.test == simulation.risk(PROBLEM, seed=0, data=data).test != two.test


@pytest.mark.parametrize("size", [40, 300, 601])
def test_a_factorisation_by_blocks(size: int) -> None:
    torch = pytest.importorskip("torch")
    arrays = resolve("torch")
    assert isinstance(arrays, _torch_arrays.TorchArrays)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((3, 2 * size, size)) / np.sqrt(size)
    matrices, rhs = np.swapaxes(a, 1, 2) @ a + 0.1 * np.eye(size), rng.standard_normal((3, size))
    spoiled = np.tril(matrices) + np.triu(np.full((size, size), 9.0), 1)  # the upper half
    spoiled[1, size // 2, size // 2] = -1.0
    found, solved = arrays._solve_by_blocks(torch.tensor(spoiled), torch.tensor(rhs))
    assert solved.tolist() == [True, False, True]
    for number in (0, 2):
        expected = np.linalg.solve(matrices[number], rhs[number])
        np.testing.assert_allclose(found[number], expected, rtol=0, atol=1e-11)


def test_a_factorisation_that_fails_is_done_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network whose Gram matrix is not positive definite has its pseudo-inverse, in a batch."""
    pytest.importorskip("torch")
    # λ far below rounding, and more neurons than inputs have directions.
    problem = PROBLEM.replace(
        {"activation": "identity", "readout.penalty": 1e-30, "readout.samples": 3.0, "steps": []}
    )
    options: dict[str, Any] = {"device": "torch", "test_samples": 300}
    original, failures = _torch_arrays.TorchArrays._solve, []

    def spoiled(self: Any, matrix: Any, rhs: Any) -> tuple[Any, Any]:
        found, solved = original(self, matrix, rhs)
        failures.append(int((~solved).sum()))
        return found, solved

    monkeypatch.setattr(_torch_arrays.TorchArrays, "_solve", spoiled)
    found: list[Any] = simulation.batch("risk", problem, 40, range(3), **options)
    assert sum(failures[:2]) == 3  # in the batches
    for seed, answer in enumerate(found):
        assert answer.test == pytest.approx(
            simulation.risk(problem, 40, seed, test_samples=300).test, rel=1e-6
        )


@pytest.mark.parametrize("name", ["cpu", "torch"])
def test_batches_stay_within_their_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_machine, "threads", lambda: 2)
    device = device_of(name)
    sizes: list[Any] = []
    original = _networks.Networks

    def counted(*given: Any, **more: Any) -> Any:
        sizes.append(given[2])
        return original(*given, **more)

    monkeypatch.setattr(_many, "Networks", counted)
    options: dict[str, Any] = {"device": device, "test_samples": 3000}
    plain: list[Any] = simulation.batch("risk", PROBLEM, 100, range(8), **options)
    short: list[Any] = simulation.batch("risk", PROBLEM, 100, range(8), memory="190MB", **options)
    for one, other in zip(plain, short):
        assert one.test == pytest.approx(other.test, rel=1e-10)
    if name == "torch":
        assert (0, 1, 2, 3) in sizes
        assert sizes[-1] == (6, 7)  # fewer at a time
    with pytest.raises(gs.InvalidProblem, match="memory"):
        simulation.batch("risk", PROBLEM, 100, range(4), memory="60MB", **options)


def test_refusals() -> None:
    with pytest.raises(gs.InvalidProblem, match=r"question = 'error': must be one of .*risk"):
        simulation.batch("error", PROBLEM, 40, [0])
    with pytest.raises(gs.InvalidProblem, match=r'tests = 3.*the options are "kind", "degrees"'):
        simulation.batch("risk", PROBLEM, 40, [0], tests=3)
    with pytest.raises(gs.InvalidProblem, match="seed = -1"):
        simulation.batch("risk", PROBLEM, 40, [0, -1])
    with pytest.raises(gs.InvalidProblem, match="degrees"):
        simulation.batch("risk", PROBLEM, 40, [0], degrees=-1)
    assert simulation.batch("risk", PROBLEM, 40, []) == []
