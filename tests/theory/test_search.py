"""Minima and roots of functions that are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.optimize import rosen

from giantsteps.theory.search.box import minimum_in_box
from giantsteps.theory.search.walk import Bracket, lockstep, minima, roots


def evaluated(
    functions: Sequence[Callable[..., Any]],
) -> tuple[Callable[..., np.ndarray], np.ndarray]:
    """The functions one a search, and a record of how often each was asked."""
    asked = np.zeros(len(functions), dtype=int)

    def evaluate(owners: Any, points: Any) -> np.ndarray:
        np.add.at(asked, owners, 1)
        return np.array([functions[i](*point) for i, point in zip(owners, points)])

    return evaluate, asked


def test_minima_of_many_functions() -> None:
    places = [-0.7, 0.1, 0.35]
    functions: list[Callable[[float], float]] = [
        lambda x: (x - places[0]) ** 4,
        lambda x: np.cosh(x - places[1]),
        lambda x: -np.exp(-50 * (x - places[2]) ** 2) if x < 0.8 else np.nan,
    ]
    evaluate, asked = evaluated(functions)
    points = [(-2.0, 0.5, 2.0), (-2.0, -0.5, 2.0), (0.0, 0.3, 0.9)]
    brackets = [
        Bracket(i, at, tuple(np.nan_to_num([f(x) for x in at], nan=np.inf)))
        for i, (f, at) in enumerate(zip(functions, points))
    ]
    found = minima(brackets, evaluate, 1e-7)
    assert [f.point[0] for f in found[1:]] == pytest.approx(places[1:], abs=1e-6)
    assert found[0].value < 1e-8
    assert [f.evaluations for f in found] == list(asked)
    assert asked[1] < 15


@pytest.mark.parametrize(("end", "inner"), [(0.0, 1.0), (1.0, 0.0)])
def test_an_end_is_the_minimum_or_not(end: float, inner: float) -> None:
    rising, _ = evaluated([lambda x: abs(x - end)])
    (found,) = minima([Bracket(0, (end, inner), (0.0, 1.0))], rising, 1e-6)
    assert found.point[0] == end
    assert found.evaluations == 1
    place = end + 0.2 * (inner - end)
    bowl, _ = evaluated([lambda x: (x - place) ** 2])
    (found,) = minima([Bracket(0, (end, inner), (0.04, 0.64))], bowl, 1e-6)
    assert found.point[0] == pytest.approx(place, abs=1e-6)


def test_roots_to_the_last_digits() -> None:
    functions: list[Callable[[float], float]] = [
        np.cos, lambda x: x**3 - 2, lambda x: np.tanh(50 * (x - 0.123)), np.expm1
    ]  # fmt: skip
    evaluate, asked = evaluated(functions)
    ends = [(1.0, 2.0), (0.0, 2.0), (-1.0, 1.0), (0.0, 1.0)]
    brackets = [Bracket(i, e, (f(e[0]), f(e[1]))) for i, (f, e) in enumerate(zip(functions, ends))]
    found = roots(brackets, evaluate, 1e-14)
    assert found == pytest.approx([np.pi / 2, 2 ** (1 / 3), 0.123, 0.0], abs=1e-13)
    assert asked[0] < 10
    assert asked[3] == 0  # the end is the root


def everywhere(size: int) -> Callable[[np.ndarray, float], np.ndarray]:
    return lambda x, step: np.full(size, step)


def test_a_narrow_curved_valley() -> None:
    evaluate, asked = evaluated([lambda *x: rosen(np.array(x)), lambda *x: rosen(np.array(x))])
    lower, upper, scale = np.full(2, -2.0), np.full(2, 2.0), np.full(2, 0.5)
    shape = (lower, upper, scale, everywhere(2), lambda x: x)
    searches = [minimum_in_box(np.array(start), *shape) for start in ([-1.2, 1.0], [1.5, -1.5])]
    for found in lockstep(searches, evaluate):
        assert found.point == pytest.approx([1.0, 1.0], abs=1e-3)
        assert found.value < 1e-6
    assert asked.max() < 600


def test_a_minimum_on_a_face_of_the_box() -> None:
    evaluate, _ = evaluated([lambda x, y, z: (x - 3) ** 2 + (y + x - 1) ** 2 + z**2 + 0.1 * x * z])
    search = minimum_in_box(
        np.array([0.5, 0.5, 0.5]),
        np.full(3, -1.0),
        np.ones(3),
        np.full(3, 0.3),
        everywhere(3),
        lambda x: x,
    )
    (found,) = lockstep([search], evaluate)
    assert found.point == pytest.approx([1.0, 0.0, -0.05], abs=1e-6)


def test_values_on_a_lattice() -> None:
    """Where points are rounded the best lattice point is found, or one as good."""
    spacing = 0.013
    snap = lambda points: np.round(points / spacing) * spacing  # noqa: E731

    def f(x: float, y: float) -> float:
        return (x - 0.4) ** 2 + 3 * (y - 0.2 + 0.5 * x) ** 2

    evaluate, _ = evaluated([f])
    search = minimum_in_box(
        np.array([-0.5, 0.5]),
        np.full(2, -1.0),
        np.ones(2),
        np.full(2, 0.5),
        lambda x, step: np.full(2, max(step, 4 * spacing)),
        snap,
    )
    (found,) = lockstep([search], evaluate)
    grid = np.arange(-77, 78) * spacing
    best = min(f(x, y) for x in grid for y in grid)
    assert found.value < best + 3 * spacing**2
