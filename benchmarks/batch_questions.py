"""Every question of many networks: together against one after the other.

    python benchmarks/batch_questions.py --device cuda --json questions.json
    python benchmarks/batch_questions.py --device torch --d 100 --networks 4

Milliseconds per network after a warm-up, the time of the functions that take longest, and the
largest relative difference between the first number of an answer here and there.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from engine_common import print_table, problem

from giantsteps import simulation

QUESTIONS: dict[str, dict[str, Any]] = {
    "risk": {"degrees": 1},
    "weights": {"top": 1, "bulk": False},
    "kernel": {"top": 1, "bulk": False},
    "features": {"top": 1, "bulk": False},
    "gradient": {},
    "learned_function": {"along": "teacher", "x": [1.0]},
    "degrees_of_freedom": {},
    "movement": {},
    "trajectory": {},
}


def number(answer: Any) -> float:
    """The first number of an answer."""
    spikes = getattr(answer, "spikes", ())
    if spikes:
        return float(spikes[0].value)
    return float(np.ravel(next(iter(answer._variables().values()))[1])[0])


def _many(question: str, asked: Any, d: int, options: Any, count: int) -> Any:
    return simulation.batch(question, asked, d, range(count), **options)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = call()
    return time.perf_counter() - started, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--d", type=int, nargs="+", default=[200, 1000, 2000])
    parser.add_argument("--networks", type=int, default=0)
    parser.add_argument("--budget", type=float, default=100.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    asked, rows, started = problem(), [], time.perf_counter()
    for d in given.d:
        count = given.networks or {200: 128, 1000: 64}.get(d, 32)
        for question, options in QUESTIONS.items():
            if time.perf_counter() - started > given.budget:
                break

            where = {"device": given.device, **options}
            many = partial(_many, question, asked, d, where)
            alone = partial(getattr(simulation, question), asked, d, **where)
            many(4)
            profile = cProfile.Profile()
            together, found = timed(partial(many, count))
            profile.enable()
            many(count)
            profile.disable()
            alone(0)
            single, answers = timed(partial(list, map(alone, range(3))))
            error = max(abs(number(a) / number(b) - 1) for a, b in zip(answers, found))
            parts = sorted(pstats.Stats(profile).stats.items(), key=lambda item: -item[1][2])[:6]
            rows.append(
                {
                    "d": d, "question": question, "networks": count,
                    "together_ms": 1e3 * together / count, "alone_ms": 1e3 * single / 3,
                    "ratio": single / 3 / (together / count), "difference": error,
                    "longest": [[f"{k[2]}:{k[1]}", round(v[2], 4)] for k, v in parts],
                }
            )  # fmt: skip
            if given.json:
                given.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    keys = ("d", "question", "networks", "together_ms", "alone_ms", "ratio", "difference")
    print_table("Many networks", keys, [[row[key] for key in keys] for row in rows])


if __name__ == "__main__":
    main()
