"""The report of a certificate: JSON, and one HTML page without scripts or other files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from giantsteps.comparison.certify._drawings import histogram, interval, quantiles

if TYPE_CHECKING:
    from giantsteps.comparison.certify._certificate import Certificate
    from giantsteps.comparison.certify._finding import Finding
    from giantsteps.comparison.certify._group import Group

__all__ = ["html", "json_text", "summary"]

#: Half the width of the drawings of errors.
_REACH = 0.05
_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #5b6570; --rule: #d9dee3;
  --band: #dbe9f4; --blue: #0072b2; --orange: #d55e00; --good: #00694d; --card: #f5f7f9; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ec; --paper: #14181c; --soft: #9aa5b1;
  --rule: #333b44; --band: #1d3a52; --blue: #56b4e9; --orange: #ff9a4d; --good: #3fc79a;
  --card: #1d2329; } }
body { font: 15px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 76rem; margin: 0 auto; padding: 2rem 1.2rem 4rem; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.15rem; margin: 2.4rem 0 .6rem; }
p, ul { max-width: 60rem; } .soft { color: var(--soft); }
.verdict { display: inline-block; padding: .1rem .7rem; border-radius: .4rem; }
.verdict.good, .verdict.bad { color: var(--paper); background: var(--good); }
.verdict.bad { background: var(--orange); }
.cards { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.2rem 0; }
.card { background: var(--card); border-radius: .5rem; padding: .6rem 1rem; min-width: 8rem; }
.card b { display: block; font-size: 1.25rem; }
.side { display: flex; flex-wrap: wrap; gap: 2rem; align-items: flex-start; }
.side > p { flex: 1 1 24rem; margin-top: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .55rem; border-bottom: 1px solid var(--rule); text-align: right;
  white-space: nowrap; vertical-align: middle; }
th { color: var(--soft); font-weight: 500; position: sticky; top: 0; background: var(--paper); }
th.text, td.text { text-align: left; }
.good { color: var(--good); } .bad { color: var(--orange); font-weight: 600; }
li { margin: .35rem 0; } summary { cursor: pointer; }
code { background: var(--card); padding: .05rem .3rem; border-radius: .25rem; }
svg { vertical-align: middle; } .bar { fill: var(--blue); stroke: var(--blue); }
rect.bar { stroke: none; } line.bar { stroke-width: 2; } .band { fill: var(--band); }
.law { stroke: var(--orange); stroke-width: 1; } .axis { stroke: var(--soft); }
.curve { fill: none; stroke: var(--blue); stroke-width: 2; }
.frame { fill: none; stroke: var(--rule); }
"""


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
    """The whole report as one page."""
    c = certificate
    parts = [
        *_head(c),
        "<h2>Families, where the theory claims to be exact</h2>",
        _families(c.groups, verdicts=True),
        "<h2>Where the theory does not hold, and by how much</h2>",
        "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in c.exceptions) + "</ul>"
        if c.exceptions
        else "<p>Nowhere in this design.</p>",
        "<h2>Families, where it is approximate by its own account</h2>" if c.approximate else "",
        _families(c.approximate, verdicts=False) if c.approximate else "",
        *_reading(c),
        "<h2>All settings</h2>",
        f"<details><summary>{len(c.findings)} settings</summary>",
        _table(
            ["number", "-family", "-σ → teacher", "-steps", "theory", "simulation", "gap",
             "resolution", "t", "u", "residual", "nodes", "exact"],
            (_setting(c, f) for f in c.findings),
        ),
        "</details>",
    ]  # fmt: skip
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>giantsteps: certificate of agreement</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def summary(c: Certificate, title: str) -> str:
    """The families and the exceptions, without drawings."""
    table = _table(
        ["-family", "settings", "left at d = ∞", "found from", "p-value", "KS", "verdict"],
        (
            [
                escape(g.name), str(len(g.findings)), _measured(g), _percent(g.detectable),
                f"{g.p_value():.2g}", f"{g.kolmogorov:.2g}", _verdict(g),
            ]
            for g in c.groups
        ),
    )  # fmt: skip
    lines = "".join(f"<li>{escape(line)}</li>" for line in c.exceptions)
    captioned = table.replace("<table>", f"<table><caption>{escape(title)}</caption>", 1)
    return f"{captioned}<ul>{lines}</ul>" if lines else captioned


def _head(c: Certificate) -> list[str]:
    from giantsteps import __version__

    kind, verdict = ("good", "passed") if c.passed else ("bad", "failed")
    wrong = sum(not group.passed for group in c.groups)
    what = (
        f"Simulation and theory agree in all {len(c.groups)} families where the theory claims to "
        "be exact."
        if c.passed
        else f"Simulation and theory disagree in {wrong} of {len(c.groups)} families where the "
        "theory claims to be exact."
        if wrong
        else "See below where."
    )
    cards = {
        "settings": f"{len(c.findings)}",
        "where exact": f"{len(c.uniform)}",
        "networks": f"{c.networks:,}".replace(",", "\u2009"),
        "sizes d": f"{c.sizes[0]}, {c.sizes[1]}",
        "uniform, p-value": f"{c.kolmogorov:.2g}",
        "an error is found from": _percent(c.detectable),
    }
    return [
        f"<h1>Certificate of agreement <span class='verdict {kind}'>{verdict}</span></h1>",
        f"<p class='soft'>giantsteps {escape(__version__)}, scale “{escape(c.scale)}”, design "
        f"with seed {c.seed}</p>",
        f"<p>{what} A wrong factor in any of their equations would be found from "
        f"{_percent(c.detectable)} on, in half of them from "
        f"{_percent(_median([group.detectable for group in c.groups]))}.</p>",
        "<div class='cards'>",
        *(f"<div class='card'><b>{value}</b>{name}</div>" for name, value in cards.items()),
        "</div>",
        f"<div class='side'>{quantiles(c.uniform)}<p>Every setting where the theory claims to be "
        "exact gives one number u, uniform on [0, 1] if the claim is right. Here they are in "
        "order, against the order of as many uniform ones; each stays in the band with a chance of "
        f"99 %. Kolmogorov–Smirnov: p = {c.kolmogorov:.3g}.</p></div>",
    ]


def _families(groups: Sequence[Group], verdicts: bool) -> str:
    first = ["-verdict"] if verdicts else []
    return _table(
        ["-family", *first, "settings", "u", "gap at d₂", "p", "left at d = ∞",
         f"in ±{100 * _REACH:.0f} %", "found from", "p-value", "KS"],
        (
            [
                escape(g.name), *([_verdict(g)] if verdicts else []), str(len(g.findings)),
                histogram(g.uniform), _percent(g.gap, sign=True),
                f"{g.power:.2f} <span class='soft'>{g.power_range[0]:.2f}–{g.power_range[1]:.2f}"
                "</span>",
                _measured(g), interval(g.error, g.standard_error, g.allowed, _REACH),
                _percent(g.detectable), f"{g.p_value():.2g}", f"{g.kolmogorov:.2g}",
            ]
            for g in groups
        ),
    )  # fmt: skip


def _reading(c: Certificate) -> list[str]:
    d1, d2 = c.sizes
    return [
        "<h2>How to read this</h2>",
        "<p>A setting is a problem drawn from a seeded design. Its networks come in blocks: some "
        f"with d₁ = {d1}, one with d₂ = {d2}. g(d) is simulation/theory − 1. It may close as "
        "d<sup>−p</sup>, p in [½, 1]. Then x = r<sup>p</sup> g(d₂) − g(d₁), r = d₂/d₁, has mean "
        "zero over the blocks, its t is Student’s, and u, the Student cdf of t, is uniform. p is "
        "the most likely one for a family, with those that are not much less likely in brackets."
        "</p>",
        "<p>A wrong factor in an equation leaves an error ε at d = ∞ that all settings share. "
        "“Left at d = ∞” is its estimate ± one standard error. It is tested with weights by "
        "precision, and p is the one that favours the theory most. The band in the drawing holds "
        "the errors that would pass; whatever is beyond would be found, and “found from” is "
        "its farther end. "
        f"A test fails if chance would do so once in {1 / c.level:,.0f} times, so that all tests "
        "together raise a false alarm once in a hundred certificates.</p>",
        "<p>“Nodes” is the relative change of the theory when its quadrature has twice the nodes, "
        "“residual” that of its solver, “resolution” three standard errors of the gap.</p>",
    ]


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
        str(f.setting.number), escape(f.setting.family),
        escape(f"{problem.activation.canonical} → {teacher}"), escape(steps or "none"),
        _number(float(f.theory[1])), _number(float(f.simulated[1].mean())),
        _percent(f.gap, sign=True), _percent(f.resolution), f"{t:+.2f}", f"{u:.3f}",
        _small(f.residual), _small(f.quadrature),
        "failed" if f.failure else "yes" if f.exact else "no",
    ]  # fmt: skip


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A heading that starts with “-” belongs to a column of text."""
    kinds = [" class='text'" if name.startswith("-") else "" for name in head]
    top = "".join(f"<th{k}>{escape(name.lstrip('-'))}</th>" for k, name in zip(kinds, head))
    body = "\n".join(
        "<tr>" + "".join(f"<td{k}>{cell}</td>" for k, cell in zip(kinds, row)) + "</tr>"
        for row in rows
    )
    return (
        f"<div class='wide'><table><thead><tr>{top}</tr></thead><tbody>\n{body}\n"
        "</tbody></table></div>"
    )


def _percent(value: float, sign: bool = False) -> str:
    return f"{100 * value:{'+' if sign else ''}.2f}\u202f%" if math.isfinite(value) else "–"


def _measured(g: Group) -> str:
    return f"{100 * g.error:+.2f} ± {_percent(g.standard_error)}"


def _number(value: float) -> str:
    return f"{value:.5g}" if math.isfinite(value) else "–"


def _small(value: float) -> str:
    return f"{value:.0e}" if math.isfinite(value) else "–"


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2] if values else math.inf


def _verdict(group: Group) -> str:
    kind, text = ("good", "passed") if group.passed else ("bad", "failed")
    return f"<span class='{kind}'>{text}</span>"
