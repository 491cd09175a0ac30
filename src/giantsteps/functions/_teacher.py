"""Teachers: the noiseless label as a function of the projections on the teacher's directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ._function import Function
from ._multi_index import MultiIndex, coordinates
from ._specification import Spec, as_function


@runtime_checkable
class Teacher(Protocol):
    """f*(x) = g(⟨x, β₁⟩, ..., ⟨x, β_r⟩), β orthonormal; y = f*(x) + noise (theory §0).

    Attributes
    ----------
    rank : int
        r, the number of directions.
    """

    @property
    def rank(self) -> int:
        """r, the number of directions."""
        ...

    def __hash__(self) -> int: ...

    def __call__(self, u: Any) -> Any:
        """g(u): projections of shape (..., rank) in, labels of shape (...) out."""

    def to_data(self) -> Any:
        """The teacher as TOML or JSON data; `as_teacher` reads it back."""


@dataclass(frozen=True)
class SingleIndex:
    """f*(x) = σ*(⟨x, β*⟩): one direction (theory §0).

    Parameters
    ----------
    link : Function
        σ*, or anything that `as_function` reads.  It may jump.

    Attributes
    ----------
    rank : int
        One.
    """

    link: Function

    def __post_init__(self) -> None:
        object.__setattr__(self, "link", as_function(self.link, "teacher"))

    @property
    def rank(self) -> int:
        """One: a single direction."""
        return 1

    def __call__(self, u: Any) -> Any:
        return self.link(coordinates(u, self.rank)[..., 0])

    def to_data(self) -> str | dict[str, Any]:
        """The data of the link."""
        return self.link.to_data()


def as_teacher(spec: Spec | Teacher) -> Teacher:
    """The teacher that a specification means: a function means a link, and so rank one; a table
    with ``rank`` means a `MultiIndex`.

    * ``spec``: what `as_function` reads, a teacher, or ``{"expression": "x0*x1", "rank": 2}``.

    Raises
    ------
    InvalidProblem
        When the specification means no teacher.
    """
    if isinstance(spec, SingleIndex | MultiIndex):
        return spec
    if not isinstance(spec, Function) and isinstance(spec, Teacher):
        return spec
    if isinstance(spec, Mapping) and "rank" in spec:
        return MultiIndex.from_data(spec)
    return SingleIndex(as_function(spec, "teacher"))
