"""The table of regimes as text, for the scope page of the documentation."""

from __future__ import annotations

from ._condition import CONDITIONS
from ._kind import Kind
from ._regime import RULES, Absent, Rule

__all__ = ["scope_table"]


def scope_table() -> str:
    """What theory answers, in Markdown: question × steps × limit or size, printed from the table.

    Each cell names the section of docs/theory, what the answer needs beyond a centred teacher of
    one direction, and what it takes to be exact; or why there is no answer.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> print(scope_table().splitlines()[0])
    | question | steps | limit | at a given d |
    """
    lines = ["| question | steps | limit | at a given d |", "|---|---|---|---|"]
    for question, rules in RULES.items():
        for kind in Kind:
            cells = [_cell(rules[kind, given]) for given in (False, True)]
            lines.append(f"| `theory.{question}` | {kind.value} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


#: Needed almost everywhere; said once, above the table.
_COMMON = ("single index", "centered teacher")


def _cell(rule: Rule | Absent) -> str:
    if isinstance(rule, Absent):
        return f"absent: {rule.why}"
    parts = [rule.section]
    needs = [CONDITIONS[name].text for name in rule.needs if name not in _COMMON]
    if needs:
        parts.append("needs " + " and ".join(needs))
    exact = [CONDITIONS[name].text for name in rule.exact_if]
    parts.append("exact if " + " and ".join(exact) if exact else "exact")
    return "; ".join(parts)
