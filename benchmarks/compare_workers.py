"""``gs.compare`` in this process and with two worker processes, in one run.

OMP_NUM_THREADS=1 python benchmarks/compare_workers.py
"""

from __future__ import annotations

import argparse
import statistics
import time

import giantsteps as gs

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.5,
    steps=[gs.Step(samples=4, rate=3)],
    readout=gs.Ridge(samples=2, penalty=0.1),
)


def seconds(d: int, seeds: int, workers: int) -> float:
    started = time.perf_counter()
    gs.compare(PROBLEM, d, seeds=seeds, workers=workers)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-d", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    seconds(20, 2, 1)
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(asked.repeats):
        for workers, spent in times.items():
            spent.append(seconds(asked.d, asked.seeds, workers))
    alone, shared = (statistics.median(spent) for spent in times.values())
    print(
        f"{asked.seeds} networks at d = {asked.d}: {alone:.1f} s in one process, {shared:.1f} s "
        f"with two workers (their start included), {alone / shared:.2f} times faster"
    )


if __name__ == "__main__":
    main()
