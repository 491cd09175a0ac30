"""Results of a sweep as one tidy data set: per seed, and as means beside theory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import Source, require
from giantsteps.errors import InvalidProblem, StoreError
from giantsteps.sweeps._cells import Layer, cell_address
from giantsteps.sweeps._store import Store

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from giantsteps.problem import Problem
    from giantsteps.sweeps._sweep import Sweep

__all__ = [
    "Results",
    "Table",
    "address",
    "export",
    "opened",
    "read",
    "summarise",
    "to_frame",
    "to_xarray",
    "values",
]

Array: TypeAlias = NDArray[np.float64]
#: Name → (names of the axes, numbers).
Table: TypeAlias = dict[str, tuple[tuple[str, ...], Array]]

#: What theory is called beside a simulated quantity.
_BESIDE = {"finite width": "theory", "limit": "limit"}
#: Not quantities but facts about one cell: no statistics over seeds.
_SINGLE = ("standard_error", "bulk", "degree")


# Reading --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Results:
    """What is done.

    Attributes
    ----------
    tables : dict of str to Table
        By source: every number and array over the grid, d and seeds; NaN elsewhere.
    points : dict of str to ndarray
        Coordinates of further axes, such as those of learned functions.
    """

    tables: dict[str, Table]
    points: dict[str, Array]


def read(sweep: Sweep, store: Store, spectra: bool = False) -> Results:
    """The results of a sweep.

    Simulated quantities of the network before its steps are ``risk.initial.test`` and so on, as
    those of theory; ``risk.gain`` is what the steps bring, for each seed on the same draws.
    """
    found: dict[str, Table] = {source: {} for source in sweep.sources}
    points: dict[str, Array] = {}
    for layer in sweep.layers:
        for name, (dims, numbers) in _read_layer(layer, store, spectra).items():
            if name.rpartition(".")[2] == dims[-1]:  # the same in all cells
                rows = numbers.reshape(-1, numbers.shape[-1])
                points[dims[-1]] = rows[~np.isnan(rows).any(axis=1)][0]
            else:
                found[layer.source][name] = (dims, numbers)
    for table in found.values():
        if {"risk.test", "risk.initial.test"} <= table.keys():
            dims, after = table["risk.test"]
            table["risk.gain"] = (dims, table["risk.initial.test"][1] - after)
    _fill(found.values())
    return Results(found, points)


def _fill(tables: Iterable[Table]) -> None:
    """Make arrays equally long along axes of the same name, by NaN."""
    tables, sizes = list(tables), Counter[str]()
    for dims, numbers in (variable for table in tables for variable in table.values()):
        sizes |= Counter(dict(zip(dims, numbers.shape)))
    for table in tables:
        for name, (dims, numbers) in table.items():
            room = [(0, sizes[dim] - size) for dim, size in zip(dims, numbers.shape)]
            if any(missing for _, missing in room):
                table[name] = (dims, np.pad(numbers, room, constant_values=np.nan))


def _read_layer(layer: Layer, store: Store, spectra: bool) -> Table:
    dims = (*layer.sweep.grid.dims, "d", "seed")[: layer.addresses.ndim]
    places = layer.addresses.ravel()
    table: Table = {}
    numbers = store.numbers(layer.source, layer.question)
    here = [numbers.get(address, {}) for address in places]
    for name in dict.fromkeys(name for cell in here for name in cell):
        column = np.array([cell.get(name, np.nan) for cell in here])
        table[f"{layer.name}.{name}"] = (dims, column.reshape(layer.addresses.shape))
    for name in store.array_names(layer.source, layer.question):
        if name == "support" or (name == "bulk" and not spectra):
            continue
        arrays = store.arrays(layer.source, layer.question, name)
        cells = [arrays.get(address) for address in places]
        own = next((cell[0] for cell in cells if cell is not None), None)
        if own is not None:
            stacked = _stack([None if cell is None else cell[1] for cell in cells], len(own))
            shape = layer.addresses.shape + stacked.shape[1:]
            table[f"{layer.name}.{name}"] = (dims + own, stacked.reshape(shape))
    return table


def _stack(cells: list[Array | None], ndim: int) -> Array:
    """Arrays of several sizes as one, filled up with NaN."""
    shapes = [cell.shape for cell in cells if cell is not None]
    largest = tuple(max(shape[axis] for shape in shapes) for axis in range(ndim))
    full = np.full((len(cells), *largest), np.nan)
    for number, cell in enumerate(cells):
        if cell is not None:
            full[number][tuple(slice(size) for size in cell.shape)] = cell
    return full


# Statistics -----------------------------------------------------------------------------------


def summarise(found: Mapping[str, Table]) -> Table:
    """Means over the seeds that are done, standard errors, and theory beside them.

    ``name.mean``, ``.standard_error``, ``.seeds``, and where theory answers ``.theory`` (at the
    same d), ``.limit``, and ``.t`` = (mean − theory)/standard error; against the limit where
    theory was not asked at d.
    """
    table: Table = {}
    simulated = found.get("simulation", {})
    for name, (dims, samples) in simulated.items():
        if "seed" in dims and name.rpartition(".")[2] not in _SINGLE:
            kept = tuple(dim for dim in dims if dim != "seed")
            for part, numbers in _moments(samples, dims.index("seed")).items():
                table[f"{name}.{part}"] = (kept, numbers)
    for source, beside in _BESIDE.items():
        for name, variable in found.get(source, {}).items():
            table[f"{name}.{beside}"] = variable
    for name in simulated:
        if f"{name}.mean" not in table:
            continue
        beside = f"{name}.theory" if f"{name}.theory" in table else f"{name}.limit"
        if beside in table:
            table[f"{name}.t"] = _student(table, name, beside)
    return table


def _moments(samples: Array, axis: int) -> dict[str, Array]:
    done = ~np.isnan(samples)
    count = done.sum(axis=axis)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(done, samples, 0.0).sum(axis=axis) / count
        gaps = np.where(done, samples - np.expand_dims(mean, axis), 0.0)
        error = np.sqrt((gaps**2).sum(axis=axis) / (count - 1) / count)
    error = np.where(count > 1, error, np.nan)
    return {"mean": mean, "standard_error": error, "seeds": count.astype(float)}


def _student(table: Table, name: str, beside: str) -> tuple[tuple[str, ...], Array]:
    dims, mean = table[f"{name}.mean"]
    own, theory = table[beside]
    if "d" in dims and "d" not in own:
        theory = np.expand_dims(theory, dims.index("d"))
    with np.errstate(invalid="ignore", divide="ignore"):
        return dims, (mean - theory) / table[f"{name}.standard_error"][1]


# Data sets and tables -------------------------------------------------------------------------


def to_xarray(sweep: Sweep, spectra: bool = False) -> xr.Dataset:
    """See `Sweep.to_xarray`."""
    xarray = require("xarray", "to_xarray()")
    with opened(sweep) as store:
        results = read(sweep, store, spectra)
        notes = store.notes()
    table = {**results.tables.get("simulation", {}), **summarise(results.tables)}
    coords: dict[str, Any] = {**sweep.grid.coords, "d": list(sweep.d), "seed": list(sweep.seeds)}
    attributes = {
        "questions": ", ".join(sweep.questions),
        "sources": ", ".join(sweep.sources),
        "problem": sweep.grid.problem.to_json(),
        "violated": "; ".join(dict.fromkeys(text for note in notes for text in note["violated"])),
        "references": ", ".join(dict.fromkeys(k for note in notes for k in note["references"])),
    }
    return xarray.Dataset(table, coords=coords | results.points, attrs=attributes)


def to_frame(sweep: Sweep, summary: bool) -> pd.DataFrame:
    """See `Sweep.to_frame` and `Sweep.summary`."""
    pandas = require("pandas", "to_frame()")
    with opened(sweep) as store:
        found = read(sweep, store).tables
    if summary or "simulation" not in sweep.sources:
        rows = _summary_columns(sweep, summarise(found))
    else:
        dims = (*sweep.grid.dims, "d", "seed")
        rows = _coordinates(sweep, dims)
        for name, _, numbers in _spread(found["simulation"], dims):
            rows[name] = numbers.ravel()
    return pandas.DataFrame(rows)


def _summary_columns(sweep: Sweep, table: Table) -> dict[str, Any]:
    """One row for each problem, d and quantity; parts of a quantity are columns."""
    parts = ("mean", "standard_error", "seeds", "theory", "limit", "t")
    dims = (*sweep.grid.dims, "d")
    shape = (*sweep.grid.shape, len(sweep.d))
    quantities: dict[str, dict[str, Array]] = {}
    for name, index, numbers in _spread(table, dims):
        quantity, _, part = name.removesuffix(index).rpartition(".")
        quantities.setdefault(quantity + index, {})[part] = np.broadcast_to(numbers, shape)
    where = _coordinates(sweep, dims)
    count = int(np.prod(shape))
    names = list(quantities)
    columns: dict[str, Any] = {
        dim: np.repeat(np.asarray(labels), len(names)) for dim, labels in where.items()
    }
    columns["quantity"] = np.tile(names, count)
    absent = np.full(shape, np.nan)
    for part in parts:
        if any(part in found for found in quantities.values()):
            stacked = [found.get(part, absent) for found in quantities.values()]
            columns[part] = np.stack(stacked, axis=-1).ravel()
    return columns


def _spread(table: Table, row_dims: tuple[str, ...]) -> Iterator[tuple[str, str, Array]]:
    """Numbers over the rows: a further axis is spread over names that end in ``.0``, ``.1``, …"""
    for name, (dims, numbers) in table.items():
        extra = len([dim for dim in dims if dim not in row_dims])
        missing = [axis for axis, dim in enumerate(row_dims) if dim not in dims]
        for index in np.ndindex(numbers.shape[numbers.ndim - extra :]):
            ending = "".join(f".{number}" for number in index)
            yield name + ending, ending, np.expand_dims(numbers[(..., *index)], missing)


def _coordinates(sweep: Sweep, dims: tuple[str, ...]) -> dict[str, Any]:
    labels = {**sweep.grid.coords, "d": np.array(sweep.d), "seed": np.array(sweep.seeds)}
    grids = np.meshgrid(*(np.arange(len(labels[dim])) for dim in dims), indexing="ij")
    return {dim: labels[dim][grid.ravel()] for dim, grid in zip(dims, grids)}


def export(sweep: Sweep, path: Path, summary: bool, spectra: bool) -> None:
    """See `Sweep.export`."""
    kind = path.suffix.lower()
    if kind == ".nc":
        # NetCDF 4 where its libraries are installed, else NetCDF 3, which SciPy writes.
        modern = all(find_spec(name) for name in ("h5netcdf", "h5py"))
        to_xarray(sweep, spectra).to_netcdf(path, engine="h5netcdf" if modern else "scipy")
    elif kind == ".parquet":
        require("pyarrow", "Parquet")
        to_frame(sweep, summary).to_parquet(path, index=False)
    elif kind == ".csv":
        to_frame(sweep, summary).to_csv(path, index=False)
    else:
        raise InvalidProblem("output", str(path), "a file that ends in .nc, .parquet or .csv")


# Single cells ---------------------------------------------------------------------------------


def address(sweep: Sweep, question: str, problem: Problem, d: int | None, seed: int | None) -> str:
    """The address of one cell of the sweep."""
    source = _source(d, seed)
    for layer in sweep.layers:
        asked = (layer.source, layer.question, layer.untrained and bool(problem.steps))
        if asked == (source, question, False):
            seen = problem.replace(layer.unseen).content_hash
            found = cell_address(source, question, layer.options, seen, d, seed)
            if found in layer.distinct:
                return found
    raise InvalidProblem(
        "cell", (question, problem, d, seed), f"one of the sweep's cells ({source})"
    )


def _source(d: int | None, seed: int | None) -> Source:
    return "simulation" if seed is not None else "finite width" if d is not None else "limit"


def values(
    sweep: Sweep, question: str, problem: Problem, d: int | None, seed: int | None
) -> dict[str, Any]:
    """See `Sweep.values`."""
    where = address(sweep, question, problem, d, seed)
    source = _source(d, seed)
    with opened(sweep) as store:
        numbers = store.numbers(source, question)
        if where not in numbers:
            raise StoreError(f"this cell is not done: {store.errors().get(where, 'run the sweep')}")
        arrays = {name: array for name, (_, array) in store.arrays_of(where).items()}
    return {**numbers[where], **arrays}


def opened(sweep: Sweep) -> Store:
    if not sweep.store.exists():
        raise StoreError(f"there is no store {sweep.store} yet: run the sweep first")
    return Store(sweep.store)
