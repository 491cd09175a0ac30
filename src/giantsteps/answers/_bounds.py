"""Floors and ceilings of the test error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from giantsteps.answers._answer import Answer
from giantsteps.answers._leaves import Index, Leaf


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Bounds(Answer):
    """Named bounds of the test error R: floor ≤ R, R ≤ ceiling.

    ``bounds["linear"]`` is the bound or term of this name; any other index is a cell of the grid.

    Attributes
    ----------
    floors, ceilings : mapping of str to float or ndarray
        Lower and upper bounds of R; their names are disjoint.
    terms : mapping of str to float or ndarray
        Numbers that enter a bound, such as τ*.
    arguments : mapping of str to float or ndarray
        Where an infimum is attained, by the name of its bound or term, such as κ* for τ*.

    References
    ----------
    theory §4; ba2022, cui2024.
    """

    floors: Mapping[str, Leaf] = field(default_factory=dict)
    ceilings: Mapping[str, Leaf] = field(default_factory=dict)
    terms: Mapping[str, Leaf] = field(default_factory=dict)
    arguments: Mapping[str, Leaf] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [*self.floors, *self.ceilings, *self.terms]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{twice} are named twice among floors, ceilings and terms")

    def __getitem__(self, index: Index) -> Any:
        if isinstance(index, str):
            named = dict(self.floors) | dict(self.ceilings) | dict(self.terms)
            if index not in named:
                raise KeyError(f"no bound {index!r}; there are {', '.join(named)}")
            return named[index]
        return super().__getitem__(index)
