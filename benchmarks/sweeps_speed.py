"""How fast sweeps are: overhead per cell, speed-up on two processes, large stores.

    python benchmarks/sweeps_speed.py

Aims: less than 5 ms of overhead per trivial cell, near-linear speed-up at d = 500, a store of
10,000 cells opened and exported in less than 2 s.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import giantsteps as gs
from giantsteps import simulation
from giantsteps.campaign import Store, capped
from giantsteps.campaign._jobs import plan
from giantsteps.campaign._values import Outcome
from giantsteps.campaign._workers import InProcess, Processes

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.1,
    width=1.5,
    steps=[gs.Step(samples=2.0, rate=1.0)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
)


def seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def sweep(folder: str, name: str, vary: dict[str, Any], **fields: Any) -> gs.Sweep:
    """A new sweep of simulations; nothing of it is done."""
    for path in Path(folder).glob(f"{name}.sqlite*"):
        path.unlink()
    grid = gs.Grid(PROBLEM, vary)
    store = Path(folder, f"{name}.sqlite")
    return gs.Sweep(grid=grid, store=store, sources=["simulation"], initial=False, **fields)


def overhead(folder: str, cells: int) -> None:
    """Trivial cells: what a sweep takes beyond the simulations themselves."""
    trivial = {"d": 4, "seeds": cells, "questions": "gradient"}
    with capped(1):
        bare = seconds(lambda: [simulation.gradient(PROBLEM, 4, seed) for seed in range(cells)])
    for name, pool in (("this process", InProcess()), ("two processes", Processes(2))):
        for future in [pool.submit(time.sleep, 0.2) for _ in range(2)]:
            future.result()  # the workers are there
        warm = sweep(folder, "warm", {}, **trivial | {"seeds": 20})
        warm.run(executor=pool)
        asked = sweep(folder, "trivial", {}, **trivial)
        spent = seconds(lambda: asked.run(executor=pool))  # noqa: B023
        pool.close()
        print(
            f"trivial cells in {name}: {1e3 * spent / cells:.2f} ms per cell, of which "
            f"{1e3 * bare / cells:.2f} ms is the simulation itself"
        )


def speed_up(folder: str, d: int, seeds: int) -> None:
    """One process against two at d = 500; the start of the workers is not counted."""
    times = {}
    for workers in (1, 2):
        pool = Processes(workers)
        for future in [pool.submit(time.sleep, 0.2) for _ in range(workers)]:
            future.result()
        sweep(folder, "warm", {"steps.0.rate": [0.5, 1.0]}, d=20, seeds=4).run(executor=pool)
        asked = sweep(folder, "large", {"steps.0.rate": [0.5, 1.0]}, d=d, seeds=seeds)
        times[workers] = seconds(lambda: asked.run(executor=pool))  # noqa: B023
        pool.close()
    print(
        f"{2 * seeds} networks at d = {d}: {times[1]:.1f} s on one process, {times[2]:.1f} s on "
        f"two, {times[1] / times[2]:.2f} times faster"
    )


def large_store(folder: str) -> None:
    """10,000 cells: 100 × 5 problems × 20 seeds, and 100 × 100 problems."""
    import pandas  # noqa: F401
    import pyarrow  # noqa: F401
    import xarray  # noqa: F401

    rates, samples = np.linspace(0.1, 3, 100), np.linspace(0.5, 3, 100)
    shapes = {
        "500 problems × 20 seeds": ({"steps.0.rate": rates, "readout.samples": samples[:5]}, 20),
        "10,000 problems": ({"steps.0.rate": rates, "readout.samples": samples}, 1),
    }
    rng = np.random.default_rng(0)
    for name, (vary, seeds) in shapes.items():
        asked = sweep(folder, "many", vary, d=100, seeds=seeds)
        with Store(asked.store, write=True) as store:
            asked._remember(store)
            store.save(
                (
                    cell,
                    Outcome(
                        numbers={"test": rng.random(), "train": rng.random()},
                        arrays={"by_degree": (("degree",), rng.random(5))},
                        seconds=0.0,
                        finished=0.0,
                        provenance="{}",
                    ),
                )
                for job in plan(asked.cells, ())
                for cell in job.rows()
            )
        for kind in ("nc", "parquet", "csv"):

            def export(ending: str = kind) -> None:
                gs.Sweep.from_store(Path(folder, "many.sqlite")).export(Path(folder, f"m.{ending}"))

            export()
            print(f"{name}: opened and exported as {kind} in {seconds(export):.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("-d", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=8)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        overhead(folder, asked.cells)
        large_store(folder)
        speed_up(folder, asked.d, asked.seeds)


if __name__ == "__main__":
    main()
