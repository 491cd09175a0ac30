"""Golden values: what 20 problems a question answered when its version was last raised.

    python tests/golden/golden.py

writes the files beside this script. A file whose values changed is written only if the version
of its question was raised in ``giantsteps/questions.py``, so that stored results of the old
version are not taken for those of the new one.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

import giantsteps as gs
from giantsteps.campaign import capped, read_answer
from giantsteps.errors import GiantstepsError
from giantsteps.questions import QUESTIONS, Side

FOLDER = Path(__file__).parent
COUNT = 20
#: Results agree between machines to rounding; a changed equation moves more than this.
RTOL, ATOL = 1e-7, 1e-10
#: Side → question → version.
VERSIONS = {
    side: {name: asked.version(side) for name, asked in QUESTIONS.items() if side in asked.sides}
    for side in ("theory", "simulation")
}

Cell = dict[str, Any]
Values = dict[str, list[float]]


def questions() -> Iterator[tuple[str, str]]:
    """Pairs of a package and a question that it answers."""
    for package, versions in VERSIONS.items():
        for question in versions:
            yield package, question


def candidates() -> Iterator[gs.Problem]:
    """Problems of all kinds, always the same ones."""
    rng = np.random.default_rng(20)
    small = {"exponent": 0.0, "rate": (0.5, 3.0)}
    between = {"exponent": 0.3, "rate": (0.5, 2.0)}
    large = {"exponent": 0.5, "rate": (0.3, 1.5)}
    kinds: list[list[dict[str, Any]]] = [
        [], [small], [large], [between], [small], [small, small], [large], [small | {"twice": 1}]
    ]  # fmt: skip
    activations: list[Any] = [
        "tanh",
        "erf",
        "x + 0.3*(x**3 - 3*x)",
        {"name": "relu", "centered": True},
    ]
    teachers = ["sin", "tanh", "erf(2*x)", "x + 0.5*(x**2 - 1)"]
    layers: list[Any] = ["gaussian", "constant", {"law": "vocabulary", "values": [-1.0, 2.0],
                                                  "probabilities": [0.5, 0.5]}]  # fmt: skip
    for number in itertools.count():
        steps = []
        for kind in kinds[number % len(kinds)]:
            step = {"samples": _between(rng, 0.8, 4.0), "rate": _between(rng, *kind["rate"])}
            steps.append(step | {"exponent": kind["exponent"]})
            if "twice" in kind:
                steps.append(steps[-1] | {"batch": "previous"})
        yield gs.Problem(
            activation=activations[rng.integers(4)],
            teacher=teachers[rng.integers(4)],
            width=_between(rng, 0.5, 2.5),
            noise_variance=float(rng.choice([0.0, 0.1, 0.5])),
            steps=steps,
            readout=gs.Ridge(samples=_between(rng, 0.5, 3.0), penalty=_between(rng, 0.01, 1.0)),
            init=gs.Init(
                weights=str(rng.choice(["gaussian", "sphere"])), second_layer=layers[number % 3]
            ),
        )


def with_seams(problem: gs.Problem, number: int) -> gs.Problem:
    """The problem with another rule, loss, output, batch of the readout or law of the inputs."""
    first = "steps.0."
    several: list[dict[str, Any]] = [
        {},
        {f"{first}rule": "sign"},
        {"init.output": "unscaled", f"{first}decay": 0.2},
        {"inputs": gs.Covariance((0.3, 1.7), (0.5, 0.5)), f"{first}precondition": 0.5},
        {f"{first}rule": "muon", f"{first}loss": "huber"},
        {"inputs": gs.PowerLaw(0.4, 0.2), f"{first}rule": "adam"},
        {"readout.batch": "previous"},
        {
            "inputs": gs.SpikedCovariance(2.0, 0.5),
            f"{first}rule": "normalized",
            f"{first}loss": "hinge",
        },
    ]
    changes = several[number // 2 % len(several)]
    if not problem.steps:
        changes = {path: value for path, value in changes.items() if path == "inputs"}
    if "readout.batch" in changes:
        changes = changes | {"readout.samples": problem.steps[-1].samples}
    return problem.replace(changes)


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    return round(float(rng.uniform(low, high)), 3)


def choose(package: str, question: str) -> list[Cell]:
    """The first candidates that the package answers."""
    found: list[Cell] = []
    for number, problem in enumerate(itertools.islice(candidates(), 200)):
        finite = number % 7 == 3 and QUESTIONS[question].finite
        cell: Cell = {"problem": problem.to_data(), "d": 200 if finite else None}
        if package == "simulation":
            seams = with_seams(problem, number).to_data()
            cell |= {"problem": seams, "d": 30 + number % 7, "seed": number}
        try:
            cell["values"] = answer(package, question, cell)
        except GiantstepsError:  # not covered
            continue
        found.append(cell)
        if len(found) == COUNT:
            return found
    raise SystemExit(f"{package}.{question} answers only {len(found)} of 200 problems")


def answer(package: str, question: str, cell: Mapping[str, Any]) -> Values:
    """The numbers of one cell by name; long arrays by size, sum and sum of squares."""
    options = {} if package == "theory" else {"seed": cell["seed"], "test_samples": 200}
    if cell["d"] is not None:
        options["d"] = cell["d"]
    with capped(1):
        ask = QUESTIONS[question].function(cast(Side, package))
        found = ask(gs.Problem.from_data(cell["problem"]), **options)
        ((numbers, arrays),) = read_answer(found)
    values = {name: [float(number)] for name, number in numbers.items()}
    for name, (_, array) in arrays.items():
        flat = array.ravel()
        long = [float(flat.size), float(flat.sum()), float((flat**2).sum())]
        values[name] = flat.tolist() if flat.size <= 8 else long
    return dict(sorted(values.items()))


def answer_now(package: str, question: str, cell: Mapping[str, Any]) -> Values:
    """The same for a cell that was answered once; a refusal is a change like any other."""
    try:
        return answer(package, question, cell)
    except GiantstepsError as error:
        return {f"{type(error).__name__}: {error}": []}


def differences(old: Mapping[str, list[float]], new: Mapping[str, list[float]]) -> list[str]:
    """What changed from old values to new ones, beyond rounding."""
    changed = [f"{name} is {'gone' if name in old else 'new'}" for name in old.keys() ^ new.keys()]
    for name in old.keys() & new.keys():
        a, b = old[name], new[name]
        # A number that vanishes is known to rounding of those beside it.
        small = max([ATOL, *(1e-9 * abs(x) for x in a if math.isfinite(x))])
        near = (math.isclose(x, y, rel_tol=RTOL, abs_tol=small) for x, y in zip(a, b))
        same = ((x != x and y != y) for x, y in zip(a, b))  # both NaN
        if len(a) != len(b) or not all(map(max, near, same)):
            changed.append(f"{name}: {a} became {b}")
    return sorted(changed)


def write(package: str, question: str) -> str:
    """Write one file, unless values changed and the version did not; return what was done."""
    path = FOLDER / f"{package}-{question}.json"
    version = VERSIONS[package][question]
    if path.exists():
        old = json.loads(path.read_text())
        changed = [
            text
            for cell in old["cells"]
            for text in differences(cell["values"], answer_now(package, question, cell))
        ]
        if version == old["version"]:
            if changed:
                return f"NOT written, raise the version first: {changed[0]} ({len(changed)} such)"
            return "unchanged"
    content = {"version": version, "cells": choose(package, question)}
    path.write_text(json.dumps(content, indent=1) + "\n")
    return f"written, version {version}"


if __name__ == "__main__":
    refused = False
    for package, question in questions():
        done = write(package, question)
        refused |= done.startswith("NOT")
        sys.stdout.write(f"{package}.{question}: {done}\n")
    sys.exit(refused)
