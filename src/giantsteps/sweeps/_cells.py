"""The cells of a sweep: their addresses, and the units in which they are worked off.

A cell is one question about one problem. Its address is the hash of all that determines its
result: source, question and its version, problem, d, seed, dtype and options. Addresses are made
from the data of the problems, without building them: ten thousand take a fraction of a second.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import Source
from giantsteps.problem import Grid, Problem
from giantsteps.problem._serialize import content_hash, to_data
from giantsteps.questions import QUESTIONS
from giantsteps.sweeps._values import Cell

if TYPE_CHECKING:
    from giantsteps.sweeps._sweep import Sweep

__all__ = [
    "Layer",
    "Unit",
    "blocks",
    "cell_address",
    "is_below",
    "layers",
    "plan",
    "problem_hashes",
]

#: Indices along every axis of a grid, whose product is a block of it.
Place: TypeAlias = tuple[tuple[int, ...], ...]
#: Most cells of theory that are solved in one batch, and most readouts that share a run.
BATCH, READOUTS = 64, 1024
#: Options of the simulation that say where and how, not what: results agree to rounding.
WHERE = ("device", "memory")


@dataclass(frozen=True, eq=False)
class Layer:
    """All cells of one source and question.

    Attributes
    ----------
    source, question
        What is asked of whom.
    untrained : bool
        Whether of the problems without their steps.
    options : dict
        Keywords for the question.
    addresses : ndarray of str, object
        Shape of the grid, then d (unless in the limit), then the seeds (simulation). An address
        may occur more than once: problems that differ only in what the question does not see are
        one cell.
    """

    sweep: Sweep
    source: Source
    question: str
    untrained: bool
    options: Mapping[str, Any]
    addresses: NDArray[np.object_]
    _targets: dict[Place, Problem | Grid] = field(default_factory=dict, repr=False)
    _problems: dict[Place, list[tuple[str, str]]] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The question, and whether before the steps."""
        return f"{self.question}.initial" if self.untrained else self.question

    @property
    def unseen(self) -> dict[str, Any]:
        """Paths that the question does not see, and what stands there instead."""
        return _unseen(self.question, self.untrained)

    @cached_property
    def distinct(self) -> frozenset[str]:
        """Every address once."""
        return frozenset(self.addresses.ravel())

    def target(self, place: Place) -> Problem | Grid:
        """What is asked at a place: one problem, or the grid of a block."""
        if place not in self._targets:
            self._targets[place] = self._target(place)
        return self._targets[place]

    def problems(self, place: Place) -> list[tuple[str, str]]:
        """Hash and JSON of the problems at a place, row-major."""
        if place not in self._problems:
            target = self._target(place)  # another one: the first stays small, to be sent
            asked = [target] if isinstance(target, Problem) else list(target)
            self._problems[place] = [
                (problem.content_hash, json.dumps(problem.to_data())) for problem in asked
            ]
        return self._problems[place]

    def _target(self, place: Place) -> Problem | Grid:
        fixed: dict[str, Any] = {}
        varied: dict[str, list[Any]] = {}
        for (path, values), chosen in zip(self.sweep.grid.axes.items(), place, strict=True):
            if len(chosen) == 1:
                fixed[path] = values[chosen[0]]
            else:
                varied[path] = [values[number] for number in chosen]
        problem = self.sweep.grid.problem.replace(fixed).replace(self.unseen)
        return Grid(problem, varied) if varied else problem


@dataclass(frozen=True, eq=False)
class Unit:
    """Cells that are worked off in one go, and saved in one transaction.

    Attributes
    ----------
    layer : Layer
    place : Place
        Which block of the grid.
    d, seed : int or None
    addresses : tuple of str
        Of the cells of the block, row-major.
    """

    layer: Layer
    place: Place
    d: int | None
    seed: int | None
    addresses: tuple[str, ...]

    @property
    def target(self) -> Problem | Grid:
        """What is asked: one problem, or the grid of the block."""
        return self.layer.target(self.place)

    def cells(self) -> list[Cell]:
        """The cells of the block, row-major."""
        layer = self.layer
        options = json.dumps(_identity(layer.source, layer.options), sort_keys=True)
        number = QUESTIONS[layer.question].version(layer.source)
        return [
            Cell(
                address=address,
                source=layer.source,
                question=layer.question,
                version=number,
                d=self.d,
                seed=self.seed,
                problem=problem,
                content=content,
                options=options,
            )
            for address, (problem, content) in zip(
                self.addresses, layer.problems(self.place), strict=True
            )
        ]


# Addresses ------------------------------------------------------------------------------------


def layers(sweep: Sweep) -> list[Layer]:
    """The layers of a sweep: theory first, then the network before the steps, then after them."""
    found = []
    for source in (known for known in get_args(Source) if known in sweep.sources):
        for question in sweep.questions:
            options = sweep.keywords(source, question)
            if options is None:  # no one answers it
                continue
            for untrained in (True, False):
                if untrained and not sweep.asks_before(source, question):
                    continue
                addresses = _addresses(sweep, source, question, untrained, options)
                found.append(Layer(sweep, source, question, untrained, options, addresses))
    return found


def _addresses(
    sweep: Sweep, source: Source, question: str, untrained: bool, options: Mapping[str, Any]
) -> NDArray[np.object_]:
    hashes = problem_hashes(sweep.grid, _unseen(question, untrained))
    sizes: Sequence[int | None] = (None,) if source == "limit" else sweep.d
    seeds: Sequence[int | None] = sweep.seeds if source == "simulation" else (None,)
    addresses = np.empty((*hashes.shape, len(sizes), len(seeds)), dtype=object)
    for *index, size, seed in np.ndindex(addresses.shape):
        problem = hashes[tuple(index)]
        addresses[(*index, size, seed)] = cell_address(
            source, question, options, problem, sizes[size], seeds[seed]
        )
    if source != "simulation":
        addresses = addresses[..., 0]
    return addresses[..., 0] if source == "limit" else addresses


def cell_address(
    source: Source,
    question: str,
    options: Mapping[str, Any],
    problem: str,
    d: int | None,
    seed: int | None,
) -> str:
    """The address of a cell: the hash of all that determines its result."""
    return content_hash(
        "cell",
        {
            "source": source,
            "question": question,
            "version": QUESTIONS[question].version(source),
            "options": _identity(source, options),
            "problem": problem,
            "d": d,
            "seed": seed,
        },
    )


def _identity(source: Source, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that change a result; the precision is one of them."""
    if source != "simulation":
        return dict(options)
    where = () if options.get("rng") == "device" else WHERE
    return {name: value for name, value in options.items() if name not in where}


def _unseen(question: str, untrained: bool) -> dict[str, Any]:
    return dict(QUESTIONS[question].unseen) | ({"steps": ()} if untrained else {})


def problem_hashes(grid: Grid, unseen: Mapping[str, Any]) -> NDArray[np.object_]:
    """``content_hash`` of every problem of a grid, with what is ``unseen`` replaced."""
    hidden = [is_below(path, unseen) for path in grid.axes]
    shape = tuple(1 if same else size for same, size in zip(hidden, grid.shape))
    hashes = np.empty(shape, dtype=object)
    if any(step.batch == "previous" for step in grid.problem.steps):  # one field moves others
        for index in np.ndindex(shape):
            problem: Problem = grid.problems()[index]  # type: ignore[assignment]
            hashes[index] = problem.replace(unseen).content_hash
    else:
        data = copy.deepcopy(grid.problem.replace(unseen).to_data())
        axes = [(path.split("."), to_data(values)) for path, values in grid.axes.items()]
        for index in np.ndindex(shape):
            for (path, values), number, same in zip(axes, index, hidden, strict=True):
                if not same:
                    _put(data, path, values[number])
            hashes[index] = content_hash("problem", data)
    return np.broadcast_to(hashes, grid.shape)


def is_below(path: str, others: Iterable[str]) -> bool:
    """Whether a path is one of others, or inside of one."""
    return any(path == other or path.startswith(f"{other}.") for other in others)


def _put(data: Any, path: Sequence[str], value: Any) -> None:
    *parents, leaf = path
    for name in parents:
        data = data[int(name)] if isinstance(data, list) else data[name]
    if value is None:
        data.pop(leaf, None)
    elif isinstance(data, list):
        data[int(leaf)] = value
    else:
        data[leaf] = value


# Units ----------------------------------------------------------------------------------------


def plan(sweep: Sweep, known: Container[str]) -> list[Unit]:
    """Units for all cells that are not ``known``, each cell once, quick ones first.

    Theory is solved in batches; a cell's answer does not depend on its batch. In a simulation
    the readouts of one network share its run if the sweep says so.
    """
    units: list[Unit] = []
    seen: set[str] = set()
    for layer in sweep.layers:
        ndim = sweep.grid.ndim
        sizes: Sequence[int | None] = (None,) if layer.addresses.ndim == ndim else sweep.d
        seeds: Sequence[int | None] = (None,) if layer.addresses.ndim < ndim + 2 else sweep.seeds
        full = layer.addresses.reshape(*sweep.grid.shape, len(sizes), len(seeds))
        limit = READOUTS if layer.source == "simulation" else BATCH
        for number, d in enumerate(sizes):
            for other, seed in enumerate(seeds):
                here = full[..., number, other]
                for place in _places(_fresh(here, known, seen), _together(layer), limit):
                    members = here[np.ix_(*place)] if place else here
                    units.append(Unit(layer, place, d, seed, tuple(members.ravel())))
    return units


def _fresh(
    addresses: NDArray[np.object_], known: Container[str], seen: set[str]
) -> NDArray[np.bool_]:
    """Where an address occurs for the first time; all of them are seen afterwards."""
    mask = np.zeros(addresses.shape, dtype=bool)
    for index, address in np.ndenumerate(addresses):
        if address not in known and address not in seen:
            seen.add(address)
            mask[index] = True
    return mask


def _together(layer: Layer) -> list[int]:
    """The axes of the grid along which cells are asked at once."""
    paths = layer.sweep.grid.dims
    if not QUESTIONS[layer.question].together:
        return []
    if layer.source != "simulation":
        return list(range(len(paths)))
    readouts = [axis for axis, path in enumerate(paths) if is_below(path, ["readout"])]
    return readouts if layer.sweep.share else []


def _places(mask: NDArray[np.bool_], together: Sequence[int], limit: int) -> Iterator[Place]:
    """Blocks that cover the true entries: single indices but along the axes ``together``."""
    apart = [axis for axis in range(mask.ndim) if axis not in together]
    moved = mask.transpose(*apart, *together)
    for index in np.ndindex(moved.shape[: len(apart)]):
        for block in blocks(moved[index], limit):
            chosen = dict(zip([*apart, *together], [*((number,) for number in index), *block]))
            yield tuple(chosen[axis] for axis in range(mask.ndim))


def blocks(mask: NDArray[np.bool_], limit: int) -> Iterator[Place]:
    """Products of indices that cover the true entries, each once, of at most ``limit`` entries.

    What is not a product is cut in half along its longest axis, as often as needed.
    """
    if not mask.any():
        return
    axes = range(mask.ndim)
    place = tuple(
        np.flatnonzero(mask.any(axis=tuple(other for other in axes if other != axis)))
        for axis in axes
    )
    box = mask[np.ix_(*place)] if place else mask
    if box.all() and box.size <= limit:
        yield tuple(tuple(map(int, numbers)) for numbers in place)
        return
    axis = int(np.argmax(box.shape))
    for half in np.array_split(np.arange(box.shape[axis]), 2):
        for inner in blocks(box.take(half, axis=axis), limit):
            steps = [half[list(n)] if a == axis else n for a, n in enumerate(inner)]
            yield tuple(
                tuple(int(number) for number in numbers[list(step)])
                for numbers, step in zip(place, steps)
            )
