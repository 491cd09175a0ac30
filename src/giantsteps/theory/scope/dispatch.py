"""From a question to its answer: one problem or a grid, each cell by the rule of the table (§0)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from giantsteps.answers import Answer
from giantsteps.errors import InvalidProblem, NotConverged, NotCovered
from giantsteps.problem import Grid, Problem, integer
from giantsteps.theory.scope.conditions import CONDITIONS
from giantsteps.theory.scope.rule import Absent, Rule
from giantsteps.theory.scope.table import rule_of
from giantsteps.theory.steps.kinds import kind_of
from giantsteps.threads import capped


def answer(question: str, target: Problem | Grid, d: int | None, **options: Any) -> Any:
    """Answer ``question`` for a problem or for every cell of a grid."""
    if d is not None:
        d = integer(d, "d", "a positive whole number, or None for the limit")
    if isinstance(target, Problem):
        return answers(question, [target], d, **options)[0]
    if not isinstance(target, Grid):
        raise InvalidProblem("problem", target, "a Problem or a Grid")
    cells = answers(question, list(target.problems().ravel()), d, **options)
    return type(cells[0]).stack(target, cells)


def answers(question: str, problems: Sequence[Problem], d: int | None, **options: Any) -> list[Any]:
    """Answer ``question`` for each problem.

    Those with the same method are solved in one batch. Every problem is checked against the table
    before the first is solved.
    """
    rules = [resolve(question, problem, d) for problem in problems]
    found: dict[int, Answer] = {}
    for method in dict.fromkeys(rule.method for rule in rules):
        members = [i for i, rule in enumerate(rules) if rule.method is method]
        claims = [rules[i].stated(problems[i], d) for i in members]
        with capped(1), within_range(question):
            solved = method([problems[i] for i in members], claims, d, **options)
        found.update(zip(members, solved, strict=True))
    return [found[i] for i in range(len(problems))]


@contextmanager
def within_range(question: str) -> Iterator[None]:
    """Numbers that overflow and equations that are singular to rounding are no answer."""
    try:
        with np.errstate(over="raise"):
            yield
    except (FloatingPointError, np.linalg.LinAlgError) as error:
        raise said(question, error) from error


def said(question: str, error: Exception) -> NotCovered | NotConverged:
    """An error of numbers in the user's terms, another one as it is."""
    if isinstance(error, NotCovered | NotConverged):
        return error
    singular = isinstance(error, np.linalg.LinAlgError)
    why = "equations are singular" if singular else "numbers leave the range of floating point"
    remedy = "a smaller rate, or a width and samples closer to one"
    return NotConverged(f"theory.{question}, whose {why}", math.inf, 0, remedy)


def resolve(question: str, problem: Problem, d: int | None) -> Rule:
    """The rule that answers ``question`` for ``problem``.

    Raises
    ------
    NotCovered
        If the table has no answer, or the problem does not satisfy a condition that the answer
        needs.
    """
    if not isinstance(problem, Problem):
        raise InvalidProblem("problem", problem, "a Problem")
    if d is not None:
        d = integer(d, "d", "a positive whole number, or None for the limit")
    rule = rule_of(question, problem, d is not None)
    if isinstance(rule, Absent):
        raise NotCovered(_asked(question, problem, d), rule.why, rule.covered)
    for name in rule.needs:
        condition = CONDITIONS[name]
        if not condition.satisfied(problem, d):
            what = _asked(question, problem, d)
            raise NotCovered(what, condition.refusal, condition.advice(problem, d))
    return rule


def _asked(question: str, problem: Problem, d: int | None) -> str:
    size = "in the limit" if d is None else f"at d = {d}"
    return f"theory.{question} ({kind_of(problem).value}, {size})"
