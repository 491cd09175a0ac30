"""A problem to take away: as Python and as a command line."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from giantsteps.problem import Problem
from giantsteps.problem import __all__ as constructors

#: Fields of a problem with a flag of their own name; the rest goes through ``--set``.
_FLAGS = (
    *("activation", "teacher", "width", "noise_variance"),
    *("readout.samples", "readout.penalty", "init.weights", "init.second_layer"),
)


#: What stands in the code of a problem without the name of the library.
_CONSTRUCTOR = re.compile(rf"\b({'|'.join([*constructors, 'MultiIndex'])})\(")


def as_python(problem: Problem, question: str, d: int | None) -> str:
    """A script that states the problem, with its scalings, and asks the question."""
    stated = re.sub(" +# ", "  # ", _CONSTRUCTOR.sub(r"gs.\1(", repr(problem)))
    where = "" if d is None else f", d={d}"
    return (
        "import giantsteps as gs\nfrom giantsteps import theory\n\n"
        f"problem = {stated}\nanswer = theory.{question}(problem{where})\nprint(answer)"
    )


def as_command(problem: Problem, question: str, d: int | None) -> str:
    """The same as a command line."""
    words: list[list[str]] = []
    for path, value in _leaves(problem.to_data()):
        if path == "steps":
            words += [["--step", _step(step)] for step in value]
        elif path in _FLAGS:
            option = "--" + path.rpartition(".")[2].replace("_", "-")
            words.append([option, value if isinstance(value, str) else _toml(value)])
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
