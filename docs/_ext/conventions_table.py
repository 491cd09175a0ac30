"""The conventions of the papers as tables, for the page about them."""

from __future__ import annotations

from giantsteps.problem import CONVENTIONS


def conventions_table() -> str:
    """A table per paper, in Markdown, from the data that translates its symbols."""
    return "\n\n".join(_table(name, convention.table()) for name, convention in CONVENTIONS.items())


def _table(name: str, rows: list[tuple[str, ...]]) -> str:
    header = ("quantity", "symbol", "keyword", "from ours", "to ours")
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in (header, *rows)]
    lines = ["| " + " | ".join(row) + " |" for row in escaped]
    lines.insert(1, "|" + "---|" * len(header))
    return "\n".join([f"**{name}**", "", *lines])
