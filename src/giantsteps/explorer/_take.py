"""A problem to take away: as Python and as a command line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from giantsteps.problem import Problem

#: Field of a problem → flag of the command line; the rest goes through ``--set``.
_FLAGS = {
    "activation": "--activation",
    "teacher": "--teacher",
    "width": "--width",
    "noise_variance": "--noise-variance",
    "readout.samples": "--samples",
    "readout.penalty": "--penalty",
    "init.weights": "--weights",
    "init.second_layer": "--second-layer",
}


def as_python(problem: Problem, question: str, d: int | None) -> str:
    """A script that states the problem and asks the question."""
    data = problem.to_data()
    lines = []
    for name, value in data.items():
        lines.append(f"    {name}={_value(name, value)},")
    where = "" if d is None else f", d={d}"
    return "\n".join(
        [
            "import giantsteps as gs",
            "from giantsteps import theory",
            "",
            "problem = gs.Problem(",
            *lines,
            ")",
            f"answer = theory.{question}(problem{where})",
            "print(answer)",
        ]
    )


def _value(name: str, value: Any) -> str:
    kinds = {"readout": "gs.Ridge", "init": "gs.Init"}
    if name == "steps":
        inside = "".join(f"\n        {_call('gs.Step', step)}," for step in value)
        return f"[{inside}\n    ]" if inside else "[]"
    if name in kinds:
        return _call(kinds[name], value)
    return repr(value)


def _call(kind: str, fields: Mapping[str, Any]) -> str:
    return f"{kind}({', '.join(f'{key}={value!r}' for key, value in fields.items())})"


def as_command(problem: Problem, question: str, d: int | None) -> str:
    """The same as a command line."""
    words: list[list[str]] = []
    for path, value in _leaves(problem.to_data()):
        if path == "steps":
            words += [["--step", _step(step)] for step in value]
        elif path in _FLAGS:
            words.append([_FLAGS[path], value if isinstance(value, str) else _toml(value)])
        else:
            words.append(["--set", f"{path}={_toml(value)}"])
    if question != "risk":
        words.append(["--question", question])
    if d is not None:
        words.append(["-d", str(d)])
    lines, line = [], "giantsteps predict"
    for flag in words:
        text = shlex.join(flag)
        if len(line) + len(text) > 88:
            lines.append(line + " \\")
            line = "   "
        line += " " + text
    return "\n".join([*lines, line])


def _leaves(data: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Paths and values; parts are entered, steps and laws are not."""
    found: list[tuple[str, Any]] = []
    for name, value in data.items():
        if name in ("readout", "init"):
            found += [(f"{name}.{key}", item) for key, item in value.items()]
        else:
            found.append((name, value))
    return found


def _step(step: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={value}" for key, value in step.items())


def _toml(value: Any) -> str:
    """A value as TOML reads it inline."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
