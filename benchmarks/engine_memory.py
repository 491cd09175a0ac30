"""The memory budget at d = N = 4000, n = 40,000: peak of fresh processes, and the same risk.

    python benchmarks/engine_memory.py                    # about three minutes on two cores
    python benchmarks/engine_memory.py --d 1000 --memory 300MB

One process with the budget, one that holds all samples at once. Memory is the peak of the
resident set less what it is after the imports.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys

from engine_common import print_table, problem

from giantsteps import simulation
from giantsteps.simulation._engine import _memory


def peak() -> int:
    """Bytes of the resident set at its peak."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def child(d: int, memory: str | None) -> None:
    if memory is None:
        _memory.ROWS_ON_HOST = 10**9  # all samples in one chunk
    simulation.risk(problem(), 20, 0)  # loads what is loaded late
    before = peak()
    run = simulation.run(problem(samples=10.0), d, 0, memory=memory)
    estimate = None if memory is None else run.cost().memory / 1e9
    answer = run.risk()
    found = {"test": answer.test, "train": answer.train}
    print(json.dumps({**found, "peak": peak() - before, "estimate": estimate}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--d", type=int, default=4000)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--child", choices=["budget", "whole"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        child(arguments.d, arguments.memory if arguments.child == "budget" else None)
        return
    found = {}
    for name in ("budget", "whole"):
        command = [sys.executable, __file__, "--child", name, "--d", str(arguments.d)]
        command += ["--memory", arguments.memory]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[name] = json.loads(done.stdout)
    title = f"d = N = {arguments.d}, n0 = 2 d, n = 10 d, budget {arguments.memory}"
    rows = [
        (name, each["peak"] / 1e9, each["estimate"] or "", repr(each["test"]))
        for name, each in found.items()
    ]
    print_table(title, ("", "peak GB", "estimate GB", "risk"), rows)
    apart = abs(found["budget"]["test"] / found["whole"]["test"] - 1)
    print(f"\nThe risks differ by {apart:.1e} of them.")


if __name__ == "__main__":
    main()
