"""What the texts of flags say: values, paths, steps and axes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import click

from giantsteps.errors import InvalidProblem


def value_of(text: str) -> Any:
    """A number, list, table or quoted string as TOML reads it; anything else as it stands.

    Numbers such as ``.5``, ``5.`` and ``1/2``, which TOML does not know, are numbers too.
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        parts = text.split("/")
        if len(parts) > 2 or not all(map(_NUMBER.fullmatch, parts)) or not float(parts[-1]):
            return text
        return float(parts[0]) / float(parts[1]) if len(parts) == 2 else float(text)


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def put(data: dict[str, Any], path: str, value: Any) -> None:
    """Write a value at a dotted path; numbers count the entries of a list, such as ``steps.0``."""
    keys = path.split(".")
    place: Any = data
    for key, below in pairwise(keys):
        place = _entry(place, key, path, [] if below.isdigit() else {})
    if isinstance(place, list):
        _entry(place, keys[-1], path, value)
        place[int(keys[-1])] = value
    else:
        place[keys[-1]] = value


def _entries(count: int) -> str:
    present = "entry 0" if count == 1 else f"entries 0 to {count - 1}"
    return f"{present}; {count} would add one" if count else "no entry; 0 would add one"


def _entry(place: Any, key: str, path: str, empty: Any) -> Any:
    """What stands at a key, ``empty`` if nothing; a law that is named becomes a table."""
    if isinstance(place, list):
        if not key.isdigit() or int(key) > len(place):
            raise InvalidProblem(
                "path", path, f"the path of an entry: there is {_entries(len(place))}"
            )
        if int(key) == len(place):
            place.append(empty)
        return place[int(key)]
    if isinstance(place.get(key), str):
        place[key] = {"law": place[key]}
    found = place.setdefault(key, empty)
    if not isinstance(found, dict | list):
        raise InvalidProblem("path", path, f"a field: '{key}' has no parts")
    return found


def assignment(text: str, option: str = "--set") -> tuple[str, Any]:
    """``PATH=VALUE``."""
    path, value = _halves(text, option, "PATH=VALUE, such as steps.0.rate=2")
    return path, value_of(value)


def once(pairs: Iterable[tuple[str, Any]], option: str) -> dict[str, Any]:
    """The pairs as a table; a path that is given twice is refused."""
    found: dict[str, Any] = {}
    for path, value in pairs:
        if path in found:
            raise click.UsageError(f"{option} {path} is given twice: give it once")
        found[path] = value
    return found


def _halves(text: str, option: str, allowed: str) -> tuple[str, str]:
    """What stands on either side of the first ``=``."""
    path, _, value = (part.strip() for part in text.partition("="))
    if not path or not value:
        raise InvalidProblem(option, text, allowed)
    return path, value


def step_of(text: str) -> dict[str, Any]:
    """``key=value,...``, the fields of a step."""
    allowed = "KEY=VALUE,KEY=VALUE,... with samples and rate, each key once"
    bare = text.strip().removeprefix("{").removesuffix("}")
    parts = [[word.strip() for word in part.split("=")] for part in _parts(bare)]
    if not all(len(part) == 2 and all(part) for part in parts):
        raise InvalidProblem("--step", text, allowed)
    found = {key: value_of(value) for key, value in parts}
    if len(found) < len(parts):
        raise InvalidProblem("--step", text, allowed)
    return found


def _parts(text: str) -> list[str]:
    """What stands between commas; those inside of parentheses separate nothing."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


#: Points of an axis, at most.
_MOST = 10_000


def axis_of(text: str) -> tuple[str, list[Any]]:
    """``path=a:b:n[:log]`` or ``path=v1,v2,...``."""
    import numpy as np

    allowed = (
        "PATH=a:b:n, PATH=a:b:n:log or PATH=v1,v2,... "
        f"(n a whole number up to {_MOST}, log needs a, b > 0)"
    )
    path, values = _halves(text, "--vary", allowed)
    if ":" not in values:
        values = values.strip().removeprefix("[").removesuffix("]")
        return path, [value_of(part) for part in _parts(values)]
    try:
        start, stop, count, *scale = values.split(":")
        ends, number = (float(start), float(stop)), int(count)
        if not 1 <= number <= _MOST or scale not in ([], ["log"]) or (scale and min(ends) <= 0):
            raise ValueError
    except ValueError:
        raise InvalidProblem("--vary", text, allowed) from None
    return path, (np.geomspace if scale else np.linspace)(*ends, number).tolist()
