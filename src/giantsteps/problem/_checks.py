"""Checks of single values: each returns the normalised value or raises :class:`InvalidProblem`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from giantsteps.errors import InvalidProblem, check_names, suggest


def number(
    value: object,
    field: str,
    allowed: str,
    *,
    lower: float = -math.inf,
    upper: float = math.inf,
    open_below: bool = False,
) -> float:
    """Return ``value`` as a finite float in [lower, upper], or in (lower, upper] if ``open_below``.

    Python and NumPy integers and floats are numbers, arrays and tensors without an axis too;
    booleans and strings are not. A negative zero becomes zero, so that equal values have equal
    texts.
    """
    given = scalar(value)
    if type(given) is not float and (not isinstance(given, Real) or isinstance(given, bool)):
        raise InvalidProblem(field, value, allowed)
    try:
        result = float(given) + 0.0
    except OverflowError:
        raise InvalidProblem(field, value, allowed) from None
    if not math.isfinite(result) or not lower <= result <= upper:
        raise InvalidProblem(field, value, allowed)
    if open_below and result == lower:
        raise InvalidProblem(field, value, allowed)
    return result


def scalar(value: Any) -> Any:
    """The number in an array or tensor without an axis; anything else as it is."""
    return value.item() if getattr(value, "shape", None) == () else value


def numbers(
    values: object, field: str, allowed: str, lower: float = -math.inf, upper: float = math.inf
) -> tuple[float, ...]:
    """Return a sequence of numbers as a tuple of floats, each checked as by :func:`number`."""
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str):
        raise InvalidProblem(field, values, "a sequence of numbers")
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InvalidProblem(field, values, "a sequence of numbers (one dimension)")
    return tuple(
        number(value, f"{field}.{index}", allowed, lower=lower, upper=upper)
        for index, value in enumerate(values)
    )


def shares(given: object, field: str, count: int, of_what: str) -> tuple[float, ...]:
    """Return ``count`` numbers in [0, 1] that sum to one within 1e-9."""
    found = numbers(given, field, "a number in [0, 1]", lower=0.0, upper=1.0)
    if len(found) != count:
        raise InvalidProblem(field, given, f"{count} numbers, one per {of_what}")
    total = math.fsum(found)
    if abs(total - 1) > 1e-9:
        raise InvalidProblem(field, given, f"numbers that sum to one (the sum is {total!r})")
    return found


def integer(value: object, field: str, allowed: str, *, lower: int = 1) -> int:
    """Return ``value`` as an int of at least ``lower``; booleans and floats are refused."""
    given = scalar(value)
    whole = type(given) is int or (isinstance(given, Integral) and not isinstance(given, bool))
    if not whole or int(given) < lower:
        raise InvalidProblem(field, value, allowed)
    number(int(given), field, f"{allowed}, and no larger than a float can be")
    return int(given)


def choice(value: object, field: str, known: Iterable[str]) -> str:
    """Return ``value`` if it is one of the ``known`` names."""
    names = tuple(known)
    if not isinstance(value, str) or value not in names:
        raise InvalidProblem(field, value, suggest(value, names))
    return value


def keywords(data: object, part: type) -> dict[str, Any]:
    """Return ``data`` as arguments of the dataclass ``part``; no key unknown, none missing."""
    known = {item.name: item for item in fields(part)}
    if not isinstance(data, Mapping):
        raise InvalidProblem(part.__name__, data, f"a table with the keys {', '.join(known)}")
    check_names(data, known, "the keys")
    for name, item in known.items():
        required = item.default is MISSING and item.default_factory is MISSING
        if required and name not in data:
            raise InvalidProblem(name, None, "given: it has no default")
    return dict(data)


@contextmanager
def under(prefix: str) -> Iterator[None]:
    """Name the fields of errors raised inside by their path from the whole problem."""
    try:
        yield
    except InvalidProblem as error:
        field = f"{prefix}.{error.field}" if prefix else error.field
        raise InvalidProblem(field, error.value, error.allowed) from None
