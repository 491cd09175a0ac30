"""Cells: one question about one problem, by theory or of one network, under an address.

The address of a cell is the hash of all that determines its result: source, question and its
version, problem, d, seed, precision and options. Addresses are made from the data of the
problems, without building them: ten thousand take a fraction of a second.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import Source
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid, Problem, content_hash, integer
from giantsteps.questions import Question

#: Indices along every axis of a grid, whose product is a block of it.
Place: TypeAlias = tuple[tuple[int, ...], ...]
#: Networks of one setting at most.
MOST_SEEDS = 1_000_000
#: Options of the simulation that say where and how, not what: results agree to rounding.
WHERE = ("device", "memory")


@dataclass(frozen=True)
class Cell:
    """One question about one problem, as it is stored: problem and options are JSON, d is None in
    the limit and the seed None for theory."""

    address: str
    source: str
    question: str
    version: int
    d: int | None
    seed: int | None
    problem: str
    content: str
    options: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells:
    """All cells of one question and source: every problem of a grid × every d × every seed."""

    grid: Grid  # the problems
    #: What is asked; of the registry, or one whose function returns a mapping of numbers.
    question: Question
    source: Source  # who answers
    #: Every d, ``(None,)`` in the limit; every seed, ``(None,)`` for theory.
    sizes: tuple[int | None, ...]
    seeds: tuple[int | None, ...]
    options: Mapping[str, Any]  # keywords for the question
    untrained: bool = False  # whether the problems are asked about without their steps
    #: Whether networks that differ in readout or seed alone may be computed together, which can
    #: change the last bits of a result.
    share: bool = True
    #: The same before the steps: computed in one go with these where both are missing.
    initial: Cells | None = None

    @classmethod
    def of_networks(
        cls,
        target: Problem | Grid,
        question: Question,
        sizes: Sequence[int],
        seeds: Sequence[int],
        options: Mapping[str, Any],
        *,
        initial: bool = False,
        share: bool = True,
    ) -> list[Cells]:
        """Cells of simulated networks; with ``initial``, those before their steps come first."""
        given = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in options.items()
            if value is not None
        }
        after = cls(
            grid=target if isinstance(target, Grid) else Grid(target, {}),
            question=question,
            source="simulation",
            sizes=tuple(sizes),
            seeds=tuple(seeds),
            options={"dtype": "float64", **given} if question.answer else given,
            share=share,
        )
        if not initial:
            return [after]
        before = replace(after, untrained=True)
        return [before, replace(after, initial=before)]

    @property
    def name(self) -> str:
        """The question, and whether it is asked before the steps."""
        return f"{self.question.name}.initial" if self.untrained else self.question.name

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the axes of a result: paths of the grid, then d and the seed where they vary."""
        size = ("d",) if self.sizes != (None,) else ()
        seed = ("seed",) if self.seeds != (None,) else ()
        return (*self.grid.dims, *size, *seed)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of those axes."""
        lengths = {"d": len(self.sizes), "seed": len(self.seeds)}
        lengths |= dict(zip(self.grid.dims, self.grid.shape))
        return tuple(lengths[dim] for dim in self.dims)

    @property
    def unseen(self) -> dict[str, Any]:
        """Paths that play no part in the question, and what stands there instead."""
        return dict(self.question.unseen) | ({"steps": ()} if self.untrained else {})

    @cached_property
    def addresses(self) -> NDArray[np.object_]:
        """Of shape (grid, d, seeds).

        An address may occur more than once: problems that differ only in what the question does
        not see are one cell.
        """
        hashes = problem_hashes(self.grid, self.unseen)
        found = np.empty((*hashes.shape, len(self.sizes), len(self.seeds)), dtype=object)
        for *index, size, seed in np.ndindex(found.shape):
            problem, d = hashes[tuple(index)], self.sizes[size]
            found[(*index, size, seed)] = self.address(problem, d, self.seeds[seed])
        return found

    @cached_property
    def distinct(self) -> frozenset[str]:
        """Every address once."""
        return frozenset(self.addresses.ravel())

    def address(self, problem: str, d: int | None, seed: int | None) -> str:
        """The address of the problem with this hash: the hash of all that determines a result."""
        return content_hash(
            "cell",
            {
                "source": self.source,
                "question": self.question.name,
                "version": self.question.version(self.source),
                "options": self._identity,
                "problem": problem,
                "d": d,
                "seed": seed,
            },
        )

    @cached_property
    def _identity(self) -> dict[str, Any]:
        """The options that change a result; the precision is one of them."""
        where = WHERE if self.source == "simulation" else ()
        return {name: _plain(value) for name, value in self.options.items() if name not in where}

    def target(self, place: Place) -> Problem | Grid:
        """What is asked at a place: one problem, or the grid of a block."""
        fixed: dict[str, Any] = {}
        varied: dict[str, list[Any]] = {}
        for (path, values), chosen in zip(self.grid.axes.items(), place, strict=True):
            if len(chosen) == 1:
                fixed[path] = values[chosen[0]]
            else:
                varied[path] = [values[number] for number in chosen]
        problem = self.grid.problem.replace(fixed).replace(self.unseen)
        return Grid(problem, varied) if varied else problem

    def rows(
        self, place: Place, d: int | None, seeds: Iterable[int | None], addresses: Sequence[str]
    ) -> list[Cell]:
        """Cells as they are stored: of every seed the block at a place, row-major."""
        target = self.target(place)
        asked = [target] if isinstance(target, Problem) else target
        problems = [(problem.content_hash, json.dumps(problem.to_data())) for problem in asked]
        options = json.dumps(self._identity, sort_keys=True)
        places = [(seed, *problem) for seed in seeds for problem in problems]
        return [
            Cell(
                address=address,
                source=self.source,
                question=self.question.name,
                version=self.question.version(self.source),
                d=d,
                seed=seed,
                problem=problem,
                content=content,
                options=options,
            )
            for address, (seed, problem, content) in zip(addresses, places, strict=True)
        ]


def integers(given: Any, name: str, lower: int, count: bool = False) -> tuple[int, ...]:
    """Sizes or seeds: one integer, or several distinct ones; a ``count`` stands for 0, 1, …"""
    allowed = f"an integer >= {max(lower, 1)}, or a list of distinct integers >= {lower}"
    if isinstance(given, Iterable) and not isinstance(given, str | Mapping):
        values = tuple(integer(value, name, allowed, lower=lower) for value in given)
    else:
        value = integer(given, name, allowed)
        values = tuple(range(min(value, MOST_SEEDS + 1))) if count else (value,)
    if len(values) > MOST_SEEDS:
        raise InvalidProblem(name, given, f"at most {MOST_SEEDS}")
    if not values or len(set(values)) < len(values):
        raise InvalidProblem(name, given, allowed)
    return values


def _plain(value: Any) -> Any:
    """Plain data as it is; an object, which no file can hold, by its identity in this process."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return f"{type(value).__name__} {id(value)}"
    return value


def problem_hashes(grid: Grid, unseen: Mapping[str, Any]) -> NDArray[np.object_]:
    """``content_hash`` of every problem of a grid, with what is ``unseen`` replaced."""
    seen = {path: v for path, v in grid.axes.items() if not is_below(path, unseen)}
    problems = Grid(grid.problem.replace(unseen), seen)
    hashes = np.array([problem.content_hash for problem in problems], dtype=object)
    shape = tuple(size if path in seen else 1 for path, size in zip(grid.axes, grid.shape))
    return np.broadcast_to(hashes.reshape(shape), grid.shape)


def is_below(path: str, others: Iterable[str]) -> bool:
    """Whether a path is one of others, or inside of one."""
    return any(path == other or path.startswith(f"{other}.") for other in others)
