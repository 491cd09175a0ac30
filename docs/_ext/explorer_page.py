"""The explorer as a page of the site: the files of the package, with answers computed before."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the tests write the page without Sphinx
    from sphinx.application import Sphinx

HERE = Path(__file__).parents[1] / "explore"
SCRIPTS = '<script src="data.js"></script>\n  <script src="static.js"></script>'
MARK = "<!-- static data -->"


def write_page(target: Path) -> None:
    """Copy the page of the package to a folder and give it its data."""
    import giantsteps.explorer

    source = Path(giantsteps.explorer.__file__).parent / "page"
    shutil.copytree(source, target, dirs_exist_ok=True)
    for name in ("data.js", "static.js"):
        shutil.copy(HERE / name, target / name)
    page = target / "index.html"
    text = page.read_text(encoding="utf-8")
    assert MARK in text
    page.write_text(text.replace(MARK, SCRIPTS), encoding="utf-8")


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        write_page(Path(app.outdir) / "explorer")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
