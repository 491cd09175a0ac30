"""Fields of a sweep: each check returns the normalised value or raises `InvalidProblem`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from giantsteps.answers import Source
from giantsteps.errors import InvalidProblem, check_names
from giantsteps.problem import Grid, Problem, choice, integer, suggest
from giantsteps.questions import QUESTIONS, RUN_OPTIONS
from giantsteps.simulation import run

#: Values of one axis, at most.
_MOST = 10_000


def as_sources(given: Any) -> tuple[Source, ...]:
    known = get_args(Source)
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not names:
        raise InvalidProblem("sources", given, suggest("", known))
    chosen = {choice(name, "sources", known) for name in names}
    return tuple(name for name in known if name in chosen)


def as_questions(given: Any) -> dict[str, dict[str, Any]]:
    known = tuple(QUESTIONS)
    if isinstance(given, str):
        given = (given,)
    if not isinstance(given, Sequence | Mapping) or not given:
        raise InvalidProblem("questions", given, suggest("", known))
    questions = given if isinstance(given, Mapping) else {str(name): {} for name in given}
    for question, options in questions.items():
        choice(question, "questions", known)
        path = f"questions.{question}"
        if not isinstance(options, Mapping):
            raise InvalidProblem(path, options, "a table of options")
        own = QUESTIONS[question].options
        for name, value in options.items():
            if name not in own:
                hint = suggest(name, own) if own else "nothing: it has no options"
                raise InvalidProblem(f"{path}.{name}", value, f"left out: options are {hint}")
            _plain(value, f"{path}.{name}")
    return {question: dict(options) for question, options in questions.items()}


def as_options(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidProblem("options", given, "a table of options of the simulation")
    known = [name for name in RUN_OPTIONS if name != "dtype"]
    check_names(given, known, "the keys", "options.")
    for name, value in given.items():
        _plain(value, f"options.{name}")
    return {name: value for name, value in given.items() if value is not None}


def try_options(problem: Problem, d: int, options: Mapping[str, Any]) -> None:
    """Refuse options that every network of a sweep would refuse."""
    try:
        run(problem, d, 0, **options)
    except InvalidProblem as error:
        if error.field in options:
            raise InvalidProblem(f"options.{error.field}", error.value, error.allowed) from None


def _plain(value: Any, name: str) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise InvalidProblem(name, value, "a number, a text or a list of them") from None


def as_path(given: Any) -> Path:
    if not isinstance(given, str | os.PathLike) or not str(given):
        raise InvalidProblem("store", given, 'the path of a file, such as "sweep.sqlite"')
    return Path(given)


def check_problems(grid: Grid, sizes: Iterable[int], questions: Iterable[str]) -> None:
    """Refuse a grid with problems that are too small for a d, or lack a readout that is asked."""
    smallest = {
        path: min(values) for path, values in grid.axes.items() if isinstance(values[0], float)
    }
    problem = grid.problem.replace(smallest)
    for d in sizes:
        problem.at(d)
    if "readout" not in grid.axes and any(
        QUESTIONS[question].needs_readout for question in questions
    ):
        problem.require_readout()


def as_axes(vary: Any) -> dict[str, Any]:
    """Axes by dotted path, from the table ``vary`` of a file."""
    return {path: _values(path, values) for path, values in _paths(vary).items()}


def _paths(vary: Any, prefix: str = "") -> dict[str, Any]:
    """Axes by dotted path; TOML makes tables of paths without quotes."""
    if not isinstance(vary, Mapping):
        raise InvalidProblem("vary", vary, "a table of paths and values")
    found: dict[str, Any] = {}
    for key, value in vary.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and not _RANGE & value.keys():
            found.update(_paths(value, f"{path}."))
        else:
            found[path] = value
    return found


#: Words of a range, and those that people take for them.
_RANGE = {"from", "to", "count", "start", "stop", "num", "n", "step"}


def _values(path: str, given: Any) -> Any:
    """A list of values, or ``{from, to, count, log}`` spelled out."""
    if not isinstance(given, Mapping):
        return given
    allowed = "a list, or {from = a, to = b, count = n}, with log = true for equal ratios"
    if not {"from", "to", "count"} <= given.keys() <= {"from", "to", "count", "log"}:
        raise InvalidProblem(f"vary.{path}", given, allowed)
    allowed_count = f"an integer from 1 to {_MOST}"
    count = integer(given["count"], f"vary.{path}.count", allowed_count)
    if count > _MOST:
        raise InvalidProblem(f"vary.{path}.count", count, allowed_count)
    space = np.geomspace if given.get("log", False) else np.linspace
    try:
        return space(float(given["from"]), float(given["to"]), count).tolist()
    except (TypeError, ValueError):
        raise InvalidProblem(f"vary.{path}", given, allowed) from None
