"""Runs: the same bits from every executor, resumed, retried, and with workers that die."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.campaign import Store, WorkerLost, Workers, WorkersGone, _run, capped, read_answer
from giantsteps.campaign._work import Task, work
from giantsteps.campaign._workers import InProcess
from giantsteps.errors import GiantstepsError, InvalidProblem
from giantsteps.laws import EmpiricalLaw, Law
from giantsteps.questions import QUESTIONS as REGISTRY

QUESTIONS = ["risk", "weights", "kernel", "features", "gradient", "learned_function"]


def test_cells_hold_what_theory_and_simulation_answer(make: Callable[..., gs.Sweep]) -> None:
    sweep = make(questions=QUESTIONS, sources=["limit", "finite width", "simulation"], seeds=1)
    status = sweep.run(executor="serial")
    assert status.complete, status.errors
    cell = sweep.grid[1, 0]
    assert isinstance(cell, gs.Problem)
    direct = simulation.risk(cell, 12, 0, test_samples=50)
    stored = sweep.values("risk", cell, 12, 0)
    np.testing.assert_allclose(stored["test"], direct.test, rtol=1e-12)
    assert direct.by_degree is not None
    np.testing.assert_allclose(stored["by_degree"], direct.by_degree, rtol=1e-9, atol=1e-14)
    before = sweep.values("risk", cell.untrained(), 12, 0)
    assert direct.initial is not None
    np.testing.assert_allclose(before["test"], direct.initial.test, rtol=1e-12)
    assert sweep.values("risk", cell, 12)["test"] == theory.risk(cell, d=12).test
    start = theory.risk(cell).initial
    assert start is not None
    assert sweep.values("risk", cell)["initial.test"] == start.test
    weights = simulation.weights(cell, 12, 0)
    stored = sweep.values("weights", cell, 12, 0)
    assert isinstance(weights.bulk, EmpiricalLaw)
    np.testing.assert_allclose(stored["bulk"], weights.bulk.values, rtol=1e-10)
    np.testing.assert_allclose(
        stored["value"], np.array([s.value for s in weights.spikes]), rtol=1e-10
    )
    bulk = theory.weights(cell).bulk
    assert isinstance(bulk, Law)
    assert sweep.values("weights", cell)["edge"] == bulk.edge


def test_theory_is_stored_as_if_asked_alone(make: Callable[..., gs.Sweep]) -> None:
    vary = {"steps.0.rate": [0.1, 1.0, 3.0], "readout.samples": [0.5, 2.0], "width": [1.0, 2.0]}
    sources = ["limit", "finite width"]
    sweep = make(vary=vary, questions=["risk", "weights"], sources=sources)
    assert sweep.run(executor="serial").complete
    for cell in sweep.grid:
        for question, d in (("risk", None), ("risk", 12), ("weights", None), ("weights", 12)):
            ((numbers, arrays),) = read_answer(getattr(theory, question)(cell, d=d))
            stored = sweep.values(question, cell, d)
            assert {name: stored[name] for name in numbers} == numbers
            assert len(stored) == len(numbers) + len(arrays)
            for name, (_, array) in arrays.items():
                np.testing.assert_array_equal(stored[name], array)


def test_every_executor_gives_the_same_bits(
    make: Callable[..., gs.Sweep], bits: Callable[[Path], Any]
) -> None:
    fields = {"questions": ["risk", "weights"], "seeds": 4}
    serial = make(store="serial.sqlite", **fields)
    assert serial.run(executor="serial").complete
    pool = make(store="pool.sqlite", **fields)
    assert pool.run(workers=2).complete
    threads = make(store="threads.sqlite", **fields)
    with ThreadPoolExecutor(2) as executor:
        assert threads.run(executor=executor, workers=2).complete
    assert bits(pool.store) == bits(serial.store) == bits(threads.store)


def test_cells_that_run_alone_depend_on_their_address_only(
    make: Callable[..., gs.Sweep], bits: Callable[[Path], Any]
) -> None:
    whole = make(store="whole.sqlite", share=False)
    whole.run(executor="serial")
    grown = make(store="grown.sqlite", share=False, vary={"readout.samples": [2.0]})
    grown.run(executor="serial")
    larger = make(store="grown.sqlite", share=False)
    larger.run(executor="serial")
    numbers, arrays = bits(larger.store)
    expected, expected_arrays = bits(whole.store)
    assert expected.items() <= numbers.items()
    assert expected_arrays.items() <= arrays.items()


def test_only_what_is_missing_is_run(make: Callable[..., gs.Sweep]) -> None:
    seen: list[tuple[int, int, int]] = []
    make(seeds=2).run(executor="serial", progress=lambda *counts: seen.append(counts))
    assert seen[0] == (0, 0, 4 + 2 * 2 + 4 * 2)
    assert seen[-1] == (16, 0, 16)
    with Store(make().store) as store:
        finished = dict(store._rows("SELECT address, finished FROM cells"))
    again: list[tuple[int, int, int]] = []
    make(seeds=3).run(executor="serial", progress=lambda *counts: again.append(counts))
    assert again[0] == (16, 0, 22)
    assert again[-1] == (22, 0, 22)
    with Store(make().store) as store:
        now = dict(store._rows("SELECT address, finished FROM cells"))
    assert finished.items() <= now.items()


# Failures -------------------------------------------------------------------------------------


@pytest.fixture
def half_covered(make: Callable[..., gs.Sweep]) -> gs.Sweep:
    """In the limit, theory answers for activations without a mean only."""
    vary = {"readout.samples": [1.0, 2.0, 3.0], "activation": ["tanh", "relu", "erf(x)"]}
    return make(vary=vary, sources=["limit"])


def test_failures_are_recorded_and_the_rest_is_done(half_covered: gs.Sweep) -> None:
    status = half_covered.run(executor="serial")
    assert (status.done, status.failed, status.left) == (6, 3, 0)
    ((message, count),) = status.errors.items()
    assert message.startswith("NotCovered: theory.risk")
    assert count == 3
    with Store(half_covered.store) as store:
        traces = store._rows("SELECT traceback FROM cells WHERE status = 'failed'")
    assert all("Traceback" in trace for (trace,) in traces)
    for cell in half_covered.grid:
        if cell.activation.name == "relu":
            with pytest.raises(GiantstepsError, match="not done: NotCovered"):
                half_covered.values("risk", cell)
        else:
            assert half_covered.values("risk", cell)["test"] == theory.risk(cell).test


def test_failures_are_tried_again_on_request_only(
    half_covered: gs.Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    half_covered.run(executor="serial")
    monkeypatch.setattr(theory, "risk", lambda target, d=None: simulation.risk(target, 12, 0))
    assert half_covered.run(executor="serial").failed == 3
    assert half_covered.run(executor="serial", retry=True).complete


def test_an_exception_of_any_kind_is_an_outcome(
    make: Callable[..., gs.Sweep], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(simulation.Run, "risk", fails)
    status = make(sources=["simulation"], share=False).run(executor="serial")
    assert status.errors == {"ZeroDivisionError: by zero": status.total}


def test_ctrl_c_keeps_what_is_finished(
    make: Callable[..., gs.Sweep], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep, risk = make(seeds=5, share=False, initial=False), simulation.Run.risk
    calls: list[Any] = []

    def interrupted(*arguments: Any, **options: Any) -> Any:
        if len(calls) == 7:
            raise KeyboardInterrupt
        calls.append(arguments)
        return risk(*arguments, **options)

    monkeypatch.setattr(simulation.Run, "risk", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep.run(executor="serial")
    status = sweep.status()
    assert (status.parts["simulation", "risk"].done, status.running) == (7, 0)
    monkeypatch.undo()
    assert sweep.run(executor="serial").complete


def test_ctrl_c_ends_the_workers_at_once(make: Callable[..., gs.Sweep]) -> None:
    def stop(done: int, failed: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    sweep = make(seeds=200, share=False)
    with pytest.raises(KeyboardInterrupt):
        sweep.run(workers=2, progress=stop)
    status = sweep.status()
    assert 0 < status.done < status.total
    assert status.running == 0


# Workers that die -----------------------------------------------------------------------------


class Mortal(InProcess):
    """Workers that die of some tasks."""

    def __init__(self, deadly: Any) -> None:
        self.deadly, self.deaths = deadly, 0

    def submit(self, function: Any, *arguments: Any, limit: float | None = None) -> Future[Any]:
        (task,) = arguments
        if not self.deadly(task):
            return super().submit(function, task)
        self.deaths += 1
        future: Future[Any] = Future()
        future.set_exception(WorkerLost("its process was killed"))
        return future


def test_cells_of_a_lost_worker_run_again(
    make: Callable[..., gs.Sweep], bits: Callable[[Path], Any]
) -> None:
    calm = make(store="calm.sqlite")
    calm.run(executor="serial")
    deaths = iter([False, True, False, True] + [False] * 1000)
    sweep, workers = make(), Mortal(lambda task: next(deaths))
    assert sweep.run(executor=workers).complete
    assert workers.deaths == 2
    assert bits(sweep.store) == bits(calm.store)


def test_a_cell_that_kills_its_worker_fails_alone(make: Callable[..., gs.Sweep]) -> None:
    def deadly(task: Task) -> bool:
        stepped = isinstance(task.target, gs.Problem) and bool(task.target.steps)
        return task.source == "simulation" and 1 in task.seeds and stepped

    sweep = make(vary={"steps.0.rate": [0.5, 1.0]}, seeds=4)
    status = sweep.run(executor=Mortal(deadly))
    assert (status.failed, status.left) == (2, 0)
    assert list(status.errors) == ["WorkerLost: its process was killed (3 times)"]
    assert sweep.run(executor="serial", retry=True).complete


def test_workers_that_never_finish_anything_stop_the_run(make: Callable[..., gs.Sweep]) -> None:
    workers = Mortal(lambda task: task.source == "simulation")
    with pytest.raises(WorkersGone, match="die before they finish anything"):
        make(seeds=20).run(executor=workers)
    assert make(seeds=20).status().parts["finite width", "risk"].done == 4


def test_an_executor_that_is_not_ours_is_not_restarted(make: Callable[..., gs.Sweep]) -> None:
    class Broken(Executor):
        def submit(self, *_: Any) -> Future[Any]:  # type: ignore[override]
            raise BrokenProcessPool("gone")

    class Cancelling(Executor):
        def submit(self, *_: Any) -> Future[Any]:  # type: ignore[override]
            future: Future[Any] = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    for executor in (Broken(), Cancelling()):
        with pytest.raises(GiantstepsError, match="workers were lost"):
            make().run(executor=executor)
    assert make().status().running == 0


# Two at once, threads, arguments ----------------------------------------------------------------


class Counting(InProcess):
    """Workers that count the cells of their tasks."""

    def __init__(self, counts: list[int]) -> None:
        self.counts = counts

    def submit(self, function: Any, *arguments: Any, limit: float | None = None) -> Future[Any]:
        self.counts.append(arguments[0].size)
        return super().submit(function, *arguments)


def test_two_runners_share_the_work(
    make: Callable[..., gs.Sweep], bits: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = make(store="calm.sqlite", seeds=20)
    calm.run(executor="serial")
    monkeypatch.setattr(_run, "AHEAD", 1)
    monkeypatch.setattr("giantsteps.campaign._jobs.NETWORKS", {"cpu": 2, "gpu": 2})
    monkeypatch.setattr(_run, "LOOK", 0.02)
    worked: list[int] = []

    def run() -> None:
        counts: list[int] = []
        workers = Counting(counts)
        make(seeds=20).run(executor=workers)
        worked.append(sum(counts))

    runners = [threading.Thread(target=run) for _ in range(2)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join(60)
    assert sum(worked) == len(calm.addresses)
    assert min(worked) > 0
    assert bits(make().store) == bits(calm.store)


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_threads_are_capped_while_it_works_and_given_back() -> None:
    before = blas_threads()
    with capped(1):
        assert blas_threads() == {1}
        with capped(2):  # the first to enter decides
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_a_worker_is_capped(problem: gs.Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, gradient = [], simulation.Run.gradient

    def spy(run: simulation.Run) -> Any:
        seen.append(blas_threads())
        return gradient(run)

    monkeypatch.setattr(simulation.Run, "gradient", spy)
    task = Task(
        question=REGISTRY["gradient"],
        source="simulation",
        target=problem,
        d=12,
        seeds=(0,),
        options={},
    )
    (outcome,) = work(task)
    assert outcome.error is None
    assert seen == [{1}]


def test_provenance_stands_beside_a_cell(make: Callable[..., gs.Sweep]) -> None:
    sweep = make(seeds=1)
    sweep.run(executor="serial")
    cell = sweep.grid[0, 0]
    assert isinstance(cell, gs.Problem)
    known = sweep.provenance("risk", cell, 12, 0)
    assert known["packages"]["numpy"] == np.__version__
    assert known["threads"] == 1
    assert known["seconds"] > 0
    assert {"host", "machine", "system", "commit", "libraries", "finished"} <= known.keys()
    with pytest.raises(InvalidProblem, match="one of the sweep's cells"):
        sweep.provenance("risk", cell, 13, 0)


@pytest.mark.parametrize(
    "arguments",
    [
        {"executor": "fast"},
        {"workers": 0},
        {"workers": 1.5},
        {"threads": 0},
        {"time_limit": 0},
        {"time_limit": "1s"},
        {"time_limit": 1.0, "executor": "serial"},
    ],
)
def test_bad_arguments_are_refused(
    make: Callable[..., gs.Sweep], arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidProblem, match=next(iter(arguments))):
        make().run(**arguments)


def test_given_workers_are_left_open(make: Callable[..., gs.Sweep]) -> None:
    class Watched(Workers):
        closed = False

        def close(self, now: bool = False) -> None:
            self.closed = True

    with ThreadPoolExecutor(1) as executor:
        workers = Watched(executor, 1)
        assert make().run(executor=workers).complete
        assert not workers.closed
