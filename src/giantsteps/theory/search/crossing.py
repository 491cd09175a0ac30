"""``theory.crossing``: where a curve of the theory passes a level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from giantsteps.answers import Crossing, Solution
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid, Problem
from giantsteps.theory.scope.dispatch import resolve
from giantsteps.theory.search.domain import axis_of
from giantsteps.theory.search.quantity import level_of, values_of
from giantsteps.theory.search.walk import Bracket, Evaluate, minima, roots
from giantsteps.types import FloatArray

_SCAN = 33
#: Of the coordinate of the search (a logarithm, mostly).
_TOLERANCE = 1e-13


def crossing(
    problem: Problem | Grid,
    along: str = "readout.samples",
    level: float | str = "floor",
    quantity: str = "test",
    bounds: tuple[float, float] | None = None,
    d: int | None = None,
) -> Crossing:
    r"""Every value of one field at which a quantity takes a given value.

    .. math:: q(x) = \ell, \qquad l \le x \le u

    A scan finds the changes of sign of q − ℓ and the peaks and valleys that come close to ℓ
    between its points; roots are then found to the last digits.

    ======  ============  =====================
    symbol  argument      meaning
    ======  ============  =====================
    q       ``quantity``  what crosses
    ℓ       ``level``     the value
    x       ``along``     the field that varies
    l, u    ``bounds``    where it is searched
    ======  ============  =====================

    Parameters
    ----------
    problem : Problem or Grid
        ``along`` must not be an axis of the grid.
    along : str
        Path of the field that varies.
    level : float or "floor"
        ℓ; ``"floor"`` is E σ*² − μ₁*², which no kernel passes: where learning features pays.
    quantity : str
        ``"test"``, ``"test_noisy"``, ``"train"``, ``"initial.test"``, ``"gain"`` (R₀ − R),
        ``"gain over floor"``, or ``"rate over critical"`` (1 where the weight spike appears).
    bounds : pair of float, optional
        The interval to search; defaults as in `optimize`.
    d : int, optional
        Input dimension, as in `risk`. Between whole sizes the quantity is interpolated.

    Returns
    -------
    Crossing
        ``value`` (the first, NaN where there is none), ``values`` (all), ``statement`` in words.

    References
    ----------
    theory §4.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=20, rate=3, exponent=0.5)],
    ...                      readout=gs.Ridge(samples=1, penalty=0.1),
    ...                      init=gs.Init(second_layer="constant"))
    >>> crossing(problem, along="steps.0.samples", bounds=(0.5, 20)).statement
    'test = 0.0644529 at steps.0.samples = 7.80179'
    """
    if not isinstance(problem, Problem | Grid):
        raise InvalidProblem("problem", problem, "a Problem or a Grid")
    if along in getattr(problem, "dims", ()):
        raise InvalidProblem("along", along, "no axis of the grid")
    cells = [problem] if isinstance(problem, Problem) else list(problem)
    axes = [axis_of(cell, along, bounds, d) for cell in cells]
    levels = np.array([level_of(cell, level, quantity) for cell in cells])

    def evaluate(owners: list[int], coordinates: FloatArray) -> FloatArray:
        parts = [axes[i].around(axes[i].value(u), d) for i, u in zip(owners, coordinates.flat)]
        asked = [
            cells[i].replace({along: value}) for i, part in zip(owners, parts) for value, _ in part
        ]
        weights = np.array([weight for part in parts for _, weight in part])
        starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
        return np.add.reduceat(weights * values_of(quantity, asked, d), starts) - levels[owners]

    scans = np.array([axis.scan(_SCAN) for axis in axes])
    gaps = evaluate([i for i in range(len(cells)) for _ in range(_SCAN)], scans)
    gaps = gaps.reshape(scans.shape)
    brackets = _brackets(scans, gaps, evaluate)
    found: list[list[float]] = [[] for _ in cells]
    for bracket, coordinate in zip(brackets, roots(brackets, evaluate, _TOLERANCE)):
        found[bracket.owner].append(axes[bracket.owner].value(coordinate))
    covered = [
        (cell, axis, u[np.isfinite(gap)][0]) for cell, axis, u, gap in zip(cells, axes, scans, gaps)
    ]
    most = max(len(places) for places in found)
    padded = [sorted(places) + [math.nan] * (most - len(places)) for places in found]
    shape = () if isinstance(problem, Problem) else problem.shape
    return Crossing(
        problem=problem,
        d=d,
        source="limit" if d is None else "finite width",
        **_stated([c.replace({along: a.value(u)}) for c, a, u in covered], quantity, d),
        solution=Solution(status="converged", residual=_TOLERANCE),
        values=np.reshape(padded, (*shape, most)),
        level=levels.reshape(shape),
        start=gaps[:, 0].reshape(shape),
        along=along,
        quantity=quantity,
        bounds=(axes[0].lower, axes[0].upper),
    )


def _stated(problems: Sequence[Problem], quantity: str, d: int | None) -> dict[str, Any]:
    """What the answer says of itself: the union over the cells."""
    question = "critical_rate" if quantity == "rate over critical" else "risk"
    rules = [resolve(question, problem, d) for problem in problems]
    violated = [rule.violated(problem) for rule, problem in zip(rules, problems)]
    return {
        "exact": not any(violated),
        "assumptions": tuple(dict.fromkeys(a for rule in rules for a in rule.assumptions)),
        "violated": tuple(dict.fromkeys(v for each in violated for v in each)),
        "references": tuple(dict.fromkeys(r for rule in rules for r in rule.references)),
        "evidence": "; ".join(dict.fromkeys(rule.evidence for rule in rules)),
    }


def _brackets(scans: FloatArray, gaps: FloatArray, evaluate: Evaluate) -> list[Bracket]:
    """Intervals with a change of sign, by cell; peaks between points included."""
    found: list[Bracket] = []
    peaks: list[tuple[int, int]] = []
    for cell, (u, gap) in enumerate(zip(scans.tolist(), gaps.tolist())):
        for i in range(len(u) - 1):
            if (gap[i] < 0) != (gap[i + 1] < 0) and np.all(np.isfinite(gap[i : i + 2])):
                found.append(Bracket(cell, tuple(u[i : i + 2]), tuple(gap[i : i + 2])))
        # A distance to the level that is smallest inside, all on one side of it.
        for i in range(1, len(u) - 1):
            near = np.abs(gap[i - 1 : i + 2])
            same = len({bool(g < 0) for g in gap[i - 1 : i + 2]}) == 1
            if same and np.all(np.isfinite(near)) and near[1] <= min(near[0], near[2]):
                peaks.append((cell, i))
    signs = np.array([-1.0 if gaps[peak] < 0 else 1.0 for peak in peaks])

    def towards(numbers: list[int], us: FloatArray) -> FloatArray:
        return signs[numbers] * evaluate([peaks[n][0] for n in numbers], us)

    near_level = []
    for number, (cell, i) in enumerate(peaks):
        three = slice(i - 1, i + 2)
        heights = signs[number] * gaps[cell, three]
        near_level.append(Bracket(number, (*scans[cell, three].tolist(),), (*heights.tolist(),)))
    for (cell, i), sign, low in zip(peaks, signs, minima(near_level, towards, 1e-6)):
        for j in (i - 1, i + 1) if low.value < 0 else ():
            ends = float(scans[cell, j]), float(low.point[0])
            found.append(Bracket(cell, ends, (float(gaps[cell, j]), float(sign * low.value))))
    return found
