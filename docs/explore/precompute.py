"""Compute what the explorer of the site holds, and write it to data.js.

Run it when the theory, the gallery or the tour has changed; it takes a few minutes::

    python docs/explore/precompute.py

The site then shows the page of ``giantsteps explore`` with these answers in place of a server.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import giantsteps as gs
from giantsteps.explorer._compute import compute
from giantsteps.explorer._schema import schema
from giantsteps.explorer._states import DEFAULT, TOUR

HERE = Path(__file__).parent
#: Fields of the default problem that the page can change, and their values.
AXES = {
    "steps.0.exponent": [0.0, 0.5],
    "width": [0.5, 1.5, 4.0],
    "steps.0.samples": [1.0, 2.0, 4.0, 8.0, 20.0],
    "steps.0.rate": [0.5, 1.0, 2.0, 3.0, 5.0, 8.0],
    "readout.penalty": [1e-4, 0.01, 0.1, 1.0],
    "readout.samples": [
        0.2,
        0.4,
        0.7,
        1.0,
        1.3,
        1.5,
        1.7,
        2.0,
        2.5,
        3.0,
        4.0,
        6.0,
        9.0,
        14.0,
        20.0,
    ],
}
NOTE = (
    "This page holds answers that were computed before: the default problem over a few values of "
    "its fields, and the stops of the tour. Everything else, simulation included, is in the "
    'explorer itself: pip install "giantsteps[explore]", then giantsteps explore.'
)
DIGITS = 5


def main() -> None:
    """Write the file."""
    table = _table()
    answers = _functions() | _stops() | _weights()
    data = {
        "start": {
            "problem": DEFAULT.to_data(),
            "gallery": [],
            "tour": [stop.to_data() for stop in TOUR],
            "note": NOTE,
        },
        "schema": schema(60.0),
        "table": table,
        "answers": answers,
    }
    text = json.dumps(_short(data), ensure_ascii=False, separators=(",", ":"))
    (HERE / "data.js").write_text(f"window.GS_DATA={text};\n", encoding="utf-8")


def _short(value: Any) -> Any:
    """Numbers with as many digits as a plot can show."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_short(item) for item in value]
    return value


def _key(path: str, body: dict[str, Any]) -> str:
    """The address of an answer, as static.js forms it."""
    axes = list(body.get("axes") or {})
    parts = [path, body.get("question"), body["problem"], body.get("d"), body.get("options")]
    text = json.dumps(
        [*parts, axes[0] if axes else None], ensure_ascii=False, separators=(",", ":")
    )
    return _as_javascript(text)


def _as_javascript(text: str) -> str:
    """JSON as JavaScript writes it: whole numbers without ".0"."""
    import re

    return re.sub(r"(?<=[\[:,])(-?\d+)\.0(?=[,\]}])", r"\1", text)


def _ask(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = compute("ask", body)
    return {_key("ask", body): found.get("ok") or {"error": found["error"]}}


def _table() -> dict[str, Any]:
    """Errors over the axes, row-major; empty where the equations were not solved."""
    numbers: dict[str, list[Any]] = {"test": [], "train": [], "initial": []}
    columns = {"test": "test", "train": "train", "initial": "initial.test"}
    samples = AXES["readout.samples"]
    outer = {path: values for path, values in AXES.items() if path != "readout.samples"}
    for problem in gs.Grid(DEFAULT, outer):
        axes = {"readout.samples": samples}
        body = {"question": "risk", "problem": problem.to_data(), "axes": axes, "partial": True}
        found = compute("ask", body)
        held = found["ok"]["columns"] if "ok" in found else {}
        for name, column in columns.items():
            numbers[name] += held.get(column) or [None] * len(samples)
    facts = {}
    for exponent in AXES["steps.0.exponent"]:
        base = DEFAULT.replace({"steps.0.exponent": exponent}).to_data()
        told = compute("ask", {"question": "risk", "problem": base})["ok"]["facts"]
        facts[_as_javascript(f"[{json.dumps(exponent)}]")[1:-1]] = told
    floor = compute("function", {"function": "sin", "field": "teacher"})["ok"]["floor"]
    return {"axes": list(AXES.items()), "facts": facts, "floor": floor, **numbers}


def _functions() -> dict[str, Any]:
    found = {}
    problems = [DEFAULT, *(stop.problem for stop in TOUR)]
    for field in ("activation", "teacher"):
        for given in {json.dumps(problem.to_data()[field]): None for problem in problems}:
            body = {"function": json.loads(given), "field": field}
            key = json.dumps(["function", field, body["function"]], separators=(",", ":"))
            found[key] = compute("function", body)["ok"]
    return found


def _weights() -> dict[str, Any]:
    """Spectra of the weights over the fields of the step and the width."""
    found: dict[str, Any] = {}
    paths = ("steps.0.exponent", "width", "steps.0.samples", "steps.0.rate")
    for problem in gs.Grid(DEFAULT, {path: AXES[path] for path in paths}):
        answer = _ask({"question": "weights", "problem": problem.to_data()})
        for one in answer.values():
            _thin(one)
        found |= answer
    return found


def _thin(answer: dict[str, Any]) -> None:
    """Fewer points of a density, and no texts that the table has."""
    for piece in (answer.get("bulk") or {}).get("pieces", ()):
        for name in ("x", "density"):
            piece[name] = [*piece[name][:-1:4], piece[name][-1]]
    answer.pop("initial", None)
    if "facts" in answer:
        answer["facts"] = {**answer["facts"], "citation": "", "assumptions": []}


def _stops() -> dict[str, Any]:
    """What the panels show at each stop of the tour, and at the start."""
    found: dict[str, Any] = {}
    ranges = {
        "steps.0.rate": np.linspace(0.25, 10, 30),
        "steps.1.rate": np.linspace(0.25, 10, 30),
        "steps.0.exponent": np.linspace(0, 0.5, 26),
        "readout.samples": np.geomspace(0.1, 20, 30),
    }
    for stop in TOUR:
        problem, d = stop.problem.to_data(), stop.view.get("d")
        x = stop.view["x"]
        base = {"problem": problem, "d": d}
        bodies: list[dict[str, Any]] = [
            {"question": "risk", **base},
            {"question": stop.view.get("spectrum", "weights"), **base},
            {"question": "learned_function", **base, "options": {"along": "teacher"}},
        ]
        if not _in_table(stop.problem):
            axes = {x: _short(ranges[x].tolist())}
            bodies.append({"question": "risk", **base, "axes": axes, "partial": True})
        for body in bodies:
            answer = _ask(body)
            for one in answer.values():
                _thin(one)
            found |= answer
    start = {"question": "learned_function", "problem": DEFAULT.to_data(), "d": None}
    return found | _ask({**start, "options": {"along": "teacher"}})


def _in_table(problem: gs.Problem) -> bool:
    inside = DEFAULT.paths() == problem.paths() and all(
        problem.get(path) in values for path, values in AXES.items()
    )
    return inside and problem.replace({p: DEFAULT.get(p) for p in AXES}) == DEFAULT


if __name__ == "__main__":
    main()
