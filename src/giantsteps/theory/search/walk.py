"""Searches in lockstep: minima and roots of many functions, evaluated together.

A search is a generator: it yields points and is sent the values there, so that each method reads
like its textbook form while `lockstep` evaluates the points of all searches in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
T = TypeVar("T")

#: Yields points (P, m), is sent their values (P,), returns a result.
Search: TypeAlias = Generator[Array, Array, T]

_GOLDEN = 0.5 * (3.0 - math.sqrt(5.0))


def lockstep(
    searches: Sequence[Search[T]], evaluate: Callable[[list[int], Array], Array]
) -> list[T]:
    """Run all searches to their ends.

    Parameters
    ----------
    searches : sequence of generators
    evaluate : callable
        (number of the search of each point, points (P, m)) ↦ values (P,); one call a round.
    """
    results: list[Any] = [None] * len(searches)
    pending: dict[int, Array] = {}

    def advance(number: int, values: Array | None) -> None:
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
class Found:
    """A minimum: where (m,), how low, within which distance, after how many evaluations."""

    point: Array
    value: float
    width: float
    evaluations: int


def minimum(
    points: tuple[float, float, float], values: tuple[float, float, float], tolerance: float
) -> Search[Found]:
    """Brent's method from a bracket a < x < b, f(x) ≤ f(a), f(b); values may be infinite.

    It also ends where the next parabola would move the minimum by less than the tolerance, judged
    by the last step times the distance of the points relative to the bracket at the start.
    """
    a, x, b = points
    fx, whole = values[1], b - a
    (fw, w), (fv, v) = sorted([(values[0], a), (values[2], b)])
    step = before = b - a
    evaluations, left = 0, math.inf
    while evaluations < 100 and left > tolerance:
        middle = 0.5 * (a + b)
        if abs(x - middle) <= 2.0 * tolerance - 0.5 * (b - a):
            break
        trial, usable = _parabola(x, w, v, fx, fw, fv)
        if not (usable and abs(trial) < 0.5 * abs(before) and a < x + trial < b):
            before = (a if x >= middle else b) - x
            trial = _GOLDEN * before
        else:
            before = step
            left = abs(trial) * max(abs(x - w), abs(x - v)) / whole
            if min(x + trial - a, b - x - trial) < 2.0 * tolerance:
                trial = math.copysign(tolerance, middle - x)
        step = trial if abs(trial) >= tolerance else math.copysign(tolerance, trial)
        u = x + step
        fu = float((yield np.array([[u]]))[0])
        fu = math.inf if math.isnan(fu) else fu
        evaluations += 1
        if fu <= fx:
            a, b = (a, x) if u < x else (x, b)
            (v, fv), (w, fw), (x, fx) = (w, fw), (x, fx), (u, fu)
        else:
            a, b = (u, b) if u < x else (a, u)
            if fu <= fw or w == x:
                (v, fv), (w, fw) = (w, fw), (u, fu)
            elif fu <= fv or v in (x, w):
                v, fv = u, fu
    return Found(np.array([x]), fx, min(left, 0.5 * (b - a)), evaluations)


def _parabola(x: float, w: float, v: float, fx: float, fw: float, fv: float) -> tuple[float, bool]:
    """Step from x to the vertex of the parabola through three points."""
    if not (math.isfinite(fw) and math.isfinite(fv)):
        return 0.0, False
    r, q = (x - w) * (fx - fv), (x - v) * (fx - fw)
    denominator = 2.0 * (q - r)
    if denominator == 0.0:
        return 0.0, False
    return -((x - v) * q - (x - w) * r) / denominator, True


def minimum_at_end(
    end: float, inner: float, values: tuple[float, float], tolerance: float
) -> Search[Found]:
    """The minimum between an end of the interval, the lowest point so far, and its neighbour.

    One step inwards tells whether the end itself is the minimum.
    """
    inwards = end + 1e-3 * (inner - end)
    near = float((yield np.array([[inwards]]))[0])
    if not near < values[0]:
        return Found(np.array([end]), values[0], 0.0, 1)
    bracket = [(end, values[0]), (inwards, near), (inner, values[1])]
    (a, fa), (x, fx), (b, fb) = sorted(bracket)
    found = yield from minimum((a, x, b), (fa, fx, fb), tolerance)
    return Found(found.point, found.value, found.width, found.evaluations + 1)


def root(ends: tuple[float, float], values: tuple[float, float], tolerance: float) -> Search[float]:
    """The root between two points where a function has opposite signs: Chandrupatla's method."""
    (a, b), (fa, fb) = ends, values
    t = fa / (fa - fb) if math.isfinite(fa - fb) else 0.5
    for _ in range(200):
        if fa == 0.0 or fb == 0.0:
            break
        x = a + t * (b - a)
        fx = float((yield np.array([[x]]))[0])
        if (fx < 0) == (fa < 0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, fx
        limit = tolerance / abs(b - a) if b != a else math.inf
        if fa == 0.0 or limit > 0.5:
            break
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb) if fc != fb else 0.0
        t = 0.5
        if phi**2 < xi and (1.0 - phi) ** 2 < 1.0 - xi:
            t = fa / (fb - fa) * fc / (fb - fc)
            t += (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        t = min(max(t, limit), 1.0 - limit)
    return a if abs(fa) < abs(fb) else b
