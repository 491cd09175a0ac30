"""Many seeds on a processor: `simulation.batch` against one network after the other.

    python benchmarks/engine_batch.py
    python benchmarks/engine_batch.py --baseline ../older/src   # and an older loop

Each contestant is a fresh process that warms up and then times its work; they take turns, and the
figures are medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

from engine_common import print_table

WORK = """
import sys, time
sys.path.insert(0, {folder!r})
from engine_common import problem
from giantsteps import simulation
simulation.risk(problem(), 100, 0).test
begin = time.perf_counter(), time.process_time()
{statement}
print(time.perf_counter() - begin[0], time.process_time() - begin[1])
"""
LOOP = "[simulation.risk(problem(), {d}, seed).test for seed in range({seeds})]"
BATCH = "[a.test for a in simulation.batch('risk', problem(), {d}, range({seeds}))]"
PAIRED_LOOP = "[simulation.risk(problem(), {d}, seed).gain for seed in range({seeds})]"
PAIRED_BATCH = (
    "[a.gain for a in simulation.batch('risk', problem(), {d}, range({seeds}), initial=True)]"
)


def measure(statement: str, source: Path | None, threads: int) -> tuple[float, float]:
    """Seconds of the clock and of the processors."""
    environment = os.environ | {
        name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    }
    if source is not None:
        environment["PYTHONPATH"] = str(source.resolve())
    code = WORK.format(folder=str(Path(__file__).parent), statement=statement)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    wall, processor = map(float, done.stdout.split())
    return wall, processor


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--d", type=int, nargs="+", default=[250, 500])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--baseline", type=Path, help="the source folder of another version")
    arguments = parser.parse_args()
    contestants = {
        "batch": (BATCH, None),
        "loop": (LOOP, None),
        "batch, with the untrained network": (PAIRED_BATCH, None),
        "loop, with the untrained network": (PAIRED_LOOP, None),
    }
    if arguments.baseline is not None:
        contestants["older loop"] = (LOOP, arguments.baseline)
        contestants["older loop, with the untrained network"] = (PAIRED_LOOP, arguments.baseline)
    for d in arguments.d:
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
        for _ in range(arguments.repeats):
            for name, (work, source) in contestants.items():
                statement = work.format(d=d, seeds=arguments.seeds)
                times[name].append(measure(statement, source, arguments.threads))
        rows = []
        for name, found in times.items():
            first = "batch, with the untrained network" if "untrained" in name else "batch"
            wall = statistics.median(each[0] for each in found)
            fastest = statistics.median(each[0] for each in times[first])
            rows.append([name, wall, wall / fastest, statistics.median(e[1] for e in found)])
        title = f"{arguments.seeds} networks, d = {d}, {arguments.threads} threads"
        print_table(title, ("", "wall s", "ratio", "processor s"), rows)


if __name__ == "__main__":
    main()
