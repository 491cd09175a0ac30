"""A :class:`Grid`: one problem with some of its fields varied, every combination of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from giantsteps.errors import InvalidProblem, check_names
from giantsteps.problem import _display, _paths, _serialize
from giantsteps.problem._problem import COUPLED, Problem
from giantsteps.problem._serialize import Saved

#: Cells of a grid.
MOST = 1_000_000


class Grid(Saved):
    """The problems {problem with path_i = value_i[j_i]}, an array with one axis per path.

    Parameters
    ----------
    problem : Problem
        What all cells share.
    axes : mapping of str to sequence
        Dotted path → values, in the order of the dimensions. Values are anything that the field
        accepts: numbers, names of functions, functions, parts.

    Attributes
    ----------
    problem : Problem
        As given.
    axes : dict of str to tuple
        The values as the problems hold them (numbers as floats, names as functions).
    dims : tuple of str
        The paths.
    coords : dict of str to ndarray
        One-dimensional: floats where the values are numbers, else strings that name them.
    shape, size, ndim
        As of an array. A grid without axes is 0-dimensional and holds one problem.

    Notes
    -----
    Grids are immutable, equal and hashable by value: by their cells and axes, so the value that
    ``problem`` itself has along an axis does not matter. ``grid[i, j]`` is a problem, ``grid[i]``
    or ``grid[:3]`` a smaller grid; iteration goes through all problems, last axis fastest.

    Examples
    --------
    >>> problem = Problem(activation="tanh", teacher="sin", width=1.0)
    >>> grid = Grid(problem, {"width": [0.5, 1, 2], "activation": ["tanh", "relu"]})
    >>> grid.shape, grid[2, 0].width
    ((3, 2), 2.0)
    """

    problem: Problem
    axes: dict[str, tuple[Any, ...]]

    def __init__(self, problem: Problem, axes: Mapping[str, Sequence[Any] | np.ndarray]) -> None:
        if not isinstance(problem, Problem):
            raise InvalidProblem("problem", problem, "a Problem")
        if not isinstance(axes, Mapping):
            raise InvalidProblem("axes", axes, 'a mapping such as {"readout.samples": [1, 2]}')
        _paths.check_paths(problem, axes)
        values = {path: _values(path, given) for path, given in axes.items()}
        self.__dict__["problem"] = problem
        self.__dict__["axes"] = _normalise(problem, values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Grid is immutable: cannot set {name}")

    # Shape -------------------------------------------------------------------------------------

    @property
    def dims(self) -> tuple[str, ...]:
        """The paths that vary, one per axis."""
        return tuple(self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each path has."""
        return tuple(len(values) for values in self.axes.values())

    @property
    def ndim(self) -> int:
        """How many paths vary."""
        return len(self.axes)

    @property
    def size(self) -> int:
        """How many problems the grid holds."""
        return math.prod(self.shape)

    @property
    def coords(self) -> dict[str, np.ndarray]:
        """The values along each axis: floats, or strings that name them."""
        return {path: _labels(values) for path, values in self.axes.items()}

    # Cells -------------------------------------------------------------------------------------

    @cached_property
    def _cells(self) -> np.ndarray:
        cells = np.empty(self.size, dtype=object)
        cells[:] = list(_paths.combinations(self.problem, self.axes))
        cells = cells.reshape(self.shape)
        cells.flags.writeable = False
        return cells

    def problems(self) -> np.ndarray:
        """Return the problems as an object array of the grid's shape (built once, read-only)."""
        return self._cells

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._cells.flat)

    def __getitem__(self, index: object) -> Problem | Grid:
        keys: tuple[Any, ...] = index if isinstance(index, tuple) else (index,)
        if len(keys) > self.ndim:
            raise IndexError(f"{len(keys)} indices for a grid of {self.ndim} dimensions")
        fixed: dict[str, Any] = {}
        kept: dict[str, tuple[Any, ...]] = {}
        padded = (*keys, *[slice(None)] * (self.ndim - len(keys)))
        for (path, values), key in zip(self.axes.items(), padded, strict=True):
            if isinstance(key, slice):
                kept[path] = values[key]
            else:
                fixed[path] = _entry(path, values, key)
        problem = self.problem.replace(fixed)
        return Grid(problem, kept) if kept else problem

    def replace(self, changes: Mapping[str, Any]) -> Grid:
        """Return the grid over the problem with other values at some paths (not its axes)."""
        _paths.check_paths(self.problem, [*self.axes, *changes])
        for path in changes:
            if path in self.axes:
                raise InvalidProblem("path", path, f"other than the axes of the grid, {self.dims}")
        return Grid(self.problem.replace(changes), self.axes)

    # Equality, files and hashes ----------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grid):
            return NotImplemented
        return list(self.axes.items()) == list(other.axes.items()) and self._base == other._base

    def __hash__(self) -> int:
        return hash((self._base, tuple(self.axes.items())))

    @cached_property
    def _base(self) -> Problem:
        """The first cell: what the cells share, whatever ``problem`` holds along the axes."""
        first = {path: values[0] for path, values in self.axes.items()}
        return self.problem.replace(first)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the canonical form, in hex; the order of the axes counts."""
        axes = [[path, _serialize.to_data(values)] for path, values in self.axes.items()]
        return _serialize.content_hash("grid", {"problem": self._base.to_data(), "axes": axes})

    def to_data(self) -> dict[str, Any]:
        """Return the grid as plain data: ``{"problem": {...}, "vary": {path: [values]}}``."""
        return {
            "problem": self.problem.to_data(),
            "vary": {path: _serialize.to_data(values) for path, values in self.axes.items()},
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Grid:
        """Build a grid from what :meth:`to_data` returns."""
        if not isinstance(data, Mapping):
            raise InvalidProblem("grid", data, "a table with the keys problem, vary")
        check_names(data, ("problem", "vary"), "the keys")
        if "problem" not in data:
            raise InvalidProblem("problem", None, "given: it has no default")
        return cls(Problem.from_data(data["problem"]), data.get("vary", {}))

    def _repr_html_(self) -> str:
        return _display.grid_html(self)

    def __repr__(self) -> str:
        axes = ", ".join(f"{path!r}: {coords.tolist()!r}" for path, coords in self.coords.items())
        return f"Grid({self.problem!r}, {{{axes}}})"


def _values(path: str, given: object) -> list[Any]:
    """The values of an axis as a list; refused if they are none, or no sequence."""
    if hasattr(given, "__array__"):  # of NumPy, pandas, PyTorch
        given = np.asarray(given)
        if given.ndim != 1:
            raise InvalidProblem(path, given, "varied over a one-dimensional array")
    elif isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise InvalidProblem(path, given, "varied over a sequence of values")
    values = list(given)
    if not values:
        raise InvalidProblem(path, given, "varied over at least one value")
    return values


def _entry(path: str, values: tuple[Any, ...], key: Any) -> Any:
    """The value at a place of an axis."""
    try:
        return values[key]
    except IndexError:
        places = f"the axis has {len(values)} values, numbered from 0"
        raise IndexError(f"no place {key!r} on the axis {path}: {places}") from None


def _normalise(problem: Problem, axes: Mapping[str, list[Any]]) -> dict[str, tuple[Any, ...]]:
    """Validate every value, and every combination of coupled ones; return them as problems do."""
    cells = math.prod(map(len, axes.values()))
    if cells > MOST:
        longest = max(axes, key=lambda path: len(axes[path]))
        allowed = f"fewer values: the grid has {cells} cells, and may have {MOST}"
        raise InvalidProblem(longest, [*axes[longest][:4], "..."], allowed)
    first = {path: values[0] for path, values in axes.items()}
    found = {
        path: tuple(problem.replace({**first, path: value}).get(path) for value in values)
        for path, values in axes.items()
    }
    alone = {path for path in found if path.split(".")[0] not in COUPLED}
    for _ in _paths.combinations(
        problem.replace(first),
        {path: values[: 1 if path in alone else None] for path, values in found.items()},
    ):
        pass
    return found


def _labels(values: tuple[Any, ...]) -> np.ndarray:
    if all(isinstance(value, float) for value in values):
        return np.array(values)
    return np.array([_display.label(value) for value in values])
