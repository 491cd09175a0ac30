"""The leaves of an answer: Python floats for one problem, read-only arrays over a grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from giantsteps.types import FloatArray

#: A number for one problem, an array of the grid's shape over a grid.
Leaf: TypeAlias = float | FloatArray
Index: TypeAlias = Any
#: Squared cosines below this are rounding.
_ROUNDING = 1e-20


def frozen(values: ArrayLike) -> FloatArray:
    """A read-only float64 copy of ``values``."""
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


def as_leaf(
    value: ArrayLike, shape: tuple[int, ...], name: str, extra: tuple[str, ...] = ()
) -> Leaf:
    """Check that ``value`` has the leading ``shape`` and one further axis for each of ``extra``.

    Returns a Python float where no axis is left, a read-only float64 array otherwise.
    """
    if isinstance(value, float) and not shape and not extra:
        return float(value)
    array = frozen(value)
    if array.shape[: len(shape)] != shape or array.ndim != len(shape) + len(extra):
        expected = ", ".join([*map(str, shape), *extra])
        raise ValueError(f"{name} has shape {array.shape}, expected ({expected})")
    return float(array) if array.ndim == 0 else array


def as_mapping(values: Mapping[str, Any], shape: tuple[int, ...], name: str) -> Mapping[str, Leaf]:
    """A read-only mapping whose values are leaves of ``shape``.

    ``overlaps`` are squared cosines, of which those of rounding are none.
    """
    if name == "overlaps":
        values = {k: np.where(np.abs(v) < _ROUNDING, 0.0, v) for k, v in values.items()}
    return MappingProxyType(
        {key: as_leaf(value, shape, f"{name}[{key!r}]") for key, value in values.items()}
    )


def over(*axes: str) -> dict[str, tuple[str, ...]]:
    """Of a numerical field that has axes of its own after those of the grid."""
    return {"axes": axes}


def expand_index(index: Index, ndim: int) -> tuple[Any, ...]:
    """The index as a tuple that never reaches beyond the first ``ndim`` axes."""
    entries = index if isinstance(index, tuple) else (index,)
    if any(entry is Ellipsis for entry in entries):
        at = next(i for i, entry in enumerate(entries) if entry is Ellipsis)
        filling = (slice(None),) * (ndim - len(entries) + 1)
        entries = entries[:at] + filling + entries[at + 1 :]
    if len(entries) > ndim:
        raise IndexError(f"{len(entries)} indices for a grid of {ndim} dimensions")
    return entries


def take(value: Any, index: tuple[Any, ...]) -> Any:
    """``value[index]`` for arrays, and inside mappings, tuples and records; the rest unchanged."""
    if isinstance(value, np.ndarray):
        return value[index]
    if isinstance(value, Mapping):
        return {key: take(item, index) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(take(item, index) for item in value)
    if isinstance(value, Record):
        return value[index]
    return value


def same(left: Any, right: Any) -> bool:
    """Exact equality of two leaves or trees of leaves; NaN equals NaN."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        a, b = np.asarray(left), np.asarray(right)
        if a.dtype.kind == b.dtype.kind == "f":
            return np.array_equal(a, b, equal_nan=True)
        return a.shape == b.shape and all(map(same, a.ravel(), b.ravel()))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float) and left != left:
        return right != right
    return bool(left == right)


def _rebuild(kind: type[Record], values: dict[str, Any]) -> Record:
    return kind(**values)


class Record:
    """Base of the frozen dataclasses here: exact equality, pickling, ``record[index]``.

    Two records are equal when they have the same type and all fields agree to the last bit
    (NaN equals NaN). They hold arrays, so they have no hash.
    """

    __hash__ = None  # type: ignore[assignment]

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Record)
        mine, theirs = self._fields(), other._fields()
        return all(same(mine[name], theirs[name]) for name in mine)

    def __reduce__(self) -> tuple[Any, ...]:
        plain = {
            name: dict(value) if isinstance(value, Mapping) else value
            for name, value in self._fields().items()
        }
        return _rebuild, (type(self), plain)

    def __getitem__(self, index: Index) -> Any:
        return type(self)(**{name: take(value, index) for name, value in self._fields().items()})
