"""Which equation answers which question: one table, the only place that decides (theory §0).

A setting belongs to one :class:`~giantsteps.theory.steps.kinds.Kind`, by its number of steps and
its exponents. ``RULES[question][kind, d is given]`` names the section and the function that answer,
what they rest on, the conditions under which the answer is exact, and those without which it would
be wrong. Everything else raises :class:`~giantsteps.errors.NotCovered`. The scope page of the
documentation is printed from this table.
"""

from __future__ import annotations

from dataclasses import replace

from giantsteps.problem import Problem
from giantsteps.theory.scope.conditions import CONDITIONS
from giantsteps.theory.scope.rule import Absent, Rule
from giantsteps.theory.steps import bounds, build, first, gradient, kernel_small, moved, small
from giantsteps.theory.steps.kinds import Kind, kind_of
from giantsteps.theory.steps.several import summed
from giantsteps.theory.steps.staircase import loss, risk

Cells = dict[tuple[Kind, bool], Rule | Absent]

_ONE_DIRECTION = ("single index", "centered teacher")
_FEW_DIRECTIONS = ("few directions", "directions in plain steps")
#: Seams of a problem that an equation does not cover unless it says so.
_SEAMS = (
    "gradient steps",
    "no decay",
    "no preconditioner",
    "isotropic inputs",
    "scaled output",
    "fresh readout",
)

_NO_STEP_YET = Absent("there is no step", "problems with at least one step")
_ONE = Absent(
    "the problem has several steps", "no step or one step, and simulation for any number of steps"
)
_SCALES = Absent(
    "spikes and bulk live on different scales there",
    "exponents 1/2, or any exponent with d given",
)
_SCALES_OF_SEVERAL = Absent(
    "spikes and bulk live on different scales there",
    "all exponents 1/2, all exponents 0, or any exponents with d given",
)
_DIVERGE = Absent("the spikes of the features grow with N there", "any rate with d given")
_LIMIT_ONLY = Absent("it is a limit", "the limit, without d")
_OFF_STAIRCASE = Absent("the staircase has 0 < exponent < 1/2", "theory.risk")
_LARGE_LOSS = Absent("the equations of theory §6 end below it", "exponents below 1/2")
_ALWAYS_ABOVE = Absent(
    "the learning rate grows with N, so every positive rate makes a spike",
    "exponent 0, or any exponent with d given",
)
_SEVERAL_POLYNOMIALS = Absent(
    "several polynomials of the spike are learned there, each without penalty",
    "exponents 0 and 1/2, or any exponent with d given",
)

_ONE_STEP = (Kind.SMALL, Kind.BETWEEN, Kind.BOUNDARY, Kind.LARGE)
_SEVERAL = (Kind.SMALL_STEPS, Kind.LARGE_STEPS, Kind.MIXED_STEPS)

_FIVE = Rule(
    "§5",
    build.model,
    "derived (theory §5; checked against networks)",
    needs=(
        *_FEW_DIRECTIONS,
        "known rules",
        "no mean output",
        "seams one at a time",
        "fresh readout",
    ),
    exact_if=("light eigenvalues", "samples given a sign step", "steady output"),
    references=("ba2022", "moniri2023", "cui2024", "dandi2024"),
)
_SEVEN = Rule(
    "§7",
    build.model,
    "derived (theory §7; checked against networks)",
    needs=(
        *_FEW_DIRECTIONS,
        "odd where reused",
        "smooth rules",
        "plain where reused",
        "fresh on a covariance",
        "one preconditioner",
        "no output where preconditioned",
        "scaled output",
        "fresh readout",
    ),
    exact_if=(
        "odd where preconditioned",
        "batches add up",
        "few curved batches",
        "linear labels",
        "linear labels where reused",
        "light eigenvalues",
        "one direction where reused",
    ),
    references=("moniri2026",),
)
_RANDOM_FEATURES = Rule(
    "§4",
    small.risk,
    "theorem (mei2019; spectra fan2020)",
    needs=("isotropic inputs",),
    references=("ba2022", "mei2019", "fan2020"),
)
#: At a size the model answers where labels have a mean that the features learn.
_BEFORE_AT = replace(_RANDOM_FEATURES, needs=("no mean or odd", *_RANDOM_FEATURES.needs))
_GAUSSIAN = Rule(
    "§4",
    small.risk,
    "theorem (ba2022, Theorem 5)",
    needs=("no mean or odd", "centered activation", "mean-free or odd", *_SEAMS),
    references=("ba2022",),
)
#: The equivalent model before the steps.
_BEFORE = replace(
    _FIVE,
    evidence=_RANDOM_FEATURES.evidence,
    needs=(*_FIVE.needs, "isotropic inputs"),
    references=_RANDOM_FEATURES.references,
)
_STAIRCASE = Rule(
    "§6", risk.risk, "derived (theory §6; the limit of §5)", needs=(*_ONE_DIRECTION, *_SEAMS),
    references=("moniri2023",),
)  # fmt: skip
_BOUNDARY = replace(_STAIRCASE, needs=(*_STAIRCASE.needs, "no marginal spike"))
_SUMMED_RISK = replace(_GAUSSIAN, section="§7", needs=(*_GAUSSIAN.needs, "squared loss"))
_SUMMED_SPIKE = Rule(
    "§7",
    summed.weights,
    "theorem (ba2022; benaych2012)",
    needs=(*_SEAMS, "squared loss", "no initial output"),
    references=("ba2022", "benaych2012"),
)
_SPIKE = replace(
    _SUMMED_SPIKE,
    section="§2",
    method=first.weights,
    needs=(*_SEAMS[:2], *_SEAMS[4:], "isotropic or one direction"),
)


def _by(rule: Rule, method: object, **others: object) -> Rule:
    """The same rule for another question."""
    return replace(rule, method=method, **others)  # type: ignore[arg-type]


def _centered(rule: Rule) -> Rule:
    """In the limit the mean of σ is no feature: it must vanish."""
    return replace(rule, needs=(*rule.needs, "centered activation"))


def _with_limit(rule: Rule) -> Rule:
    """Power laws of the inputs may have no limit."""
    return replace(rule, needs=(*rule.needs, "finite moments"))


def _of_model(method: object, limit: bool = True) -> Cells:
    """Questions of the equivalent model: one step of any rate at a size, or exponents 1/2."""
    large = _by(_FIVE, method)
    several = _by(_SEVEN, method)
    return {
        **{(kind, True): large for kind in _ONE_STEP},
        **{(kind, True): several for kind in _SEVERAL},
        (Kind.LARGE, False): _with_limit(large) if limit else _DIVERGE,
        (Kind.LARGE_STEPS, False): _with_limit(several) if limit else _DIVERGE,
        (Kind.MIXED_STEPS, False): _SCALES_OF_SEVERAL if limit else _DIVERGE,
    }


def _needing(condition: str, cells: Cells) -> Cells:
    """The same cells with one more condition."""
    return {
        cell: replace(rule, needs=(*rule.needs, condition)) if isinstance(rule, Rule) else rule
        for cell, rule in cells.items()
    }


def _everywhere(rule: Rule | Absent, kinds: tuple[Kind, ...] = tuple(Kind)) -> Cells:
    return {(kind, given): rule for kind in kinds for given in (False, True)}


_SPECTRUM_BEFORE = Rule(
    "§3",
    kernel_small.kernel,
    "theorem (fan2020; after a step wang2024)",
    needs=("no mean or odd", *_SEAMS),
    references=("ba2022", "wang2024", "fan2020"),
)


_MOVES_LITTLE = Absent(
    "a neuron moves by a power of N that vanishes", "exponents 1/2, or any exponent with d given"
)
_MOVES = replace(
    _FIVE,
    method=moved.movement,
    exact_if=("light eigenvalues",),
    needs=(
        *_FEW_DIRECTIONS,
        "known rules",
        "one sign step",
        "odd where reused",
        "plain where reused",
        "one direction where reused",
        "few uses of a batch",
        "fresh on a covariance",
        "seams one at a time",
        "one preconditioner",
        "scaled output",
    ),
)


_FLOORS = Rule("§4", bounds.bounds, "theorem (ba2022)", needs=_FEW_DIRECTIONS[:1],
               exact_if=("light eigenvalues",), references=("ba2022", "cui2024"))  # fmt: skip
_FLOORS_AFTER = replace(
    _FLOORS,
    evidence="theorem (ba2022); after a large step replica (cui2024)",
    needs=(*_FIVE.needs[:-1], "finite moments of bounds"),
    exact_if=_FIVE.exact_if,
)


def _spectra(model: object, before: object) -> Cells:
    closed = _by(_SPECTRUM_BEFORE, before)
    return {
        **{(kind, False): _DIVERGE for kind in Kind},
        **_of_model(model, limit=False),
        (Kind.UNTRAINED, True): _by(_BEFORE, model),
        (Kind.UNTRAINED, False): closed,
        (Kind.SMALL, False): closed,
    }


#: Question → (kind, d is given) → rule.
RULES: dict[str, Cells] = {
    "weights": {
        **_of_model(build.weights),
        **_everywhere(
            Rule("§1", first.weights, "theorem (Marchenko–Pastur)", needs=()), (Kind.UNTRAINED,)
        ),
        **{(kind, False): _with_limit(_SPIKE) for kind in _ONE_STEP[:3]},
        (Kind.SMALL_STEPS, False): _SUMMED_SPIKE,
    },
    "risk": {
        **_of_model(build.risk),
        (Kind.UNTRAINED, False): _RANDOM_FEATURES,
        (Kind.UNTRAINED, True): _BEFORE_AT,
        (Kind.SMALL, False): _GAUSSIAN,
        (Kind.BETWEEN, False): _STAIRCASE,
        (Kind.BOUNDARY, False): _BOUNDARY,
        (Kind.SMALL_STEPS, False): _SUMMED_RISK,
    },
    "gradient": {
        **_everywhere(
            Rule("§2", gradient.gradient, "theorem (ba2022, Proposition 2); its residual derived "
                 "(theory §2)", references=("ba2022",), exact_if=("light eigenvalues",),
                 needs=("isotropic or one direction", "scaled output"))
        ),
        **_everywhere(_NO_STEP_YET, (Kind.UNTRAINED,)),
    },
    "movement": {
        **_everywhere(_MOVES_LITTLE),
        **{(kind, True): _MOVES for kind in (*_ONE_STEP, *_SEVERAL)},
        (Kind.LARGE, False): _with_limit(_MOVES),
        (Kind.LARGE_STEPS, False): _with_limit(_MOVES),
        **_everywhere(_NO_STEP_YET, (Kind.UNTRAINED,)),
    },
    "kernel": _spectra(build.kernel, kernel_small.kernel),
    "features": _spectra(build.features, kernel_small.features),
    "equivalent": {
        **{(kind, False): _SCALES for kind in (*_ONE_STEP, Kind.SMALL_STEPS)},
        **_of_model(build.model),
        **_everywhere(_BEFORE, (Kind.UNTRAINED,)),
    },
    "critical_rate": {
        **_everywhere(_NO_STEP_YET, (Kind.UNTRAINED,)),
        **{(kind, True): _SPIKE for kind in _ONE_STEP},
        **{(kind, False): _ALWAYS_ABOVE for kind in _ONE_STEP},
        (Kind.SMALL, False): _with_limit(_SPIKE),
        **_everywhere(_ONE, _SEVERAL),
    },
    "learned_function": {
        **_of_model(build.learned_function),
        (Kind.UNTRAINED, False): _by(_RANDOM_FEATURES, small.learned_function),
        (Kind.UNTRAINED, True): _by(_BEFORE_AT, small.learned_function),
        (Kind.SMALL, False): _by(_GAUSSIAN, small.learned_function),
        (Kind.BETWEEN, False): _SEVERAL_POLYNOMIALS,
        (Kind.BOUNDARY, False): _SEVERAL_POLYNOMIALS,
        (Kind.SMALL_STEPS, False): _by(_SUMMED_RISK, small.learned_function),
    },
    #: Finitely many spikes, and the teacher, leave no trace in the degrees of freedom.
    "degrees_of_freedom": {
        **{
            (kind, given): Rule("§4", small.degrees_of_freedom, "theorem (ba2022)", needs=_SEAMS,
                                references=("ba2022",))
            for kind in (Kind.UNTRAINED, Kind.SMALL, Kind.BETWEEN, Kind.BOUNDARY, Kind.SMALL_STEPS)
            for given in (False, True)
        },
        **_needing("penalty or n ≠ N", _of_model(build.degrees_of_freedom)),
    },
    #: Linear functions and τ* know neither the steps nor Σ.
    "bounds": {**_everywhere(_FLOORS), **_everywhere(_FLOORS_AFTER, (Kind.LARGE,))},
    "staircase_risk": {
        **{(kind, True): _LIMIT_ONLY for kind in Kind},
        **{(kind, False): _OFF_STAIRCASE for kind in (Kind.UNTRAINED, Kind.SMALL, Kind.LARGE)},
        (Kind.BETWEEN, False): _STAIRCASE,
        (Kind.BOUNDARY, False): _BOUNDARY,
        **{(kind, False): _ONE for kind in _SEVERAL},
    },
    "training_loss": {
        **{(kind, True): _LIMIT_ONLY for kind in Kind},
        **_needing("single index", {
            (Kind.UNTRAINED, False): _centered(_by(_RANDOM_FEATURES, loss.small_step)),
            (Kind.SMALL, False): _by(_GAUSSIAN, loss.small_step),
        }),
        (Kind.BETWEEN, False): _by(_STAIRCASE, loss.staircase),
        (Kind.BOUNDARY, False): _by(_BOUNDARY, loss.staircase),
        (Kind.LARGE, False): _LARGE_LOSS,
        **{(kind, False): _ONE for kind in _SEVERAL},
    },
}  # fmt: skip

#: Counts and orders that follow from the functions and the exponents, for every teacher.
_COUNTS = Rule(
    "§7",
    build.weights,
    "theorem (moniri2026)",
    needs=("two steps", "squared loss", *_SEAMS[:-1]),
    references=("moniri2026",),
)
_ORDERS = replace(_COUNTS, evidence="derived (theory §7)", needs=("squared loss", *_SEAMS[:-1]))
RULES |= {
    "outlier_count": _everywhere(_COUNTS),
    "reuse_exponent": _everywhere(_ORDERS),
}

#: Questions of the fitted readout, whose answer is infinite at its peak.
for _question in ("risk", "learned_function", "staircase_risk"):
    RULES[_question] = _needing("penalty or n ≠ N", RULES[_question])


def check_cells(rules: dict[str, Cells]) -> None:
    """Every question has a rule, or why there is none, for every kind of steps and size."""
    for question, cells in rules.items():
        if lacking := [cell for cell in _everywhere(_ONE) if cell not in cells]:
            kind, given = lacking[0]
            size = "at a size" if given else "in the limit"
            raise ValueError(f"the row of {question} has no cell for {kind.value}, {size}")


check_cells(RULES)


def rule_of(question: str, problem: Problem, given: bool) -> Rule | Absent:
    """The cell of the table for a problem, with d given or in the limit."""
    kind = kind_of(problem)
    rule = RULES[question][kind, given]
    # Where not every seam has its usual member, the model of §5 answers in place of a theorem:
    # before the steps always, after a small one at a size.
    closed = kind is Kind.UNTRAINED or (given and kind is Kind.SMALL)
    if closed and isinstance(rule, Rule):
        seams = [CONDITIONS[name] for name in rule.needs if name in (*_SEAMS, "no mean or odd")]
        general = RULES[question][Kind.LARGE, given]
        if isinstance(general, Rule) and not all(seam.holds(problem) for seam in seams):
            return general
    return rule
