"""Tables at the edge: columns for everyone, pandas and xarray for those who installed them."""

from __future__ import annotations

import csv
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from giantsteps.errors import MissingDependency

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from giantsteps.answers._answer import Answer

#: Names of the axes, and the numbers.
Variable: TypeAlias = tuple[tuple[str, ...], NDArray[Any]]


def require(module: str, purpose: str, extra: str = "sweep") -> Any:
    """Import an optional dependency, or say which extra brings it.

    * ``module``: what to import.
    * ``purpose``: what it is needed for, for the message.
    * ``extra``: the extra of this package that installs it; empty if none does.

    Raises
    ------
    MissingDependency
        If it is not installed; an ImportError as well.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        install = f'"giantsteps[{extra}]"' if extra else package
        raise MissingDependency(f"{purpose} needs {package}: pip install {install}") from error


def plain(value: Any) -> Any:
    """A coordinate as a number or a text: functions and other objects by their canonical text."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(getattr(value, "canonical", value))


def columns(answer: Answer) -> dict[str, list[Any]]:
    """The tidy table of an answer: coordinates, ``d``, ``source``, then the numbers.

    One row for each cell of the grid (and each point of the type's row axes); a further axis,
    such as the degree of ``by_degree``, is spread over columns ``by_degree.0``, ``by_degree.1``, …
    """
    variables = answer._variables()
    axes = answer.coords | answer._axes()
    sizes = {
        dim: size for dims, values in variables.values() for dim, size in zip(dims, values.shape)
    } | {dim: len(axes[dim]) for dim in answer.dims}
    row_dims = answer.dims + tuple(dim for dim in answer._row_dims if dim in sizes)
    shape = tuple(sizes[dim] for dim in row_dims)

    table: dict[str, list[Any]] = {}
    for position, dim in enumerate(row_dims):
        labels = [plain(label) for label in axes.get(dim, np.arange(sizes[dim]))]
        table[dim] = [labels[index[position]] for index in np.ndindex(shape)]
    rows = int(np.prod(shape))
    table["d"] = [answer.d] * rows
    table["source"] = [answer.source] * rows
    for name, (dims, values) in variables.items():
        shared = tuple(dim for dim in dims if dim in row_dims)
        spread = tuple(dim for dim in dims if dim not in row_dims)
        aligned = np.transpose(values, [dims.index(dim) for dim in shared + spread])
        view = aligned.reshape(
            tuple(sizes[dim] if dim in shared else 1 for dim in row_dims)
            + aligned.shape[len(shared) :]
        )
        for index in np.ndindex(aligned.shape[len(shared) :]):
            column = np.broadcast_to(view[(..., *index)], shape)
            table[".".join([name, *map(str, index)])] = [plain(v) for v in column.ravel()]
    return table


@contextmanager
def written(path: str | PathLike[str]) -> Iterator[Path]:
    """A draft beside ``path`` that takes its place once it is whole; an error leaves no trace.

    A device, or a file in a folder that takes no other, is written in place.

    Raises
    ------
    OSError
        If it cannot be written; it names ``path``.
    """
    whole = Path(os.path.realpath(path))
    replaced = whole.is_file()
    apart = (replaced or not whole.exists()) and os.access(whole.parent, os.W_OK)
    draft = whole.with_name(f".{uuid.uuid4().hex}{whole.suffix}") if apart else whole
    try:
        yield draft
        if apart and replaced:
            shutil.copymode(whole, draft)
        if apart:
            os.replace(draft, whole)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
    finally:
        if apart:
            draft.unlink(missing_ok=True)


def to_csv(table: Mapping[str, Sequence[Any]], path: str | PathLike[str]) -> None:
    """Write columns as CSV; floats keep all their digits, None is an empty cell.

    * ``table``: columns of equal length by name.
    * ``path``: the file.
    """
    with written(path) as draft, open(draft, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*table.values()))


class Table:
    """What has columns: they are also a data frame, and a CSV file."""

    if TYPE_CHECKING:

        def to_columns(self) -> dict[str, list[Any]]: ...

    def to_frame(self) -> pd.DataFrame:
        """The table as a data frame (needs pandas)."""
        return require("pandas", "to_frame()").DataFrame(self.to_columns())

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the table as CSV, floats with all their digits."""
        to_csv(self.to_columns(), path)


def of_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns; None where a row lacks a name."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def present(table: Mapping[str, list[Any]], name: str) -> dict[str, list[Any]]:
    """The rows of a table in which a column has a number."""
    rows = [row for row, value in enumerate(table[name]) if value == value]
    return {column: [entries[row] for row in rows] for column, entries in table.items()}


def to_xarray(answer: Answer) -> xr.Dataset:
    """A dataset over the grid's paths, with what the answer assumes as attributes."""
    axes = answer.coords | answer._axes()
    return require("xarray", "to_xarray()").Dataset(
        data_vars=answer._variables(),
        coords={dim: [plain(label) for label in labels] for dim, labels in axes.items()},
        attrs={
            "d": "" if answer.d is None else answer.d,
            "source": answer.source,
            "exact": int(answer.exact),
            "assumptions": "; ".join(answer.assumptions),
            "violated": "; ".join(answer.violated),
            "evidence": answer.evidence,
            "references": ", ".join(answer.references),
        },
    )
