"""The page of an inspection: one HTML file with its figures inside."""

from __future__ import annotations

import base64
import io
import math
from importlib import resources
from os import PathLike
from typing import TYPE_CHECKING, Any

from giantsteps.answers import require, written
from giantsteps.practice._display import InspectionDisplay, LayerDisplay
from giantsteps.practice._inspection import probe_sentence

if TYPE_CHECKING:
    from giantsteps.practice._inspection import Inspection

#: Layers whose own figure the page has; the tables have all.
_FIGURES = 60


def write_report(inspection: Inspection, path: str | PathLike[str]) -> None:
    jinja2 = require("jinja2", "an HTML report", "practice")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["cell"] = _cell
    source = resources.files("giantsteps.practice").joinpath("report.html.j2")
    template = environment.from_string(source.read_text(encoding="utf-8"))
    pyplot = require("matplotlib.pyplot", "an HTML report", "plot")
    overview = InspectionDisplay(inspection).plot()
    drawn = [_picture(overview.figure_)]
    pyplot.close(overview.figure_)
    figures = []
    for layer in inspection.layers[:_FIGURES]:
        display = LayerDisplay(layer).plot()
        figures.append((layer.name, layer.sentence(), _picture(display.figure_)))
        pyplot.close(display.figure_)
    tables = {
        name: columns
        for name in ("changes", "gradients", "probes", "spikes", "layers")
        if (columns := inspection.to_columns(name)) and any(columns.values())
    }
    text = template.render(
        inspection=inspection,
        overview=drawn[0],
        figures=figures,
        tables=tables,
        probe_sentence=probe_sentence,
        expected=inspection.false_alarms * len(inspection.layers),
    )
    with written(path) as draft:
        draft.write_text(text, encoding="utf-8")


def _picture(figure: Any) -> str:
    """A figure as SVG in a data address."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.4g}"
    return str(value)
