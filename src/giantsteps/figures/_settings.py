"""The problems of a figure in few lines: grids where many problems form one, defaults left out."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import tomli_w

from giantsteps.problem import Grid, Init, Problem, Ridge, Step, to_data

#: The numbers and names of a problem by dotted path.
Leaves: TypeAlias = dict[str, Any]
#: Values by dotted path.
Axes: TypeAlias = dict[str, list[Any]]
#: A first problem, values that are combined, and values that go together.
Table: TypeAlias = tuple[Leaves, Axes, list[Leaves]]


def short_problems(
    simulated: Iterable[Problem | Grid], theory: Iterable[Problem | Grid] = ()
) -> list[dict[str, Any]]:
    """Tables ``problem`` and ``vary``, as in the file of a sweep, that name every problem.

    Fields with their default are left out, and problems that are all combinations of some values
    are one table; values that go together are the rows of ``each``. Problems of theory that lie
    between simulated ones are left out; many evenly spaced values are ``{from, to, count}``, with
    ``log`` for equal ratios.
    """
    tables = list(_tables(simulated))
    for table in _tables(theory):
        if not any(_between(table, other) for other in tables):
            tables.append(table)
    return [_plain(*table) for table in tables]


def _tables(problems: Iterable[Problem | Grid]) -> Iterable[Table]:
    families: dict[str, dict[str, Leaves]] = defaultdict(dict)
    for target in problems:
        for problem in target if isinstance(target, Grid) else (target,):
            leaves = _leaves(_without_defaults(problem))
            families[_key(list(leaves))][_key(leaves)] = leaves
    for members in families.values():
        yield _product(list(members.values()))


def _between(table: Table, other: Table) -> bool:
    """Whether problems differ from others only in fields that vary among those."""
    (leaves, _, _), (base, _, _) = table, other
    mine, theirs = ({*axes, *(p for row in rows for p in row)} for _, axes, rows in (table, other))
    same = leaves.keys() == base.keys() and mine <= theirs
    return same and all(leaves[path] == base[path] for path in leaves if path not in theirs)


def _leaves(data: Any, prefix: str = "") -> Leaves:
    """The leaves of a nested table by dotted path; lists of tables are counted."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(data, Mapping):
        items = data.items()
    elif isinstance(data, list) and data and all(isinstance(item, Mapping) for item in data):
        items = enumerate(data)
    found = {
        path: leaf
        for key, value in items
        for path, leaf in _leaves(value, f"{prefix}{key}.").items()
    }
    return found or {prefix.removesuffix("."): data}


def _product(members: Sequence[Leaves]) -> Table:
    """Members as all combinations of some values, of which as few as possible go together."""
    first = members[0]
    varied = {
        path: list({_key(one[path]): one[path] for one in members}.values())
        for path in first
        if any(one[path] != first[path] for one in members)
    }
    for size in range(len(varied) + 1):
        for tied in combinations(varied, 0 if size < 2 else size):
            rows = {_key(row): row for row in ({p: one[p] for p in tied} for one in members)}
            free = {path: values for path, values in varied.items() if path not in tied}
            if len(rows) * math.prod(map(len, free.values())) == len(members):
                return first, free, list(rows.values()) if tied else []
    raise AssertionError("all members together are one row each")


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _plain(leaves: Leaves, axes: Axes, rows: list[Leaves]) -> dict[str, Any]:
    vary = {path: _values(values) for path, values in axes.items()}
    short: dict[str, Any] = {"problem": _nested(leaves)}
    return short | ({"vary": vary} if vary else {}) | ({"each": rows} if rows else {})


def _nested(leaves: Leaves) -> Any:
    """Inverse of `_leaves`."""
    if "" in leaves:
        return leaves[""]
    heads: dict[str, Leaves] = defaultdict(dict)
    for path, value in leaves.items():
        head, _, rest = path.partition(".")
        heads[head][rest] = value
    if all(head.isdigit() for head in heads):
        return [_nested(part) for part in heads.values()]
    return {head: _nested(part) for head, part in heads.items()}


def _without_defaults(part: Any) -> Any:
    """Data of a problem or a part of it, without the fields at their default."""
    if isinstance(part, tuple):
        return [_without_defaults(item) for item in part]
    if not isinstance(part, Problem | Step | Ridge | Init):
        return to_data(part)
    given = {}
    for item in fields(part):
        factory = item.default_factory
        default = item.default if factory is MISSING else factory()
        if getattr(part, item.name) != default:
            given[item.name] = _without_defaults(getattr(part, item.name))
    return given


#: Evenly spaced values are written out up to this many.
_FEW = 12


def _values(values: Sequence[Any]) -> Any:
    if not all(isinstance(value, float) for value in values):
        return list(values)
    values = sorted(values)
    if len(values) <= _FEW:
        return values
    first, last, count = values[0], values[-1], len(values)
    for space in (np.linspace, np.geomspace) if first * last > 0 else (np.linspace,):
        if np.allclose(space(first, last, count), values, rtol=1e-12, atol=0.0):
            log = {"log": True} if space is np.geomspace else {}
            return {"from": first, "to": last, "count": count, **log}
    return values


_LIST = re.compile(r"\[\n((?: +[^\[\]\n]+,\n)+) *\]")


def short_toml(data: Mapping[str, Any]) -> str:
    """TOML with lists of numbers and names in one line."""
    return _LIST.sub(_in_one_line, tomli_w.dumps(data, multiline_strings=True))


def _in_one_line(match: re.Match[str]) -> str:
    items = re.findall(r" +(.*),", match[1])
    return f"[{', '.join(items)}]" if len(items) == 1 or "{" not in match[1] else match[0]
