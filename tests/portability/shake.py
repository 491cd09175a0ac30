"""Answers of the theory to random problems, as JSON: run by `test_portability` in other settings.

    python tests/portability/shake.py FIRST COUNT MOVED KIND

prints the answers to problems FIRST … FIRST + COUNT − 1 with every number of a problem multiplied
by 1 ± MOVED; KIND is "errors" or "spectra", which says what is asked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import giantsteps as gs
from giantsteps.campaign import read_answer
from giantsteps.errors import NotConverged, NotCovered
from giantsteps.questions import QUESTIONS

SPECTRA = ("weights", "kernel", "features", "gradient", "outlier_count", "trajectory")
ACTIVATIONS = ("tanh", "erf", "x + 0.3*(x**3 - 3*x)", {"name": "relu", "centered": True}, "sin",
               {"name": "softplus", "centered": True}, "relu", "tanh(2*x)")  # fmt: skip
TEACHERS = ("sin", "tanh", "erf(2*x)", "x + 0.5*(x**2 - 1)", "x + (x**3 - 3*x)/6", "sign")
LAYERS = ("gaussian", "constant", gs.Vocabulary([-1.0, 2.0], [0.5, 0.5]),
          gs.Vocabulary([-1.0, 0.5, 1.5], [0.25, 0.5, 0.25]))  # fmt: skip
#: Exponents of the steps, and whether later ones use the batch before.
STEPS = (
    ((), "fresh"), ((0.0,), "fresh"), ((0.3,), "fresh"), ((0.5,), "fresh"), ((0.5,), "fresh"),
    ((0.0, 0.0), "fresh"), ((0.5, 0.5), "fresh"), ((0.5, 0.5), "previous"), ((0.4, 0.3), "fresh"),
    ((0.5, 0.5, 0.5), "fresh"),
)  # fmt: skip


def problem(number: int, moved: float = 0.0) -> tuple[gs.Problem, int | None]:
    """One of the random problems, always the same, and a size."""
    rng = np.random.default_rng([41, number])
    signs = np.random.default_rng([43, number])

    def some(low: float, high: float) -> float:
        value = float(np.exp(rng.uniform(np.log(low), np.log(high))))
        return value * (1 + moved * float(signs.choice([-1.0, 1.0])))

    exponents, batch = STEPS[number % len(STEPS)]
    steps = [gs.Step(samples=some(0.5, 6), rate=some(0.05, 3), exponent=e) for e in exponents]
    if batch == "previous":
        steps[1] = replace(steps[1], batch=batch, samples=steps[0].samples)
    found = gs.Problem(
        activation=ACTIVATIONS[rng.integers(len(ACTIVATIONS))],
        teacher=TEACHERS[rng.integers(len(TEACHERS))],
        width=some(0.3, 4),
        noise_variance=some(0.02, 1) * int(rng.integers(2)),
        steps=steps,
        readout=gs.Ridge(samples=some(0.4, 6), penalty=some(1e-3, 1)),
        init=gs.Init(
            weights=str(rng.choice(["gaussian", "sphere"])),
            second_layer=LAYERS[rng.integers(len(LAYERS))],
        ),
    )
    return found, (None, 60, 200, 1000)[rng.integers(4)]


def asked(kind: str) -> Iterator[str]:
    """The questions that theory answers."""
    for name, question in QUESTIONS.items():
        if question.theory is not None and (name in SPECTRA) == (kind == "spectra"):
            yield name


def answers(number: int, kind: str, moved: float = 0.0) -> dict[str, Any]:
    """Question → name of a number or an array → its entries; a refusal by its kind."""
    given, d = problem(number, moved)
    found: dict[str, Any] = {}
    for name in asked(kind):
        question = QUESTIONS[name]
        options: dict[str, Any] = dict(question.fixed)
        if question.finite:
            options["d"] = d
        if name == "learned_function":
            options["along"] = "teacher"
        try:
            ((numbers, arrays),) = read_answer(question.function("theory")(given, **options))
        except (NotCovered, NotConverged) as error:
            found[name] = type(error).__name__
            continue
        except gs.InvalidProblem:  # no step to ask about
            continue
        except np.linalg.LinAlgError as error:
            found[name] = f"crash: {error}"
            continue
        found[name] = {key: [float(value)] for key, value in numbers.items()}
        found[name] |= {
            key: np.asarray(array, float).ravel().tolist() for key, (_, array) in arrays.items()
        }
    return found


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    told = {
        number: answers(number, sys.argv[4], float(sys.argv[3]))
        for number in range(first, first + count)
    }
    json.dump(told, sys.stdout)
