"""Dotted paths: the one way to name a field of a problem, such as ``steps.0.rate``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from giantsteps.errors import InvalidProblem, suggest
from giantsteps.problem._checks import under
from giantsteps.problem._part import Part

if TYPE_CHECKING:
    from giantsteps.problem._problem import Problem


def walk(problem: Problem) -> dict[str, Any]:
    """Return every path of ``problem`` with what it names, parts before their fields."""
    return dict(_walk(problem, ""))


def _walk(value: object, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, child in _children(value):
        yield prefix + name, child
        yield from _walk(child, f"{prefix}{name}.")


def _children(value: object) -> list[tuple[str, Any]]:
    if isinstance(value, Part):
        return list(value.named().items())
    if isinstance(value, tuple) and any(isinstance(item, Part) for item in value):
        return [(str(index), item) for index, item in enumerate(value)]
    return []


def get(problem: Problem, path: str) -> Any:
    check_paths(problem, [path])
    return walk(problem)[path]


def check_paths(problem: Problem, paths: Iterable[str]) -> None:
    """Refuse unknown paths, and pairs of paths one of which contains the other."""
    seen: list[str] = []
    for path in paths:
        if not isinstance(path, str) or not _exists(problem, path):
            hint = suggest(path, walk(problem))
            if isinstance(path, str) and path.startswith("readout.") and problem.readout is None:
                hint = "set after the readout: the problem has none, set readout=Ridge(...) first"
            if path == "d":
                hint = "left out: the dimension is no field of the problem, pass d to the question"
            raise InvalidProblem("path", path, hint)
        for other in seen:
            if path.startswith(f"{other}.") or other.startswith(f"{path}."):
                raise InvalidProblem("path", path, f'given alone: "{other}" is given too')
        seen.append(path)


def _exists(problem: Problem, path: str) -> bool:
    here: Any = problem
    for name in path.split("."):
        children = dict(_children(here))
        if name not in children:
            return False
        here = children[name]
    return True


def replace(problem: Problem, changes: Mapping[str, Any]) -> Problem:
    """Return ``problem`` with the fields at some paths replaced, all at once.

    What reuses the batch of the step before it follows when the samples of that step change.
    """
    check_paths(problem, changes)
    return _replaced(problem, changes)


def combinations(problem: Problem, axes: Mapping[str, Iterable[Any]]) -> Iterator[Problem]:
    """Yield ``problem`` with every combination of values at known paths, the last path fastest.

    Values are hashable, and fields of the problem that several combinations share are built once.
    """
    known: dict[Any, Any] = {}
    for values in itertools.product(*axes.values()):
        yield _replaced(problem, dict(zip(axes, values, strict=True)), known)


def _replaced(
    problem: Problem, changes: Mapping[str, Any], known: dict[Any, Any] | None = None
) -> Problem:
    complete = dict(changes)
    for index, step in enumerate(problem.steps):
        own, previous = f"steps.{index}.samples", f"steps.{index - 1}.samples"
        replaced = {"steps", f"steps.{index}", f"steps.{index}.batch", own} & complete.keys()
        if step.batch == "previous" and previous in complete and not replaced:
            complete[own] = complete[previous]
    last = f"steps.{len(problem.steps) - 1}.samples"
    replaced = {"readout", "readout.batch", "readout.samples"} & complete.keys()
    if problem.readout is not None and problem.readout.batch == "previous" and not replaced:
        complete |= {"readout.samples": complete[last]} if last in complete else {}
    return _rebuild(problem, complete, "", known)


def _rebuild(
    value: Any, changes: Mapping[str, Any], prefix: str, known: dict[Any, Any] | None = None
) -> Any:
    if not changes:
        return value
    if "" in changes:
        return changes[""]
    below: dict[str, dict[str, Any]] = {}
    for path, change in changes.items():
        name, _, rest = path.partition(".")
        below.setdefault(name, {})[rest] = change
    children = dict(_children(value))
    for name, some in below.items():
        key = None if known is None else (name, *some.items())
        if known is None or key not in known:
            children[name] = _rebuild(children[name], some, f"{prefix}{name}.")
        if known is not None:
            children[name] = known.setdefault(key, children[name])
    if isinstance(value, tuple):
        return tuple(children.values())
    with under(prefix.rstrip(".")):
        return type(value)(**children)
