"""The outputs that the documentation shows are those of the code above them."""

from __future__ import annotations

import contextlib
import io
import math
import re
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[2]
_PAIR = re.compile(
    r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)"
    r"(?:\.\. code-block:: text\n   :class: output\n\n((?:   .*\n|\n)+))?",
    re.MULTILINE,
)
_NUMBER = re.compile(r"[-+]?\d+\.\d+(?:[eE][-+]?\d+)?")
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in sorted(ROOT.glob("docs/*.rst")) + sorted(ROOT.glob("docs/guides/*.rst"))
    if ":class: output" in path.read_text(encoding="utf-8")
]
#: Those that take about ten seconds.
LONG = ("docs/quickstart.rst", "docs/guides/many-steps.rst")


def pairs(page: str) -> list[tuple[str, str | None]]:
    """The Python blocks of a page, each with the output that is shown below it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = [(dedent(m[1]), None if m[2] is None else dedent(m[2])) for m in _PAIR.finditer(text)]
    shown = sum(output is not None for _, output in found)
    assert shown == text.count(":class: output"), f"{page} has an output without code above it"
    return found


def same(shown: str, printed: str) -> bool:
    """Equal texts whose numbers differ by one unit of the last digit that is shown, at most."""
    if _NUMBER.sub("#", shown).split() != _NUMBER.sub("#", printed).split():
        return False
    for one, other in zip(_NUMBER.findall(shown), _NUMBER.findall(printed), strict=True):
        digits = len(one.split(".")[1])
        if not math.isclose(float(one), float(other), rel_tol=1e-6, abs_tol=1.01 * 10**-digits):
            return False
    return True


def test_a_wrong_digit_is_seen() -> None:
    assert same("a 1.250\n", "a 1.251\n")
    assert not same("a 1.250\n", "a 1.253\n")
    assert not same("a 1.250\n", "b 1.250\n")


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page in LONG)) for page in PAGES]
)
def test_outputs_are_those_of_the_code(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib.pyplot").switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for code, shown in pairs(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), namespace)
        if shown is not None:
            assert same(shown, printed.getvalue()), printed.getvalue()
