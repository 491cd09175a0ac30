"""The page of the site: from files alone, with the numbers that theory has now."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.explorer._states import DEFAULT, TOUR

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs" / "explore" / "data.js"


@pytest.fixture(scope="module")
def data() -> Any:
    return json.loads(
        DATA.read_text(encoding="utf-8").removeprefix("window.GS_DATA=").rstrip(";\n")
    )


def test_the_data_is_a_few_megabytes_at_most() -> None:
    assert DATA.stat().st_size < 4_000_000


def test_the_table_has_the_numbers_of_theory(data: Any) -> None:
    axes = dict(data["table"]["axes"])
    shape = [len(values) for values in axes.values()]
    for place in ([0, 1, 2, 3, 2, 9], [1, 1, 3, 3, 2, 9], [1, 2, 0, 5, 1, 4]):
        index = 0
        for size, i in zip(shape, place, strict=True):
            index = index * size + i
        changes = {path: values[i] for (path, values), i in zip(axes.items(), place, strict=True)}
        risk = theory.risk(DEFAULT.replace(changes))
        assert risk.initial is not None
        assert data["table"]["test"][index] == pytest.approx(risk.test, rel=1e-4)
        assert data["table"]["train"][index] == pytest.approx(risk.train, rel=1e-4)
        assert data["table"]["initial"][index] == pytest.approx(risk.initial.test, rel=1e-4)


def test_the_tour_is_that_of_the_package(data: Any) -> None:
    held = data["start"]["tour"]
    assert [stop["title"] for stop in held] == [stop.title for stop in TOUR]
    assert [gs.Problem.from_data(stop["problem"]) for stop in held] == [s.problem for s in TOUR]


def test_the_page_works_from_files(tmp_path: Path, driver: Any) -> None:
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    try:
        write_page = importlib.import_module("explorer_page").write_page
    finally:
        sys.path.pop(0)
    from .test_page import Page

    write_page(tmp_path)
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="(https?:)?//', text)
    page = Page(driver, (tmp_path / "index.html").as_uri())
    page.open()
    page.settle("errors", "numbers", "spectrum", "plane")
    assert page.columns("numbers")["test"] == [pytest.approx(theory.risk(DEFAULT).test, rel=1e-4)]
    assert "computed before" in page.text("static-note")
    before = page.columns("errors")["test"]
    page.slide("steps.0.rate", 1)  # the second of the values that are held
    page.settle("errors", "numbers", "spectrum", "plane")
    moved = DEFAULT.replace({"steps.0.rate": 1.0})
    assert page.columns("errors")["test"] != before
    assert page.columns("numbers")["test"] == [pytest.approx(theory.risk(moved).test, rel=1e-4)]
    for stop in range(len(TOUR)):
        page.js("GS.tourTo(arguments[0])", stop)
        page.settle("errors", "numbers", "spectrum", "learned")
        for panel in ("errors", "numbers", "spectrum", "learned"):
            script = "return GS.panels[arguments[0]].refusal.hidden"
            assert page.js(script, panel), (TOUR[stop].title, panel)
