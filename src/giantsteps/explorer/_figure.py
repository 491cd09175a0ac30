"""Figures of the page's panels, fit for a paper: drawn by matplotlib as SVG or PDF."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

from giantsteps.errors import InvalidProblem
from giantsteps.explorer._requests import LINES, Ask, Plane, keys

_FORMATS = {"svg": "image/svg+xml", "pdf": "application/pdf"}
_QUANTITIES = {"test": "test", "train": "training", "initial": "test, before the steps"}


def draw(body: Any) -> dict[str, Any]:
    """Draw ``{panel, format, request, points}`` and return the file in base64.

    ``request`` is the body of the request that the panel shows (``ask`` or ``plane``); ``points``
    are simulated numbers beside a curve: ``{name: {x, mean, error}}``.
    """
    given = keys(body, {"panel": True, "format": True, "request": True, "points": False})
    form = given["format"]
    if form not in _FORMATS:
        raise InvalidProblem("format", form, '"svg" or "pdf"')
    if given["panel"] not in _PANELS:
        raise InvalidProblem("panel", given["panel"], f"one of {', '.join(_PANELS)}")
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    from giantsteps.displays import style

    with style():
        figure = _PANELS[given["panel"]](given["request"], given.get("points") or {})
        file = io.BytesIO()
        figure.savefig(file, format=form)
        pyplot.close(figure)
    return {
        "type": _FORMATS[form],
        "name": f"giantsteps-{given['panel']}.{form}",
        "content": base64.b64encode(file.getvalue()).decode("ascii"),
    }


def _errors(request: Any, points: Any) -> Any:
    """Errors against a field, with simulated points."""
    from matplotlib import pyplot

    from giantsteps.displays import PALETTE, label

    asked = Ask.read(request)
    answer = asked.answer()
    if len(answer.dims) != 1:
        raise InvalidProblem("axes", list(answer.dims), "one field")
    (path,) = answer.dims
    x = np.asarray(answer.coords[path], dtype=float)
    series = {"test": answer.test, "train": answer.train}
    if answer.initial is not None:
        series["initial"] = answer.initial.test
    figure, ax = pyplot.subplots(layout="constrained")
    for colour, (name, values) in zip(PALETTE, series.items()):
        ax.plot(x, values, color=colour, label=_QUANTITIES[name])
        if name in points:
            measured = {key: _numbers(points[name], key) for key in ("x", "mean", "error")}
            ax.errorbar(
                measured["x"], measured["mean"], measured["error"], color=colour, fmt="o", ms=3
            )
    if x[0] > 0 and x[-1] > 30 * x[0]:
        ax.set_xscale("log")
    ax.set_xlabel(label(path))
    ax.set_ylabel("error")
    ax.legend()
    return figure


def _numbers(points: Any, key: str) -> Any:
    try:
        return np.array([np.nan if v is None else float(v) for v in points[key]][:1000])
    except (KeyError, TypeError, ValueError):
        raise InvalidProblem(f"points.{key}", None, "a list of numbers") from None


def _spectrum(request: Any, points: Any) -> Any:
    from giantsteps.displays import SpectrumDisplay

    answer = Ask.read(request).answer()
    return SpectrumDisplay.from_spectra(answer).figure_


def _learned(request: Any, points: Any) -> Any:
    from giantsteps.displays import LearnedFunctionDisplay

    answer = Ask.read(request).answer()
    return LearnedFunctionDisplay.from_answers(answer).figure_


def _plane(request: Any, points: Any) -> Any:
    from giantsteps.displays import PhaseDiagramDisplay

    asked = Plane.read(request)
    (y, y_values), (x, x_values) = asked.grid.coords.items()
    drawn = PhaseDiagramDisplay.from_grid(
        asked.grid.problem,
        x=x,
        y=y,
        x_values=x_values,
        y_values=y_values,
        quantity=asked.quantity,
        lines=[line for line in asked.lines if line in LINES],
        d=asked.d,
    )
    return drawn.figure_


_PANELS = {
    "errors": _errors,
    "spectrum": _spectrum,
    "learned": _learned,
    "plane": _plane,
}
