"""A sweep as plain data, as it stands in a TOML file."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from giantsteps.errors import InvalidProblem, check_names
from giantsteps.problem import Grid, read_toml
from giantsteps.questions import RUN_OPTIONS
from giantsteps.sweeps._fields import as_axes

if TYPE_CHECKING:
    from giantsteps.sweeps._sweep import Sweep


def to_data(sweep: Sweep) -> dict[str, Any]:
    """The fields of a sweep as lists, tables, numbers and text."""
    questions: Any = {name: dict(options) for name, options in sweep.questions.items()}
    return {
        "store": str(sweep.store),
        "d": list(sweep.d),
        "seeds": list(sweep.seeds),
        "questions": questions if any(questions.values()) else list(questions),
        "sources": list(sweep.sources),
        "dtype": sweep.dtype,
        "initial": sweep.initial,
        "share": sweep.share,
        "options": dict(sweep.options),
        **sweep.grid.to_data(),
    }


def fields_of(data: Mapping[str, Any], kind: type[Sweep]) -> dict[str, Any]:
    """The arguments of a sweep from its plain data; keys that it does not have are refused."""
    if not isinstance(data, Mapping):
        raise InvalidProblem("sweep", data, "a table")
    known = [item.name for item in dataclasses.fields(kind) if item.name != "grid"]
    if "problem" not in data and {"activation", "teacher", "width"} <= data.keys():
        allowed = "in a table [problem] of the sweep: this is the file of a problem"
        raise InvalidProblem("activation", data["activation"], allowed)
    for key, value in data.items():
        if key in RUN_OPTIONS and key not in known:
            allowed = f"in the table of options: options = {{{key} = ...}}"
            raise InvalidProblem(str(key), value, allowed)
    check_names(data, (*known, "problem", "vary"), "the keys")
    for key in ("problem", "d"):
        if key not in data:
            raise InvalidProblem(key, None, "given: it has no default")
    keywords = {key: value for key, value in data.items() if key in known}
    vary = as_axes(data.get("vary", {}))
    grid = Grid.from_data({"problem": data["problem"], "vary": vary})
    return keywords | {"grid": grid}


def read(source: str | os.PathLike[str], store: str | os.PathLike[str] | None) -> dict[str, Any]:
    """The plain data of a file, whose store is named, in the file, or beside it."""
    data = read_toml(source)
    if store is not None:
        data["store"] = str(store)
    elif not isinstance(source, str):
        beside = Path(source)
        named = data.get("store", f"{beside.stem}.sqlite")
        data["store"] = str(beside.parent / named) if isinstance(named, str) else named
    return data
