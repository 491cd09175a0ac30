"""One answer along one of its axes: a line for theory, markers for a simulation."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from giantsteps.displays import _style
from giantsteps.displays._comparison import ComparisonDisplay, Series, curve_name
from giantsteps.errors import InvalidProblem
from giantsteps.problem import suggest

if TYPE_CHECKING:
    from giantsteps.answers import Answer


def curves(
    answer: Answer, x: str | None = None, quantity: str | None = None, **options: Any
) -> ComparisonDisplay:
    """Draw a quantity of an answer along an axis, one curve for each value of the other axes.

    * ``answer``: over a grid, or with an axis of its own such as the steps of a trajectory.
    * ``x``: the horizontal axis, the first with numbers unless given.
    * ``quantity``: what to draw, such as ``"test"`` or ``"spikes.0.value"``; the first that has an
      axis unless given.
    * ``options``: for `ComparisonDisplay.plot`: ``ax``, ``width``, ``height``.

    Raises
    ------
    InvalidProblem
        If there is no axis with numbers, or no such quantity.
    """
    from giantsteps.comparison import Quantity

    if quantity is None:
        quantity = _first(answer)
    read = Quantity(quantity)
    values = read.read(answer)
    axes: dict[str, Any] = {**answer.coords, **read.axes(answer)}
    numeric = [
        name
        for name, points in axes.items()
        if np.asarray(points).dtype.kind in "fiu" and name != "crossing"  # it only counts them
    ]
    if x is None and numeric:
        x = numeric[0]
    if x is None or x not in numeric:
        allowed = suggest(x, numeric) if numeric else "an axis with numbers: ask about a Grid"
        raise InvalidProblem("x", x, allowed)
    others = [name for name in axes if name != x]
    named = [name for name in others if len(axes[name]) > 1]
    points = np.asarray(axes[x], dtype=float)
    rows = np.moveaxis(values, list(axes).index(x), -1).reshape(-1, points.size)
    drawn = answer.source == "simulation"
    nothing = np.empty(0)
    series = [
        Series(
            label=curve_name(named, [dict(zip(others, combination))[name] for name in named]),
            x=points if drawn else nothing,
            mean=row if drawn else nothing,
            standard_error=np.zeros_like(row) if drawn else nothing,
            curve_x=points,
            curve=np.full_like(row, np.nan) if drawn else row,
        )
        for combination, row in zip(itertools.product(*(axes[name] for name in others)), rows)
    ]
    return ComparisonDisplay(
        series=series,
        x_label=_style.label(x),
        y_label=_style.label(quantity, getattr(answer, "matrix", None) or ""),
        legend_title=_style.label(named[0]) if len(named) == 1 else "",
        nameless=answer.source if answer.d is None else f"{answer.source}, d = {answer.d}",
    ).plot(**options)


def _first(answer: Answer) -> str:
    """The test error, or the first number that has an axis; of a spectrum, its first spike."""
    if getattr(answer, "spikes", ()):
        return "spikes.0.value"
    found = answer._variables().items()
    names = [name for name, (dims, value) in found if dims and np.asarray(value).dtype.kind == "f"]
    if names:
        return "test" if "test" in names else names[0]
    raise InvalidProblem("quantity", None, "a number along an axis: ask about a Grid")
