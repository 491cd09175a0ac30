"""The report of a certificate: JSON, and one HTML page from the template beside this module."""

from __future__ import annotations

import json
import math
from functools import cache
from importlib.resources import files
from statistics import median_high
from typing import TYPE_CHECKING, Any

from giantsteps.answers import require
from giantsteps.comparison.certify._drawings import histogram, interval, quantiles

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
        "interval": lambda group: safe(_interval(group)),
    }
    text = files(__package__).joinpath("report.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(text)


def _difference(group: Group, size: int) -> str:
    gap, error = group.gap_at(size)
    return f"{-100 * gap:+.2f} ± {100 * error:.2f}\u202f%"


def _interval(group: Group) -> str:
    return interval(group.error, group.standard_error, group.allowed, _REACH)


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
