"""Figures of the page's panels, fit for a paper: drawn by matplotlib as SVG or PDF."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from giantsteps.errors import InvalidProblem
from giantsteps.explorer._requests import LINES, Ask, Plane, keys

_FORMATS = {"svg": "image/svg+xml", "pdf": "application/pdf"}
#: Most simulated numbers of a figure.
_POINTS = 1000
_QUANTITIES = {"test": "test", "train": "training", "initial": "test, before the steps"}


def draw(body: Any) -> dict[str, Any]:
    """Draw ``{panel, format, request, points}`` and return the file in base64.

    ``request`` is the body of the request that the panel shows (``ask`` or ``plane``); ``points``
    are simulated numbers: ``{name: {x, mean, error}}`` beside the curves of ``errors``,
    ``{x, mean, error}`` for ``learned``, ``{x, y, mean, error}`` for ``plane``, and
    ``{edges, density, spikes}`` for ``spectrum``.
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
        points = given.get("points") or {}
        if not isinstance(points, Mapping):
            raise InvalidProblem("points", type(points).__name__, "a table of lists of numbers")
        figure = _PANELS[given["panel"]](given["request"], points)
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
            at, mean, error = _measured(points[name], "x", "mean", "error")
            ax.errorbar(at, mean, error, color=colour, fmt="o", ms=3)
    if x[0] > 0 and x[-1] > 30 * x[0]:
        ax.set_xscale("log")
    ax.set(xlabel=label(path), ylabel="error")
    ax.legend()
    return figure


def _measured(points: Any, *names: str) -> list[Any]:
    """Lists of numbers of equal length, NaN for None."""
    found = []
    for name in names:
        try:
            given = [np.nan if v is None else float(v) for v in points[name]]
        except (KeyError, TypeError, ValueError):
            raise InvalidProblem(f"points.{name}", None, "a list of numbers") from None
        found.append(np.array(given))
    if len({len(values) for values in found}) != 1 or len(found[0]) > _POINTS:
        raise InvalidProblem(
            "points", [len(values) for values in found], f"equally long, at most {_POINTS} numbers"
        )
    return found


def _spectrum(request: Any, points: Any) -> Any:
    from giantsteps.displays import PALETTE, SpectrumDisplay

    answer = Ask.read(request).answer()
    drawn = SpectrumDisplay.from_spectra(answer)
    if points:
        edges = _measured(points, "edges")[0]
        density, spikes = (_measured(points, name)[0] for name in ("density", "spikes"))
        if len(edges) != len(density) + 1 or not np.all(np.diff(edges) > 0):
            raise InvalidProblem("points.edges", len(edges), "increasing, one more than densities")
        drawn.ax_.stairs(density, edges, fill=True, color=PALETTE[1], alpha=0.35, zorder=0)
        for ax in drawn.axes_:
            height = 0.03 * ax.get_ylim()[1]
            ax.plot(spikes, np.full(len(spikes), height), "o", color=PALETTE[1], ms=4)
    return drawn.figure_


def _learned(request: Any, points: Any) -> Any:
    from giantsteps.displays import PALETTE, LearnedFunctionDisplay

    answer = Ask.read(request).answer()
    drawn = LearnedFunctionDisplay.from_answers(answer)
    if points:
        x, mean, error = _measured(points, "x", "mean", "error")
        drawn.ax_.errorbar(x, mean, error, color=PALETTE[1], fmt="o", ms=3, label="simulation")
        drawn.ax_.legend(loc="upper left")
    return drawn.figure_


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
    if points:
        across, up, mean, error = _measured(points, "x", "y", "mean", "error")
        mesh = drawn.colorbar_.mappable  # the colours of the map: where they differ, theory is off
        drawn.ax_.scatter(
            across, up, c=mean, s=36, cmap=mesh.cmap, norm=mesh.norm, edgecolors="black", zorder=5
        )
        for place, value, spread in zip(zip(across, up), mean, error):
            drawn.ax_.annotate(
                f"{value:.3g} ± {spread:.1g}",
                place,
                textcoords="offset points",
                xytext=(0, 5),
                ha="center",
                fontsize="x-small",
                bbox={"boxstyle": "round,pad=0.1", "fc": "white", "alpha": 0.8, "lw": 0},
                zorder=6,
            )
    return drawn.figure_


_PANELS = {
    "errors": _errors,
    "spectrum": _spectrum,
    "learned": _learned,
    "plane": _plane,
}
