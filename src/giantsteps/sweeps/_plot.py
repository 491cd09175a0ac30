"""From the results of a sweep to a display: curves along one axis, or a map over two."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from giantsteps.answers import Answer
from giantsteps.campaign import Store, decide, is_below, measure, read_answers
from giantsteps.comparison import Comparison, Quantity, resolution_limit
from giantsteps.displays import ComparisonDisplay, HeatMapDisplay, label, symbol
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid, suggest
from giantsteps.questions import QUESTIONS
from giantsteps.sweeps._export import opened

if TYPE_CHECKING:
    from giantsteps.sweeps._sweep import Sweep

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
    if not isinstance(at, Mapping):
        raise InvalidProblem("at", at, 'a mapping such as {"width": 1.5}')
    question, _, path = str(quantity or "").partition(".")
    if quantity is None:
        question = "risk" if "risk" in sweep.questions else next(iter(sweep.questions))
    elif question not in sweep.questions:
        asked = " or ".join(f'"{name}.NAME"' for name in sweep.questions)
        name = path or question
        known = question in QUESTIONS
        example = f'such as "{next(iter(sweep.questions))}.{name}"'
        allowed = f"{asked}, {'as the sweep has no other question' if known else example}"
        raise InvalidProblem("quantity", quantity, allowed)
    held = {name: _find(sweep, name, value) for name, value in at.items()}
    title = ", ".join(f"{symbol(name)} = {_points(sweep)[name][n]}" for name, n in held.items())
    with opened(sweep) as store:
        found = _comparison(_slice(sweep, held, question), question, path, store)
    if y is not None:
        return _map(found, x, y, title).plot(**options)
    curves = np.size(found.agreements[found.quantities[0]].p_value) * len(found.sizes)
    cheap = curves * points <= FINE * max(found.theory[0].shape, default=1)
    return found.plot(x, points=points if cheap else 0, title=title, **options)


def _points(sweep: Sweep) -> dict[str, Any]:
    return {**sweep.grid.coords, "d": np.array(sweep.d)}


def _find(sweep: Sweep, path: str, value: Any) -> int:
    """The place of a value on an axis; a number may be rounded to six digits."""
    if path not in _points(sweep):
        raise InvalidProblem("at", path, suggest(path, _points(sweep)))
    points = _points(sweep)[path]
    try:
        if points.dtype.kind in "fiu":
            found = np.flatnonzero(np.isclose(points, float(value), rtol=1e-5, atol=0.0))
        else:
            found = np.flatnonzero(points == str(value))
    except (TypeError, ValueError):
        raise InvalidProblem("at", f"{path}={value}", "a number for this axis") from None
    if not found.size:
        known = ", ".join(map(str, points.tolist()))
        raise InvalidProblem("at", f"{path}={value}", f"one of the values of {path}: {known}")
    return int(found[0])


def _slice(sweep: Sweep, held: Mapping[str, int], question: str) -> Sweep:
    """The sweep with some axes held, and those that the question does not see."""
    unseen = [path for path in sweep.grid.axes if is_below(path, QUESTIONS[question].unseen)]
    places = {**dict.fromkeys(unseen, 0), **held}
    fixed = {p: sweep.grid.axes[p][n] for p, n in places.items() if p in sweep.grid.axes}
    free = {p: values for p, values in sweep.grid.axes.items() if p not in fixed}
    return dataclasses.replace(
        sweep,
        grid=Grid(sweep.grid.problem.replace(fixed), free),
        d=(sweep.d[places["d"]],) if "d" in places else tuple(sorted(sweep.d)),
        questions={question: sweep.questions[question]},
    )


def _comparison(sweep: Sweep, question: str, path: str, store: Store) -> Comparison:
    """Theory and simulation of a sweep as `compare` has them; NaN where nothing is done."""
    asked = QUESTIONS[question]
    parts = {part.source: part for part in sweep.cells}  # the last one is after the steps
    answers: dict[str, list[list[Answer]]] = {}
    for source, part in parts.items():
        if set(store.numbers(part.distinct)):
            answers[source] = read_answers(part, store)
    if not answers:
        raise InvalidProblem("store", "no results", "run before it is drawn")
    theory = answers.get("finite width") or answers.get("limit", []) * len(sweep.d)
    networks = answers.get("simulation")
    shown = [row[0] for row in theory or networks or []]
    names = [path] if path else list(asked.quantities(shown[-1]))[:1]
    agreements = {}
    for name in (names[0], f"initial.{names[0]}"):
        quantity = Quantity(name)
        try:
            example = quantity.read(shown[-1])
            simulated = [[quantity.read(one) for one in row] for row in networks or []]
        except InvalidProblem as error:
            if name != names[0]:
                continue
            allowed = f"'{question}.' and {error.allowed}"
            raise InvalidProblem("quantity", f"{question}.{name}", allowed) from None
        nothing = np.full((len(sweep.d), *example.shape), np.nan)
        samples = np.array(simulated) if networks else nothing[:, None]
        expected = np.stack([quantity.read(one) for one in shown]) if theory else nothing
        limit = resolution_limit(name)
        agreements[name] = measure(samples, expected, sweep.d, limit=limit)
    return Comparison(
        problem=sweep.grid if sweep.grid.dims else sweep.grid.problem,
        question=question,
        sizes=sweep.d,
        seeds=sweep.seeds,
        agreements=decide(agreements),
        theory=tuple(shown),
        refinable=bool(theory),
    )


def _map(found: Comparison, x: str | None, y: str, title: str) -> HeatMapDisplay:
    coords: dict[str, Any] = {**found.theory[0].coords}
    if len(found.sizes) > 1:
        coords["d"] = np.array(found.sizes, dtype=float)
    numeric = [name for name, points in coords.items() if points.dtype.kind in "fiu"]
    for name, path in (("x", x), ("y", y)):
        if path is not None and path not in numeric:
            raise InvalidProblem(name, path, suggest(path, numeric))
    x = next((name for name in numeric if name != y), y) if x is None else x
    if x == y:
        raise InvalidProblem("y", y, f"another axis than x = {x}")
    loose = [name for name in coords if name not in (x, y) and coords[name].size > 1]
    if loose:
        raise InvalidProblem("at", None, f"given for {', '.join(loose)}: a map shows two axes")
    order = [name for name in coords if name not in (x, y)] + [y, x]
    across, up = np.argsort(coords[x]), np.argsort(coords[y])
    panels = {}
    (name, *_), names = found.quantities, list(coords)
    for panel, part in (("theory", "theory"), ("simulation", "mean")):
        values = np.stack([np.asarray(getattr(e, part)) for e in found[name].by_size], axis=-1)
        values = values if "d" in coords else values[..., 0]
        values = values.transpose([names.index(path) for path in order])
        if np.isfinite(values).any():
            panels[panel] = values.reshape(values.shape[-2:])[np.ix_(up, across)]
    return HeatMapDisplay(
        x=coords[x][across],
        y=coords[y][up],
        panels=panels,
        x_label=label(x),
        y_label=label(y),
        label=label(name, found.question),
        title=title,
    )
