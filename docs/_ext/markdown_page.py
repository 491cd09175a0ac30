"""The directive ``markdown-page``: a Markdown file of the repository as part of the site.

CONTRIBUTING.md and CHANGELOG.md are read on their own as well as here. They keep to a small part
of Markdown (a blank line before each list), and this converts it: headings, lists, fenced code,
inline code, emphasis, links and pipe tables. The first heading is left out, since the page that
includes the file has a title. With the option ``optional`` a file that does not exist is left out.
"""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_UNDERLINES = {2: "=", 3: "-", 4: "~"}
_WEB_LINK = re.compile(r"\[([^\]]+)\]\((https?:[^)\s]+)\)")
_FILE_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)\s]+\)")
_ENUMERATOR = re.compile(r"^(\(?\w\)\s|\w\.\s|- )")  # no list inside a cell
_CODE = re.compile(r"(?<!`)`([^`]+)`(?![`_])")


def inline(text: str) -> str:
    """Inline code and links; a link to a file of the repository becomes its text."""
    text = _CODE.sub(r"``\1``", _FILE_LINK.sub(r"\1", text))
    return _WEB_LINK.sub(r"`\1 <\2>`__", text)


def to_rst(markdown: str) -> list[str]:
    """Convert the part of Markdown that the project's own files use."""
    lines: list[str] = []
    fence: str | None = None  # indentation of the open code block
    table = False
    for line in markdown.splitlines():
        if line.lstrip().startswith("```"):
            indent = line[: len(line) - len(line.lstrip())]
            opening = ["", f"{indent}.. code-block:: {line.strip()[3:] or 'text'}", ""]
            lines += opening if fence is None else [""]
            fence = indent if fence is None else None
        elif fence is not None:
            lines.append("   " + line)
        elif line.startswith("|"):
            if not table:
                lines += ["", ".. list-table::", "   :header-rows: 1", ""]
            if not set(line) <= set("|-: "):
                cells = line.strip().removeprefix("|").removesuffix("|").split("|")
                first, *rest = (_ENUMERATOR.sub(r"\\\1", inline(cell.strip())) for cell in cells)
                lines += [f"   * - {first}", *(f"     - {cell}" for cell in rest)]
        elif heading := re.match(r"(#+) (.*)", line):
            if (level := len(heading[1])) > 1:
                title = inline(heading[2])
                lines += ["", title, _UNDERLINES[level] * len(title), ""]
        else:
            lines += ["", inline(line)] if table else [inline(line)]
        table = line.startswith("|")
    return lines


class MarkdownPage(SphinxDirective):
    required_arguments = 1
    option_spec = {"optional": directives.flag}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        relative, path = self.env.relfn2path(self.arguments[0])
        if "optional" in self.options and not Path(path).exists():
            return []
        self.env.note_dependency(relative)
        lines = StringList(to_rst(Path(path).read_text(encoding="utf-8")), source=relative)
        return self.parse_text_to_nodes(lines, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("markdown-page", MarkdownPage)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
