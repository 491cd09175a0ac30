"""Answers of the cells of a grid, and answers whose costly parts are simulated when read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from giantsteps.answers import Answer, Risk, Spectrum
from giantsteps.problem import Grid, Problem

_A = TypeVar("_A", bound=Answer)


class SimulatedRisk(Risk):
    """A `Risk` whose ``initial``, the risk before the steps, is simulated when first read."""

    @cached_property
    def initial(self) -> Risk | None:
        return self.__dict__.pop("_initial")()


class SimulatedSpectrum(Spectrum):
    """A `Spectrum` whose ``bulk`` and ``initial`` are computed when first read."""

    @cached_property
    def bulk(self) -> Any:
        return self.__dict__.pop("_bulk")()

    @cached_property
    def initial(self) -> Spectrum | None:
        return self.__dict__.pop("_initial")()


def lazily(kind: type[_A], fields: dict[str, Any], **parts: Callable[[], Any]) -> _A:
    """An answer with ``fields``, and with ``parts`` that are called when their name is read.

    The cached properties above only act where the instance itself holds no value, so an answer
    that is copied, indexed or unpickled with its parts is an ordinary one.
    """
    values: dict[str, Any] = fields | dict.fromkeys(parts)
    answer = kind(**values)
    for name, part in parts.items():
        del answer.__dict__[name]
        answer.__dict__[f"_{name}"] = part
    return answer


def of_cells(kind: type[_A], problem: Problem | Grid, ask: Callable[[Problem], _A]) -> _A:
    """The answer of a problem, or the stacked answers of the cells of a grid."""
    if isinstance(problem, Grid):
        return kind.stack(problem, [ask(cell) for cell in problem])
    return ask(problem)
