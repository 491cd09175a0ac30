"""Several runners and readers on one store, stopped, killed and started again at random.

    python benchmarks/store_shared.py --rounds 200

In every round two or three runners work on one new store while readers ask for its status, its
tables and its figures. At random moments a runner is stopped by Ctrl-C (SIGINT) or killed
(SIGKILL), and another is started in its place; readers are killed too. After every such moment
the store must be sound and hold, unchanged, everything that it held before. At the end of a round
the sweep is completed, and its numbers must be those of an undisturbed run, bit for bit. Exits
with 1 at the first violation.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot
from sweeps_kill import Rows, Violation, check_kept, check_same, rows

import giantsteps as gs
from giantsteps import campaign
from giantsteps.errors import InvalidProblem

FORK = multiprocessing.get_context("fork")  # everything is imported: a process starts at once


def sweep(store: Path) -> gs.Sweep:
    """326 cells of a millisecond or two."""
    problem = gs.Problem(
        activation="tanh",
        teacher="sin",
        width=1.5,
        steps=[gs.Step(samples=2.0, rate=1.0)],
        readout=gs.Ridge(samples=2.0, penalty=0.1),
    )
    grid = gs.Grid(problem, {"steps.0.rate": [0.5, 1.0, 2.0], "readout.penalty": [0.1, 1.0]})
    return gs.Sweep(
        grid=grid,
        d=[8, 10],
        seeds=20,
        store=store,
        options={"test_samples": 20},
        share=False,
    )


def run(store: Path, executor: str) -> None:
    """A runner; Ctrl-C ends it quietly."""
    try:
        sweep(store).run(executor=executor, workers=2)
    except KeyboardInterrupt:
        os._exit(130)


def look(store: Path) -> None:
    """A reader that never stops."""
    asked = sweep(store)
    while True:
        status = asked.status()
        if status.done > 40:
            asked.summary()
            with contextlib.suppress(InvalidProblem):  # none of this slice may be done yet
                asked.plot("steps.0.rate", at={"d": 10}, points=0)
            pyplot.close("all")
        time.sleep(0.05)


def start(target: Callable[..., None], *arguments: Any) -> Any:
    process = FORK.Process(target=target, args=arguments)
    process.start()
    return process


def end(process: Any, how: signal.Signals) -> None:
    if process.is_alive():
        os.kill(process.pid, how)
    process.join(30)
    if process.is_alive():
        raise Violation(f"process {process.pid} ignores {how.name}")


def disturbed(store: Path, rng: np.random.Generator, total: int) -> int:
    """One round; return how many processes were stopped or killed."""
    count = int(rng.integers(2, 4))
    kinds = ["processes" if rng.random() < 0.1 else "serial" for _ in range(count)]
    runners = [start(run, store, kind) for kind in kinds]
    while not store.exists():
        time.sleep(0.001)
    readers = [start(look, store) for _ in range(2)]
    before: tuple[Rows, Rows] = ({}, {})
    ended = 0
    try:
        for _ in range(int(rng.integers(3, 7))):
            time.sleep(rng.uniform(0.0, 0.12))
            if rng.random() < 0.2:
                end(readers.pop(0), signal.SIGKILL)
                readers.append(start(look, store))
            else:
                victim = int(rng.integers(len(runners)))
                how = signal.SIGINT if rng.random() < 0.5 else signal.SIGKILL
                end(runners.pop(victim), how)
                runners.append(start(run, store, "serial"))
            ended += 1
            after = rows(store)
            check_kept(before, after)
            before = after
        for runner in runners:
            runner.join(120)
            if runner.exitcode != 0:
                raise Violation(f"a runner that was left alone ended with {runner.exitcode}")
    finally:
        for process in [*runners, *readers]:
            process.kill()
            process.join()
    found = rows(store)
    check_kept(before, found)
    if len(found[0]) != total:
        raise Violation(f"{len(found[0])} of {total} cells are there")
    return ended


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    started, ended = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        calm = sweep(Path(folder, "calm.sqlite"))
        with campaign.capped(1):
            calm.run(executor="serial")
        reference = rows(calm.store)
        for number in range(asked.rounds):
            store = Path(folder, f"{number}.sqlite")
            ended += disturbed(store, rng, len(reference[0]))
            check_same(rows(store), reference)
            for path in Path(folder).glob(f"{number}.sqlite*"):
                path.unlink()
    print(
        f"{asked.rounds} rounds of {len(reference[0])} cells, {ended} processes stopped or killed, "
        f"{time.monotonic() - started:.0f} s: nothing lost, nothing doubled, same bits"
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Violation as violation:
        sys.exit(f"violation: {violation}")
