"""What is kept of an answer: its numbers and arrays, with all their bits."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from giantsteps.answers import Answer, Spectrum
from giantsteps.types import FloatArray

#: An array and the names of its axes.
Named: TypeAlias = tuple[tuple[str, ...], FloatArray]
#: Numbers and arrays of one cell, by name.
Values: TypeAlias = tuple[dict[str, float], dict[str, Named]]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a cell: numbers and arrays, or an error."""

    numbers: Mapping[str, float] = field(default_factory=dict)
    arrays: Mapping[str, Named] = field(default_factory=dict)
    notes: str | None = None
    error: str | None = None
    traceback: str | None = None
    seconds: float
    finished: float
    provenance: str


def to_json(numbers: Mapping[str, float]) -> str:
    """JSON that keeps every bit; what JSON has no word for stands as text."""
    return json.dumps(
        {name: x if math.isfinite(x) else repr(x) for name, x in numbers.items()}, allow_nan=False
    )


def from_json(text: str) -> dict[str, float]:
    """The inverse of `to_json`."""
    return {name: float(value) for name, value in json.loads(text).items()}


def read_answer(answer: Answer | Mapping[str, Any]) -> list[Values]:
    """The values of every cell of an answer, in row-major order.

    Of a simulation ``initial`` is left out: the network before the steps is a cell of its own,
    which other cells share.
    """
    if isinstance(answer, Mapping):
        known = {name: np.asarray(value, dtype=float) for name, value in answer.items()}
        axes = {k: tuple(f"{k}.{axis}" for axis in range(v.ndim)) for k, v in known.items()}
        arrays = {name: _named(axes[name], value) for name, value in known.items() if value.ndim}
        return [({k: float(v) for k, v in known.items() if not v.ndim}, arrays)]
    if answer.source == "simulation" and "initial" in answer.__dataclass_fields__:
        vars(answer)["initial"] = None
    variables = answer._variables()
    found = []
    for index in np.ndindex(answer.shape):
        numbers: dict[str, float] = {}
        arrays = {}
        for name, (dims, values) in variables.items():
            if index and dims[: len(index)] == answer.dims:
                dims, values = dims[len(index) :], values[index]
            if dims:
                arrays[name] = _named(dims, values)
            else:
                numbers[name] = float(values)
        for name, points in answer._axes().items():
            arrays[name] = _named((name,), points)
        if isinstance(answer, Spectrum):
            bulk: Any = answer.bulk
            _read_bulk(bulk[index] if isinstance(bulk, np.ndarray) else bulk, numbers, arrays)
        found.append((numbers, arrays))
    return found


def _named(dims: tuple[str, ...], values: Any) -> Named:
    return dims, np.ascontiguousarray(values, dtype="<f8")


def _read_bulk(law: Any, numbers: dict[str, float], arrays: dict[str, Named]) -> None:
    """A simulated bulk as its values; one of theory as the intervals and edge of its support."""
    if law is None:
        return
    if hasattr(law, "values"):
        arrays["bulk"] = _named(("order",), law.values)
        return
    numbers["edge"] = float(law.edge)
    support = np.asarray(law.support, dtype=float).reshape(-1, 2)
    arrays["support"] = _named(("interval", "end"), support)
