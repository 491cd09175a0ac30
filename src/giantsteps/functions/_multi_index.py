"""Teachers that depend on several directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import array_namespace

from ..errors import InvalidProblem
from ._expression import format_tree, parse_atom
from ._program import Program
from ._tree import Node

if TYPE_CHECKING:
    from ..gaussian import Rule

_MOST = 4
_LANGUAGE = "an expression in x0, x1, … (such as 'tanh(x0) + 0.5*x0*x1'), or a callable"


@dataclass(frozen=True, init=False, repr=False)
class MultiIndex:
    """f*(x) = g(⟨x, β₁⟩, …, ⟨x, β_r⟩) with r orthonormal directions (theory §0, §7).

    Parameters
    ----------
    function : str or callable
        g: an expression in ``x0``, ``x1``, … with the functions of the one-dimensional ones, or a
        callable that takes an array (..., r) and returns (...). A callable cannot be saved.
    rank : int
        r, from 2 to 4; a teacher of rank one is a link function.
    centered : bool
        Subtract E g(z), z ~ N(0, I): the theory needs E f* = 0.

    Notes
    -----
    Expectations are by a product rule that is split at zero on each axis; kinks elsewhere cost
    accuracy.

    References
    ----------
    theory §0, §7.

    Examples
    --------
    >>> teacher = MultiIndex("tanh(x0) + x0*x1", rank=2)
    >>> teacher(np.array([[0.0, 3.0], [1.0, 1.0]])).round(4)
    array([0.    , 1.7616])
    >>> teacher.to_data()
    {'expression': 'tanh(x0) + x0*x1', 'rank': 2}
    """

    function: str | Callable[[Any], Any]
    rank: int
    centered: bool

    def __init__(
        self, function: str | Callable[[Any], Any], rank: int, centered: bool = False
    ) -> None:
        if isinstance(rank, bool) or not isinstance(rank, int) or not 2 <= rank <= _MOST:
            raise InvalidProblem("teacher.rank", rank, f"an integer from 2 to {_MOST}")
        if not isinstance(centered, bool):
            raise InvalidProblem("teacher.centered", centered, "true or false")
        if isinstance(function, str):
            function = format_tree(_parse(function, rank))
        elif not callable(function):
            raise InvalidProblem("teacher", function, _LANGUAGE)
        for name, value in (("function", function), ("rank", rank), ("centered", centered)):
            object.__setattr__(self, name, value)
        self._check()

    def __repr__(self) -> str:
        named = self.function if isinstance(self.function, str) else "a callable"
        return f"MultiIndex({named!r}, rank={self.rank}{', centered=True' * self.centered})"

    def _check(self) -> None:
        allowed = f"a function of arrays u of shape (…, {self.rank}), such as u[..., 0] * u[..., 1]"
        try:
            with np.errstate(all="ignore"):
                values = np.asarray(self._plain(self.rule.nodes), dtype=float)
        except Exception as error:
            told = f"{allowed} ({type(error).__name__}: {error})"
            raise InvalidProblem("teacher", self, told) from error
        if values.shape != self.rule.weights.shape:
            raise InvalidProblem("teacher", self, allowed)
        if not np.all(np.isfinite(values)):
            raise InvalidProblem(
                "teacher", self, "a function that is finite wherever the Gaussian has weight"
            )
        if np.ptp(values) == 0:
            raise InvalidProblem("teacher", self, "a function that is not constant")

    @property
    def rule(self) -> Rule:
        """A quadrature of the coordinates, N(0, I_r), split at zero for r ≤ 3."""
        from ..gaussian import coordinate_rule

        return coordinate_rule(self.rank, reach=8.5 if self.rank <= 3 else None)

    @cached_property
    def _mean(self) -> float:
        return float(self.rule.mean(np.asarray(self._plain(self.rule.nodes), dtype=float)))

    @cached_property
    def _program(self) -> Program:
        assert isinstance(self.function, str)
        tree = _parse(self.function, self.rank)
        return Program([tree], _refuse_centered, [f"x{i}" for i in range(self.rank)])

    def _plain(self, u: Any) -> Any:
        """g(u) before it is centred."""
        if not isinstance(self.function, str):
            return self.function(u)
        columns = (u[..., i] for i in range(self.rank))
        return self._program(array_namespace(u), *columns)[0]

    def __call__(self, u: Any) -> Any:
        value = self._plain(coordinates(u, self.rank))
        return value - self._mean if self.centered else value

    def to_data(self) -> dict[str, Any]:
        """The teacher as TOML or JSON data: ``{"expression": "...", "rank": 2}``."""
        if not isinstance(self.function, str):
            raise InvalidProblem("teacher", self, "an expression in x0, x1, … to be saved")
        data: dict[str, Any] = {"expression": self.function, "rank": self.rank}
        return data | {"centered": True} if self.centered else data

    @classmethod
    def from_data(cls, data: Mapping[str, Any], field: str = "teacher") -> MultiIndex:
        """The teacher that `to_data` wrote."""
        if not set(data) <= {"expression", "rank", "centered"} or "expression" not in data:
            raise InvalidProblem(
                field, dict(data), 'a table with "expression", "rank" and "centered"'
            )
        return cls(data["expression"], data["rank"], data.get("centered", False))


def _refuse_centered(tree: Node) -> float:
    raise InvalidProblem(
        "teacher", format_tree(tree), "an expression without centered(...): use centered=True"
    )


def _parse(text: str, rank: int) -> Node:
    try:
        return parse_atom(text, tuple(f"x{i}" for i in range(rank)))
    except InvalidProblem as error:
        reason = error.allowed.partition("; ")[2]
        raise InvalidProblem("teacher", text, f"{_LANGUAGE}; {reason}") from None


def coordinates(u: Any, rank: int) -> Any:
    """Projections on the teacher's directions, an array of shape (..., rank); lists become one."""
    array = u if hasattr(u, "shape") else np.asarray(u, dtype=float)
    if not array.shape or array.shape[-1] != rank:
        raise InvalidProblem("u", tuple(array.shape), f"an array of shape (..., {rank})")
    return array
