"""Results of a sweep as one tidy data set: per seed, and as means beside theory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from giantsteps.answers import Source, require, written
from giantsteps.campaign import (
    Agreement,
    Store,
    Table,
    decide,
    mean_and_error,
    measure,
    read_table,
)
from giantsteps.comparison import resolution_limit
from giantsteps.errors import InvalidProblem, StoreError
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from giantsteps.problem import Problem
    from giantsteps.sweeps._sweep import Sweep

#: What theory is called beside a simulated quantity.
_BESIDE = {"finite width": "theory", "limit": "limit"}
#: Parts of a quantity in a summary.
PARTS = ("mean", "standard_error", "seeds", "theory", "limit", "t")
#: Not quantities but facts about one cell: no statistics over seeds.
_SINGLE = ("standard_error", "bulk", "degree")


# Reading --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Results:
    """All finished results: for each source, every number and array over the grid, d and seeds, NaN
    elsewhere; and coordinates of further axes, such as those of learned functions."""

    tables: dict[str, Table]
    points: dict[str, FloatArray]


def read(sweep: Sweep, store: Store, spectra: bool = False) -> Results:
    """The results of a sweep.

    Simulated quantities of the network before its steps are ``risk.initial.test`` and so on, as
    those of theory; ``risk.gain`` is what the steps bring, for each seed on the same draws.
    """
    found: dict[str, Table] = {source: {} for source in sweep.sources}
    points: dict[str, FloatArray] = {}
    for part in sweep.cells:
        for name, (dims, numbers) in read_table(part, store, bulk=spectra).items():
            if name == dims[-1]:  # the same in all cells
                rows = numbers.reshape(-1, numbers.shape[-1])
                points[name] = rows[~np.isnan(rows).any(axis=1)][0]
            else:
                found[part.source][f"{part.name}.{name}"] = (dims, numbers)
    for table in found.values():
        for name in ("risk", "tangent_risk"):
            if {f"{name}.test", f"{name}.initial.test"} <= table.keys():
                dims, after = table[f"{name}.test"]
                table[f"{name}.gain"] = (dims, table[f"{name}.initial.test"][1] - after)
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


# Statistics -----------------------------------------------------------------------------------


def summarise(
    found: Mapping[str, Table], sizes: Sequence[int]
) -> tuple[Table, dict[str, Agreement]]:
    """Means over the seeds that are done, standard errors, theory beside them, and verdicts.

    ``name.mean``, ``.standard_error``, ``.seeds``, and where theory answers ``.theory`` (at the
    same d), ``.limit``, and ``.t`` = (mean − theory)/standard error; against the limit where
    theory was not asked at d.
    """
    table: Table = {}
    judged: dict[str, Agreement] = {}
    simulated = found.get("simulation", {})
    for name, (dims, samples) in simulated.items():
        if "seed" not in dims or name.rpartition(".")[2] in _SINGLE:
            continue
        kept = tuple(dim for dim in dims if dim != "seed")
        parts = mean_and_error(samples, dims.index("seed"))
        for part, numbers in zip(("mean", "standard_error", "seeds"), parts):
            table[f"{name}.{part}"] = (kept, numbers)
        source = next((s for s in _BESIDE if name in found.get(s, {})), None)
        if source is not None:
            judged[name] = _measured(name, sizes, dims, samples, *found[source][name])
            t = [np.asarray(judged[name].by_size[at].t) for at in np.argsort(np.argsort(sizes))]
            table[f"{name}.t"] = (kept, np.stack(t, axis=kept.index("d")))
    for source, beside in _BESIDE.items():
        for name, variable in found.get(source, {}).items():
            table[f"{name}.{beside}"] = variable
    return table, decide(judged)


def _measured(
    name: str,
    sizes: Sequence[int],
    dims: tuple[str, ...],
    samples: FloatArray,
    own: tuple[str, ...],
    theory: FloatArray,
) -> Agreement:
    """A simulated quantity beside theory, for all sizes at once."""
    order = np.argsort(sizes)
    moved = np.moveaxis(samples, (dims.index("d"), dims.index("seed")), (0, 1))
    if "d" in own:
        expected = np.moveaxis(theory, own.index("d"), 0)
    else:
        expected = np.broadcast_to(theory, (len(sizes), *theory.shape))
    scale = np.abs(expected)
    if dims[-1] == "x":  # a function is resolved relative to its size
        largest = np.max(scale, axis=-1, keepdims=True, initial=0.0, where=np.isfinite(scale))
        scale = np.broadcast_to(largest, scale.shape)
    return measure(
        moved[order],
        expected[order],
        [sizes[at] for at in order],
        limit=resolution_limit(name),
        scale=scale[order],
    )


# Data sets and tables -------------------------------------------------------------------------


def to_xarray(sweep: Sweep, spectra: bool = False) -> xr.Dataset:
    """See `Sweep.to_xarray`."""
    xarray = require("xarray", "to_xarray()")
    with opened(sweep) as store:
        results = read(sweep, store, spectra)
        notes = store.notes()
    table = {**results.tables.get("simulation", {}), **summarise(results.tables, sweep.d)[0]}
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
        return pandas.DataFrame(_summary_columns(sweep, *summarise(found, sweep.d)))
    dims = (*sweep.grid.dims, "d", "seed")
    rows = _coordinates(sweep, dims)
    for name, variable in found["simulation"].items():
        for title, numbers in spread(name, variable, dims):
            rows[title] = numbers.ravel()
    return pandas.DataFrame(rows)


def _summary_columns(sweep: Sweep, table: Table, judged: Mapping[str, Agreement]) -> dict[str, Any]:
    """One row for each problem, d and quantity; parts of a quantity are columns."""
    dims = (*sweep.grid.dims, "d")
    shape = (*sweep.grid.shape, len(sweep.d))
    quantities: dict[str, dict[str, Any]] = {}
    for name, variable in table.items():
        base, _, part = name.rpartition(".")
        for title, numbers in spread(base, variable, dims):
            quantities.setdefault(title, {})[part] = np.broadcast_to(numbers, shape)
    for name, agreement in judged.items():
        own = tuple(dim for dim in table[f"{name}.mean"][0] if dim != "d")
        verdict = np.asarray(agreement.verdict, dtype=object)
        verdict = np.where(verdict == "", None, verdict)  # type: ignore[call-overload]
        for title, verdicts in spread(name, (own, verdict), dims):
            quantities[title]["verdict"] = np.broadcast_to(verdicts, shape)
    columns: dict[str, Any] = {
        dim: np.repeat(np.asarray(labels), len(quantities))
        for dim, labels in _coordinates(sweep, dims).items()
    }
    columns["quantity"] = np.tile(list(quantities), int(np.prod(shape)))
    absent = {part: np.full(shape, np.nan) for part in PARTS} | {"verdict": np.full(shape, None)}
    for part, nothing in absent.items():
        if any(part in found for found in quantities.values()):
            stacked = [found.get(part, nothing) for found in quantities.values()]
            columns[part] = np.stack(stacked, axis=-1).ravel()
    return columns


def spread(
    name: str, variable: tuple[tuple[str, ...], Any], row_dims: tuple[str, ...]
) -> Iterator[tuple[str, Any]]:
    """A variable over the rows, for each entry of its further axes, named as in `compare`."""
    dims, numbers = variable
    extra = tuple(dim for dim in dims if dim not in row_dims)
    missing = [axis for axis, dim in enumerate(row_dims) if dim not in dims]
    for index in np.ndindex(numbers.shape[numbers.ndim - len(extra) :]):
        yield quantity(name, extra, index), np.expand_dims(numbers[(..., *index)], missing)


def quantity(name: str, extra: tuple[str, ...], index: tuple[int, ...]) -> str:
    """The name that `compare` has for an entry of an array."""
    if extra == ("spike",):
        found = re.fullmatch(r"(\w+\.(?:initial\.)?)(value|degree|overlap)(\.\w+)?", name)
        if found is not None:
            part = f"overlaps{found[3]}" if found[3] else found[2]
            return f"{found[1]}spikes.{index[0]}.{part}"
    return ".".join([name, *map(str, index)])


def _coordinates(sweep: Sweep, dims: tuple[str, ...]) -> dict[str, Any]:
    labels = {**sweep.grid.coords, "d": np.array(sweep.d), "seed": np.array(sweep.seeds)}
    grids = np.meshgrid(*(np.arange(len(labels[dim])) for dim in dims), indexing="ij")
    return {dim: labels[dim][grid.ravel()] for dim, grid in zip(dims, grids)}


def check_output(path: Path) -> None:
    """Refuse a file that cannot be written, or whose ending says nothing, before any work."""
    kind = path.suffix.lower()
    if kind not in (".nc", ".parquet", ".csv"):
        raise InvalidProblem("output", str(path), "a file that ends in .nc, .parquet or .csv")
    require("xarray" if kind == ".nc" else "pandas", f"{kind} files")
    if kind == ".parquet":
        require("pyarrow", "Parquet files")


def export(sweep: Sweep, path: Path, summary: bool, spectra: bool) -> None:
    """See `Sweep.export`."""
    check_output(path)
    kind = path.suffix.lower()
    with written(path) as draft:
        if kind == ".nc":
            # NetCDF 4 where its libraries are installed, else NetCDF 3, which SciPy writes.
            modern = all(find_spec(name) for name in ("h5netcdf", "h5py"))
            to_xarray(sweep, spectra).to_netcdf(draft, engine="h5netcdf" if modern else "scipy")
        elif kind == ".parquet":
            to_frame(sweep, summary).to_parquet(draft, index=False)
        else:
            to_frame(sweep, summary).to_csv(draft, index=False)


# Single cells ---------------------------------------------------------------------------------


def address(sweep: Sweep, question: str, problem: Problem, d: int | None, seed: int | None) -> str:
    """The address of one cell of the sweep."""
    source = _source(d, seed)
    for part in sweep.cells:
        asked = (part.source, part.question.name, part.untrained and bool(problem.steps))
        if asked == (source, question, False):
            found = part.address(problem.replace(part.unseen).content_hash, d, seed)
            if found in part.distinct:
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
    with opened(sweep) as store:
        numbers = store.numbers([where])
        if where not in numbers:
            raise StoreError(f"this cell is not done: {store.errors().get(where, 'run the sweep')}")
        arrays = {name: array for name, (_, array) in store.arrays_of(where).items()}
    return {**numbers[where], **arrays}


def opened(sweep: Sweep) -> Store:
    if not sweep.store.exists():
        raise StoreError(f"there is no store {sweep.store} yet: run the sweep first")
    return Store(sweep.store)
