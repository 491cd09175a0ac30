"""The scope page says what the theory does: its cells against what the questions return."""

from __future__ import annotations

import pytest

import giantsteps as gs
from giantsteps import theory

ACTIVATIONS = {"σ odd": "tanh", "E σ = 0": gs.centered("relu"), "any σ": "relu"}
LAYERS = {"E A = 0": "gaussian", "E A ≠ 0": "constant"}
STEPS: dict[str, tuple[float, ...]] = {
    "no step": (),
    "one step, exponent 0": (0.0,),
    "one step, 0 < exponent < 1/2": (0.3,),
    "one step, exponent (l-1)/(2l), l ≥ 2": (0.25,),
    "one step, exponent 1/2": (0.5,),
    "several steps, all exponents 0": (0.0, 0.0),
}
TEACHERS = {
    "A teacher of one direction": "sin",
    "A teacher of several directions": gs.MultiIndex("x0*(1 + x1)", rank=2),
}


def table(question: str, teacher: str) -> dict[tuple[str, ...], str]:
    """(steps, second layer, column) → cell; what has no row has no answer."""
    section = theory.scope_table().split(f"## theory.{question}\n")[1].split("\n## ")[0]
    part = section.split(f"{teacher}:\n")[1].split(" directions:\n")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line[:2] == "| "]
    head, *body = rows
    found = {}
    for steps, layer, *cells in body:
        for name in LAYERS if layer == "any" else [layer]:
            for column, cell in zip(head[2:], cells, strict=True):
                found[steps, name, column] = cell.split("\N{NO-BREAK SPACE}")[0]
    return found


def what_happens(question: str, problem: gs.Problem, d: int | None) -> str:
    try:
        answer = getattr(theory, question)(problem, d=d)
    except gs.NotCovered:
        return "–"
    return "exact" if answer.exact else "≈"


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
                said = cells.get((steps, layer, f"limit: {name}"), "–")
                found = what_happens(question, problem, None)
                if said != found:
                    wrong.append(f"{question}, {steps}, {layer}, {name}: {said}, but {found}")
    assert not wrong, "\n".join(wrong)


def test_every_question_with_a_rule_is_there() -> None:
    text = theory.scope_table()
    for question in ("risk", "weights", "kernel", "features", "learned_function", "bounds"):
        assert f"## theory.{question}\n" in text
    assert "| three or more steps, not all exponents 0 | any | – |" in text
