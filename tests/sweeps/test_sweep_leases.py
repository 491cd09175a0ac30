"""Leases: who works on what, on one machine and on two."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

import giantsteps as gs
from giantsteps.campaign import Store, _leases
from giantsteps.campaign._jobs import Job, plan
from giantsteps.campaign._leases import Runner, at_work, is_gone, process_mark
from giantsteps.errors import StoreError


@pytest.fixture
def store(make: Callable[..., gs.Sweep]) -> Iterator[Store]:
    with Store(make().store, write=True) as store:
        yield store


@pytest.fixture
def jobs(make: Callable[..., gs.Sweep]) -> list[Job]:
    return plan(make().cells, ())


def ended_process() -> str:
    """The mark of a process that has ended."""
    code = "from giantsteps.campaign._leases import process_mark; print(process_mark())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_runners_of_one_machine_share_the_work(store: Store, jobs: list[Job]) -> None:
    with Runner(store) as first, Runner(store) as second:
        assert first.claim(jobs[:3]) == jobs[:3]
        assert second.claim(jobs) == jobs[3:]
        assert first.claim(jobs) == []
        claimed = {address for job in jobs for address in job.addresses}
        assert at_work(store) == claimed
    assert at_work(store) == set()
    assert store.runners() == []


def test_what_a_dead_runner_claimed_is_free(store: Store, jobs: list[Job]) -> None:
    dead = Runner(store)
    dead.process = ended_process()
    dead._renew(store)
    dead.claim(jobs)
    assert at_work(store) == set()
    with Runner(store) as alive:
        assert alive.claim(jobs) == jobs


def test_a_lease_that_ran_out_is_free(
    store: Store, jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = Runner(store)
    stuck._renew(store)
    stuck.claim(jobs)
    with Runner(store) as other:
        assert other.claim(jobs) == []
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + _leases.LEASE + 1)
        assert other.claim(jobs) == jobs
    stuck._renew(store)  # it wakes up: it may go on, but its claims are gone
    assert stuck.claim(jobs) == jobs


def test_another_machine_is_refused_until_the_lease_ends(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Runner(store)
    there.host = "elsewhere"
    there._renew(store)
    with pytest.raises(StoreError, match="in use on elsewhere"), Runner(store):
        pass
    assert [host for _, host, *_ in store.runners()] == ["elsewhere"]
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + _leases.LEASE + 1)
    with Runner(store):
        assert [host for _, host, *_ in store.runners()] != ["elsewhere"]


def test_a_run_is_refused_while_another_machine_runs(make: Callable[..., gs.Sweep]) -> None:
    sweep = make()
    with Store(sweep.store, write=True) as store:
        there = Runner(store)
        there.host = "elsewhere"
        there._renew(store)
        with pytest.raises(StoreError, match="One machine runs a sweep"):
            sweep.run(executor="serial")
        assert store.status() == {}


def test_the_lease_is_renewed_while_the_runner_is_busy(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_leases, "RENEWAL", 0.01)
    with Runner(store) as runner:
        ((_, _, _, first),) = store.runners()
        patience = time.monotonic() + 10
        while store.runners()[0][3] <= first:
            assert time.monotonic() < patience
            time.sleep(0.01)
        runner.check()


def test_a_lease_that_cannot_be_renewed_stops_the_run(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_leases, "RENEWAL", 0.01)
    with Runner(store) as runner:
        there = Runner(store)
        there.host = "elsewhere"
        monkeypatch.setattr(there, "name", "there")
        with store.transaction() as db:
            db.execute(
                "INSERT INTO runners VALUES ('there', 'elsewhere', '- 1 -', ?)",
                (time.time() + 60,),
            )
        runner._thread.join(10)
        with pytest.raises(StoreError, match="in use on elsewhere"):
            runner.check()


def test_processes_are_told_apart() -> None:
    here = process_mark()
    assert not is_gone(here)
    assert is_gone(ended_process())
    space, number, start = here.split(" ")
    if start != "-":
        assert is_gone(f"{space} {number} {int(start) + 1}")  # the number was given again
        boot, names = space.split("/")
        assert is_gone(f"other{boot}/{names} {number} {start}")  # before the last start
        assert not is_gone(f"{boot}/1{names} 999999999 {start}")  # in another container
    assert not is_gone(f"{space} {os.getppid()} {_leases._start(os.getppid())}")


def test_a_process_that_ended_but_was_not_waited_for_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    mark = f"{_leases._space()} {child.pid} {_leases._start(child.pid)}"
    try:
        assert not is_gone(mark)
        child.kill()
        patience = time.monotonic() + 10
        while not is_gone(mark):
            assert time.monotonic() < patience
            time.sleep(0.01)
    finally:
        child.communicate()
