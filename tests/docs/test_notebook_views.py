"""What a notebook shows: problems, answers and comparisons as tables of HTML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.comparison.certify import Scale, certify
from giantsteps.functions import as_function

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.5,
    steps=[gs.Step(samples=4.0, rate=3.0)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
)
GRID = gs.Grid(PROBLEM, {"readout.samples": [1.0, 2.0]})
SHOWN: dict[str, Callable[[], Any]] = {
    "problem": lambda: PROBLEM,
    "risk": lambda: theory.risk(PROBLEM),
    "risks": lambda: theory.risk(GRID),
    "weights": lambda: theory.weights(PROBLEM),
    "bounds": lambda: theory.bounds(PROBLEM),
    "optimum": lambda: theory.optimize(PROBLEM),
    "simulated": lambda: simulation.risk(PROBLEM, d=30, seed=0),
    "comparison": lambda: gs.compare(PROBLEM, d=30, seeds=2),
    "grid": lambda: GRID,
    "run": lambda: simulation.run(PROBLEM, d=30, seed=0),
    "sweep": lambda: gs.Sweep(grid=GRID, d=30, seeds=2, store="a&b.sqlite"),
    "certificate": lambda: certify(Scale(2, (20, 40), 3, 2), families=["degrees of freedom"]),
    "status": lambda: gs.Sweep(grid=GRID, d=30, seeds=2, store="none.sqlite").status(),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_shows_a_table(name: str) -> None:
    text = SHOWN[name]()._repr_html_()
    tree = ElementTree.fromstring(f"<div>{text}</div>".replace("&nbsp;", " "))
    rows = [[(cell.text or "").strip() for cell in row] for row in tree.iter("tr")]
    assert len(rows) > 1
    assert all(row[0] or len(row) > 1 for row in rows)


def test_a_run_shows_its_integers() -> None:
    text = simulation.run(PROBLEM, d=30, seed=7)._repr_html_()
    for piece in ("<td>45</td>", "<td>120</td>", "<td>60</td>", "<td>7</td>", "tanh"):
        assert piece in text
    untrained = gs.Problem(activation="tanh", teacher="sin", width=1)
    table = simulation.run(untrained, d=30)._repr_html_().rpartition("<table>")[2]
    assert table.count("<td>none</td>") == 2


ANSWERS: dict[str, Callable[[], Any]] = {
    "risk": lambda: theory.risk(PROBLEM),
    "risks": lambda: theory.risk(GRID),
    "weights": lambda: theory.weights(PROBLEM),
    "kernel": lambda: theory.kernel(PROBLEM),
    "learned function": lambda: theory.learned_function(PROBLEM, x=[0.0, 1.0]),
    "bounds": lambda: theory.bounds(PROBLEM),
    "gradient": lambda: theory.gradient(PROBLEM),
    "degrees of freedom": lambda: theory.degrees_of_freedom(PROBLEM),
    "optimum": lambda: theory.optimize(PROBLEM),
    "crossing": lambda: theory.crossing(PROBLEM, level=0.17, bounds=(1.0, 4.0)),
    "simulated": lambda: simulation.risk(PROBLEM, d=30, seed=0),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_formulas_too(name: str) -> None:
    answer = ANSWERS[name]()
    text = answer._repr_latex_()
    assert text.startswith(r"$$\begin{array}{ll} \texttt{")
    assert text.count("{") == text.count("}")
    assert text.count(" & ") >= 1


@pytest.mark.parametrize(
    ("spec", "formula"),
    [
        ("tanh(2*x)/3 + 0.3*x**2", r"\frac{\tanh\left(2 \, x\right)}{3} + 0.3 \, {x}^{2}"),
        ("(x + 1)*(x - 2)", r"\left(x + 1\right) \, \left(x - 2\right)"),
        ("x - (x + 1)", r"x - \left(x + 1\right)"),
        ("-(x**2)**3", r"-{\left({x}^{2}\right)}^{3}"),
        ("leaky_relu", r"\mathrm{leaky\_relu}\left(x\right)"),
        ("he3(x)/sqrt(6)", r"\frac{\mathrm{He}_{3}\left(x\right)}{\sqrt{6}}"),
        ("abs(x) - max(x, -1)", r"\left|x\right| - \max\left(x, -1\right)"),
    ],
)
def test_functions_are_formulas(spec: str, formula: str) -> None:
    assert as_function(spec)._repr_latex_() == rf"$x \mapsto {formula}$"


def test_formulas_of_problems_and_answers() -> None:
    """LaTeX views: balanced, with the problem's numbers in them."""
    problem = gs.Problem(
        activation="leaky_relu",
        teacher="tanh(2*x)",
        width=1.5,
        steps=[
            gs.Step(samples=2, rate=3, exponent=0.5),
            gs.Step(samples=2, rate=1, batch="previous"),
        ],
        readout=gs.Ridge(samples=2.5, penalty=0.1),
    )
    text = problem._repr_latex_()
    assert text.startswith(r"$$\begin{aligned}")
    assert text.count("{") == text.count("}")
    for piece in (r"leaky\_relu", r"3\,N^{0.5}", "n/d &= 2.5", "same batch", "N/d = 1.5"):
        assert piece in text
    small = gs.Problem(activation="tanh", teacher="sin", width=1, readout=problem.readout)
    answer = theory.risk(small)
    assert rf"\texttt{{test}} & {answer.test:.6g}" in answer._repr_latex_()
    grid = gs.Grid(small, {"width": [1, 2, 3, 4, 5]})
    assert "5 values" in grid._repr_html_()
