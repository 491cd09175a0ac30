"""The scope page says what the theory does: its cells against what the questions return."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.theory.scope.dispatch import resolve
from giantsteps.theory.scope.table import RULES, check_cells

_FILE = Path(__file__).parents[2] / "docs" / "_ext" / "scope_table.py"
scope_table = runpy.run_path(str(_FILE))["scope_table"]

ACTIVATIONS: dict[str, Any] = {"σ odd": "tanh", "E σ = 0": gs.centered("relu"), "any σ": "relu"}
LAYERS = {"E A = 0": "gaussian", "E A ≠ 0": "constant"}
STEPS: dict[str, tuple[float, ...]] = {
    "no step": (),
    "one step, exponent 0": (0.0,),
    "one step, 0 < exponent < 1/2": (0.3,),
    "one step, exponent (l-1)/(2l), l ≥ 2": (0.25,),
    "one step, exponent 1/2": (0.5,),
    "several steps, all exponents 0": (0.0, 0.0),
    "several steps, all exponents 1/2": (0.5, 0.5),
    "several steps, other exponents": (0.5, 0.3),
}
TEACHERS: dict[str, Any] = {
    "A teacher of one direction": "sin",
    "A teacher of several directions": gs.MultiIndex("x0*(1 + x1)", rank=2),
}


def table(question: str, teacher: str) -> dict[tuple[str, ...], str]:
    """(steps, second layer, column) → cell; what has no row has no answer."""
    section = scope_table().split(f"## theory.{question}\n")[1].split("\n## ")[0]
    part = section.split(f"{teacher}:\n")[1].split(" directions:\n")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line[:2] == "| "]
    head, *body = rows
    found: dict[tuple[str, ...], str] = {}
    for steps, layer, *cells in body:
        for name in LAYERS if layer == "any" else [layer]:
            for column, cell in zip(head[2:], cells, strict=True):
                found[steps, name, column] = cell.split("\N{NO-BREAK SPACE}")[0]
    return found


def what_happens(question: str, problem: gs.Problem, d: int | None) -> str:
    """What an answer would say; computed in the limit of one step and of none."""
    try:
        exact = not resolve(question, problem, d).violated(problem, d)
        if d is None and len(problem.steps) < 2 and problem.teacher.rank == 1:
            assert getattr(theory, question)(problem, d=d).exact is exact
    except gs.NotCovered:
        return "–"
    return "exact" if exact else "≈"


@pytest.mark.parametrize("question", ["risk", "weights"])
@pytest.mark.parametrize("teacher", TEACHERS)
def test_cells_are_what_happens(question: str, teacher: str) -> None:
    cells = table(question, teacher)
    wrong = []
    for steps, exponents in STEPS.items():
        for layer, law in LAYERS.items():
            for name, activation in ACTIVATIONS.items():
                problem = gs.Problem(
                    activation=activation,
                    teacher=TEACHERS[teacher],
                    width=1.0,
                    steps=[gs.Step(samples=2, rate=1, exponent=e) for e in exponents],
                    readout=gs.Ridge(samples=2, penalty=0.1),
                    init=gs.Init(second_layer=law),
                )
                for d in (None, 300):
                    column = f"{'limit' if d is None else 'given d'}: {name}"
                    said = cells.get((steps, layer, column), "–")
                    found = what_happens(question, problem, d)
                    if said != found:
                        wrong.append(f"{steps}, {layer}, {column}: {said}, but {found}")
    assert not wrong, "\n".join(wrong)


def test_every_question_with_a_rule_is_there() -> None:
    text = scope_table()
    missing = [question for question in RULES if f"## theory.{question}\n" not in text]
    assert not missing


def test_a_row_that_lacks_a_cell_is_named() -> None:
    cells = {cell: rule for cell, rule in RULES["risk"].items() if cell != list(RULES["risk"])[-1]}
    kind, given = list(RULES["risk"])[-1]
    with pytest.raises(ValueError, match="row of risk has no cell for") as error:
        check_cells({"risk": cells})
    assert str(error.value).endswith(f"{kind.value}, {'at a size' if given else 'in the limit'}")
