"""Networks per second on a GPU: `simulation.batch` against a plain PyTorch script.

    python benchmarks/gpu.py --json gpu.json                  # under four minutes; needs 40 GB
    python benchmarks/gpu.py --d 100 200 --device torch       # the same code on a processor

One network is a gradient step, ridge regression and the test error on 10,000 points. Contestants
take turns after a warm-up; the figures are medians. Then one comparison of theory and simulation,
the agreement of one seed between NumPy and the device, and the time of one network by parts.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from engine_common import NOISE, TEST_POINTS, flops, print_table, problem

import giantsteps as gs
from giantsteps import simulation

#: Networks of one measurement, by d; what is larger has the last number.
NETWORKS = {250: 160, 500: 80, 1000: 40, 2000: 16, 4000: 6, 8192: 2, 16384: 1}
BUDGET = 200.0  # seconds after which no further size is begun


def plain(d: int, seed: int, device: str, dtype: torch.dtype) -> float:
    """The same network as most people would write it: the test error."""
    where = torch.device("cpu" if device == "torch" else device)
    generator = torch.Generator(where).manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, device=where, dtype=dtype)

    neurons, samples = d, 2 * d
    beta = normal(d)
    beta /= beta.norm()
    weights, a = normal(d, neurons) / math.sqrt(d), normal(neurons) / math.sqrt(neurons)
    x = normal(samples, d)
    y = torch.sin(x @ beta) + math.sqrt(NOISE) * normal(samples)
    features = torch.tanh(x @ weights)
    residual = y - features @ a / math.sqrt(neurons)
    back = residual[:, None] * a * (1 - features**2)
    weights = weights + math.sqrt(neurons) * x.T @ back / samples
    x = normal(samples, d)
    y = torch.sin(x @ beta) + math.sqrt(NOISE) * normal(samples)
    phi = torch.tanh(x @ weights) / math.sqrt(neurons)
    penalty = 0.1 * samples / neurons * torch.eye(neurons, device=where, dtype=dtype)
    readout = torch.linalg.solve(phi.T @ phi + penalty, phi.T @ y)
    x = normal(TEST_POINTS, d)
    predicted = torch.tanh(x @ weights) @ readout / math.sqrt(neurons)
    return float(torch.mean((predicted - torch.sin(x @ beta)) ** 2))


def timed(work: Callable[[], Any]) -> float:
    """Seconds of work whose answers are on the host, so that the device is done."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def race(d: int, device: str, dtype: str, repeats: int) -> dict[str, Any]:
    """Milliseconds for each network, ours and those of the plain script."""
    count = NETWORKS.get(d, 160 if d < 250 else 1)
    seeds = range(count)
    options = {"device": device, "dtype": dtype}

    def ours() -> list[float]:
        return [a.test for a in simulation.batch("risk", problem(), d, seeds, **options)]

    def theirs() -> list[float]:
        return [plain(d, seed, device, getattr(torch, dtype)) for seed in seeds]

    means = [statistics.fmean(work()) for work in (ours, theirs)]  # warm-up
    rounds = 1 if d > 10_000 else repeats
    times = [[timed(work) for work in (ours, theirs)] for _ in range(rounds)]
    mine, other = (statistics.median(column) / count for column in zip(*times))
    return {
        "d": d,
        "dtype": dtype,
        "networks": count,
        "giantsteps ms": 1e3 * mine,
        "plain ms": 1e3 * other,
        "ratio": other / mine,
        "networks per s": 1 / mine,
        "TFLOP/s": flops(d, d, 2 * d, 2 * d) / mine / 1e12,
        "risk": means[0],
        "plain risk": means[1],
    }


def comparison(device: str, d: int) -> dict[str, Any]:
    """The time of `gs.compare` with 40 seeds, first and after that."""
    times = [timed(lambda: gs.compare(problem(), d=d, seeds=40, device=device)) for _ in range(4)]
    return {"d": d, "seeds": 40, "first s": times[0], "s": statistics.median(times[1:])}


def agreement(device: str, d: int) -> dict[str, Any]:
    """Relative differences of one seed between NumPy and the device."""
    rows = {}
    for rule in ("gradient", "sign", "normalized", "muon", "adam"):
        asked = problem().replace({"steps.0.rule": rule})
        here, there = (simulation.risk(asked, d, 0, device=each).test for each in (None, device))
        rows[rule] = abs(there / here - 1)
    return {"d": d} | rows


def parts(device: str, d: int) -> dict[str, float]:
    """Milliseconds of the parts of one network after a warm-up."""
    for _ in range(2):
        run = simulation.run(problem(), d, 0, device=device)
        names = {
            "draw X": lambda run=run: run.arrays["X"],
            "step": lambda run=run: run.trained.weights,
            "spikes": lambda run=run: run.weights(top=4, bulk=False),
            "fit": lambda run=run: run.gram.samples,
            "fit kept, test error": lambda run=run: run.risk().test,
        }
        found = {}
        for name, work in names.items():
            found[name] = 1e3 * timed(work)
            if torch.cuda.is_available():
                found[name] += 1e3 * timed(torch.cuda.synchronize)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--d", type=int, nargs="+", default=list(NETWORKS))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", nargs="+", default=["float64", "float32"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--compare", type=int, default=1000, help="d of the comparison; 0: none")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    found: dict[str, Any] = {"races": []}

    def save() -> None:
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(found, indent=1))

    for dtype in arguments.dtype:
        rows = []
        for d in arguments.d:
            if time.perf_counter() - begin > BUDGET:
                print(f"\nleft out for want of time: d = {d}, {dtype}")
                continue
            rows.append(race(d, arguments.device, dtype, arguments.repeats))
            found["races"].append(rows[-1])
            save()
        title = f"Networks on {arguments.device}, {dtype}: N = d, n0 = n = 2 d"
        names = ("d", "giantsteps ms", "plain ms", "ratio", "networks per s", "TFLOP/s", "risk",
                 "plain risk")  # fmt: skip
        print_table(title, names, [[row[name] for name in names] for row in rows])
    small = min(500, max(arguments.d))
    found["agreement"] = agreement(arguments.device, small)
    print_table(f"One seed against NumPy, relative, d = {small}", tuple(found["agreement"]),
                [list(found["agreement"].values())])  # fmt: skip
    found["parts"] = parts(arguments.device, small)
    print_table(f"Parts of one network, ms, d = {small}", tuple(found["parts"]),
                [list(found["parts"].values())])  # fmt: skip
    save()
    if arguments.compare:
        found["compare"] = comparison(arguments.device, arguments.compare)
        print_table("gs.compare", tuple(found["compare"]), [list(found["compare"].values())])
    found["seconds"] = time.perf_counter() - begin
    print(f"\n{found['seconds']:.0f} s in all")
    save()


if __name__ == "__main__":
    main()
