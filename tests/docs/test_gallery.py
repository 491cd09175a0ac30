"""Every script of the gallery runs from top to bottom, at a small size, without a warning."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("plot_*.py"))


def small(code: str) -> str:
    """Small networks, two seeds; numbers of points are kept below five."""
    code = re.sub(r"\bd=\d+", "d=60", code)
    code = re.sub(r"\bseeds=\d+", "seeds=2", code)
    code = re.sub(r"\brange\(\d+\)", "range(2)", code)
    return re.sub(r"(np\.(?:lin|geom)space\(.*), \d+\)", r"\1, 4)", code)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_runs(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script), "--smoke"])
    code = script.read_text(encoding="utf-8")
    exec(compile(small(code), script.name, "exec"), {"__name__": "__main__"})
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_opens_with_a_title(script: Path) -> None:
    text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    title, underline, blank = text.splitlines()[:3]
    assert underline == "=" * len(title)
    assert blank == ""
