"""The role ``source``: a link from an equation to the module that computes it.

``:source:`theory/solver/dyson``` in a page shows the path and leads to a page with the code of
``src/giantsteps/theory/solver/dyson.py``. A module that does not exist is a warning, and so fails
``make docs``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst.states import Inliner
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.osutil import relative_uri

logger = logging.getLogger(__name__)
SOURCE = Path(__file__).parents[2] / "src" / "giantsteps"
#: Folder of the pages with code, on the site.
FOLDER = "source"


def source_role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Inliner, *rest: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    env = inliner.document.settings.env
    if not (SOURCE / f"{text}.py").is_file():
        logger.warning("no module %s", text, location=(env.docname, lineno))
        return [nodes.literal(text, text)], []
    if env.app.builder.format != "html":  # no pages with code there
        return [nodes.literal("", f"{text}.py")], []
    here = env.app.builder.get_target_uri(env.docname)
    there = env.app.builder.get_target_uri(f"{FOLDER}/{text}")
    link = nodes.reference("", "", refuri=relative_uri(here, there), classes=["source"])
    link += nodes.literal("", f"{text}.py")
    return [link], []


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for every module of the library: links stay valid whatever was read again."""
    formatter = HtmlFormatter(linenos="inline", anchorlinenos=True, lineanchors="line")
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).with_suffix("").as_posix()
        code = highlight(path.read_text(encoding="utf-8"), PythonLexer(), formatter)
        body = f"<h1>{module}.py</h1>{code}"
        yield f"{FOLDER}/{module}", {"title": f"{module}.py", "body": body}, "page.html"


def setup(app: Sphinx) -> dict[str, object]:
    app.add_role("source", source_role)
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
