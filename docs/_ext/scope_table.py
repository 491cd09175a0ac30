"""The table of regimes as text, for the scope page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from giantsteps.functions import MultiIndex, Teacher, as_function, as_teacher, centered
from giantsteps.problem import Constant, Gaussian, Init, Problem, SecondLayer, Step
from giantsteps.theory.scope.conditions import CONDITIONS
from giantsteps.theory.scope.rule import Absent, Rule
from giantsteps.theory.scope.table import RULES, rule_of
from giantsteps.theory.steps.kinds import Kind

#: One problem for each row and column: exponents of the steps, …
_EXPONENTS: dict[Kind, tuple[float, ...]] = {
    Kind.UNTRAINED: (),
    Kind.SMALL: (0.0,),
    Kind.BETWEEN: (0.3,),
    Kind.BOUNDARY: (0.25,),
    Kind.LARGE: (0.5,),
    Kind.SMALL_STEPS: (0.0, 0.0),
    Kind.LARGE_STEPS: (0.5, 0.5),
    Kind.MIXED_STEPS: (0.3, 0.4),
}
#: … activations, …
_ACTIVATIONS = {
    "σ odd": as_function("tanh"),
    "E σ = 0": centered("relu"),
    "any σ": as_function("relu"),
}
#: … teachers, …
_TEACHERS: dict[str, Teacher] = {
    "A teacher of one direction": as_teacher("sin"),
    "A teacher of several directions": MultiIndex("x0*(1 + x1)", rank=2),
}
#: … and second layers.
_LAYERS: dict[str, SecondLayer] = {"E A = 0": Gaussian(), "E A ≠ 0": Constant()}
_SIZES = {"limit": False, "given d": True}
#: Needed almost everywhere; said once, above the tables.
_COMMON = ("single index",)
_SPACE = "\N{NO-BREAK SPACE}"
_NAMES = [f"{size}: {name}" for size in _SIZES for name in _ACTIVATIONS]
_HEAD = (f"| steps | second layer | {' | '.join(_NAMES)} |", "|---" * (2 + len(_NAMES)) + "|")


def scope_table() -> str:
    """What theory answers, in Markdown, printed from the table that decides it.

    For each question and for teachers of one direction and of several: steps × law of the second
    layer, in the limit and at a given d, for activations that are odd, centred, or neither. A cell
    is exact, ≈ (an approximation) or –, with the section of docs/theory; below, in words, what an
    answer needs, what it takes to be exact, and why there is none.
    """
    return "\n".join(line for question in RULES for line in _section(question)) + "\n"


def _section(question: str) -> Iterator[str]:
    yield f"## theory.{question}"
    yield ""
    for label, teacher in _TEACHERS.items():
        rows = list(_rows(question, teacher))
        if rows:
            yield from (f"{label}:", "", *_HEAD, *rows, "")
    yield from sorted(set(_remarks(question)), key=lambda line: ("absent" in line, line))
    yield ""


def _rows(question: str, teacher: Teacher) -> Iterator[str]:
    for kind in Kind:
        cells = {layer: _cells(question, kind, teacher, law) for layer, law in _LAYERS.items()}
        if len(set(cells.values())) == 1:
            cells = {"any": next(iter(cells.values()))}
        if teacher.rank > 1 and not any(map(_answered, cells.values())):
            continue
        for layer, row in cells.items():
            yield f"| {kind.value} | {layer} | {' | '.join(row)} |"


def _answered(cells: tuple[str, ...]) -> bool:
    return any(cell != "–" for cell in cells)


@cache
def _problem(kind: Kind, activation: str, teacher: Teacher, layer: SecondLayer) -> Problem:
    return Problem(
        activation=_ACTIVATIONS[activation],
        teacher=teacher,
        width=1.0,
        steps=[Step(samples=1.0, rate=1.0, exponent=exponent) for exponent in _EXPONENTS[kind]],
        init=Init(second_layer=layer),
    )


def _cells(question: str, kind: Kind, teacher: Teacher, layer: SecondLayer) -> tuple[str, ...]:
    return tuple(
        _cell(question, _problem(kind, name, teacher, layer), given)
        for given in _SIZES.values()
        for name in _ACTIVATIONS
    )


def _cell(question: str, problem: Problem, given: bool) -> str:
    rule = rule_of(question, problem, given)
    if isinstance(rule, Absent) or not all(CONDITIONS[name].holds(problem) for name in rule.needs):
        return "–"
    return f"{'≈' if rule.violated(problem) else 'exact'}{_SPACE}{rule.section}"


def _remarks(question: str) -> Iterator[str]:
    """What the cells leave out: conditions and reasons, in words."""
    for teacher in _TEACHERS.values():
        for kind in Kind:
            problem = _problem(kind, "σ odd", teacher, _LAYERS["E A = 0"])
            for given in _SIZES.values():
                yield from _remark(rule_of(question, problem, given))


def _remark(rule: Rule | Absent) -> Iterator[str]:
    if isinstance(rule, Absent):
        yield f"- absent: {rule.why}; covered: {rule.covered}"
        return
    for name in rule.needs:
        if name not in _COMMON:
            yield f"- {rule.section} needs: {CONDITIONS[name].text}"
    for name in rule.exact_if:
        yield f"- {rule.section} is exact if {CONDITIONS[name].text}"
