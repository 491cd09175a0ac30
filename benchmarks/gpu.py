"""The simulator on a GPU: speed against the matrix product of the same run, and its growth.

    python benchmarks/gpu.py                       # d = 16,384 at the largest: needs 40 GB
    python benchmarks/gpu.py --d 4096 --device cupy

One point is a gradient step, ridge regression, the test error on 10,000 points and the top four
singular values of the weights after the step, all drawn and computed on the device.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine_common import flops, print_table, problem

from giantsteps import simulation
from giantsteps.simulation._arrays import Arrays
from giantsteps.simulation._devices import resolve
from giantsteps.simulation._streams import Role, Streams


def seconds(arrays: Arrays, work: Callable[[], Any], repeats: int) -> float:
    """Median time; answers are on the host, so the device is done when ``work`` returns."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def product_rate(arrays: Arrays, size: int) -> float:
    """TFLOP/s of a square matrix product."""
    x = Streams(0, arrays, "device").normal(Role.WEIGHTS, 0, 0, size, size)

    def multiply() -> None:
        for _ in range(4):
            y = x @ x
        arrays.to_host(y[:1, :1])

    multiply()
    return 4 * 2.0 * size**3 / seconds(arrays, multiply, 3) / 1e12


def point(d: int, options: dict[str, Any]) -> tuple[float, list[float]]:
    """Test error, and the top four singular values of W1."""
    run = simulation.run(problem(), d, 0, **options)
    spikes = run.weights(top=4, bulk=False).spikes
    return run.risk().test, [spike.value for spike in spikes]


def measure(d: int, options: dict[str, Any], repeats: int) -> dict[str, Any]:
    arrays = resolve(options["device"], options["dtype"])
    begin = time.perf_counter()
    risk, spikes = point(d, options)
    first = time.perf_counter() - begin
    taken = seconds(arrays, lambda: point(d, options), repeats)
    best = product_rate(arrays, d)
    rate = flops(d, d, 2 * d, 2 * d) / taken / 1e12
    cost = simulation.run(problem(), d, 0, **options).cost()
    return {
        "d": d,
        **options,
        "first s": first,
        "s": taken,
        "estimate s": cost.seconds,
        "TFLOP/s": rate,
        "product TFLOP/s": best,
        "share": rate / best,
        "risk": risk,
        "spikes": spikes,
    }


def parts(d: int, options: dict[str, Any]) -> dict[str, float]:
    """Where the time of one point goes."""
    times = {}
    run = simulation.run(problem(), d, 0, **options)
    for name, work in {
        "step": lambda: run.backend.to_host(run.trained.weights[:1, :1]),
        "spikes": lambda: run.weights(top=4, bulk=False),
        "fit": lambda: run.gram.samples,
        "fit kept, test error": lambda: run.risk().test,
    }.items():
        begin = time.perf_counter()
        work()
        times[name] = time.perf_counter() - begin
    return times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--d", type=int, nargs="+", default=[2048, 4096, 8192, 16384])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", nargs="+", default=["float64", "float32"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    arguments = parser.parse_args()
    found = []
    for dtype in arguments.dtype:
        options = {"device": arguments.device, "dtype": dtype, "rng": "device"}
        found += [measure(d, options, arguments.repeats) for d in arguments.d]
    names = ("d", "dtype", "first s", "s", "estimate s", "TFLOP/s", "product TFLOP/s", "share")
    title = f"One point on {arguments.device}: N = d, n0 = n = 2 d, test error, four spikes"
    print_table(title, names, [[each[name] for name in names] for each in found])
    options = {"device": arguments.device, "dtype": arguments.dtype[0], "rng": "device"}
    times = parts(max(arguments.d), options)
    print_table(f"Parts at d = {max(arguments.d)}", ("part", "s"), list(times.items()))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"points": found, "parts": times}, indent=1))


if __name__ == "__main__":
    main()
