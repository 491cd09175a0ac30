"""How long the theory takes: one point, grids of 50 x 50, several steps.

    python benchmarks/theory_speed.py
    python benchmarks/theory_speed.py --baseline ../older/src   # and another version

A point has a rate that was not asked before, so that nothing of its model is cached. The cases
take turns in one process with one thread, and the figures are medians of processor time. Another
version runs in a process of its own right after, with the cases that it knows.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from engine_common import print_table

import giantsteps as gs
from giantsteps import theory

D = 1000
#: What the project asks of itself, in milliseconds on a quiet processor.
GOALS = {
    "tanh, constant, one point": 2.0,
    "tanh, constant, 50 x 50": 1000.0,
    "tanh, gaussian, 50 x 50": 5000.0,
    "ReLU, constant, one point": 20.0,
    "ReLU, gaussian, one point": 100.0,
    "ReLU, constant, 50 x 50": 3000.0,
    "tanh, two steps on one batch": 100.0,
    "tanh, gaussian, five fresh steps": 1000.0,
    "tanh, constant, weights": 50.0,
}
#: A case, another that it is measured by, and how many times as long it may take.
RATIOS = (
    ("tanh, gaussian, trajectory of five steps", "tanh, gaussian, its last point", 1.2),
    ("tanh, gaussian, trajectory of five steps", "tanh, gaussian, five fresh steps", 1.2),
)


def problem(activation: str, law: str, steps: int = 1, batch: str = "fresh") -> gs.Problem:
    """A large step, or several, and a noisy sine."""
    step = {"samples": 2.0, "rate": 1.0, "exponent": 0.5}
    later = [gs.Step(**step, batch=batch)] * (steps - 1)  # type: ignore[arg-type]
    return gs.Problem(
        activation=gs.functions.centered(activation) if activation == "relu" else activation,
        teacher="sin",
        noise_variance=0.05,
        width=1.5,
        steps=[gs.Step(**step), *later],
        readout=gs.Ridge(samples=2.0, penalty=0.1),
        init=gs.Init(second_layer=law),
    )


def grid(activation: str, law: str, rate: float) -> gs.Grid:
    """Samples of the readout and of the step."""
    return gs.Grid(
        problem(activation, law).replace({"steps.0.rate": rate}),
        {
            "readout.samples": np.linspace(0.2, 4.0, 50),
            "steps.0.samples": np.linspace(0.3, 10.0, 50),
        },
    )


def cases() -> dict[str, tuple[Callable[[float], Any], bool]]:
    """Name → what is asked at a rate, and whether it is a grid."""

    def point(given: gs.Problem, d: int | None = D) -> Callable[[float], Any]:
        return lambda rate: theory.risk(given.replace({"steps.0.rate": rate}), d=d).test

    def cells(activation: str, law: str) -> Callable[[float], Any]:
        return lambda rate: theory.risk(grid(activation, law, rate), d=D).test

    def weights(activation: str, law: str, steps: int = 1) -> Callable[[float], Any]:
        given = problem(activation, law, steps)
        return lambda rate: theory.weights(given.replace({"steps.0.rate": rate}), d=D)

    five = problem("tanh", "gaussian", 5)
    found: dict[str, tuple[Callable[[float], Any], bool]] = {
        "tanh, constant, one point": (point(problem("tanh", "constant")), False),
        "tanh, constant, one point in the limit": (point(problem("tanh", "constant"), None), False),
        "tanh, gaussian, one point": (point(problem("tanh", "gaussian")), False),
        "ReLU, constant, one point": (point(problem("relu", "constant")), False),
        "ReLU, gaussian, one point": (point(problem("relu", "gaussian")), False),
        "tanh, two fresh steps": (point(problem("tanh", "gaussian", 2)), False),
        "tanh, constant, two fresh steps": (point(problem("tanh", "constant", 2)), False),
        "tanh, two steps on one batch": (
            point(problem("tanh", "gaussian", 2, "previous")),
            False,
        ),
        "tanh, gaussian, five fresh steps": (point(five), False),
        "tanh, constant, weights": (weights("tanh", "constant"), False),
        "tanh, constant, 50 x 50": (cells("tanh", "constant"), True),
        "tanh, gaussian, 50 x 50": (cells("tanh", "gaussian"), True),
        "ReLU, constant, 50 x 50": (cells("relu", "constant"), True),
    }
    if hasattr(theory, "trajectory"):
        ask = theory.trajectory
        found["tanh, gaussian, trajectory of five steps"] = (
            lambda rate: ask(five.replace({"steps.0.rate": rate}), d=D),
            False,
        )
        error, matrix = point(five), weights("tanh", "gaussian", 5)
        found["tanh, gaussian, its last point"] = (lambda rate: (error(rate), matrix(rate)), False)
    return found


def measure(repeats: int, only: str) -> dict[str, float]:
    """Median seconds of each case; NaN where the version at hand has no answer."""
    rates: Iterator[float] = iter(np.linspace(0.8, 1.2, 997).tolist())
    times: dict[str, list[float]] = {}
    known = {name: case for name, case in cases().items() if only in name}
    for ask, large in known.values():
        if not large:
            _seconds(ask, next(rates))  # functions and labels are cached after it
    for number in range(repeats):
        for name, (ask, large) in known.items():
            if not large or number == 0:
                times.setdefault(name, []).append(_seconds(ask, next(rates)))
    return {name: statistics.median(found) for name, found in times.items()}


def _seconds(ask: Callable[[float], Any], rate: float) -> float:
    start = time.process_time()
    try:
        ask(rate)
    except gs.GiantstepsError:
        return float("nan")
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--baseline", type=Path, help="the source folder of another version")
    parser.add_argument("--json", action="store_true", help="seconds by name, and nothing else")
    arguments = parser.parse_args()
    ours = measure(arguments.repeats, arguments.only)
    if arguments.json:
        print(json.dumps(ours))
        return
    other: dict[str, float] = {}
    if arguments.baseline is not None:
        command = [sys.executable, __file__, "--json", "--only", arguments.only]
        done = subprocess.run(
            [*command, "--repeats", str(arguments.repeats)],
            env=os.environ | {"PYTHONPATH": str(arguments.baseline.resolve())},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        other = json.loads(done.stdout)
    first = next(iter(ours.values()))
    rows = [
        [name, 1e3 * value, GOALS.get(name, "–"), value / first, other.get(name, np.nan) / value]
        for name, value in ours.items()
    ]
    header = ("", "processor ms", "goal ms", "ratio to the first", "other version / this one")
    print_table(f"Test error by theory at d = {D}", header, rows)
    ratios = [
        [f"{name} / {by}", ours[name] / ours[by], goal]
        for name, by, goal in RATIOS
        if name in ours and by in ours
    ]
    if ratios:
        print_table("Ratios", ("", "ratio", "goal"), ratios)


if __name__ == "__main__":
    main()
