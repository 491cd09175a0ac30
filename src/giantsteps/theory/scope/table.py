"""Which equation answers which question: one table, the only place that decides (theory §0).

A setting belongs to one :class:`~giantsteps.theory.scope.kinds.Kind`, by its number of steps and its
exponents. ``RULES[question][kind, d is given]`` names the section that answers, the conditions
under which its answer is exact, and those without which it would be wrong. Everything else raises
:class:`~giantsteps.errors.NotCovered`. The scope page of the documentation is printed from
this table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from giantsteps.errors import NotCovered
from giantsteps.problem import Problem

from giantsteps.theory.scope.conditions import CONDITIONS
from giantsteps.theory.scope.kinds import Kind, kind_of

__all__ = ["RULES", "RULES_OF_MANY", "Absent", "Rule", "resolve", "rule_of"]


@dataclass(frozen=True)
class Rule:
    """One cell of the table.

    Attributes
    ----------
    section
        Where the equation stands in docs/theory.
    method
        Name of the solver, looked up by the question's own module.
    needs
        Conditions without which there is no answer.
    exact_if
        Conditions without which the answer is an approximation, reported in ``violated``.
    references
        Keys of the bibliography.
    """

    section: str
    method: str
    needs: tuple[str, ...] = ("single index", "centered teacher")
    exact_if: tuple[str, ...] = ()
    references: tuple[str, ...] = ()

    @property
    def assumptions(self) -> tuple[str, ...]:
        return tuple(CONDITIONS[name].text for name in self.needs + self.exact_if)

    def stated(self, problem: Problem, d: int | None) -> dict[str, Any]:
        """The fields that every answer by this rule carries."""
        violated = self.violated(problem)
        return {
            "problem": problem,
            "d": d,
            "source": "limit" if d is None else "finite width",
            "exact": not violated,
            "assumptions": self.assumptions,
            "violated": violated,
            "references": self.references,
        }

    def violated(self, problem: Problem) -> tuple[str, ...]:
        return tuple(
            CONDITIONS[name].text for name in self.exact_if if not CONDITIONS[name].holds(problem)
        )


@dataclass(frozen=True)
class Absent:
    """A cell of the table without an answer: why, and what would be covered."""

    why: str
    covered: str


_ONE_STEP = ("ba2022",)
_EVERY_RATE = ("ba2022", "moniri2023", "cui2024", "dandi2024")
_NO_STEPS_YET = Absent("there is no step", "problems with at least one step")
_ONE = Absent(
    "the problem has several steps", "no step or one step, and simulation for any number of steps"
)
_SCALES = Absent(
    "spikes and bulk live on different scales there",
    "exponents 1/2, or any exponent with d given",
)
_TWO_AT_A_SIZE = Absent(
    "spikes and bulk live on different scales there",
    "both exponents 1/2, all exponents 0, or any two exponents with d given",
)
_TOO_MANY = Absent(
    "the equations of theory §7 are those of two steps",
    "two steps, any number of steps with exponent 0, theory.risk_of_weights for given weights, "
    "and simulation for any number of steps",
)

_MARCHENKO_PASTUR = Rule("§1", "initial", needs=())
_SMALL_SPIKE = Rule("§2", "small step", references=_ONE_STEP)
_INFINITE_SPIKE = Rule("§2", "infinite strength", references=_ONE_STEP)
_GAUSSIAN = Rule(
    "§4",
    "small step",
    needs=("single index", "centered teacher", "centered activation", "mean-free or odd"),
    references=_ONE_STEP,
)
_RANDOM_FEATURES = Rule(
    "§4",
    "small step",
    needs=("single index", "centered teacher", "centered activation"),
    references=("ba2022", "mei2019"),
)
#: At a size the mean of σ is a regressor like any other, which a centred teacher leaves at zero.
_RANDOM_FEATURES_AT_SIZE = Rule("§4", "small step", references=("ba2022", "mei2019"))
_EQUIVALENT = Rule("§5", "equivalent", exact_if=("odd activation",), references=_EVERY_RATE)
_LARGE_READOUT = replace(_EQUIVALENT, exact_if=("odd activation", "little length"))
_SUMMED_SPIKE = Rule("§7", "summed", references=_ONE_STEP)
_SUMMED_GAUSSIAN = Rule("§7", "summed", needs=_GAUSSIAN.needs, references=_ONE_STEP)
_TWO_STEPS = Rule(
    "§7",
    "two steps",
    needs=("single index", "centered teacher", "no initial output"),
    exact_if=("isotropic bulk",),
    references=("moniri2026",),
)
#: Kind and whether d is given → rule, for questions that several steps answer.
_SEVERAL_STEPS: dict[tuple[Kind, bool], Rule | Absent] = {
    (Kind.SMALL_STEPS, True): _TWO_STEPS,
    (Kind.LARGE_STEPS, False): _TWO_STEPS,
    (Kind.LARGE_STEPS, True): _TWO_STEPS,
    (Kind.TWO, False): _TWO_AT_A_SIZE,
    (Kind.TWO, True): _TWO_STEPS,
    (Kind.SEVERAL, False): _TOO_MANY,
    (Kind.SEVERAL, True): _TOO_MANY,
}
_STEPS = (Kind.SMALL_STEPS, Kind.LARGE_STEPS, Kind.TWO, Kind.SEVERAL)
_STAIRCASE = Rule("§6", "staircase", references=("moniri2023",))
_ON_BOUNDARY = Rule(
    "§6",
    "staircase",
    needs=("single index", "centered teacher", "no marginal spike"),
    references=("moniri2023",),
)
_LIMIT_ONLY = Absent("it is a limit", "the limit, without d")
_OFF_STAIRCASE = Absent("the staircase has 0 < exponent < 1/2", "theory.risk")
_LARGE_LOSS = Absent("the equations of theory §6 end below it", "exponents below 1/2")
_GRADIENT = Rule("§2", "gradient", exact_if=("odd activation",), references=_ONE_STEP)
_EVERY_RATE_IS_ABOVE = Absent(
    "the learning rate grows with N, so every positive rate makes a spike",
    "exponent 0, or any exponent with d given",
)
#: Finitely many spikes, and the teacher, leave no trace in the degrees of freedom.
_BULK_ONLY = Rule("§4", "small step", needs=(), references=_ONE_STEP)
_STAIRCASE_FUNCTION = Absent(
    "several polynomials of the spike are learned there, each without penalty",
    "exponents 0 and 1/2, or any exponent with d given",
)
_KERNEL = Rule("§3", "small step", references=("ba2022", "wang2024", "fan2020"))

_DIVERGE = Absent("the spikes of the features grow with N there", "any rate with d given")
#: Spectra of the features: theory §3 at exponent 0, theory §5d beyond.
_FEATURE_SPECTRA: dict[tuple[Kind, bool], Rule | Absent] = {
    **{(kind, False): _DIVERGE for kind in Kind},
    **{(kind, True): _EQUIVALENT for kind in (Kind.BETWEEN, Kind.BOUNDARY, Kind.LARGE)},
    **{(kind, given): _KERNEL for kind in (Kind.UNTRAINED, Kind.SMALL) for given in (False, True)},
    **{(kind, True): rule for (kind, given), rule in _SEVERAL_STEPS.items() if given},
}

#: Question → (kind, d is given) → rule.
RULES: dict[str, dict[tuple[Kind, bool], Rule | Absent]] = {
    "weights": {
        (Kind.UNTRAINED, False): _MARCHENKO_PASTUR,
        (Kind.UNTRAINED, True): _MARCHENKO_PASTUR,
        (Kind.SMALL, False): _SMALL_SPIKE,
        (Kind.SMALL, True): _SMALL_SPIKE,
        (Kind.BETWEEN, False): _INFINITE_SPIKE,
        (Kind.BETWEEN, True): _EQUIVALENT,
        (Kind.BOUNDARY, False): _INFINITE_SPIKE,
        (Kind.BOUNDARY, True): _EQUIVALENT,
        (Kind.LARGE, False): _INFINITE_SPIKE,
        (Kind.LARGE, True): _EQUIVALENT,
        (Kind.SMALL_STEPS, False): _SUMMED_SPIKE,
        **_SEVERAL_STEPS,
    },
    "risk": {
        (Kind.UNTRAINED, False): _RANDOM_FEATURES,
        (Kind.UNTRAINED, True): _RANDOM_FEATURES_AT_SIZE,
        (Kind.SMALL, False): _GAUSSIAN,
        (Kind.SMALL, True): _EQUIVALENT,
        (Kind.BETWEEN, False): _STAIRCASE,
        (Kind.BETWEEN, True): _EQUIVALENT,
        (Kind.BOUNDARY, False): _ON_BOUNDARY,
        (Kind.BOUNDARY, True): _EQUIVALENT,
        (Kind.LARGE, False): _LARGE_READOUT,
        (Kind.LARGE, True): _LARGE_READOUT,
        (Kind.SMALL_STEPS, False): _SUMMED_GAUSSIAN,
        **_SEVERAL_STEPS,
    },
    "gradient": {
        **{(kind, given): _GRADIENT for kind in Kind for given in (False, True)},
        (Kind.UNTRAINED, False): _NO_STEPS_YET,
        (Kind.UNTRAINED, True): _NO_STEPS_YET,
    },
    "kernel": _FEATURE_SPECTRA,
    "features": _FEATURE_SPECTRA,
    "equivalent": {
        (Kind.UNTRAINED, False): _EQUIVALENT,
        (Kind.UNTRAINED, True): _EQUIVALENT,
        (Kind.SMALL, False): _SCALES,
        (Kind.SMALL, True): _EQUIVALENT,
        (Kind.BETWEEN, False): _SCALES,
        (Kind.BETWEEN, True): _EQUIVALENT,
        (Kind.BOUNDARY, False): _SCALES,
        (Kind.BOUNDARY, True): _EQUIVALENT,
        (Kind.LARGE, False): _EQUIVALENT,
        (Kind.LARGE, True): _EQUIVALENT,
        (Kind.SMALL_STEPS, False): _SCALES,
        **_SEVERAL_STEPS,
    },
    "critical_rate": {
        (Kind.UNTRAINED, False): _NO_STEPS_YET,
        (Kind.UNTRAINED, True): _NO_STEPS_YET,
        (Kind.SMALL, False): _SMALL_SPIKE,
        (Kind.SMALL, True): _SMALL_SPIKE,
        **{
            (kind, given): _SMALL_SPIKE if given else _EVERY_RATE_IS_ABOVE
            for kind in (Kind.BETWEEN, Kind.BOUNDARY, Kind.LARGE)
            for given in (False, True)
        },
        **{(kind, given): _ONE for kind in _STEPS for given in (False, True)},
    },
    "learned_function": {
        (Kind.UNTRAINED, False): _RANDOM_FEATURES,
        (Kind.UNTRAINED, True): _RANDOM_FEATURES_AT_SIZE,
        (Kind.SMALL, False): _GAUSSIAN,
        (Kind.SMALL, True): _EQUIVALENT,
        (Kind.BETWEEN, False): _STAIRCASE_FUNCTION,
        (Kind.BETWEEN, True): _EQUIVALENT,
        (Kind.BOUNDARY, False): _STAIRCASE_FUNCTION,
        (Kind.BOUNDARY, True): _EQUIVALENT,
        (Kind.LARGE, False): _LARGE_READOUT,
        (Kind.LARGE, True): _LARGE_READOUT,
        (Kind.SMALL_STEPS, False): _SUMMED_GAUSSIAN,
        **_SEVERAL_STEPS,
    },
    "degrees_of_freedom": {
        **{
            (kind, False): _BULK_ONLY
            for kind in (Kind.UNTRAINED, Kind.SMALL, Kind.BETWEEN, Kind.BOUNDARY, Kind.SMALL_STEPS)
        },
        (Kind.UNTRAINED, True): _BULK_ONLY,
        **{(kind, True): _EQUIVALENT for kind in (Kind.SMALL, Kind.BETWEEN, Kind.BOUNDARY)},
        (Kind.LARGE, False): _EQUIVALENT,
        (Kind.LARGE, True): _EQUIVALENT,
        **_SEVERAL_STEPS,
    },
    "bounds": {
        (kind, given): Rule("§4", "bounds", references=("ba2022", "cui2024"))
        for kind in Kind
        for given in (False, True)
    },
    "staircase_risk": {
        (Kind.UNTRAINED, False): _OFF_STAIRCASE,
        (Kind.SMALL, False): _OFF_STAIRCASE,
        (Kind.BETWEEN, False): _STAIRCASE,
        (Kind.BOUNDARY, False): _ON_BOUNDARY,
        (Kind.LARGE, False): _OFF_STAIRCASE,
        **{(kind, False): _ONE for kind in _STEPS},
        **{(kind, True): _LIMIT_ONLY for kind in Kind},
    },
    "training_loss": {
        (Kind.UNTRAINED, False): _RANDOM_FEATURES,
        (Kind.SMALL, False): _GAUSSIAN,
        (Kind.BETWEEN, False): _STAIRCASE,
        (Kind.BOUNDARY, False): _ON_BOUNDARY,
        (Kind.LARGE, False): _LARGE_LOSS,
        **{(kind, False): _ONE for kind in _STEPS},
        **{(kind, True): _LIMIT_ONLY for kind in Kind},
    },
}


_SPIKE_OF_MANY = Rule("§2", "small step", needs=("centered teacher",), references=_ONE_STEP)
_INFINITE_SPIKE_OF_MANY = replace(_SPIKE_OF_MANY, method="infinite strength")
_SUMMED_SPIKE_OF_MANY = replace(_SPIKE_OF_MANY, section="§7", method="summed")
_GAUSSIAN_OF_MANY = replace(
    _GAUSSIAN, needs=tuple(name for name in _GAUSSIAN.needs if name != "single index")
)
_MANY_DIRECTIONS = replace(
    _TWO_STEPS,
    needs=("few directions", "centered teacher", "no initial output", "at most two steps"),
)
_ONE_DIRECTION = Absent(
    "the teacher depends on several directions",
    "theory.weights, theory.risk and theory.equivalent, and simulation for every question",
)
_AT_A_SIZE: dict[tuple[Kind, bool], Rule | Absent] = {
    **{(kind, True): _MANY_DIRECTIONS for kind in Kind},
    (Kind.LARGE, False): _MANY_DIRECTIONS,
    (Kind.LARGE_STEPS, False): _MANY_DIRECTIONS,
    (Kind.TWO, False): _TWO_AT_A_SIZE,
    (Kind.SEVERAL, False): _TOO_MANY,
    (Kind.SEVERAL, True): _TOO_MANY,
}

#: The same for teachers of several directions; questions that are not here have no answer.
RULES_OF_MANY: dict[str, dict[tuple[Kind, bool], Rule | Absent]] = {
    "weights": {
        **_AT_A_SIZE,
        (Kind.UNTRAINED, False): _MARCHENKO_PASTUR,
        (Kind.UNTRAINED, True): _MARCHENKO_PASTUR,
        (Kind.SMALL, False): _SPIKE_OF_MANY,
        (Kind.SMALL, True): _SPIKE_OF_MANY,
        (Kind.BETWEEN, False): _INFINITE_SPIKE_OF_MANY,
        (Kind.BOUNDARY, False): _INFINITE_SPIKE_OF_MANY,
        (Kind.LARGE, False): _INFINITE_SPIKE_OF_MANY,
        (Kind.SMALL_STEPS, False): _SUMMED_SPIKE_OF_MANY,
        (Kind.SMALL_STEPS, True): replace(_SUMMED_SPIKE_OF_MANY, method="two steps"),
    },
    "risk": {
        **_AT_A_SIZE,
        (Kind.UNTRAINED, False): _GAUSSIAN_OF_MANY,
        (Kind.UNTRAINED, True): _GAUSSIAN_OF_MANY,
        (Kind.SMALL, False): _GAUSSIAN_OF_MANY,
        (Kind.BETWEEN, False): _SCALES,
        (Kind.BOUNDARY, False): _SCALES,
        (Kind.SMALL_STEPS, False): replace(_GAUSSIAN_OF_MANY, section="§7", method="summed"),
    },
    "critical_rate": {
        cell: _SPIKE_OF_MANY if rule is _SMALL_SPIKE else rule
        for cell, rule in RULES["critical_rate"].items()
    },
    "degrees_of_freedom": {
        cell: rule for cell, rule in RULES["degrees_of_freedom"].items() if rule is _BULK_ONLY
    },
    "equivalent": {
        **_AT_A_SIZE,
        **{(kind, False): _SCALES for kind in (Kind.UNTRAINED, Kind.SMALL, Kind.BETWEEN)},
        (Kind.BOUNDARY, False): _SCALES,
        (Kind.SMALL_STEPS, False): _SCALES,
    },
}


def rule_of(question: str, problem: Problem, given: bool) -> Rule | Absent:
    kind = kind_of(problem)
    if problem.teacher.rank == 1:
        return RULES[question][kind, given]
    return RULES_OF_MANY.get(question, {}).get((kind, given), _ONE_DIRECTION)


def resolve(question: str, problem: Problem, d: int | None) -> Rule:
    """The rule that answers ``question`` for ``problem``.

    Raises
    ------
    NotCovered
        If the table has no answer, or the problem leaves a condition that the answer needs.
    """
    kind = kind_of(problem)
    size = "in the limit" if d is None else f"at d = {d}"
    what = f"theory.{question} for {kind.value} {size}"
    rule = rule_of(question, problem, d is not None)
    if isinstance(rule, Absent):
        raise NotCovered(what, rule.why, rule.covered)
    for name in rule.needs:
        condition = CONDITIONS[name]
        if not condition.holds(problem):
            raise NotCovered(what, f"it needs that {condition.text}", condition.advice(problem))
    return rule
