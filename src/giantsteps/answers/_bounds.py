"""Floors and ceilings of the test error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from giantsteps.answers._answer import Answer
from giantsteps.answers._leaves import Index, Leaf

__all__ = ["Bounds"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Bounds(Answer):
    """Named bounds of the test error R: floor ≤ R, R ≤ ceiling.

    ``bounds["linear"]`` is the bound of that name, floor or ceiling; any other index is a cell
    of the grid.

    Attributes
    ----------
    floors, ceilings : mapping of str to float or ndarray
        What no readout of a class can beat, and what the best one reaches; names are disjoint.
    arguments : mapping of str to float or ndarray
        Where an infimum is attained, by the name of its bound, such as κ* for τ*.

    Notes
    -----
    theory §4.
    """

    floors: Mapping[str, Leaf] = field(default_factory=dict)
    ceilings: Mapping[str, Leaf] = field(default_factory=dict)
    arguments: Mapping[str, Leaf] = field(default_factory=dict)

    _mappings: ClassVar[tuple[str, ...]] = ("floors", "ceilings", "arguments")

    def __post_init__(self) -> None:
        super().__post_init__()
        both = sorted(self.floors.keys() & self.ceilings.keys())
        if both:
            raise ValueError(f"{both} are named both as floors and as ceilings")

    def __getitem__(self, index: Index) -> Any:
        if isinstance(index, str):
            return (dict(self.floors) | dict(self.ceilings))[index]
        return super().__getitem__(index)
