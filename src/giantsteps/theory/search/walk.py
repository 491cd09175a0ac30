"""Minima and roots of many functions, evaluated together.

Functions of one variable are those of ``scipy.optimize.elementwise``. A search of several variables
is a generator: it yields points and is sent the values there, so that the method reads like its
textbook form while `lockstep` evaluates the points of all searches in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from scipy.optimize import elementwise

from giantsteps.types import FloatArray

T = TypeVar("T")

#: (number of the function of each point, points (P, m)) ↦ values (P,).
Evaluate: TypeAlias = Callable[[list[int], FloatArray], FloatArray]
#: Yields points (P, m), is sent their values (P,), returns a result.
Search: TypeAlias = Generator[FloatArray, FloatArray, T]

#: Most rounds of a minimum: golden sections down to 1e-6 of the bracket.
_ROUNDS = 30
#: Stands for the value where there is none: above all others.
_NOWHERE = 1e30


def lockstep(searches: Sequence[Search[T]], evaluate: Evaluate) -> list[T]:
    """Run all searches to their ends; one call of ``evaluate`` per round."""
    results: list[Any] = [None] * len(searches)
    pending: dict[int, FloatArray] = {}

    def advance(number: int, values: FloatArray | None) -> None:
        try:
            pending[number] = searches[number].send(values)  # type: ignore[arg-type]
        except StopIteration as stop:
            pending.pop(number, None)
            results[number] = stop.value

    for number in range(len(searches)):
        advance(number, None)
    while pending:
        asked = list(pending.items())
        owners = [number for number, points in asked for _ in points]
        values = evaluate(owners, np.concatenate([points for _, points in asked]))
        start = 0
        for number, points in asked:
            advance(number, values[start : start + len(points)])
            start += len(points)
    return results


@dataclass(frozen=True)
class Bracket:
    """Points of the function ``owner`` with its values there."""

    owner: int
    points: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Found:
    """A minimum: where (m,), how low, within which distance, after how many evaluations."""

    point: FloatArray
    value: float
    width: float
    evaluations: int


def minima(brackets: Sequence[Bracket], evaluate: Evaluate, tolerance: float) -> list[Found]:
    """A minimum in each bracket: of three points, the lowest in the middle, or of two, the first
    of them an end of the interval and lower than its neighbour.

    Values may be infinite. One step inwards tells whether an end itself is the minimum.
    """
    ends = [b for b in brackets if len(b.points) == 2]
    inwards = [b.points[0] + 1e-3 * (b.points[1] - b.points[0]) for b in ends]
    near = _asked([b.owner for b in ends], inwards, evaluate)
    inner: dict[int, Bracket] = {id(b): b for b in brackets if len(b.points) == 3}
    for bracket, x, value in zip(ends, inwards, near):
        if value < bracket.values[0]:
            pairs = zip((*bracket.points, x), (*bracket.values, value))
            points, values = zip(*sorted(pairs))
            inner[id(bracket)] = Bracket(bracket.owner, points, values)
    chosen = list(inner.values())
    found: dict[int, Found] = {}
    if chosen:
        solved = elementwise.find_minimum(
            _function(chosen, evaluate),
            tuple(np.array([b.points for b in chosen]).T),
            args=(np.arange(len(chosen)),),
            tolerances={"xatol": tolerance, "xrtol": 0.0, "fatol": 0.0, "frtol": 1e-10},
            maxiter=_ROUNDS,
        )
        left, right = solved.bracket[0], solved.bracket[-1]
        spent = np.asarray(solved.nfev) - 3
        for number, key in enumerate(inner):
            width = 0.5 * abs(float(right[number] - left[number]))
            place, value = np.array([solved.x[number]]), float(solved.f_x[number])
            found[key] = Found(place, value, width, int(spent[number]))
    plain = [Found(np.array([b.points[0]]), b.values[0], 0.0, 0) for b in brackets]
    results = [found.get(id(b), known) for b, known in zip(brackets, plain)]
    return [
        Found(f.point, f.value, f.width, f.evaluations + (len(b.points) == 2))
        for b, f in zip(brackets, results)
    ]


def roots(brackets: Sequence[Bracket], evaluate: Evaluate, tolerance: float) -> list[float]:
    """Where functions vanish between two points at which they have opposite signs.

    Without a change of sign, to rounding: the end where they are closer to zero. NaN where a
    function ends between the points, and has not vanished before.
    """
    if not brackets:
        return []
    solved = elementwise.find_root(
        _function(brackets, evaluate),
        tuple(np.array([b.points for b in brackets]).T),
        args=(np.arange(len(brackets)),),
        tolerances={"xatol": tolerance},
    )
    nearest = [b.points[int(np.argmin(np.abs(b.values)))] for b in brackets]
    ends = np.max(np.abs(solved.f_bracket), axis=0) >= _NOWHERE
    found = np.where(np.isfinite(solved.x), solved.x, nearest)
    return np.where(ends & (solved.f_x != 0), np.nan, found).tolist()


def _function(brackets: Sequence[Bracket], evaluate: Evaluate) -> Callable[..., FloatArray]:
    """What SciPy asks: values at points x of the brackets of these numbers, the known ones free."""
    known = {
        (number, float(x)): _height(value)
        for number, bracket in enumerate(brackets)
        for x, value in zip(bracket.points, bracket.values)
    }

    def values(x: FloatArray, numbers: FloatArray) -> FloatArray:
        keys = [(int(number), float(place)) for number, place in zip(numbers.flat, x.flat)]
        new = list(dict.fromkeys(key for key in keys if key not in known))
        found = _asked([brackets[number].owner for number, _ in new], [u for _, u in new], evaluate)
        known.update(zip(new, map(_height, found)))
        return np.reshape([known[key] for key in keys], x.shape)

    return values


def _asked(owners: list[int], places: Sequence[float], evaluate: Evaluate) -> list[float]:
    return evaluate(owners, np.array(places)[:, None]).tolist() if owners else []


def _height(value: float) -> float:
    return value if math.isfinite(value) else _NOWHERE
