"""Kill sweeps with SIGKILL at random moments and compare what is left with an undisturbed run.

    python benchmarks/sweeps_kill.py --kills 200

A sweep runs with two worker processes. At random moments the runner, a worker, or one of the
processes that multiprocessing keeps beside them is killed; then it is run again. After every
kill the store must be sound and hold, unchanged, everything that it held before; the workers of
a killed runner must end by themselves. When a sweep is complete, its numbers and arrays must be
those of an undisturbed run in one process, bit for bit. Exits with 1 at the first violation.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SWEEP = """
d = [30, 40]
seeds = 20
questions = ["risk", "weights"]
options = {test_samples = 500}
[problem]
activation = "tanh"
teacher = "sin"
noise_variance = 0.1
width = 1.5
steps = [{samples = 2.0, rate = 1.0}]
readout = {samples = 2.0, penalty = 0.1}
[vary]
"readout.samples" = [0.5, 1.0, 2.0]
"steps.0.rate" = [0.5, 1.0, 2.0, 3.0]
"""
CLI = [sys.executable, "-c", "from giantsteps.cli import main; main()", "sweep"]
Rows = dict[str, tuple[object, ...]]


class Violation(Exception):
    """What must not happen, happened."""


def run(verb: str, file: Path, *options: str) -> None:
    """Run a command of ``giantsteps sweep`` to its end."""
    done = subprocess.run([*CLI, verb, str(file), *options], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise Violation(f"sweep {verb} exits with {done.returncode}: {done.stderr}")


def rows(store: Path) -> tuple[Rows, Rows]:
    """Cells and arrays by key; raises if the store is not sound."""
    if not store.exists():
        return {}, {}
    db = sqlite3.connect(store, timeout=30)
    try:
        (sound,) = db.execute("PRAGMA integrity_check").fetchone()
        if sound != "ok":
            raise Violation(f"the store is damaged: {sound}")
        cells = db.execute("SELECT address, status, numbers, finished FROM cells").fetchall()
        arrays = db.execute("SELECT address || ' ' || name, axes, content FROM arrays").fetchall()
    finally:
        db.close()
    return {key: tuple(rest) for key, *rest in cells}, {key: tuple(rest) for key, *rest in arrays}


def check_kept(before: tuple[Rows, Rows], after: tuple[Rows, Rows]) -> None:
    """Everything that was done is there, and was not done again."""
    for old, new in zip(before, after):
        for key, row in old.items():
            if row[0] != "failed" and new.get(key) != row:
                raise Violation(f"{key} was lost or changed: {row} became {new.get(key)}")


def check_same(found: tuple[Rows, Rows], reference: tuple[Rows, Rows]) -> None:
    """The same cells with the same bits; the time when they were finished does not count."""
    for mine, theirs in zip(found, reference):
        if mine.keys() != theirs.keys():
            raise Violation(f"{len(mine)} rows, the undisturbed run has {len(theirs)}")
        for key in mine:
            if mine[key][:2] != theirs[key][:2]:
                raise Violation(f"{key}: {mine[key]} differs from {theirs[key]}")


def session(leader: int) -> list[int]:
    """Processes of the session of a runner, without itself, that have not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != leader:
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found


def kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def disturbed(file: Path, rng: np.random.Generator, pause: float) -> int:
    """One life of a runner: kill some of its processes, then itself; return how many kills."""
    runner = subprocess.Popen(
        [*CLI, "run", str(file), "--workers", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    kills = 0
    for victim in ["helper"] * int(rng.integers(0, 4)) + ["runner"]:
        time.sleep(rng.uniform(0, pause))
        if runner.poll() is not None:
            break
        helpers = session(runner.pid)
        if victim == "runner":
            kill(runner.pid)
            kills += 1
        elif helpers:
            kill(int(rng.choice(helpers)))
            kills += 1
    if runner.poll() is None and kills and victim != "runner":
        kill(runner.pid)
    runner.wait()
    patience = time.monotonic() + 20
    while session(runner.pid):
        if time.monotonic() > patience:
            raise Violation(f"workers outlive their runner: {session(runner.pid)}")
        time.sleep(0.05)
    return kills


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        file, store = Path(folder, "sweep.toml"), Path(folder, "sweep.sqlite")
        file.write_text(SWEEP)
        calm = Path(folder, "calm.sqlite")
        run("run", file, "--serial", "--store", str(calm))
        reference = rows(calm)
        quick = time.monotonic()
        run("run", file, "--serial", "--store", str(calm))  # nothing to do: the time of a start
        pause = time.monotonic() - quick
        kills = rounds = 0
        while kills < asked.kills:
            for path in Path(folder).glob("sweep.sqlite*"):
                path.unlink()
            before: tuple[Rows, Rows] = ({}, {})
            while kills < asked.kills and len(before[0]) < len(reference[0]):
                kills += disturbed(file, rng, pause)
                after = rows(store)
                check_kept(before, after)
                before = after
            if len(before[0]) < len(reference[0]):
                run("run", file, "--workers", "2")
                check_kept(before, rows(store))
            if any(status == "failed" for status, *_ in rows(store)[0].values()):
                run("retry", file, "--workers", "2")
            check_same(rows(store), reference)
            rounds += 1
    print(
        f"{kills} kills in {rounds} sweeps of {len(reference[0])} cells and "
        f"{time.monotonic() - started:.0f} s: nothing lost, nothing doubled, same bits"
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Violation as violation:
        sys.exit(f"violation: {violation}")
