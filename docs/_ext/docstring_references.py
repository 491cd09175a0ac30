"""References in docstrings become links: "theory §5b; ba2022" leads to the section and the paper.

Docstrings are read in the terminal first, so they name a section by its number and a paper by its
key. Code, roles and mathematics stay as they are.
"""

from __future__ import annotations

import re

from plain_maths import replace_in_prose
from sphinx.application import Sphinx

_SECTION = re.compile(r"(theory )?§(\d[a-d]?)(?![\w>])")


def link(text: str, papers: frozenset[str]) -> str:
    """Sections and papers of one line of prose."""
    text = _SECTION.sub(lambda match: f":ref:`{match[0]} <theory-{match[2]}>`", text)
    keys = "|".join(sorted(papers))
    return re.sub(rf'(?<![\w"*\[])({keys})(?![\w"*\]])', r"[\1]_", text)


def process(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    from giantsteps.answers import bibliography

    papers = frozenset(bibliography())
    lines[:] = replace_in_prose(lines, lambda text: link(text, papers))


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("autodoc-process-docstring", process, priority=600)  # after numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
