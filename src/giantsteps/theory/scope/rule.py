"""One cell of the table of regimes: which equation answers, on what grounds (theory §0)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from giantsteps.answers import small_size
from giantsteps.problem import Problem
from giantsteps.theory.scope.conditions import CONDITIONS
from giantsteps.theory.scope.heavy import heavy_directions

#: What an answer says of itself: problem, d, source, exact, assumptions, violated, evidence,
#: references.
Claim = dict[str, Any]
#: Answers many problems at once; one that is asked alone gets the same answer to the last bit.
Method = Callable[..., Any]


@dataclass(frozen=True)
class Rule:
    """One cell of the table."""

    section: str  # where the equation stands in docs/theory
    method: Method  # the function that answers: ``method(problems, claims, d, **options)``
    evidence: str  # ``"theorem"``, ``"replica"`` or ``"derived"``, and where
    #: Conditions without which there is no answer.
    needs: tuple[str, ...] = ("single index", "centered teacher")
    #: Conditions without which the answer is an approximation, reported in ``violated``.
    exact_if: tuple[str, ...] = ()
    references: tuple[str, ...] = ()  # keys of the bibliography

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the equations assume, in words."""
        return tuple(CONDITIONS[name].text for name in self.needs + self.exact_if)

    def stated(self, problem: Problem, d: int | None) -> Claim:
        """The fields that every answer by this rule carries."""
        violated = self.violated(problem, d)
        return {
            "problem": problem,
            "d": d,
            "source": "limit" if d is None else "finite width",
            "exact": not violated,
            "assumptions": self.assumptions,
            "violated": violated + small_size(d),
            "evidence": self.evidence,
            "references": self.references,
        }

    def violated(self, problem: Problem, d: int | None = None) -> tuple[str, ...]:
        """The conditions of exactness that the problem does not satisfy."""
        found: list[str] = []
        for name in self.exact_if:
            condition = CONDITIONS[name]
            if name == "light eigenvalues" and d is not None:
                found += heavy_directions(problem, d)
            elif not condition.holds(problem):
                found.append(condition.text)
        return tuple(found)


@dataclass(frozen=True)
class Absent:
    """A cell of the table without an answer: why, and what would be covered."""

    why: str
    covered: str
