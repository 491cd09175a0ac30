"""From the results of a sweep to a display: curves along one axis, or a map over two."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from giantsteps.campaign import Array, Table, is_below
from giantsteps.comparison import Quantity
from giantsteps.displays import ComparisonDisplay, HeatMapDisplay, Series, label
from giantsteps.errors import GiantstepsError, InvalidProblem
from giantsteps.problem import Grid, suggest
from giantsteps.questions import QUESTIONS
from giantsteps.sweeps._export import PARTS, opened, read, spread, summarise

if TYPE_CHECKING:
    from giantsteps.sweeps._sweep import Sweep

__all__ = ["plot"]

#: Most points at which theory is asked for lines finer than the grid.
FINE = 1000


def plot(
    sweep: Sweep,
    x: str | None,
    y: str | None,
    quantity: str | None,
    at: Mapping[str, Any],
    points: int,
    options: Mapping[str, Any],
) -> ComparisonDisplay | HeatMapDisplay:
    """See `Sweep.plot`."""
    axes = _Axes(sweep, at)
    with opened(sweep) as store:
        table = _by_quantity(sweep, summarise(read(sweep, store).tables, sweep.d)[0])
    names = sorted(table, key=lambda name: (name != "risk.test", list(table).index(name)))
    if not names:
        raise InvalidProblem("store", "no results", "run before it is drawn")
    quantity = names[0] if quantity is None else quantity
    if quantity not in names:
        raise InvalidProblem("quantity", quantity, suggest(quantity, names))
    axes.hold(part.unseen for part in sweep.cells if part.name == quantity.split(".")[0])
    x = axes.choose(x, "x")
    if y is None:
        return _curves(sweep, table, quantity, axes, x, points).plot(**options)
    if axes.choose(y, "y") == x:
        raise InvalidProblem("y", y, f"another axis than x = {x}")
    return _map(table, quantity, axes, x, y).plot(**options)


#: Quantity, as `compare` names it → part of it → axes and numbers.
_Quantities = dict[str, Table]


def _by_quantity(sweep: Sweep, table: Table) -> _Quantities:
    """Numbers of each quantity over the axes of the sweep, arrays entry by entry."""
    dims = (*sweep.grid.dims, "d")
    found: _Quantities = {}
    for name, variable in table.items():
        base, _, part = name.rpartition(".")
        if part in PARTS:
            kept = tuple(dim for dim in variable[0] if dim in dims)
            for title, numbers in spread(base, variable, kept):
                found.setdefault(title, {})[part] = (kept, numbers)
    return found


class _Axes:
    """The axes of a sweep, and where they are held fixed.

    Parameters
    ----------
    at : mapping
        Path (or ``"d"``) → one of the values of that axis.
    """

    def __init__(self, sweep: Sweep, at: Mapping[str, Any]) -> None:
        self.points: dict[str, Any] = {**sweep.grid.coords, "d": np.array(sweep.d, dtype=float)}
        self.held: dict[str, int] = {}
        for path, value in at.items():
            if path not in self.points:
                raise InvalidProblem("at", path, suggest(path, self.points))
            self.held[path] = _find(path, self.points[path], value)
        self.stated = [f"{path} = {_text(self.points[path][self.held[path]])}" for path in at]

    def hold(self, unseen: Iterable[Mapping[str, Any]]) -> None:
        """Hold what the question does not see."""
        for path in [path for paths in unseen for path in self.points if is_below(path, paths)]:
            self.held.setdefault(path, 0)

    @property
    def numeric(self) -> list[str]:
        """Axes with more than one number that are not held fixed."""
        return [
            path
            for path, points in self.points.items()
            if points.dtype.kind == "f" and points.size > 1 and path not in self.held
        ]

    def choose(self, path: str | None, name: str) -> str:
        """``path`` if it can be an axis of a figure, the first such axis if it is None."""
        if path in self.numeric:
            return path
        if path is None and self.numeric:
            return self.numeric[0]
        allowed = f"one of {self.numeric}" if self.numeric else "an axis with several numbers"
        raise InvalidProblem(name, path, allowed)

    def rows(self, dims: tuple[str, ...], values: Array, *last: str) -> Array:
        """Values with the axes ``last`` at the end and held ones gone; a row for all others."""
        missing = [path for path in self.points if path not in dims]
        room = tuple(len(self.points[path]) for path in missing)
        spare = values.reshape(values.shape + (1,) * len(room))
        values = np.broadcast_to(spare, values.shape + room)
        dims = (*dims, *missing)
        order = [path for path in self.points if path not in last] + list(last)
        values = values.transpose([dims.index(path) for path in order])
        index = tuple(self.held.get(path, slice(None)) for path in order)
        values = values[index]
        return values.reshape(-1, *values.shape[values.ndim - len(last) :])

    def grid(self, sweep: Sweep, axes: Mapping[str, Any]) -> Grid:
        """The grid of the sweep without what is held, with other ``axes``."""
        given = sweep.grid.axes
        held = {path: given[path][at] for path, at in self.held.items() if path in given}
        free = {path: values for path, values in given.items() if path not in self.held}
        return Grid(sweep.grid.problem.replace(held), {**free, **axes})

    def sizes(self, sweep: Sweep) -> Sequence[int]:
        """Every d, or the one that is held."""
        return sweep.d if "d" not in self.held else [sweep.d[self.held["d"]]]

    def others(self, *last: str) -> dict[str, Any]:
        """Points of the axes that make rows."""
        return {
            path: points
            for path, points in self.points.items()
            if path not in last and path not in self.held
        }


def _find(path: str, points: Any, value: Any) -> int:
    """The place of a value on an axis; a number may be rounded to six digits."""
    if points.dtype.kind == "f":
        try:
            found = np.flatnonzero(np.isclose(points, float(value), rtol=1e-5, atol=0.0))
        except (TypeError, ValueError):
            raise InvalidProblem("at", {path: value}, "a number for this axis") from None
        known = ", ".join(f"{point:g}" for point in points)
    else:
        found, known = np.flatnonzero(points == str(value)), ", ".join(points.tolist())
    if not found.size:
        raise InvalidProblem("at", {path: value}, f"one of the values of {path}: {known}")
    return int(found[0])


def _curves(
    sweep: Sweep, table: _Quantities, quantity: str, axes: _Axes, x: str, points: int
) -> ComparisonDisplay:
    others = axes.others(x)
    named = [path for path, values in others.items() if len(values) > 1]
    labels = [
        _label({path: value for path, value in zip(others, values) if path in named})
        for values in itertools.product(*others.values())
    ]
    question, _, rest = quantity.partition(".")
    series = _series(table[quantity], axes, x, labels)
    before = f"{question}.initial.{rest}"
    if before in table:
        series += [
            dataclasses.replace(one, before=True)
            for one in _distinct(_series(table[before], axes, x, labels))
        ]
    return ComparisonDisplay(
        series=_refined(sweep, series, labels, question, rest, axes, x, points),
        x_label=label(x),
        y_label=label(rest, question),
        legend_title=label(named[0]) if len(named) == 1 else "",
        steps="steps" if len(sweep.grid.problem.steps) > 1 else "step",
        title=", ".join(axes.stated),
    )


def _series(parts: Table, axes: _Axes, x: str, labels: list[str]) -> list[Series]:
    points = axes.points[x]
    rows = {part: axes.rows(*variable, x) for part, variable in parts.items()}
    absent = np.full((len(labels), points.size), np.nan)
    line = rows.get("theory", rows.get("limit", absent))
    mean, error = rows.get("mean", absent), rows.get("standard_error", absent)
    return [
        Series(
            label=text,
            x=points,
            mean=mean[row],
            standard_error=np.nan_to_num(error[row]),
            curve_x=points,
            curve=line[row],
        )
        for row, text in enumerate(labels)
    ]


def _distinct(series: list[Series]) -> list[Series]:
    """Each curve once: networks that differ in their steps start alike."""
    found = {(one.mean.tobytes(), one.curve.tobytes()): one for one in reversed(series)}
    return list(reversed(found.values()))


def _refined(
    sweep: Sweep,
    series: list[Series],
    labels: list[str],
    question: str,
    rest: str,
    axes: _Axes,
    x: str,
    points: int,
) -> list[Series]:
    """The same with finer lines: theory is asked at more points, where that is quickly done."""
    coarse = axes.points[x]
    cheap = len(labels) * points <= FINE and points > coarse.size
    source = next((name for name in ("finite width", "limit") if name in sweep.sources), None)
    if x == "d" or not cheap or source is None:
        return series
    low, high = coarse.min(), coarse.max()
    space = np.geomspace if low > 0 and high / low >= 50 else np.linspace
    grid = axes.grid(sweep, {x: space(low, high, points)})
    lines = {}
    try:
        ask = QUESTIONS[question].function("theory")
        sizes: Sequence[int | None] = [None] if source == "limit" else axes.sizes(sweep)
        answers = [ask(grid, **({} if d is None else {"d": d})) for d in sizes]
        for path in dict.fromkeys(("initial." * one.before) + rest for one in series):
            read = Quantity(path).read
            values = np.stack([read(answer) for answer in answers], axis=-1)
            dims = (*grid.dims, "d") if "d" not in axes.held else grid.dims
            values = values if "d" not in axes.held else values[..., 0]
            lines[path] = axes.rows(dims, values, x)
    except GiantstepsError:
        return series
    return [
        dataclasses.replace(
            one,
            curve_x=grid.coords[x],
            curve=lines[("initial." * one.before) + rest][labels.index(one.label)],
        )
        for one in series
    ]


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _label(values: Mapping[str, Any]) -> str:
    texts = {path: _text(value) for path, value in values.items()}
    if len(texts) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{path} = {text}" for path, text in texts.items())


def _map(table: _Quantities, quantity: str, axes: _Axes, x: str, y: str) -> HeatMapDisplay:
    loose = [path for path, points in axes.others(x, y).items() if len(points) > 1]
    if loose:
        raise InvalidProblem("at", None, f"given for {', '.join(loose)}: a map shows two axes")
    panels = {}
    parts = table[quantity]
    predicted = "theory" if "theory" in parts else "limit"
    for title, part in (("theory", predicted), ("simulation", "mean")):
        if part in parts:
            (panels[title],) = axes.rows(*parts[part], y, x)
    across, up = np.argsort(axes.points[x]), np.argsort(axes.points[y])
    question, _, rest = quantity.partition(".")
    return HeatMapDisplay(
        x=axes.points[x][across],
        y=axes.points[y][up],
        panels={title: values[np.ix_(up, across)] for title, values in panels.items()},
        x_label=label(x),
        y_label=label(y),
        label=label(rest, question),
        title=", ".join(axes.stated),
    )
