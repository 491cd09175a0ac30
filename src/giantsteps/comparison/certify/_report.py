"""The report of a certificate: JSON, and one HTML page with drawings in SVG, from a template."""

from __future__ import annotations

import json
import math
from functools import cache
from importlib.resources import files
from statistics import median_high
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from giantsteps.answers import require

if TYPE_CHECKING:
    from giantsteps.comparison.certify._certificate import Certificate
    from giantsteps.comparison.certify._finding import Finding
    from giantsteps.comparison.certify._group import Group

#: Half the width of the drawings of errors.
_REACH = 0.05


def json_text(certificate: Certificate) -> str:
    """Strict JSON: numbers to seven digits, a line for each setting, infinities and NaN as null."""
    data = _rounded(certificate.to_data())
    settings = data.pop("settings")
    head = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    rows = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in settings)
    return f'{head[:-2]},\n "settings": [\n{rows}\n]\n}}\n'


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        # A problem stays as it is: its numbers are its identity.
        return {key: item if key == "problem" else _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value


def html(certificate: Certificate) -> str:
    from giantsteps import __version__

    return str(
        _template().render(
            c=certificate,
            version=__version__,
            typical=median_high([g.detectable for g in certificate.groups] or [math.inf]),
            rows=[_setting(certificate, finding) for finding in certificate.findings],
        )
    )


@cache
def _template() -> Any:
    jinja2 = require("jinja2", "a certificate's report", "cli")
    safe = jinja2.utils.markupsafe.Markup
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {
        "percent": _percent,
        "difference": _difference,
        "histogram": lambda values: safe(histogram(values)),
        "quantiles": lambda values: safe(quantiles(values)),
        "interval": lambda group: safe(interval(group)),
    }
    text = files(__package__).joinpath("report.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(text)


def _difference(group: Group, size: int) -> str:
    gap, error = group.gap_at(size)
    return f"{-100 * gap:+.2f} ± {100 * error:.2f}\u202f%"


def _setting(c: Certificate, f: Finding) -> list[str]:
    problem = f.setting.problem
    rank = problem.teacher.rank
    teacher = problem.to_data()["teacher"] if rank == 1 else problem.teacher
    t, u = c.tested.get(f.setting.number, (math.nan, math.nan))
    steps = ", ".join(
        f"{step.rate:g}·N^{step.exponent:g}" + (" again" if step.batch == "previous" else "")
        for step in problem.steps
    )
    return [
        str(f.setting.number), f.setting.family, f"{problem.activation.canonical} → {teacher}",
        steps or "none", _number(float(f.theory[1])), _number(float(f.simulated[1].mean())),
        _percent(f.gap, sign=True), _percent(f.resolution), f"{t:+.2f}", f"{u:.3f}",
        _small(f.residual), _small(f.numerics),
        "failed" if f.failure else "yes" if f.exact else "no",
    ]  # fmt: skip


def _percent(value: float, sign: bool = False) -> str:
    return f"{100 * value:{'+' if sign else ''}.2f}\u202f%" if math.isfinite(value) else "–"


def _number(value: float) -> str:
    return f"{value:.5g}" if math.isfinite(value) else "–"


def _small(value: float) -> str:
    return f"{value:.0e}" if math.isfinite(value) else "–"


# Drawings -------------------------------------------------------------------------------------


def histogram(values: ArrayLike) -> str:
    """Bars over [0, 1], with the line of the uniform law at a third of the height."""
    bins, width, height = 10, 80, 26
    counts = np.histogram(values, bins, (0.0, 1.0))[0] * bins / max(np.size(values), 1)
    wide = width / bins
    bars = "".join(
        f"<rect class='bar' x='{wide * i:.1f}' y='{height * (1 - min(h, 3) / 3):.1f}' "
        f"width='{wide - 1:.1f}' height='{height * min(h, 3) / 3:.1f}'/>"
        for i, h in enumerate(counts)
    )
    level = height * 2 / 3
    line = f"<line class='law' x1='0' x2='{width}' y1='{level}' y2='{level}'/>"
    return _drawing(width, height, bars + line, "histogram of u")


def interval(group: Group) -> str:
    """An error with its standard error on the band of errors that would pass."""
    width, height, middle = 130, 16, 8

    def at(value: float) -> float:
        return width * (0.5 + 0.5 * min(max(value / _REACH, -1.0), 1.0))

    centre, spread = group.error, group.standard_error
    low, high = map(at, group.allowed)
    parts = [
        f"<rect class='band' x='{low:.1f}' y='4' width='{max(high - low, 1):.1f}' height='8'/>",
        f"<line class='axis' x1='{width / 2}' x2='{width / 2}' y1='0' y2='{height}'/>",
        f"<line class='bar' x1='{at(centre - spread):.1f}' x2='{at(centre + spread):.1f}' "
        f"y1='{middle}' y2='{middle}'/>",
        f"<circle class='bar' cx='{at(centre):.1f}' cy='{middle}' r='3'/>",
    ]
    return _drawing(width, height, "".join(parts), "error and what would pass")


def quantiles(values: ArrayLike) -> str:
    """Sorted values against those of the uniform law, with the 99 % band of each."""
    width, u = 260, np.sort(np.asarray(values, dtype=float))
    count = len(u)
    rank = np.arange(1, count + 1)
    expected = rank / (count + 1)
    low, high = (np.asarray(stats.beta.ppf(q, rank, count + 1 - rank)) for q in (0.005, 0.995))

    def place(x: ArrayLike, y: ArrayLike) -> str:
        points = zip(np.atleast_1d(x) * width, (1 - np.atleast_1d(y)) * width)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in points)

    band = place(np.append(expected, expected[::-1]), np.append(low, high[::-1]))
    parts = [
        f"<rect class='frame' x='0.5' y='0.5' width='{width - 1}' height='{width - 1}'/>",
        f"<polygon class='band' points='{band}'/>",
        f"<line class='law' x1='0' y1='{width}' x2='{width}' y2='0'/>",
        f"<polyline class='curve' points='{place(expected, u)}'/>",
    ]
    return _drawing(width, width, "".join(parts), "u against the uniform law")


def _drawing(width: float, height: float, parts: str, title: str) -> str:
    return (
        f"<svg width='{width}' height='{height}' viewBox='0 0 {width} {height}' role='img'>"
        f"<title>{title}</title>{parts}</svg>"
    )
