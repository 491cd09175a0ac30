"""What the benchmarks of the simulator share: the problem, its operations, clocks, tables."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import giantsteps as gs

TEST_POINTS = 10_000
NOISE = 0.1


def problem(samples: float = 2.0, penalty: float = 0.1) -> gs.Problem:
    """tanh learns sin by one large step, with N = d neurons and n0 = 2 d samples."""
    return gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=NOISE,
        width=1.0,
        steps=[gs.Step(samples=2.0, rate=1.0, exponent=0.5)],
        readout=gs.Ridge(samples=samples, penalty=penalty),
    )


def flops(d: int, neurons: int, step_samples: int, samples: int) -> float:
    """4 n0 d N + 2 n d N + n N^2 + N^3/3 + 2 n_test d N: step, features, fit, test error."""
    products = 4 * step_samples + 2 * samples + 2 * TEST_POINTS
    return products * d * neurons + samples * neurons**2 + neurons**3 / 3


@dataclass(frozen=True)
class Timing:
    """Seconds of the clock and of the processors, one of each for every repetition."""

    wall: list[float]
    processor: list[float]

    @property
    def seconds(self) -> float:
        return statistics.median(self.wall)

    @property
    def processor_seconds(self) -> float:
        return statistics.median(self.processor)


def interleaved(contestants: dict[str, Callable[[], Any]], repeats: int) -> dict[str, Timing]:
    """Time each in turn, so that all see the same moments of a busy machine."""
    timings = {name: Timing([], []) for name in contestants}
    for _ in range(repeats):
        for name, contestant in contestants.items():
            wall, processor = time.perf_counter(), time.process_time()
            contestant()
            timings[name].wall.append(time.perf_counter() - wall)
            timings[name].processor.append(time.process_time() - processor)
    return timings


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table in Markdown."""
    print(f"\n### {title}\n")
    print("| " + " | ".join(header) + " |")
    print("|" + "|".join(" --- " for _ in header) + "|")
    for row in rows:
        print("| " + " | ".join(_cell(value) for value in row) + " |")


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
