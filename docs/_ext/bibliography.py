"""The directive ``bibliography``: the papers of ``giantsteps.answers.bibliography`` as citations.

A page cites a paper as ``[ba2022]_``; the entries themselves live in one BibTeX file only.
"""

from __future__ import annotations

import re
import unicodedata

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*)\},?\s*$", re.MULTILINE)
_ACCENT = re.compile(r"\{?\\(['`\"^~])\{?(\w)\}?\}?")
_COMBINING = {"'": "\u0301", "`": "\u0300", '"': "\u0308", "^": "\u0302", "~": "\u0303"}


def plain(text: str) -> str:
    """Turn the accents of BibTeX into letters and drop its braces."""
    text = _ACCENT.sub(lambda m: unicodedata.normalize("NFC", m[2] + _COMBINING[m[1]]), text)
    return text.replace("{", "").replace("}", "").replace("--", "–")


def entry_to_rst(key: str, entry: str) -> list[str]:
    """One citation: authors, title, where published, link to arXiv."""
    fields = {name.lower(): plain(value) for name, value in _FIELD.findall(entry)}
    people = [
        " ".join(reversed([part.strip() for part in name.split(",", 1)]))
        for name in fields["author"].split(" and ")
    ]
    where = fields.get("booktitle") or fields.get("journal")
    place = f"{where}, {fields['year']}" if where else fields["year"]
    text = f".. [{key}] {', '.join(people)}, *{fields['title']}*. {place}."
    if "eprint" in fields:
        number = fields["eprint"]
        text += f" `arXiv:{number} <https://arxiv.org/abs/{number}>`__."
    return [text, ""]


class Bibliography(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        from giantsteps.answers import bibliography

        lines = [line for item in bibliography().items() for line in entry_to_rst(*item)]
        return self.parse_text_to_nodes(StringList(lines, source="references.bib"))


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("bibliography", Bibliography)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
