"""States of the page, read from ``states.toml``: its start, published figures, the guided tour."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from giantsteps.problem import Problem


@dataclass(frozen=True, kw_only=True)
class State:
    """A state of the page."""

    title: str
    problem: Problem  # the setting
    view: dict[str, Any]  # what the page shows: the field that varies (``x``), the spectrum, d
    #: In the gallery: one sentence, and the name of the figure in ``giantsteps figure``.
    sentence: str = ""
    figure: str = ""
    #: In the tour: what to learn here, formulas between dollar signs, and where to look.
    text: str = ""
    panel: str = ""

    def to_data(self) -> dict[str, Any]:
        return {**vars(self), "problem": self.problem.to_data()}


def _state(problem: Mapping[str, Any] | None = None, **fields: Any) -> State:
    changes = fields.pop("changes", {})
    return State(
        problem=Problem.from_data(problem) if problem else DEFAULT.replace(changes), **fields
    )


_TEXT = files(__package__).joinpath("states.toml").read_text(encoding="utf-8")
_READ = tomllib.loads(_TEXT)
#: Where the explorer starts.
DEFAULT = Problem.from_data(_READ["problem"])
#: In the order of the page, and of the tour.
GALLERY = tuple(_state(**entry) for entry in _READ["gallery"])
TOUR = tuple(_state(**entry) for entry in _READ["tour"])
