"""The directive ``generated``: a table that is written from the data of the library.

``.. generated:: scope_table:scope_table`` calls ``scope_table.scope_table()`` and reads the
Markdown that it returns. A page made so cannot disagree with the code. Where the library has
no such function the content of the directive is shown; without content that is an error. Sections
of the theory and papers in it become links.
"""

from __future__ import annotations

from importlib import import_module

from docstring_references import link
from docutils import nodes
from docutils.statemachine import StringList
from markdown_page import to_rst
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Generated(SphinxDirective):
    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        from giantsteps.answers import bibliography

        source = self.arguments[0]
        module, _, name = source.partition(":")
        write = getattr(import_module(module), name, None)
        if write is not None:
            lines = [link(line, frozenset(bibliography())) for line in to_rst(write())]
            text = StringList(lines, source=source)
            return self.parse_text_to_nodes(text, allow_section_headings=True)
        if not self.content:
            raise self.error(f"{source} does not exist")
        return self.parse_content_to_nodes()


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("generated", Generated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
