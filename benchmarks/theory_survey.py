"""Processor time of every question about random problems, slowest first.

    python benchmarks/theory_survey.py --first 0 --count 150

The problems are those of ``tests/robustness/generator.py``; every call of
``tests/robustness/calls.py`` is asked once, on one core. Printed are the calls above ``--over``
seconds, and for each question how many there were, the median and the worst.
"""

from __future__ import annotations

import argparse
import collections
import statistics
import sys
import time
from pathlib import Path

ROBUSTNESS = Path(__file__).resolve().parent.parent / "tests" / "robustness"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--over", type=float, default=2.0)
    options = parser.parse_args()
    sys.path.insert(0, str(ROBUSTNESS))
    import calls
    import generator

    from giantsteps.errors import GiantstepsError
    from giantsteps.threads import capped

    times: dict[str, list[float]] = collections.defaultdict(list)
    slow: list[tuple[float, str, int, str]] = []
    with capped(1):
        for seed in range(options.first, options.first + options.count):
            problem = generator.problem(seed)
            d = generator.SIZES[seed % len(generator.SIZES)]
            for name in calls.CALLS:
                start, end = time.process_time(), "answered"
                try:
                    calls.call(name, problem, d)
                except GiantstepsError as error:
                    end = type(error).__name__
                spent = time.process_time() - start
                times[name].append(spent)
                if spent > options.over:
                    slow.append((spent, name, seed, end))
    for spent, name, seed, end in sorted(slow, reverse=True):
        print(f"{spent:6.1f} s  {name:24} seed {seed}, {end}")
    print(f"\n{'question':24} {'calls':>6} {'median':>8} {'worst':>8}")
    for name, spent in sorted(times.items(), key=lambda item: -max(item[1])):
        print(f"{name:24} {len(spent):6} {statistics.median(spent):8.3f} {max(spent):8.3f}")


if __name__ == "__main__":
    main()
