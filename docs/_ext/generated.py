"""The directive ``generated``: a table that the library itself writes.

``.. generated:: giantsteps.theory:scope_table`` calls ``giantsteps.theory.scope_table()`` and reads
the Markdown that it returns. A page made so cannot disagree with the code.
"""

from __future__ import annotations

import importlib

from docutils import nodes
from docutils.statemachine import StringList
from markdown_page import to_rst
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Generated(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        source = self.arguments[0]
        module, _, name = source.partition(":")
        try:
            text = getattr(importlib.import_module(module), name)()
        except (ImportError, AttributeError) as error:
            raise self.error(f"{source} cannot be called: {error}") from error
        return self.parse_text_to_nodes(StringList(to_rst(text), source=source))


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("generated", Generated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
