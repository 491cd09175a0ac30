"""The extensions of the site: broken links are found, Markdown and mathematics are converted."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("sphinx")
#: Imports one of the extensions, afresh.
Load = Callable[[str], Any]
EXTENSIONS = Path(__file__).parents[2] / "docs" / "_ext"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    monkeypatch.syspath_prepend(str(EXTENSIONS))

    def one(name: str) -> ModuleType:
        module = importlib.import_module(name)
        monkeypatch.delitem(sys.modules, name)
        return module

    return one


def test_broken_links_are_found(load: Load, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<a id="top"></a><a href="sub/page.html#here">good</a><a href="sub/page.html#gone">bad</a>'
        '<a href="https://elsewhere.example/x">not looked at</a><img src="missing.png">'
        '<a href="#top">good</a><a href="sub/">no index</a>'
    )
    (tmp_path / "sub" / "page.html").write_text('<p id="here"><a href="../index.html#top">up</a>')
    found = {link: problem for _, link, problem in load("check_links").broken_links(tmp_path)}
    assert set(found) == {"sub/page.html#gone", "missing.png", "sub/"}
    assert found["sub/page.html#gone"] == "no such place on the page"


def test_markdown_becomes_restructured_text(load: Load) -> None:
    lines = load("markdown_page").to_rst(
        "# Title\n\n## Part\n\nA `name` and [a link](https://a.example).\n\n```python\nx = 1\n```\n"
        "\n| a | b |\n|---|---|\n| 1 | `2` |\n"
    )
    text = "\n".join(lines)
    assert "Title" not in text
    assert "Part\n====" in text
    assert "``name``" in text
    assert "`a link <https://a.example>`__" in text
    assert ".. code-block:: python\n\n   x = 1" in text
    assert "   * - 1\n     - ``2``" in text


def test_mathematics_becomes_mathml(load: Load) -> None:
    to_mathml = load("mathml").to_mathml
    drawn = to_mathml(r"\E\,σ²(z) → \frac12", macros={r"\E": r"\mathbb{E}"})
    assert drawn.startswith("<math")
    assert "<mfrac>" in drawn
    assert "→" in drawn
    with pytest.raises(Exception, match="nonsense"):
        to_mathml(r"\nonsense{x}")


def test_references_become_links(load: Load) -> None:
    load("plain_maths")
    link = load("docstring_references").link
    papers = frozenset({"ba2022", "cui2024"})
    assert link("theory §4, §5b; ba2022.", papers) == (
        ":ref:`theory §4 <theory-4>`, :ref:`§5b <theory-5b>`; [ba2022]_."
    )
    assert link('name : {"ba2022", "cui2024"}', papers) == 'name : {"ba2022", "cui2024"}'


def test_plain_mathematics_is_read_as_it_stands(load: Load) -> None:
    maths = load("plain_maths")
    lines = ["|x| and E σ* of ``a*b``", "", ">>> 2 * |3|", ".. math:: |x|", "   |y|", "z |t|"]
    assert maths.replace_in_prose(lines, maths.replace_signs) == [
        "∣x| and E σ* of ``a*b``",
        "",
        ">>> 2 * |3|",
        ".. math:: |x|",
        "   |y|",
        "z ∣t|",
    ]


def test_constants_are_described_where_they_are_assigned(load: Load) -> None:
    names = load("public_names")
    from giantsteps import answers

    assert ("giantsteps.comparison.certify", "certify") in set(names.public_names())
    assert names.comment("giantsteps.answers", "Source")[0].startswith("Where an answer comes from")
    assert names.comment("giantsteps.answers", "Risk") == []
    assert names.value(answers.Matrix)[0].startswith("One of ``'weights'``, ")
    assert names.value(3.25) == ["Value: ``3.25``."]
