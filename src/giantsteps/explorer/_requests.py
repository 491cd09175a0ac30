"""What a client may send: each body is checked as a whole before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid, Problem, integer, suggest
from giantsteps.questions import Question, names, question

#: Largest body of a request, in bytes.
BODY = 65_536
#: Most problems of one grid.
CELLS = 2_500
#: Most gradient steps of a problem, and longest text of a function.
STEPS, TEXT = 20, 500
#: Largest d of a theory and of a simulated network; most seeds.
LARGEST_D, LARGEST_NETWORK, SEEDS = 10**7, 4_000, 100

#: Critical lines of a phase diagram: name → quantity, level and label.
LINES: dict[str, tuple[str, float | str, str]] = {
    "floor": ("test", "floor", "test error = floor of kernels"),
    "gain": ("gain", 0.0, "the steps stop helping"),
    "critical rate": ("rate over critical", 1.0, "a spike leaves the bulk"),
}


def keys(body: Any, known: Mapping[str, bool], place: str = "body") -> dict[str, Any]:
    """The body as a dict whose keys are ``known``; those marked True must be there."""
    if not isinstance(body, Mapping):
        raise InvalidProblem(place, type(body).__name__, "a JSON object")
    for key in body:
        if key not in known:
            raise InvalidProblem(str(key)[:80], "given", f"left out: {suggest(key, known)}")
    for key, needed in known.items():
        if needed and key not in body:
            raise InvalidProblem(key, None, "given: it has no default")
    return dict(body)


def read_problem(data: Any) -> Problem:
    """The problem that plain data means.

    Functions are names and expressions only: ``"module:attr"`` would import a module, which a
    request must never do.
    """
    if not isinstance(data, Mapping):
        raise InvalidProblem("problem", type(data).__name__, "a table of the problem's fields")
    for name in ("activation", "teacher"):
        check_function_text(data.get(name, ""), name)
    steps = data.get("steps", ())
    if isinstance(steps, list) and len(steps) > STEPS:
        raise InvalidProblem("steps", f"{len(steps)} steps", f"at most {STEPS} steps here")
    return Problem.from_data(data)


def check_function_text(given: Any, name: str) -> None:
    """Refuse what would import code, and what is too long."""
    texts = given.values() if isinstance(given, Mapping) else [given]
    for text in texts:
        if isinstance(text, str) and len(text) > TEXT:
            raise InvalidProblem(name, text, f"at most {TEXT} characters long here")
        if isinstance(text, str) and ":" in text:
            raise InvalidProblem(
                name, text, "a name or an expression in x: the explorer imports no code"
            )


def _axes(problem: Problem, given: Any) -> Problem | Grid:
    """A grid over ``{path: values}``; the problem itself without any."""
    if given is None or given == {}:
        return problem
    if not isinstance(given, Mapping):
        raise InvalidProblem("axes", type(given).__name__, "a table from paths to lists of values")
    size = 1
    for path, values in given.items():
        if path in ("activation", "teacher"):
            for value in values if isinstance(values, list) else ():
                check_function_text(value, path)
        if not isinstance(values, list) or not values:
            raise InvalidProblem(f"axes.{path}", values, "a list of values")
        size *= len(values)
        if size > CELLS:
            raise InvalidProblem("axes", f"{size} cells or more", f"at most {CELLS} cells")
    return Grid(problem, given)


def _count(given: Any, field: str, most: int, otherwise: str = "") -> int:
    allowed = f"an integer from 2 to {most}{otherwise}"
    if integer(given, field, allowed, lower=2) > most:
        raise InvalidProblem(field, given, allowed)
    return int(given)


def _dimension(given: Any) -> int | None:
    if given is None:
        return None
    return _count(given, "d", LARGEST_D, ", or left out for the limit")


def _options(asked: Question, side: Any, given: Any) -> dict[str, Any]:
    options = keys(given or {}, dict.fromkeys(sorted(asked.takes(side)), False), "options")
    if len(options.get("x") or ()) > CELLS:
        raise InvalidProblem("options.x", f"{len(options['x'])} points", f"at most {CELLS} points")
    return options


@dataclass(frozen=True)
class Ask:
    """A question for theory: ``{question, problem, d, axes, options, partial}``."""

    question: Question  # a row of the registry
    target: Problem | Grid  # the problem, or a grid over ``axes``
    d: int | None  # none for the limit
    options: dict[str, Any] = field(default_factory=dict)  # keywords of the question
    #: Whether cells of a grid that have no answer are left empty; else they are an error.
    partial: bool = False

    def answer(self) -> Any:
        where = {} if self.d is None else {"d": self.d}
        return self.question.function("theory")(self.target, **where, **self.options)

    @classmethod
    def read(cls, body: Any) -> Ask:
        known = {"question": True, "problem": True, "d": False, "axes": False, "options": False}
        given = keys(body, {**known, "partial": False})
        asked = question(given["question"])
        asked.function("theory")
        problem = read_problem(given["problem"])
        d = _dimension(given.get("d"))
        if d is not None and not asked.finite:
            raise InvalidProblem("d", d, f'left out: theory answers "{asked.name}" in the limit')
        if asked.needs_readout:
            problem.require_readout()
        if asked.needs_step and not problem.steps:
            raise InvalidProblem("steps", [], f'at least one step: "{asked.name}" needs it')
        options = _options(asked, "theory", given.get("options"))
        partial = given.get("partial", False)
        if not isinstance(partial, bool):
            raise InvalidProblem("partial", partial, "true or false")
        return cls(asked, _axes(problem, given.get("axes")), d, options, partial)


@dataclass(frozen=True)
class Plane:
    """A phase diagram: ``{problem, d, quantity, lines, x: {path, values}, y: {path, values}}``."""

    grid: Grid
    d: int | None
    quantity: str
    lines: tuple[str, ...]

    @classmethod
    def read(cls, body: Any) -> Plane:
        known = {"problem": True, "x": True, "y": True, "quantity": False, "lines": False}
        given = keys(body, {**known, "d": False})
        problem = read_problem(given["problem"])
        axes = {}
        for name in ("y", "x"):
            axis = keys(given[name], {"path": True, "values": True}, name)
            axes[str(axis["path"])] = axis["values"]
        if len(axes) != 2:
            raise InvalidProblem("y.path", given["y"]["path"], "another field than that of x")
        grid = _axes(problem, axes)
        assert isinstance(grid, Grid)
        for name, values in grid.coords.items():
            if values.dtype.kind != "f" or values.size < 2 or np.any(np.diff(values) <= 0):
                raise InvalidProblem(name, values.tolist(), "at least two increasing numbers")
        lines = given.get("lines") or []
        if not isinstance(lines, list) or not all(line in LINES for line in lines):
            raise InvalidProblem("lines", lines, f"a list with some of {', '.join(LINES)}")
        return cls(grid, _dimension(given.get("d")), given.get("quantity", "test"), tuple(lines))


@dataclass(frozen=True)
class Simulation:
    """Networks to simulate: ``{d, seeds, asks: [{question, problem, axes, options}]}``."""

    d: int
    seeds: int
    asks: tuple[tuple[Question, Problem | Grid, dict[str, Any]], ...]

    @classmethod
    def read(cls, body: Any) -> Simulation:
        given = keys(body, {"d": True, "seeds": True, "asks": True})
        d = _count(given["d"], "d", LARGEST_NETWORK)
        seeds = _count(given["seeds"], "seeds", SEEDS)
        if not isinstance(given["asks"], list) or not 1 <= len(given["asks"]) <= 8:
            raise InvalidProblem("asks", given["asks"], "a list of one to eight questions")
        return cls(d, seeds, tuple(cls._read_ask(ask, d) for ask in given["asks"]))

    @staticmethod
    def _read_ask(body: Any, d: int) -> tuple[Question, Problem | Grid, dict[str, Any]]:
        known = {"question": True, "problem": True, "axes": False, "options": False}
        given = keys(body, known, "asks")
        asked = question(given["question"])
        if "simulation" not in asked.sides:
            raise InvalidProblem("question", asked.name, f"one of {', '.join(names('simulation'))}")
        target = _axes(read_problem(given["problem"]), given.get("axes"))
        for problem in target if isinstance(target, Grid) else [target]:
            problem.at(d)
            if asked.needs_readout:
                problem.require_readout()
        return asked, target, _options(asked, "simulation", given.get("options"))
