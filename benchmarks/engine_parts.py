"""One small network on one thread: what its time consists of, and which share is matrix products.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/engine_parts.py

*Products* is the time that the operations of the network's matrix products would take at the rate
of a matrix product of its size in the same run, (2048, d) times (d, N). *Share* is that over the
time of the network: with a network for each thread, the share of the machine's matrix rate. *At
best* is the share if everything but products, draws and activations cost nothing. Processor time,
the best of several repetitions that take turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from engine_common import TEST_POINTS, flops, print_table, problem

from giantsteps import simulation
from giantsteps.simulation._engine._normals import fill_normal

ROWS = 2048


def processor_ms(call: Callable[[], Any]) -> float:
    started = time.process_time()
    call()
    return 1e3 * (time.process_time() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--d", type=int, nargs="+", default=[200, 500, 1000])
    parser.add_argument("--repeats", type=int, default=6)
    given = parser.parse_args()
    asked, rows = problem(), []
    key = np.array([1, 2], dtype=np.uint64)
    for d in given.d:
        rng = np.random.default_rng(0)
        x, w, product = rng.standard_normal((ROWS, d)), np.eye(d), np.empty((ROWS, d))
        z, drawn = rng.standard_normal(2**16), np.empty(2**18)
        trials: dict[str, Callable[[], Any]] = {
            "network": lambda d=d: simulation.risk(asked, d, 0).test,
            "product": lambda x=x, w=w, product=product: np.matmul(x, w, out=product),
            "draw": lambda drawn=drawn: fill_normal(drawn, key, (1, 0, 0), 0),
            "activation": lambda z=z: asked.activation(z),
        }
        best = dict.fromkeys(trials, np.inf)
        for _ in range(given.repeats):
            for name, trial in trials.items():
                repeats = 1 if name == "network" else 5
                found = [processor_ms(trial) for _ in range(repeats)]
                best[name] = min(best[name], *found)
        samples = 2 * d
        products = flops(d, d, samples, samples) / (2 * ROWS * d * d) * best["product"]
        draws = (d + 2 * samples + TEST_POINTS) * d / drawn.size * best["draw"]
        values = (3 * samples + TEST_POINTS) * d / z.size * best["activation"]
        rest = best["network"] - products - draws - values
        rows.append(
            [d, best["network"], products, draws, values, rest, products / best["network"],
             products / (products + draws + values)]
        )  # fmt: skip
    print_table(
        "One network, milliseconds of one processor",
        ["d", "network", "products", "draws", "activations", "rest", "share", "at best"],
        rows,
    )


if __name__ == "__main__":
    main()
