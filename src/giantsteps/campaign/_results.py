"""Results of cells: as arrays over grid, sizes and seeds, and as answers again."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from giantsteps import answers
from giantsteps.answers import Answer
from giantsteps.campaign._cells import Cells
from giantsteps.campaign._store import Store
from giantsteps.types import FloatArray

#: Name → (names of the axes, numbers).
Table: TypeAlias = dict[str, tuple[tuple[str, ...], FloatArray]]


def read_table(cells: Cells, store: Store, *, bulk: bool = False) -> Table:
    """Every number and array of the cells that are done, NaN elsewhere.

    The axes are those of the cells, then those of the answer. ``bulk``: with all simulated
    eigenvalues and singular values.
    """
    places = cells.addresses.ravel()
    table: Table = {}
    numbers = store.numbers(cells.distinct)
    here = [numbers.get(address, {}) for address in places]
    for name in dict.fromkeys(name for cell in here for name in cell):
        column = np.array([cell.get(name, np.nan) for cell in here])
        table[name] = (cells.dims, column.reshape(cells.shape))
    for name in store.array_names(cells.distinct):
        if name == "support" or (name == "bulk" and not bulk):
            continue
        arrays = store.arrays(cells.distinct, name)
        found = [arrays.get(address) for address in places]
        own = next((cell[0] for cell in found if cell is not None), None)
        if own is not None:
            stacked = _stack([None if cell is None else cell[1] for cell in found], len(own))
            table[name] = (cells.dims + own, stacked.reshape(cells.shape + stacked.shape[1:]))
    return table


def _stack(cells: list[FloatArray | None], ndim: int) -> FloatArray:
    """Arrays of several sizes as one, filled up with NaN."""
    shapes = [cell.shape for cell in cells if cell is not None]
    largest = tuple(max(shape[axis] for shape in shapes) for axis in range(ndim))
    full = np.full((len(cells), *largest), np.nan)
    for number, cell in enumerate(cells):
        if cell is not None:
            full[number][tuple(slice(size) for size in cell.shape)] = cell
    return full


def read_answers(cells: Cells, store: Store, *, bulk: bool = False) -> list[list[Answer]]:
    """Cells as answers again: one list per size, one answer over the grid per seed.

    ``initial`` is there if the cells before the steps belong to these.
    """
    table = read_table(cells, store, bulk=bulk)
    if cells.initial is not None:
        before = read_table(cells.initial, store)
        table |= {f"initial.{name}": variable for name, variable in before.items()}
    asked, grid = cells.question, cells.grid
    kind: type[Answer] = getattr(answers, asked.answer)
    names = ("along", "matrix")
    defaults = {name: option.default for name, option in asked.options.items()}
    facts = {"matrix": asked.name.replace("_", " "), **defaults, **cells.options}
    told = {name: facts[name] for name in names if name in kind.__dataclass_fields__}
    target = grid if grid.dims else grid.problem
    source = {"source": cells.source, "exact": cells.source == "simulation"}
    return [
        [
            kind.from_variables(target, d, _at(table, cells, size, seed), **source, **told)
            for seed in range(len(cells.seeds))
        ]
        for size, d in enumerate(cells.sizes)
    ]


def _at(table: Table, cells: Cells, size: int, seed: int) -> dict[str, FloatArray]:
    """The numbers of one size and seed."""
    places = {"d": size, "seed": seed}
    return {
        name: numbers[tuple(places.get(dim, slice(None)) for dim in dims)]
        for name, (dims, numbers) in table.items()
    }
