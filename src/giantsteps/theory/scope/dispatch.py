"""From a question to its answer: one problem or a grid, each cell by the rule of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from giantsteps.answers import Answer
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid, Problem

from giantsteps.theory.scope.table import Rule, resolve

__all__ = ["Solver", "answer", "answers"]

A = TypeVar("A", bound=Answer)

#: Answers many problems at once; one that is asked alone gets the same answer to the last bit.
Solver = Callable[[Sequence[Problem], Sequence[Rule], int | None], Sequence[A]]


def answer(
    question: str, target: Problem | Grid, d: int | None, solvers: Mapping[str, Solver[A]]
) -> A:
    """Answer ``question`` for a problem or for every cell of a grid."""
    if isinstance(target, Problem):
        return answers(question, [target], d, solvers)[0]
    if not isinstance(target, Grid):
        raise InvalidProblem("problem", target, "a Problem or a Grid")
    cells = answers(question, list(target.problems().ravel()), d, solvers)
    return type(cells[0]).stack(target, cells)


def answers(
    question: str, problems: Sequence[Problem], d: int | None, solvers: Mapping[str, Solver[A]]
) -> list[A]:
    """Answer ``question`` for each problem.

    Those with the same method are solved in one batch. Every problem is checked against the table
    before the first is solved.
    """
    if d is not None and (isinstance(d, bool) or not isinstance(d, int) or d < 1):
        raise InvalidProblem("d", d, "a positive whole number, or None for the limit")
    rules = [resolve(question, problem, d) for problem in problems]
    found: dict[int, A] = {}
    for method in dict.fromkeys(rule.method for rule in rules):
        members = [i for i, rule in enumerate(rules) if rule.method == method]
        solved = solvers[method]([problems[i] for i in members], [rules[i] for i in members], d)
        found.update(zip(members, solved, strict=True))
    return [found[i] for i in range(len(problems))]
