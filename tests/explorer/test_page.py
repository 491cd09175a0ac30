"""The page in a real browser: what a user does, and what the panels then show."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.explorer._states import DEFAULT, GALLERY, TOUR
from giantsteps.problem import INPUTS


class Page:
    """The explorer's page, driven as a user would."""

    def __init__(self, driver: Any, url: str) -> None:
        self.driver, self.url = driver, url

    def open(self, fragment: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(self.url + fragment)
        self.until(lambda: self.js("return document.documentElement.dataset.ready === 'true'"))
        self.settle()

    def js(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def until(self, met: Callable[[], Any], seconds: float = 90.0) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := met():
                return found
            time.sleep(0.05)
        raise AssertionError("it did not happen in time")

    def settle(self, *panels: str) -> None:
        """Wait until these panels show the answer to the present problem; unseen ones wait."""
        time.sleep(0.15)
        for name in panels or ("errors", "numbers", "learned"):
            self.js("document.getElementById(arguments[0]).scrollIntoView()", name)
            idle = "return document.getElementById(arguments[0]).ariaBusy === 'false'"
            self.until(partial(self.js, idle, name))

    def state(self) -> Any:
        return self.js("return JSON.parse(JSON.stringify(GS.state))")

    def columns(self, panel: str) -> Any:
        return self.js("return GS.panels[arguments[0]].answer?.columns", panel)

    def slide(self, path: str, place: float) -> None:
        """Move a slider as the arrow keys do: an event for the motion, one for its end."""
        self.js(
            "const s = document.querySelector(`[data-path='${arguments[0]}'] input[type=range]`);"
            "s.value = arguments[1];"
            "s.dispatchEvent(new Event('input', {bubbles: true}));"
            "s.dispatchEvent(new Event('change', {bubbles: true}));",
            path,
            place,
        )

    def type(self, path: str, text: str) -> None:
        self.js(
            "const b = document.querySelector(`[data-path='${arguments[0]}'] input`);"
            "b.focus(); b.value = arguments[1];"
            "b.dispatchEvent(new Event('input', {bubbles: true}));",
            path,
            text,
        )

    def choose(self, path: str, option: str) -> None:
        self.js(
            "const s = document.querySelector(`[data-path='${arguments[0]}'] select`);"
            "s.value = arguments[1];"
            "s.dispatchEvent(new Event('change', {bubbles: true}));",
            path,
            option,
        )

    def problem_of(self, path: str) -> str:
        script = (
            "return document.querySelector(`[data-path='${arguments[0]}'] .problem`).textContent"
        )
        return str(self.js(script, path))

    def click(self, name: str) -> None:
        self.js("document.getElementById(arguments[0]).click()", name)

    def text(self, name: str) -> str:
        return str(self.js("return document.getElementById(arguments[0]).textContent", name))


@pytest.fixture(scope="module")
def page(driver: Any, explorer: Any) -> Page:
    return Page(driver, explorer.url)


def test_the_page_loads_from_this_machine_alone(page: Page) -> None:
    page.driver.get("about:blank")
    page.driver.get_log("performance")
    page.open()
    messages = [
        json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance")
    ]
    asked = {
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
    }
    foreign = {
        url for url in asked if not url.startswith((page.url, "data:", "about:", "blob:", "chrome"))
    }
    assert not foreign
    size = sum(
        m["params"]["encodedDataLength"]
        for m in messages
        if m["method"] == "Network.loadingFinished"
    )
    assert 100_000 < size < 1_000_000
    severe = [e["message"] for e in page.driver.get_log("browser") if e["level"] == "SEVERE"]
    assert not severe


def test_the_first_panel_shows_what_python_says(page: Page) -> None:
    page.open()
    columns = page.columns("errors")
    grid = gs.Grid(DEFAULT, {"readout.samples": columns["readout.samples"]})
    expected = theory.risk(grid)
    assert columns["test"] == pytest.approx(np.asarray(expected.test).tolist(), rel=1e-9)
    assert page.columns("numbers")["test"] == [pytest.approx(theory.risk(DEFAULT).test, rel=1e-9)]
    assert "derived" in page.text("numbers")


def test_a_slider_changes_the_curve(page: Page) -> None:
    page.open()
    before = page.columns("errors")["test"]
    page.slide("steps.0.rate", 1.0)
    page.settle()
    after = page.columns("errors")["test"]
    assert page.state()["problem"]["steps"][0]["rate"] == 1.0
    assert after != before
    number = page.columns("numbers")["test"][0]
    expected = theory.risk(DEFAULT.replace({"steps.0.rate": 1.0})).test
    assert number == pytest.approx(expected, rel=1e-9)


def test_an_invalid_expression_shows_its_error_at_the_control(page: Page) -> None:
    page.open()
    page.type("activation", "tanh(")
    page.until(lambda: "syntax error" in page.problem_of("activation"))
    assert page.state()["problem"]["activation"] == "tanh"  # the last valid one stays
    page.type("activation", "erf")
    page.until(lambda: page.state()["problem"]["activation"] == "erf")
    assert page.problem_of("activation") == ""


def test_a_refused_number_shows_its_error_at_the_control(page: Page) -> None:
    page.open()
    page.type("width", "-1")
    page.until(lambda: "positive" in page.problem_of("width"))
    page.type("width", "2")
    page.until(lambda: page.problem_of("width") == "")


@pytest.mark.parametrize(("path", "typed"), [("width", "e"), ("readout.penalty", ""), ("d", "1.7")])
def test_what_is_no_number_is_said_and_not_taken(page: Page, path: str, typed: str) -> None:
    page.open()
    before = page.state()
    page.type(path, typed)
    page.until(lambda: "number" in page.problem_of(path))
    page.settle()
    assert page.state() == before
    assert "number" in page.problem_of(path)  # answers for other fields say nothing about it
    page.type(path, "40")
    page.until(lambda: page.problem_of(path) == "")


def test_a_problem_from_the_gallery_replaces_what_was_typed(page: Page) -> None:
    page.open()
    page.type("width", "e")
    page.until(lambda: "number" in page.problem_of("width"))
    page.js("GS.set({problem: {...GS.state.problem, width: 3}})")
    page.until(lambda: page.problem_of("width") == "")


def test_the_address_is_the_problem(page: Page) -> None:
    page.open()
    page.slide("steps.0.exponent", 0.25)
    page.settle()
    page.js("GS.writeUrl()")
    address, state = page.driver.current_url, page.state()
    assert state["problem"]["steps"][0]["exponent"] == 0.25
    page.open(address.removeprefix(page.url))
    assert page.state() == state


def test_what_is_not_a_problem_in_the_address_is_said(page: Page) -> None:
    page.open("#nonsense")
    assert "not a problem" in page.text("banner")
    assert page.state()["problem"] == DEFAULT.to_data()


def test_steps_are_added_reordered_and_removed(page: Page) -> None:
    page.open()
    press = (
        "[...document.querySelectorAll('#controls button')]"
        ".find((b) => (b.ariaLabel || b.textContent) === arguments[0]).click()"
    )
    page.js(press, "Add a step")
    page.slide("steps.1.rate", 1.5)
    page.js(press, "Move step 2 up")
    rates = [step["rate"] for step in page.state()["problem"]["steps"]]
    assert rates == [1.5, DEFAULT.steps[0].rate]
    page.js(press, "Remove step 1")
    assert page.state()["problem"]["steps"] == DEFAULT.to_data()["steps"]


@pytest.mark.parametrize("law", [name for name in INPUTS if name != "isotropic"])
def test_every_law_of_the_inputs_can_be_chosen(page: Page, law: str) -> None:
    page.open()
    before = page.columns("numbers")["test"][0]
    page.choose("inputs", law)
    page.settle()
    stated = page.state()["problem"]
    assert stated["inputs"]["law"] == law
    shown = page.columns("numbers")["test"][0]
    assert shown == pytest.approx(theory.risk(gs.Problem.from_data(stated)).test, rel=1e-9)
    assert shown != pytest.approx(before, rel=1e-3)


def test_what_uses_a_batch_again_follows_its_samples(page: Page) -> None:
    page.open()
    page.js(
        "[...document.querySelectorAll('button')].find(b => b.textContent === 'Add a step').click()"
    )
    page.choose("steps.1.batch", "previous")
    page.choose("readout.batch", "previous")
    page.type("steps.0.samples", "5")
    page.until(lambda: page.state()["problem"]["readout"]["samples"] == 5)
    assert [step["samples"] for step in page.state()["problem"]["steps"]] == [5, 5]
    page.js(
        "for (const _ of [1, 2]) document.querySelector(\"[aria-label='Remove step 1']\").click()"
    )
    assert page.state()["problem"]["readout"] == {"samples": 5, "penalty": 0.1, "batch": "fresh"}
    page.settle()
    assert page.columns("numbers")["test"]


def test_copy_as_python_runs_and_gives_the_same_number(page: Page, tmp_path: Path) -> None:
    page.open()
    page.slide("steps.0.rate", 2.5)
    page.settle()
    page.until(lambda: "rate=2.5" in page.text("take-text"))
    script = tmp_path / "copied.py"
    script.write_text(page.text("take-text") + "\nprint(repr(answer.test))\n", encoding="utf-8")
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    shown = page.columns("numbers")["test"][0]
    assert float(run.stdout.splitlines()[-1]) == pytest.approx(shown, rel=1e-9)


#: What the figure of each panel gets of a simulation.
DRAWN = {
    "errors": ["initial", "test", "train"],
    "spectrum": ["density", "edges", "spikes"],
    "learned": ["error", "mean", "x"],
    "plane": ["error", "mean", "x", "y"],
}


def test_simulate_puts_points_on_the_panels(page: Page) -> None:
    page.open()
    page.js("document.getElementById('simulate-d').value = 40")
    page.js("document.getElementById('simulate-seeds').value = 3")
    page.click("simulate-run")
    page.until(lambda: "Done" in page.text("simulate-status"))
    page.settle()
    series = page.js("return GS.panels.errors.plot.spec.points")
    assert [one["name"] for one in series] == ["test", "train", "initial"]
    assert all(error > 0 for error in series[0]["error"])
    assert page.state()["view"]["d"] == 40  # theory at the same d
    assert "±" in page.text("numbers")
    assert page.js("return GS.panels.learned.plot.spec.points.length") == 1
    page.settle("spectrum", "plane")
    page.until(lambda: page.js("return GS.panels.plane.plot.spec.map.cells.length") == 9)
    cells = page.js("return GS.panels.plane.plot.spec.map.cells")
    assert len(cells) == 9
    assert "9 simulated cells" in page.text("plane")
    cell = cells[4]
    problem = DEFAULT.replace({"steps.0.rate": cell["x"], "steps.0.samples": cell["y"]})
    floor = theory.bounds(problem)["linear"]
    wanted = pytest.approx(floor - theory.risk(problem, d=40).test, rel=1e-6)
    # The map is asked again at the d of the networks, a moment after they are drawn on it.
    page.until(lambda: page.js("return GS.panels.plane.plot.spec.map.cells[4].theory") == wanted)
    drawn = [floor - simulation.risk(problem, d=40, seed=seed).test for seed in range(3)]
    assert cell["mean"] == pytest.approx(np.mean(drawn), abs=1e-6)
    assert page.js("return GS.csvOf(GS.panels.plane).split('\\n')[0]").endswith(
        "simulated,standard error"
    )
    points = {name: page.js(f"return GS.simulated.forFigure(GS.panels.{name})") for name in DRAWN}
    assert {name: sorted(found) for name, found in points.items()} == DRAWN


def test_a_simulation_can_be_cancelled(page: Page) -> None:
    page.open()
    page.js("document.getElementById('simulate-d').value = 1500")
    page.js("document.getElementById('simulate-seeds').value = 50")
    page.click("simulate-run")
    page.until(lambda: page.js("return !document.getElementById('simulate-cancel').hidden"))
    page.click("simulate-cancel")
    page.until(lambda: "Cancelled" in page.text("simulate-status"), 30)
    assert not page.js("return document.getElementById('simulate-run').disabled")


@pytest.mark.slow
@pytest.mark.parametrize("state", [*GALLERY, *TOUR], ids=lambda state: state.title)
def test_every_panel_has_an_answer_in_every_state(page: Page, state: Any) -> None:
    """What the gallery and the tour show is computed, or refused in words; the coarse map at least
    comes before anyone would give up."""
    page.open()
    page.js("GS.show(arguments[0])", state.to_data())
    page.settle("errors", "numbers", "spectrum", "learned", "plane")
    for name in ("errors", "numbers", "spectrum", "learned", "plane"):
        answered = page.js(f"return GS.panels.{name}.answer !== null")
        refusal = page.js(f"return GS.panels.{name}.refusal.textContent")
        assert answered or refusal.startswith("Theory does not cover"), (name, refusal)
    assert page.js("return GS.panels.errors.answer !== null")


@pytest.mark.slow
def test_the_gallery_and_the_tour_are_states_of_the_page(page: Page) -> None:
    page.open()
    assert page.js("return GS.gallery.length") == len(GALLERY)
    page.js(
        "const g = document.getElementById('gallery'); g.value = 1;"
        "g.dispatchEvent(new Event('change'))"
    )
    page.settle("errors", "numbers", "spectrum")
    assert page.state()["problem"] == GALLERY[1].problem.to_data()
    page.until(lambda: "spike at" in page.text("spectrum"))  # it asks once it is seen
    assert page.js("return GS.tour.length") == len(TOUR) == 8
    page.click("tour-start")
    assert "1 of 8" in page.text("tour")
    page.settle("errors", "numbers", "spectrum")
    assert page.state()["problem"] == TOUR[0].problem.to_data()
    page.js("document.querySelector('#tour button:nth-of-type(2)').click()")
    page.settle("errors", "numbers", "spectrum")
    assert "2 of 8" in page.text("tour")
    assert "no spike" in page.text("spectrum")


def test_numbers_can_be_taken_as_csv(page: Page) -> None:
    page.open()
    page.until(lambda: page.columns("errors"))
    both = "const shown = GS.panels.errors; return [GS.csvOf(shown), shown.answer.columns.test]"
    text, points = page.js(both)
    head, *rows = text.strip().splitlines()
    assert head.startswith("readout.samples,d,source,test,train")
    assert len(rows) == len(points)


def test_every_control_has_a_label_and_every_plot_a_description(page: Page) -> None:
    page.open()
    nameless = page.js(
        "return [...document.querySelectorAll('input, select, button')].filter((e) =>"
        " !(e.labels?.length && [...e.labels].some((l) => l.textContent.trim()))"
        " && !e.ariaLabel && !e.textContent.trim()).map((e) => e.outerHTML)"
    )
    assert nameless == []
    silent = page.js("return ['errors', 'learned'].filter((n) => !GS.panels[n].plot.ariaLabel)")
    assert silent == []


@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_is_wider_than_the_window(page: Page, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.open()
        time.sleep(0.3)
        assert page.js("return document.documentElement.scrollWidth") <= width
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
