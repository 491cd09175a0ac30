"""The report of a certificate: strict JSON, and a page that needs nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from giantsteps.comparison.certify._certificate import LEVEL, Certificate, Group

__all__ = ["families", "html", "json_text"]

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px; }
th, td { padding: 0.2rem 0.6rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child, .text { text-align: left; }
.good { color: #00694d; } .bad { color: #b34700; font-weight: 600; }
"""


def json_text(certificate: Certificate) -> str:
    """Strict JSON: numbers to six digits, a line for each setting, infinities and NaN as null."""
    data = _rounded(certificate.to_data())
    settings = data.pop("settings")
    head = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    rows = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in settings)
    return f'{head[:-2]},\n "settings": [\n{rows}\n]\n}}\n'


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def html(certificate: Certificate) -> str:
    """The whole report as one page."""
    c = certificate
    verdict = "passed" if c.passed else "failed"
    exact = sum(f.exact for f in c.findings)
    parts = [
        f"<h1>Certificate of agreement: <span class='{'good' if c.passed else 'bad'}'>{verdict}"
        "</span></h1>",
        f"<p>{len(c.findings)} settings from the design with seed {c.seed}, {exact} of them where "
        f"the theory claims to be exact; d = {c.sizes[0]} and {c.sizes[1]}, {c.seeds} networks a "
        "setting and size, each setting with seeds of its own.</p>",
        "<p>For each setting g(d) is (simulation − theory)/theory. Its gap may close as d<sup>−p"
        "</sup>; p, free in [½, 1], is fitted once for a family. u is the Student cdf of the t of "
        "(d₂/d₁)<sup>p</sup> g(d₂) − g(d₁): uniform on [0, 1] if the theory holds. Two tests: "
        "Kolmogorov–Smirnov, and a common shift, which a wrong factor in an equation brings. A "
        f"family passes if both p-values exceed {LEVEL:g}. All exact settings together: "
        f"p = {c.all:.3g}.</p>",
        "<h2>Families, where the theory claims to be exact</h2>",
        families(c),
        "<h2>Where the theory does not hold, and by how much</h2>",
        "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in c.exceptions) + "</ul>"
        if c.exceptions
        else "<p>Nowhere in this design.</p>",
        "<h2>All settings</h2>",
        _table(
            ["number", "family", "quantity", "activation → teacher", "theory", "simulation",
             "gap", "resolution", "t", "u", "exact"],
            _rows(c),
        ),
    ]  # fmt: skip
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f"<title>giantsteps: certificate of agreement</title><style>{_STYLE}</style></head><body>"
        + "\n".join(parts)
        + "</body></html>\n"
    )


def families(c: Certificate) -> str:
    """The table of the families, where the theory claims to be exact."""
    return _table(
        ["family", "settings", "u", "KS p", "shift p", "power p", "median gap at d₂",
         "resolution", "largest residual", "largest quadrature error", "verdict"],
        (
            [
                escape(g.name), str(len(g.findings)), _histogram(g.uniform),
                f"{g.kolmogorov:.3g}", f"{g.shift:.3g}", f"{g.power:.2f}",
                _percent(g.median_gap, sign=True), _percent(g.resolution),
                _most(f.residual for f in g.findings),
                _most(f.quadrature for f in g.findings), _verdict(g),
            ]
            for g in c.groups
        ),
    )  # fmt: skip


def _rows(c: Certificate) -> Iterable[list[str]]:
    power = {group.name: group.power for group in c.groups}
    for f in c.findings:
        p, s = power[f.setting.family], f.setting
        functions = f"{s.problem.activation!s} → {s.problem.teacher!s}"
        yield [
            str(s.number), escape(s.family), escape(s.quantity), escape(functions),
            f"{f.theory[-1]:.5g}", f"{f.simulated[-1].mean():.5g}", _percent(f.gap, sign=True),
            _percent(f.resolution), f"{f.t(p):+.2f}", f"{f.uniform(p):.3f}",
            "failed" if f.failure else "yes" if f.exact else "no",
        ]  # fmt: skip


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _histogram(values: Sequence[float], bins: int = 10) -> str:
    """Ten bars, with the line of the uniform law."""
    if not values:
        return ""
    counts = np.histogram(values, bins, (0.0, 1.0))[0] * bins / len(values)
    bars = "".join(
        f"<rect x='{6 * i}' y='{30 - 10 * min(h, 3):.1f}' width='5' height='{10 * min(h, 3):.1f}' "
        "fill='#0072B2'/>"
        for i, h in enumerate(counts)
    )
    line = "<line x1='0' x2='60' y1='20' y2='20' stroke='#D55E00' stroke-width='1'/>"
    return f"<svg width='60' height='30' role='img'>{bars}{line}</svg>"


def _percent(value: float, sign: bool = False) -> str:
    return f"{100 * value:{'+' if sign else ''}.2g} %" if math.isfinite(value) else "–"


def _most(values: Iterable[float]) -> str:
    known = [value for value in values if math.isfinite(value)]
    return f"{max(known):.1e}" if known else "–"


def _verdict(group: Group) -> str:
    if not group.findings:
        return "claimed nowhere"
    kind, text = ("good", "passed") if group.passed else ("bad", "failed")
    return f"<span class='{kind}'>{text}</span>"
