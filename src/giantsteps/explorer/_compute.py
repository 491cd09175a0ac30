"""What a worker computes: plain requests in, plain answers out, all of it JSON."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from giantsteps.answers import Answer, Spectrum, of_rows
from giantsteps.errors import GiantstepsError, InvalidProblem, NotConverged, NotCovered
from giantsteps.explorer._requests import (
    LINES,
    Ask,
    Plane,
    check_function_text,
    keys,
    read_problem,
)
from giantsteps.explorer._take import as_command, as_python
from giantsteps.problem import Grid

#: Points of the drawn density of a bulk, per interval of its support.
DENSITY_POINTS = 160
#: Hermite coefficients that are shown, from degree zero.
COEFFICIENTS = 7


#: What an answer says of itself.
_FACTS = (
    *("source", "d", "exact", "evidence", "assumptions", "violated"),
    *("references", "citation"),
)


def compute(operation: str, body: Any) -> dict[str, Any]:
    """Answer a request: ``{"ok": ...}``, or ``{"error": ...}`` for what the library refuses."""
    try:
        return {"ok": plain(OPERATIONS[operation](body))}
    except (GiantstepsError, RecursionError, OverflowError, MemoryError) as error:
        return {"error": problem_error(error)}
    except Exception as error:  # a defect of the library: say so, and go on serving
        logging.getLogger(__name__).exception("%s failed", operation)
        text = f"internal error, please report it: {type(error).__name__}: {error}"
        return {"error": {"type": "InternalError", "message": text}}


def problem_error(error: BaseException) -> dict[str, Any]:
    """An error of the library as data, with the field that caused it."""
    found: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, InvalidProblem):
        found |= {"field": error.field, "allowed": error.allowed}
    elif isinstance(error, NotCovered):
        found |= {"what": error.what, "why": error.why, "covered": error.covered}
    elif isinstance(error, NotConverged):
        found |= {"advice": error.advice}
    elif not isinstance(error, GiantstepsError):
        found["message"] = f"the request is too large or too deep ({error})"
    return found


def plain(value: Any) -> Any:
    """Numbers, texts, lists and dicts; what is not a finite number becomes None."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)


# Operations -----------------------------------------------------------------------------------


def _ask(body: Any) -> dict[str, Any]:
    """The columns of an answer, what it rests on, and the curve of a bulk."""
    asked = Ask.read(body)
    try:
        answer = asked.answer()
    except (NotCovered, NotConverged) as error:
        if not (asked.partial and isinstance(asked.target, Grid)):
            raise
        return _cell_by_cell(asked, error)
    found: dict[str, Any] = {
        "question": asked.question.name,
        "columns": answer.to_columns(),
        "facts": _facts(answer),
    }
    initial = getattr(answer, "initial", None)
    if isinstance(answer, Spectrum) and not answer.shape:
        found["bulk"] = _bulk(answer.bulk)
        if isinstance(initial, Spectrum):
            found["initial"] = {"bulk": _bulk(initial.bulk)}
    return found


def _cell_by_cell(asked: Ask, refusal: GiantstepsError) -> dict[str, Any]:
    """A grid some cells of which have no answer: those are left empty, and counted.

    Raises
    ------
    NotCovered, NotConverged
        What was raised for the whole grid, if no cell has an answer.
    """
    grid = asked.target
    assert isinstance(grid, Grid)
    rows: list[dict[str, Any]] = []
    answers: list[Answer] = []
    for problem in grid:
        try:
            one = replace(asked, target=problem).answer()
        except (NotCovered, NotConverged):
            rows.append({})
            continue
        answers.append(one)
        rows.append({name: values[0] for name, values in one.to_columns().items() if values})
    if not answers:
        raise refusal
    places = np.meshgrid(*grid.coords.values(), indexing="ij")
    coords = {path: place.ravel().tolist() for path, place in zip(grid.dims, places)}
    facts = _facts(answers[0])
    facts["violated"] = list(dict.fromkeys(text for one in answers for text in one.violated))
    facts["exact"] = all(one.exact for one in answers)
    return {
        "question": asked.question.name,
        "columns": coords | of_rows(rows),
        "facts": facts,
        "empty": {"cells": len(rows) - len(answers), "why": problem_error(refusal)},
    }


def _facts(answer: Answer) -> dict[str, Any]:
    found = {name: getattr(answer, name) for name in _FACTS} | {"solution": None}
    if (solution := answer.solution) is not None:
        worst = {name: np.max(getattr(solution, name)) for name in ("residual", "error")}
        found["solution"] = {"status": solution.status, **worst}
    return found


def _bulk(law: Any) -> dict[str, Any] | None:
    """The density along each interval of the support, finer at the edges, and the atoms."""
    if law is None:
        return None
    angles = np.linspace(0.0, np.pi, DENSITY_POINTS)
    pieces = []
    for low, high in law.support:
        x = (low + high) / 2 - (high - low) / 2 * np.cos(angles)
        inside = np.clip(x, low + 1e-9 * (high - low), high - 1e-9 * (high - low))
        pieces.append({"x": x, "density": law.density(inside)})
    return {"support": law.support, "atoms": law.atoms, "pieces": pieces}


def _plane(body: Any) -> dict[str, Any]:
    """A quantity over two fields, and critical lines."""
    from giantsteps.theory import level_curves, values_of

    asked = Plane.read(body)
    grid = asked.grid
    values = values_of(asked.quantity, list(grid), asked.d).reshape(grid.shape)
    lines, refused = [], {}
    for name in asked.lines:
        quantity, level, label = LINES[name]
        known = values if quantity == asked.quantity else None
        try:
            curves = level_curves(grid, quantity, level, asked.d, values=known)
        except GiantstepsError as error:  # the map is there, this line is not
            refused[name] = str(error)
            continue
        pieces = [curve[:, ::-1] for curve in curves]
        lines.append({"name": name, "label": label, "pieces": pieces})
    (y, y_values), (x, x_values) = grid.coords.items()
    return {
        "x": {"path": x, "values": x_values},
        "y": {"path": y, "values": y_values},
        "quantity": asked.quantity,
        "values": values,
        "lines": lines,
        "refused": refused,
    }


def _function(body: Any) -> dict[str, Any]:
    """A function of one variable: its graph, its Hermite coefficients, its moments."""
    from giantsteps.functions import SingleIndex, as_function, as_teacher
    from giantsteps.gaussian import check_function, hermite_coefficients, moments

    given = keys(body, {"function": True, "field": True})
    name = given["field"]
    if name not in ("activation", "teacher"):
        raise InvalidProblem("field", name, '"activation" or "teacher"')
    check_function_text(given["function"], name)
    if name == "teacher":
        teacher = as_teacher(given["function"])
        if not isinstance(teacher, SingleIndex):
            return {"rank": teacher.rank}
        function = teacher.link
    else:
        function = as_function(given["function"], name)
    check_function(function, name)
    x = np.linspace(-4.0, 4.0, 161)
    with np.errstate(all="ignore"):
        y = np.asarray(function(x), dtype=float)
    found = moments(function)
    linear = float(found.linear)
    return {
        "rank": 1,
        "canonical": function.canonical,
        "latex": function._repr_latex_().strip("$"),
        "x": x,
        "y": y,
        "hermite": hermite_coefficients(function, COEFFICIENTS - 1),
        "mean": float(found.mean),
        "linear": linear,
        "second_moment": float(found.second_moment),
        "floor": float(found.second_moment) - float(found.mean) ** 2 - linear**2,
    }


def _take(body: Any) -> dict[str, Any]:
    """The problem as Python, as a command line, as TOML and as canonical data."""
    given = keys(body, {"problem": True, "d": False, "question": False})
    problem = read_problem(given["problem"])
    asked, d = given.get("question") or "risk", given.get("d")
    Ask.read({"question": asked, "problem": given["problem"], "d": d})
    return {
        "python": as_python(problem, asked, d),
        "command": as_command(problem, asked, d),
        "toml": problem.to_toml(),
        "problem": problem.to_data(),
        "hash": problem.content_hash,
    }


def _figure(body: Any) -> dict[str, Any]:
    """A figure fit for a paper, drawn by matplotlib."""
    from giantsteps.explorer._figure import draw

    return draw(body)


#: What a request may ask of a worker.
OPERATIONS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "ask": _ask,
    "plane": _plane,
    "function": _function,
    "take": _take,
    "figure": _figure,
}


def warm_up() -> None:
    """Load and compile what the first answers need, so that they come at once."""
    from giantsteps.explorer._states import DEFAULT

    curve = [0.5, 1.0, 2.0]
    base = DEFAULT.to_data()
    for body in (
        {"question": "risk", "problem": base, "axes": {"readout.samples": curve}},
        {"question": "learned_function", "problem": base},
    ):
        compute("ask", body)
    compute("function", {"function": "tanh", "field": "activation"})
