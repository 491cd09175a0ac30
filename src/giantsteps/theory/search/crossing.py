"""``theory.crossing``: where a curve of the theory passes a level."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from giantsteps.answers import Crossing, Solution
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid, Problem
from giantsteps.theory.model.errors import Effort
from giantsteps.theory.scope.dispatch import resolve
from giantsteps.theory.search.domain import axis_of
from giantsteps.theory.search.quantity import Asked, asked_of, level_of
from giantsteps.theory.search.walk import Bracket, Evaluate, minima, roots
from giantsteps.theory.steps.build import Models
from giantsteps.types import Array, FloatArray

_SCAN = 33
#: Quantities whose peaks may be narrow, but not their valleys.
_ERRORS = ("test", "test_noisy", "train", "initial.test")
#: Points that are asked before there is said to be no answer anywhere.
_TRIED = 4
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
        ℓ; ``"floor"`` is E σ*² − μ₁*², below which no kernel gets: where learning features pays.
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
        raise InvalidProblem("along", along, "another field: the grid varies this one")
    cells = [problem] if isinstance(problem, Problem) else list(problem)
    axes = [axis_of(cell, along, bounds, d) for cell in cells]
    levels = np.array([level_of(cell, level, quantity) for cell in cells])

    models: Models = {}

    def ask(owners: list[int], coordinates: FloatArray, effort: Effort = "answer") -> Asked:
        parts = [axes[i].around(axes[i].value(u), d) for i, u in zip(owners, coordinates.flat)]
        asked = [
            cells[i].replace({along: value}) for i, part in zip(owners, parts) for value, _ in part
        ]
        weights = np.array([weight for part in parts for _, weight in part])
        starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
        found = asked_of(quantity, asked, d, effort, models)
        values, doubts = (np.add.reduceat(weights * part, starts) for part in found[:2])
        return Asked(values - levels[owners], doubts, found.refusal)

    def evaluate(owners: list[int], coordinates: FloatArray) -> FloatArray:
        return ask(owners, coordinates, "search").values

    scans = np.array([axis.scan(_SCAN) for axis in axes])
    gaps = _scanned(scans, ask)
    brackets = _brackets(scans, gaps, evaluate, quantity in _ERRORS)
    found: list[list[float]] = [[] for _ in cells]
    for bracket, coordinate in zip(brackets, roots(brackets, evaluate, _TOLERANCE)):
        if np.isfinite(coordinate):  # not between an answer and none
            found[bracket.owner].append(axes[bracket.owner].value(coordinate))
    first = np.argmax(np.isfinite(gaps), axis=1)
    covered = [(cell, axis, u[i]) for cell, axis, u, i in zip(cells, axes, scans, first)]
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
        start=gaps[np.arange(len(cells)), first].reshape(shape),
        along=along,
        quantity=quantity,
        bounds=(axes[0].lower, axes[0].upper),
    )


def _scanned(scans: FloatArray, ask: Callable[..., Asked]) -> FloatArray:
    """q − ℓ at the points of the scan: where it matters as it is, elsewhere on its side of zero.

    Raises
    ------
    NotCovered, NotConverged
        If a cell has no answer anywhere.
    """
    rows = np.repeat(np.arange(len(scans)), scans.shape[1])
    gaps, doubts, refusal = ask(rows.tolist(), scans, "scan")
    gaps, doubts = gaps.reshape(scans.shape), doubts.reshape(scans.shape)
    sure, tried = np.zeros(scans.shape, dtype=bool), set[int]()
    while (wanted := _matters(gaps, doubts) & ~sure).any():
        # Where the first has no answer, or many are in doubt, those that look best are asked; if
        # they have none either, no other is likely to.
        for row in np.flatnonzero(~(sure & np.isfinite(gaps)).any(axis=1)).tolist():
            rest = np.flatnonzero(np.isfinite(gaps[row]) & ~sure[row])
            if sure[row].any() or wanted[row].sum() > 2 * _TRIED:
                size = np.maximum(np.abs(gaps[row, rest]), 1e-300)
                best = np.argsort(doubts[row, rest] / size)[:_TRIED]
                wanted[row] = False
                wanted[row, rest[best]] = row not in tried
                gaps[row, rest] = np.nan if row in tried else gaps[row, rest]
                tried.add(row)
        if not wanted.any():
            break
        owners, columns = np.nonzero(wanted)
        found = ask(owners.tolist(), scans[owners, columns], "search")
        gaps[wanted], doubts[wanted] = found.values, 0.0
        refusal, sure = found.refusal or refusal, sure | wanted
    if refusal is not None and not np.isfinite(gaps).any(axis=1).all():
        raise refusal
    return gaps


def _matters(gaps: FloatArray, doubts: FloatArray) -> Array:
    """Ends of intervals with a change of sign, peaks with their neighbours, what may be zero, and
    the first answer.
    """
    known = np.isfinite(gaps)
    matters = known & ~(np.abs(gaps) > doubts)
    matters[np.arange(len(gaps)), np.argmax(known, axis=1)] = True
    for cell, i in _changes(gaps):
        matters[cell, i : i + 2] = True
    for cell, i in _peaks(gaps):
        matters[cell, i - 1 : i + 2] = True
    return matters & known


def _stated(problems: Sequence[Problem], quantity: str, d: int | None) -> dict[str, Any]:
    """What the answer says of itself: the union over the cells."""
    question = "critical_rate" if quantity == "rate over critical" else "risk"
    rules = [resolve(question, problem, d) for problem in problems]
    violated = [rule.violated(problem, d) for rule, problem in zip(rules, problems)]
    return {
        "exact": not any(violated),
        "assumptions": tuple(dict.fromkeys(a for rule in rules for a in rule.assumptions)),
        "violated": tuple(dict.fromkeys(v for each in violated for v in each)),
        "references": tuple(dict.fromkeys(r for rule in rules for r in rule.references)),
        "evidence": "; ".join(dict.fromkeys(rule.evidence for rule in rules)),
    }


def _changes(gaps: FloatArray) -> list[tuple[int, int]]:
    """(cell, i) where the sign changes between i and i + 1."""
    ends = gaps[:, :-1], gaps[:, 1:]
    changes = ((ends[0] < 0) != (ends[1] < 0)) & np.isfinite(ends[0]) & np.isfinite(ends[1])
    return [(int(cell), int(i)) for cell, i in zip(*np.nonzero(changes))]


def _peaks(gaps: FloatArray) -> list[tuple[int, int]]:
    """(cell, i) where the distance to the level is smallest inside, all on one side of it."""
    three = np.stack([gaps[:, :-2], gaps[:, 1:-1], gaps[:, 2:]])
    near = np.abs(three)
    same = np.all(three < 0, axis=0) | np.all(three >= 0, axis=0)
    peaks = same & np.isfinite(three).all(axis=0) & (near[1] <= np.minimum(near[0], near[2]))
    return [(int(cell), int(i) + 1) for cell, i in zip(*np.nonzero(peaks))]


def _stays_above(gaps: FloatArray, i: int) -> bool:
    """Whether a valley is higher above the level than its neighbours are above it."""
    return bool(gaps[i] > max(gaps[i - 1], gaps[i + 1]) - gaps[i])


def _brackets(
    scans: FloatArray, gaps: FloatArray, evaluate: Evaluate, broad: bool
) -> list[Bracket]:
    """Intervals with a change of sign, by cell; peaks between points included.

    ``broad``: valleys above the level are no narrower than their neighbours show.
    """
    found = [
        Bracket(cell, (*scans[cell, i : i + 2].tolist(),), (*gaps[cell, i : i + 2].tolist(),))
        for cell, i in _changes(gaps)
    ]
    peaks = [p for p in _peaks(gaps) if not (broad and _stays_above(gaps[p[0]], p[1]))]
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
