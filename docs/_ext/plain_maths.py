"""Plain mathematics in docstrings, such as |x − y|, read as it stands.

Docstrings are read in the terminal first, so they write mathematics as plain text. Two signs of
it mean something else in reStructuredText: a bar before a word opens a substitution, and an
asterisk that no other one closes opens an emphasis. This replaces them by the mathematical
characters ∣ and ∗, of the same width, so that tables keep their columns. Code, roles and the
bodies of directives stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sphinx.application import Sphinx

_QUOTED = re.compile(r"(``.*?``|:\w+:`[^`]*`|`[^`]*`_*)")
_BAR = re.compile(r"(?<!\w)\|(?=\S)")
_ASTERISK = re.compile(r"(?<![\w*\\])\*(?=[^\s*])(?![^*]*\*)")


def replace_signs(text: str) -> str:
    return _ASTERISK.sub("∗", _BAR.sub("∣", text))


def replace_in_prose(lines: list[str], replace: Callable[[str], str]) -> list[str]:
    """Apply a replacement to all but code, roles and the bodies of directives."""
    processed, body = [], None  # body: indentation of the open directive or literal block
    for line in lines:
        start = line.lstrip()
        indent = len(line) - len(start)
        if body is not None and start and indent <= body:
            body = None
        directive = start.startswith(".. ")
        if body is None and (directive or line.rstrip().endswith("::")):
            body = indent
            verbatim = directive
        else:
            verbatim = body is not None or start.startswith((">>>", "..."))
        parts = [line] if verbatim else _QUOTED.split(line)
        if not verbatim:
            parts[::2] = [replace(part) for part in parts[::2]]
        processed.append("".join(parts))
    return processed


def process(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    lines[:] = replace_in_prose(lines, replace_signs)


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("autodoc-process-docstring", process, priority=100)  # before numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
