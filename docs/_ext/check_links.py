"""Links inside the site: after a build every one of them must lead to a page and a place on it.

A link that does not is a warning, and so fails ``make docs``. Links to other sites are not looked
at, so that a build needs no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


class Page(HTMLParser):
    """The anchors of a page, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if not value:
                continue
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.links.add(value)


def broken_links(folder: Path) -> Iterator[tuple[str, str, str]]:
    """(page, link, what is wrong) for every link between files of a folder that leads nowhere."""
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8"))
        for path in folder.rglob("*.html")
        if "_static" not in path.parts  # templates of the theme
    }
    for path, page in sorted(pages.items()):
        place = path.relative_to(folder.resolve()).as_posix()
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            if not target.exists():
                yield place, link, "no such file"
            elif parts.fragment and target in pages:
                fragment = unquote(parts.fragment)
                if fragment not in pages[target].anchors and not fragment.startswith(":~:"):
                    yield place, link, "no such place on the page"


def check(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        for page, link, problem in broken_links(Path(app.outdir)):
            logger.warning("%s: broken link %s (%s)", page, link, problem)


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("build-finished", check, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
