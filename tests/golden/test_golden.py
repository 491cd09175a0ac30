"""A value that changes without the version of its question makes these tests red.

If the change is meant: raise the version in ``src/giantsteps/questions.py`` and run
``python tests/golden/golden.py``.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import giantsteps as gs

_SPEC = importlib.util.spec_from_file_location("golden", Path(__file__).with_name("golden.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
golden: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(golden)

QUESTIONS = list(golden.questions())


def load(package: str, question: str) -> dict[str, Any]:
    path = golden.FOLDER / f"{package}-{question}.json"
    assert path.exists(), f"no golden values of {package}.{question}: run tests/golden/golden.py"
    return json.loads(path.read_text())


@pytest.mark.parametrize(("package", "question"), QUESTIONS)
def test_values_are_those_of_their_version(package: str, question: str) -> None:
    stored = load(package, question)
    version = golden.VERSIONS[package][question]
    assert stored["version"] == version, "run tests/golden/golden.py after raising a version"
    assert len(stored["cells"]) == golden.COUNT
    now = [golden.answer_now(package, question, cell) for cell in stored["cells"]]
    changed = [golden.differences(cell["values"], new) for cell, new in zip(stored["cells"], now)]
    changed = [found for found in changed if found]
    assert not changed, f"raise the version of {package}.{question} in questions.py, if meant"


def test_the_problems_are_of_all_kinds() -> None:
    cells = load("simulation", "risk")["cells"]
    problems = [gs.Problem.from_data(cell["problem"]) for cell in cells]
    assert {len(problem.steps) for problem in problems} == {0, 1, 2}
    assert len({problem.content_hash for problem in problems}) == golden.COUNT
    assert {step.batch for problem in problems for step in problem.steps} == {"fresh", "previous"}
    assert {cell["d"] is None for cell in load("theory", "risk")["cells"]} == {True, False}


def test_a_small_change_is_seen() -> None:
    (cell, *_) = load("theory", "risk")["cells"]
    values = cell["values"]
    assert golden.differences(values, values) == []
    moved = {name: [x * (1 + 1e-6) + 1e-9 for x in numbers] for name, numbers in values.items()}
    assert len(golden.differences(values, moved)) == len(values)
    assert golden.differences(values, {}) == sorted(f"{name} is gone" for name in values)
    assert golden.differences({"x": [float("nan")]}, {"x": [float("nan")]}) == []
    assert len(golden.differences({"x": [float("nan")]}, {"x": [1.0]})) == 1
    assert len(golden.differences({"x": [1.0]}, {"x": [1.0, 2.0]})) == 1


def test_a_file_is_not_overwritten_without_a_new_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = load("theory", "weights")
    stored["cells"] = stored["cells"][:3]
    stored["cells"][0]["values"]["edge"] = [0.5]
    path = tmp_path / "theory-weights.json"
    path.write_text(json.dumps(stored))
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    assert golden.write("theory", "weights").startswith("NOT written")
    assert json.loads(path.read_text()) == stored
    monkeypatch.setitem(golden.VERSIONS["theory"], "weights", stored["version"] + 1)
    assert golden.write("theory", "weights").startswith("written")
    assert json.loads(path.read_text())["version"] == stored["version"] + 1
    assert golden.write("theory", "weights") == "unchanged"
