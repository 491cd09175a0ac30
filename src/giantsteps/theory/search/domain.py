"""Coordinates of a search: numeric fields of a problem, their bounds and natural scales."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from giantsteps.errors import InvalidProblem
from giantsteps.problem import Problem, number
from giantsteps.types import FloatArray

Bounds = Mapping[str, tuple[float, float]]

READOUT_SAMPLES = "readout.samples"
#: Fields that count something in units of d: integers/d for a network of size d.
_SIZES = re.compile(r"width|steps\.\d+\.samples|readout\.samples")
#: Shares of a budget that a step may take.
_SHARES = (0.01, 0.99)
#: Part of the upper bound below which a scale that starts at zero is linear.
_LINEAR_BELOW = 1e-6


@dataclass(frozen=True)
class Axis:
    """One field and the scale on which it is searched.

    ==================  ==========================================
    bounds              coordinate u of a value v
    ==================  ==========================================
    0 < lower           log v
    lower = 0           arsinh(v/c), c = 1e-6 · upper
    lower < 0           v
    a share of budget   log(v/(1 − v))
    ==================  ==========================================

    The exponent of a step, and numbers of the inputs, are searched as they are.
    """

    path: str
    lower: float
    upper: float
    share: bool = False

    def __post_init__(self) -> None:
        given = (self.lower, self.upper)
        if not (np.all(np.isfinite(given)) and self.lower < self.upper):
            raise InvalidProblem(f"bounds[{self.path!r}]", given, "finite numbers, lower < upper")

    @property
    def scale(self) -> str:
        if self.share:
            return "logit"
        plain = self.path.startswith("inputs.") or self.path.endswith("exponent")
        if plain or self.lower < 0:
            return "linear"
        return "log" if self.lower > 0 else "arsinh"

    def coordinate(self, value: float) -> float:
        """u of v."""
        if self.scale == "logit":
            return math.log(value / (1.0 - value))
        if self.scale == "arsinh":
            return math.asinh(value / (_LINEAR_BELOW * self.upper))
        return math.log(value) if self.scale == "log" else value

    def value(self, coordinate: float) -> float:
        """v of u, inside the bounds."""
        if self.scale == "logit":
            value = 1.0 / (1.0 + math.exp(-coordinate))
        elif self.scale == "arsinh":
            value = math.sinh(coordinate) * _LINEAR_BELOW * self.upper
        else:
            value = math.exp(coordinate) if self.scale == "log" else coordinate
        return float(min(max(value, self.lower), self.upper))

    def around(self, value: float, d: int | None) -> list[tuple[float, float]]:
        """(value, 1), or the two whole sizes around a size at finite d with their weights."""
        if d is None or not _SIZES.fullmatch(self.path):
            return [(value, 1.0)]
        below = max(1, math.floor(value * d))
        part = value * d - below
        if not part > 0:
            return [(below / d, 1.0)]
        return [(below / d, 1.0 - part), ((below + 1) / d, part)]

    @property
    def ends(self) -> tuple[float, float]:
        """Coordinates of the bounds."""
        return self.coordinate(self.lower), self.coordinate(self.upper)

    def scan(self, count: int) -> FloatArray:
        return np.linspace(*self.ends, count)


def axis_of(problem: Problem, path: str, bounds: object, d: int | None) -> Axis:
    """The axis of one field, with default bounds where none are given."""
    value = problem.get(path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidProblem("path", path, "the path of a number")
    if bounds is None:
        return Axis(path, *_default_bounds(problem, path, d))
    try:
        lower, upper = (float(bound) for bound in bounds)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise InvalidProblem(f"bounds[{path!r}]", bounds, "a pair (lower, upper)") from None
    return Axis(path, lower, upper)


def _default_bounds(problem: Problem, path: str, d: int | None) -> tuple[float, float]:
    """Where a field is searched unless the caller says."""
    if path == "readout.penalty":
        return 1e-6, 1e4
    if path.endswith(".rate"):
        # Up to a movement η̃ = 10 of the neurons.
        exponent = problem.get(path.removesuffix("rate") + "exponent")
        upper = 10.0 if exponent == 0.5 else 100.0
        if d is not None:
            upper = 10.0 * float(problem.at(d).neurons) ** (0.5 - exponent)
        return 1e-4 * upper, upper
    if path == "inputs.alignment":
        return 0.0, 1.0
    if path.startswith("steps.") and path.endswith(".exponent"):
        return 0.0, 0.5
    if _SIZES.fullmatch(path):
        return max(0.1, 1.0 / d if d else 0.0), 100.0 if path != "width" else 10.0
    raise InvalidProblem(f"bounds[{path!r}]", None, "given: this field has no natural range")


@dataclass(frozen=True)
class Space:
    """The fields that a search varies, from coordinates to changes of the problem."""

    problem: Problem
    #: One for each field; those with ``share`` take their part of what the ones before leave.
    axes: tuple[Axis, ...]
    budget: float | None = None  # Σ n₀/d over fresh batches + n/d of the readout
    d: int | None = None  # sizes are integers/d then

    @classmethod
    def of(
        cls,
        problem: Problem,
        over: Sequence[str],
        bounds: Bounds | None,
        budget: float | None,
        d: int | None,
    ) -> Space:
        """Check what is searched and find its bounds."""
        if bounds is not None and not isinstance(bounds, Mapping):
            raise InvalidProblem("bounds", bounds, 'a mapping such as {"steps.0.rate": (0.1, 10)}')
        given = dict(bounds or {})
        for path in given:
            if path not in over:
                allowed = f"for a field that is searched: {', '.join(over)}"
                raise InvalidProblem(f"bounds[{path!r}]", given[path], allowed)
        if budget is None:
            return cls(problem, tuple(axis_of(problem, p, given.get(p), d) for p in over), None, d)
        free = _free_budget(problem, over, budget)
        axes = []
        for path in over:
            if not _is_samples(path):
                axes.append(axis_of(problem, path, given.get(path), d))
            elif path != READOUT_SAMPLES:
                axes.append(_share(path, given.get(path), free, _splits(over)))
            elif path in given:
                raise InvalidProblem(
                    f"bounds[{path!r}]", given[path], "left out: the readout takes what is left"
                )
        return cls(problem, tuple(axes), float(budget), d)

    # -- from coordinates to problems -----------------------------------------------------------

    def changes(self, point: FloatArray) -> dict[str, float]:
        """Path → value at a point of the search."""
        rest = self._free
        found: dict[str, float] = {}
        for axis, coordinate in zip(self.axes, point):
            value = axis.value(float(coordinate))
            if axis.share:
                value = self._realised(axis.path, value * rest)
                rest -= value
            else:
                value = self._realised(axis.path, value)
            found[axis.path] = value
        if self.budget is not None:
            found[READOUT_SAMPLES] = rest
        return found

    def snap(self, points: FloatArray) -> FloatArray:
        """Coordinates of the values that the points stand for: sizes are integers at finite d."""
        if self.d is None:
            return points
        return np.array([self._coordinates(self.changes(point)) for point in points])

    def step(self, point: FloatArray, size: float) -> FloatArray:
        """Distance of interpolation points: of the given size, or a few integers."""
        values = self.changes(point)
        steps = np.full(len(self.axes), size)
        for i, axis in enumerate(self.axes):
            if axis.scale == "linear":
                steps[i] = size * (axis.upper - axis.lower)
            if self.d is not None and _SIZES.fullmatch(axis.path):
                moved = dict(values) | {axis.path: values[axis.path] + 1.0 / self.d}
                spacing = self._coordinates(moved)[i] - self._coordinates(values)[i]
                steps[i] = max(steps[i], 4.0 * spacing)
        return steps

    @cached_property
    def lower(self) -> FloatArray:
        return np.array([axis.ends[0] for axis in self.axes])

    @cached_property
    def upper(self) -> FloatArray:
        return np.array([axis.ends[1] for axis in self.axes])

    def sides(self, point: FloatArray) -> dict[str, float]:
        """−1 on a lower bound, 1 on an upper bound, 0 inside, for each axis."""
        near = 1e-6 * (self.upper - self.lower) + (0.0 if self.d is None else self._rounding(point))
        low, high = point <= self.lower + near, point >= self.upper - near
        return {axis.path: float(h) - float(l) for axis, l, h in zip(self.axes, low, high)}

    # -- details --------------------------------------------------------------------------------

    def _rounding(self, point: FloatArray) -> FloatArray:
        """How far a size at its bound may be moved by rounding."""
        sizes = np.array([bool(_SIZES.fullmatch(axis.path)) for axis in self.axes])
        return np.where(sizes, self.step(point, 0.0) / 8.0, 0.0)

    @property
    def _free(self) -> float:
        if self.budget is None:
            return 0.0
        return _free_budget(self.problem, [axis.path for axis in self.axes], self.budget)

    def _realised(self, path: str, value: float) -> float:
        if self.d is None or not _SIZES.fullmatch(path):
            return value
        return max(1, round(value * self.d)) / self.d

    def _coordinates(self, values: Mapping[str, float]) -> FloatArray:
        rest, found = self._free, []
        for axis in self.axes:
            value = values[axis.path]
            found.append(axis.coordinate(value / rest if axis.share else value))
            rest -= value if axis.share else 0.0
        return np.array(found)


def _is_samples(path: str) -> bool:
    return path.endswith(".samples")


def _splits(over: Sequence[str]) -> int:
    """How many steps share the budget."""
    return sum(_is_samples(path) and path != READOUT_SAMPLES for path in over)


def _free_budget(problem: Problem, over: Sequence[str], budget: object) -> float:
    """What of the budget the search may spend: all but fresh batches that stay as they are."""
    allowed = "a positive finite number, (n0 + n)/d"
    free = number(budget, "budget", allowed, lower=0.0, open_below=True)
    problem.require_readout()
    if not _splits(over):
        raise InvalidProblem(
            "over", tuple(over), 'a list with the samples of a step, such as "steps.0.samples", to '
            "split a budget; the readout takes what is left",
        )  # fmt: skip
    for index, step in enumerate(problem.steps):
        path = f"steps.{index}.samples"
        if step.batch == "previous" and path in over:
            raise InvalidProblem("over", path, "a step with its own batch: this one reuses one")
        if step.batch == "fresh" and path not in over:
            free -= step.samples
    if free <= 0:
        raise InvalidProblem("budget", budget, "larger than the samples that the fixed steps use")
    return free


def _share(path: str, bounds: object, free: float, splits: int) -> Axis:
    """The part of the budget that a step takes."""
    if bounds is None:
        return Axis(path, *_SHARES, share=True)
    if splits > 1:
        raise InvalidProblem(
            f"bounds[{path!r}]", bounds, "left out: several steps share what the others leave"
        )
    try:
        lower, upper = (float(bound) / free for bound in bounds)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise InvalidProblem(f"bounds[{path!r}]", bounds, "a pair (lower, upper)") from None
    if not 0 < lower < upper < 1:
        raise InvalidProblem(f"bounds[{path!r}]", bounds, f"inside (0, {free:g}), the budget")
    return Axis(path, lower, upper, share=True)
