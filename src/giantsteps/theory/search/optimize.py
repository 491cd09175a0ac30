"""``theory.optimize``: the best penalty, rate, split of samples, or any other numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from giantsteps.answers import Optimum, Risk, Solution
from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.problem import Grid, Problem
from giantsteps.theory.model.errors import Effort
from giantsteps.theory.scope.dispatch import answers
from giantsteps.theory.search.box import minimum_in_box
from giantsteps.theory.search.domain import Space
from giantsteps.theory.search.quantity import Asked, asked_of
from giantsteps.theory.search.walk import Bracket, Found, Search, lockstep, minima
from giantsteps.theory.steps.build import Models
from giantsteps.types import Array, FloatArray

#: Points of the scan along a single axis, and in all along several.
_SCAN, _SCAN_IN_ALL = 13, 256
#: Most local minima of the scan that are refined.
_STARTS = 3
#: Of the coordinates of the search (logarithms, mostly): 1e-10 and less of the risk.
_TOLERANCE = 1e-5
#: Share of the risk below which two of them are the same.
_SAME = 1e-9
#: What an optimum says of itself is what its errors say.
_STATED = ("source", "exact", "assumptions", "violated", "evidence", "references")


def optimize(
    problem: Problem | Grid,
    over: Sequence[str] = ("readout.penalty",),
    bounds: Mapping[str, tuple[float, float]] | None = None,
    budget: float | None = None,
    d: int | None = None,
) -> Optimum:
    r"""The values of some fields that minimise the test error.

    .. math:: x^* = \arg\min_{l \le x \le u} R(x), \qquad
              \text{with a budget } B:\quad \sum_{\text{fresh}} n_0/d + n/d = B

    A scan (in logarithms, except for exponents) finds the valleys; each is then refined by
    Chandrupatla's method, or, for several fields, by a trust region in a box. Over a grid all cells
    are searched in one batch, and none depends on the others.

    ======  ==========  ======================
    symbol  argument    meaning
    ======  ==========  ======================
    x       ``over``    the fields that vary
    l, u    ``bounds``  of each
    B       ``budget``  samples in all, over d
    R                   test error of `risk`
    ======  ==========  ======================

    Parameters
    ----------
    problem : Problem or Grid
        With a readout. Fields in ``over`` must not be axes of the grid.
    over : sequence of str
        Paths of numbers: ``"readout.penalty"``, ``"steps.0.rate"``, ``"steps.0.samples"``, ….
        ``"steps"`` is the number of steps: the samples and the rate of all of them together are
        split evenly (`Problem.split_steps`), with bounds (1, 5) by default. Together with it,
        ``"steps.0.samples"`` and ``"steps.0.rate"`` are the totals over all steps.
    bounds : mapping, optional
        Path → (lower, upper). By default penalties lie in [1e-6, 1e4], rates in [1e-4, 1] times
        the one that moves the neurons by η̃ = 10 (100 in the limit below exponent 1/2), exponents
        in [0, 1/2], samples in [0.1, 100], the width in [0.1, 10], the alignment of teacher and
        spike of the inputs in [0, 1].
    budget : float, optional
        Total number of samples, (n₀ + n)/d. ``over`` then names the samples of one step or more,
        and the readout takes the rest; batches that are used again cost nothing.
    d : int, optional
        Input dimension, as in `risk`. Sizes are whole numbers then.

    Returns
    -------
    Optimum
        ``arguments`` by path, ``value`` (the errors there), ``at_bound`` by path, ``best`` (the
        problem itself).

    Notes
    -----
    A budget that is used twice, by the step and by the readout, may beat every split of it:
    the result says so, and ``Optimum.simulate_one_batch`` measures by how much.

    Where the theory has no answer inside the bounds (a penalty that is too small for a saturated
    activation, an exponent on a boundary), the search is restricted to where it has one.

    References
    ----------
    theory §4, §5c.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="tanh", noise_variance=0.1, width=1.25,
    ...                      steps=[gs.Step(samples=3, rate=3)],
    ...                      readout=gs.Ridge(samples=3, penalty=0.05))
    >>> best = optimize(problem)
    >>> round(best.arguments["readout.penalty"], 4), round(best.value.test, 6)
    (0.0676, 0.121112)

    Ten times d samples, for one to three giant steps and the readout:

    >>> large = problem.replace({"steps.0.exponent": 0.5, "steps.0.rate": 1.5,
    ...                          "init.second_layer": "constant"})
    >>> found = optimize(large, ("steps", "steps.0.samples"), {"steps": (1, 3)}, budget=10, d=500)
    >>> found.arguments["steps"], found.arguments["steps.0.samples"], round(found.value.test, 4)
    (3.0, 4.336, 0.0524)
    """
    over = (over,) if isinstance(over, str) else over
    if not isinstance(over, Sequence):
        raise InvalidProblem("over", over, "a field, or several, such as 'readout.penalty'")
    if "steps" in over:
        return _over_steps(problem, over, bounds, budget, d)
    return _search(problem, over, bounds, budget, d)


def _search(
    problem: Problem | Grid,
    over: Sequence[str],
    bounds: Mapping[str, tuple[float, float]] | None,
    budget: float | None,
    d: int | None,
    steps: int | None = None,
) -> Optimum:
    """The best values of numeric fields; with ``steps`` of problems whose step is split evenly."""

    def posed(space: Space, changes: Mapping[str, float]) -> Problem:
        found = space.problem.replace(dict(changes))
        return found if steps is None else found.split_steps(steps)

    cells = _cells(problem, over, bounds, budget, d)
    spaces = [cell.space for cell in cells]

    models: Models = {}
    lowest = [Found(cell.scan[0], math.inf, 0.0, 0) for cell in cells]

    def ask(owners: list[int], points: FloatArray, effort: Effort = "answer") -> Asked:
        asked = [posed(spaces[i], spaces[i].changes(p)) for i, p in zip(owners, points)]
        found = asked_of("test", asked, d, effort, models)
        values = np.where(np.isnan(found.values), np.inf, found.values)
        for i, point, value in zip(owners, points, values) if effort == "search" else ():
            if not lowest[i].value <= value:
                lowest[i] = Found(point, float(value), 0.0, 0)
        return found._replace(values=values)

    def evaluate(owners: list[int], points: FloatArray) -> FloatArray:
        return ask(owners, points, "search").values

    heights = _scanned(cells, ask)
    if not all(np.any(np.isfinite(values)) for values in heights):
        raise NotCovered(
            f"an optimum over {', '.join(over)}",
            "the test error is infinite wherever it is known",
            "a positive penalty, or samples other than the width",
        )
    valleys = [
        (i, index)
        for i, (cell, values) in enumerate(zip(cells, heights))
        for index in cell.valleys(values)
    ]
    of = [i for i, _ in valleys]
    if len(cells[0].shape) > 1:
        searches = [cells[i].in_box(index) for i, index in valleys]
        found = lockstep(searches, lambda many, points: evaluate([of[n] for n in many], points))
    else:
        brackets = [cells[i].bracket(i, heights[i], at) for i, (at,) in valleys]
        found = minima(brackets, evaluate, _TOLERANCE)
    best = [
        min((f for f, owner in zip(found, of) if owner == i), key=lambda f: f.value)
        for i in range(len(cells))
    ]
    best = [low if low.value < one.value * (1 - _SAME) else one for one, low in zip(best, lowest)]
    spent = [
        len(cell.scan) + sum(f.evaluations for f, owner in zip(found, of) if owner == i)
        for i, cell in enumerate(cells)
    ]
    return _answer(problem, spaces, best, spent, d, posed)


def _over_steps(
    problem: Problem | Grid,
    over: Sequence[str],
    bounds: Mapping[str, tuple[float, float]] | None,
    budget: float | None,
    d: int | None,
) -> Optimum:
    """The best number of equal steps, with the other fields at their best for each number."""
    if not isinstance(problem, Problem):
        raise InvalidProblem("over", "steps", "fields that are no axis, for a single problem")
    problem.require_readout()
    others = tuple(path for path in over if path != "steps")
    for path in others:
        if path.startswith("steps.") and not path.startswith("steps.0."):
            allowed = '"steps.0.…" beside "steps", which stands for all steps together'
            raise InvalidProblem("over", path, allowed)
    given = dict(bounds or {})
    stated = given.pop("steps", (1, 5))
    try:
        low, high = (float(bound) for bound in stated)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (low.is_integer() and high.is_integer() and 1 <= low <= high):
        raise InvalidProblem("bounds['steps']", stated, "whole numbers, 1 <= lower <= upper")
    counts = range(int(low), int(high) + 1)
    together = problem.split_steps(1)
    found: list[tuple[Risk, Optimum | None]]
    if others or budget is not None:
        inner = [_search(together, others, given or None, budget, d, count) for count in counts]
        found = [(one.value, one) for one in inner]
    else:
        split = [together.split_steps(count) for count in counts]
        found = [(value, None) for value in answers("risk", split, d)]
    at = int(np.argmin([float(value.test) for value, _ in found]))
    value, within = found[at]
    side = float(at == len(counts) - 1) - float(at == 0)
    return Optimum(
        problem=problem,
        d=d,
        **{name: getattr(value, name) for name in _STATED},
        solution=Solution(status="converged", iterations=len(counts)),
        arguments={"steps": float(counts[at]), **(within.arguments if within else {})},
        value=value,
        sides={"steps": side, **(within.sides if within else {})},
    )


def _scanned(cells: Sequence[_Cell], ask: Callable[..., Asked]) -> list[FloatArray]:
    """The test error at the points of each scan: in valleys and wherever it may be lowest as it is,
    elsewhere at the first resolution.

    Raises
    ------
    NotCovered, NotConverged
        If there is no answer anywhere.
    """
    owners = [i for i, cell in enumerate(cells) for _ in cell.scan]
    points = np.concatenate([cell.scan for cell in cells])
    heights, doubts, refusal = ask(owners, points, "scan")
    ends = np.cumsum([len(cell.scan) for cell in cells])
    parts = [slice(end - len(cell.scan), end) for cell, end in zip(cells, ends)]
    sure = ~np.isfinite(heights)
    while not sure.all():
        wanted = np.zeros_like(sure)
        for cell, part in zip(cells, parts):
            wanted[part] = cell.matters(heights[part])
            lowest = np.min(heights[part], initial=np.inf, where=sure[part])
            if np.isfinite(lowest):
                wanted[part] |= heights[part] - doubts[part] <= lowest
        if not (wanted := wanted & ~sure).any():
            break
        found = ask([owners[i] for i in np.flatnonzero(wanted)], points[wanted], "search")
        heights[wanted], sure = found.values, sure | wanted
        refusal = found.refusal or refusal
    if refusal is not None and not np.any(np.isfinite(heights)):
        raise refusal
    return [heights[part] for part in parts]


@dataclass(frozen=True)
class _Cell:
    """One problem: its space, and the scan as points (P, m) of a tensor of the given shape."""

    space: Space
    shape: tuple[int, ...]
    scan: FloatArray

    def valleys(self, values: FloatArray) -> list[tuple[int, ...]]:
        """Where the lowest valleys of the scan are."""
        tensor = values.reshape(self.shape)
        found = [index for index in np.ndindex(*self.shape) if _is_valley(tensor, index)]
        return sorted(found, key=lambda index: tensor[index])[:_STARTS]

    def matters(self, values: FloatArray) -> Array:
        """The lowest valleys of the scan and their neighbours."""
        found = np.zeros(self.shape, dtype=bool)
        for index in self.valleys(values):
            for axis, at in enumerate(index):
                near: list[int | slice] = [
                    *index[:axis],
                    slice(max(at - 1, 0), at + 2),
                    *index[axis + 1 :],
                ]
                found[tuple(near)] = True
        return found.ravel()

    def in_box(self, index: tuple[int, ...]) -> Search[Found]:
        """The search from a valley over several fields."""
        space, start = self.space, self.scan.reshape(*self.shape, -1)[index]
        spacing = (space.upper - space.lower) / (np.array(self.shape) - 1)
        return minimum_in_box(start, space.lower, space.upper, spacing, space.step, space.snap)

    def bracket(self, number: int, values: FloatArray, at: int) -> Bracket:
        """A valley along one field with its neighbours."""
        last = len(values) - 1
        near = [at, 1 if at == 0 else last - 1] if at in (0, last) else [at - 1, at, at + 1]
        return Bracket(number, tuple(self.scan[near, 0].tolist()), tuple(values[near].tolist()))


def _is_valley(tensor: FloatArray, index: tuple[int, ...]) -> bool:
    """Whether no neighbour along an axis is lower (of equal ones, the first)."""
    if not np.isfinite(tensor[index]):
        return False
    for axis, at in enumerate(index):
        for shift in (-1, 1):
            if 0 <= at + shift < tensor.shape[axis]:
                there = tensor[(*index[:axis], at + shift, *index[axis + 1 :])]
                if there < tensor[index] or (shift < 0 and there == tensor[index]):
                    return False
    return True


def _cells(
    target: Problem | Grid,
    over: Sequence[str],
    bounds: Mapping[str, tuple[float, float]] | None,
    budget: float | None,
    d: int | None,
) -> list[_Cell]:
    if not isinstance(target, Problem | Grid):
        raise InvalidProblem("problem", target, "a Problem or a Grid")
    if not over or len(set(over)) < len(over):
        raise InvalidProblem("over", over, 'distinct paths, such as ("readout.penalty",)')
    varied = set(getattr(target, "dims", ())) & {*over}
    if varied:
        raise InvalidProblem("over", sorted(varied)[0], "another field: the grid varies this one")
    problems = [target] if isinstance(target, Problem) else list(target)
    problems[0].require_readout()
    cells = []
    for problem in problems:
        space = Space.of(problem, over, bounds, budget, d)
        size = len(space.axes)
        count = _SCAN if size == 1 else max(3, round(_SCAN_IN_ALL ** (1.0 / size)))
        scans = [axis.scan(count) for axis in space.axes]
        points = space.snap(np.array(list(itertools.product(*scans))))
        cells.append(_Cell(space, (count,) * size, points))
    return cells


def _answer(
    target: Problem | Grid,
    spaces: Sequence[Space],
    best: Sequence[Found],
    spent: Sequence[int],
    d: int | None,
    posed: Callable[[Space, Mapping[str, float]], Problem],
) -> Optimum:
    points = [space.snap(found.point[None])[0] for space, found in zip(spaces, best)]
    arguments = [space.changes(point) for space, point in zip(spaces, points)]
    values = answers("risk", [posed(*cell) for cell in zip(spaces, arguments)], d)
    sides = [space.sides(point) for space, point in zip(spaces, points)]
    shape = () if isinstance(target, Problem) else target.shape
    value = values[0] if isinstance(target, Problem) else Risk.stack(target, values)
    return Optimum(
        problem=target,
        d=d,
        **{name: getattr(value, name) for name in _STATED},
        solution=Solution(
            status="converged",
            residual=np.reshape([found.width for found in best], shape),
            iterations=np.reshape(spent, shape),
        ),
        arguments={p: np.reshape([a[p] for a in arguments], shape) for p in arguments[0]},
        value=value,
        sides={p: np.reshape([side[p] for side in sides], shape) for p in sides[0]},
    )
