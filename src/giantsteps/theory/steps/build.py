"""Problem → equivalent model → every answer, for one problem or many (theory §5, §7)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from giantsteps.answers import Answer, Risk, Spectrum
from giantsteps.errors import NotConverged, NotCovered
from giantsteps.problem import Problem
from giantsteps.theory.model.errors import Effort, risk_of_models
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.steps import small
from giantsteps.theory.steps.kinds import Kind, kind_of
from giantsteps.theory.steps.one import one_step
from giantsteps.theory.steps.several.history_model import remembered_steps
from giantsteps.theory.steps.several.model import leading, several_steps, stages_of_steps
from giantsteps.theory.steps.several.reused import reused_steps
from giantsteps.theory.steps.several.small import many_small_steps
from giantsteps.theory.steps.sign import SIGNS, sign_step

#: What is raised where the theory has no answer; the last two, of numbers, mean the same.
NO_ANSWER = (NotCovered, NotConverged, FloatingPointError, np.linalg.LinAlgError)

#: Models by problems without readout, or why there is none.
Models: TypeAlias = dict[Problem, SpikedFeatures | Exception]
_REMEMBERED = 4


def model(
    problem: Problem,
    claim: Any,
    d: int | None,
    simplify: tuple[str, ...] = (),
    explicit: bool = True,
) -> SpikedFeatures:
    """The equivalent model of a problem; its answers make the claim.

    ``explicit``: leading eigenvectors of the inputs may be spikes with types of neurons of their
    own, which is more than spectra need.
    """
    others = _fields(problem, claim, d)
    if len(problem.steps) > 1 and _is_still(problem):
        kept = math.prod(1.0 - step.decay for step in problem.steps)
        still = replace(problem.steps[0], rate=0.0, decay=1.0 - kept)
        one = one_step if problem.inputs.isotropic else several_steps
        return one(problem.unchecked(steps=(still,)), d, simplify=simplify, **others)
    if len(problem.steps) == 1 and problem.steps[0].rule in SIGNS:
        return sign_step(problem, d, simplify=simplify, **others)
    explicit = explicit and not simplify and _has_leading(problem, d)
    if len(problem.steps) < 2 and problem.inputs.isotropic:
        return one_step(problem, d, simplify=simplify, **others)
    reused = any(step.batch == "previous" for step in problem.steps)
    if reused and kind_of(problem) is Kind.SMALL_STEPS and len(problem.steps) > 2:
        assert d is not None
        return many_small_steps(problem, d, **others)
    if reused and len(problem.steps) > 2:
        return remembered_steps(problem, d, simplify=simplify, **others)
    if reused:
        return reused_steps(problem, d, simplify=simplify, **others)
    return several_steps(problem, d, simplify=simplify, explicit=explicit, **others)


def _is_still(problem: Problem) -> bool:
    """Whether the second layer is zero, so that no gradient moves the weights."""
    gradients = all(step.rule == "gradient" for step in problem.steps)
    return gradients and problem.init.second_layer.second_moment == 0


def stages(problem: Problem, claims: Sequence[Any], d: int | None) -> list[SpikedFeatures]:
    """The equivalent model after each of the steps, with one claim each, from one recursion."""
    prefixes = [replace(problem, steps=problem.steps[: s + 1]) for s in range(len(problem.steps))]
    fresh = all(step.batch == "fresh" for step in problem.steps)
    alone = prefixes[:1] if fresh and not _is_still(problem) else prefixes
    found = [model(prefix, claim, d) for prefix, claim in zip(alone, claims)]
    others = [
        {"problem": prefix, **_fields(prefix, claim, d)}
        for prefix, claim in zip(prefixes[len(alone) :], claims[len(alone) :], strict=True)
    ]
    return [*found, *(stages_of_steps(problem, d, others) if others else ())]


def _has_leading(problem: Problem, d: int | None) -> bool:
    """Whether leading eigenvectors of the inputs are spikes with types of their own at d."""
    if d is None or problem.inputs.isotropic:
        return False
    return leading(problem.realised(d), d) is not None


def _fields(problem: Problem, claim: Any, d: int | None) -> dict[str, Any]:
    """What a model knows of its problem beside its equations."""
    others: dict[str, Any] = {"claim": claim, "before": _before(problem, claim, d)}
    if _has_leading(problem, d):
        others["plain"] = lambda: model(problem, claim, d, explicit=False)
    return others


def _before(problem: Problem, claim: Any, d: int | None) -> Callable[[str], Answer | None]:
    """The same question before the steps."""

    def before(question: str) -> Answer | None:
        untrained = problem.untrained()
        stated = {**claim, "problem": untrained}
        if question == "risk":
            return initial_risk([untrained], [stated], d)[0]
        return (
            replace(_spectrum_before(question, untrained, d), **stated) if problem.steps else None
        )

    return before


@lru_cache(maxsize=16)
def _spectrum_before(question: str, problem: Problem, d: int | None) -> Spectrum:
    """The same for all rates of a step."""
    claim = {"problem": problem, "source": "finite width", "exact": True}
    found: Spectrum = {"kernel": kernel, "features": features}[question]([problem], [claim], d)[0]
    return found


def _models(
    problems: Sequence[Problem],
    claims: Sequence[Any],
    d: int | None,
    failed: dict[int, Exception],
    known: Models | None = None,
) -> dict[int, SpikedFeatures]:
    """One model for each problem; those that differ in their readout alone share its parts."""
    known = {} if known is None else known
    found: dict[int, SpikedFeatures] = {}
    for i, (problem, claim) in enumerate(zip(problems, claims, strict=True)):
        key = problem.unchecked(readout=None)
        if key not in known:
            try:
                known[key] = model(problem, claim, d)
            except NO_ANSWER as error:
                known[key] = error
        one = known[key]
        if isinstance(one, Exception):
            failed[i] = one
        else:
            found[i] = one
    for key in list(known)[:-_REMEMBERED]:
        del known[key]
    return found


def risk(problems: Sequence[Problem], claims: Sequence[Any], d: int | None) -> list[Risk]:
    """Errors of many problems; none sees its neighbours, to the last bit."""
    failed: dict[int, Exception] = {}
    models = _models(problems, claims, d, failed)
    for failure in failed.values():
        raise failure
    cells = [(models[i], problem.require_readout(d)) for i, problem in enumerate(problems)]
    return risk_of_models(cells, initial_risk(problems, claims, d), claims)


def attempts(
    problems: Sequence[Problem],
    claims: Sequence[Any],
    d: int | None,
    effort: Effort = "answer",
    initial: bool = True,
    known: Models | None = None,
) -> list[Risk | Exception]:
    """Test and train error of each problem, or why there are none; ``effort`` as in `refine`.

    ``initial``: whether those before the steps are wanted, too. ``known`` keeps the last models
    for the next call.
    """
    failed: dict[int, Exception] = {}
    models = _models(problems, claims, d, failed, known)
    found: dict[int, Risk | Exception] = {**failed}
    if models:
        chosen, failed = list(models), {}
        some, stated = [problems[i] for i in chosen], [claims[i] for i in chosen]
        cells = [(models[i], problems[i].require_readout(d)) for i in chosen]
        options: Any = {"failed": failed, "effort": effort, "parts": False}
        before = initial_risk(some, stated, d) if initial else None
        risks = risk_of_models(cells, before, stated, **options)
        found |= {i: failed.get(at, risks[at]) for at, i in enumerate(chosen)}
    return [found[i] for i in range(len(problems))]


def initial_risk(problems: Sequence[Problem], claims: Sequence[Any], d: int | None) -> list[Risk]:
    """Errors before the steps."""
    closed = [small.closed_at(problem, d) for problem in problems]
    if all(closed):
        return small.untrained_risk(problems, claims, d)
    found: list[Risk] = []
    for problem, claim, simple in zip(problems, claims, closed, strict=True):
        if simple:
            found += small.untrained_risk([problem], [claim], d)
            continue
        untrained = problem.untrained()
        sized = untrained if d is None else untrained.realised(d)
        stated = {**claim, "problem": untrained}
        steps = one_step if problem.inputs.isotropic else several_steps
        cell = steps(untrained, d, claim=stated), sized.require_readout()
        found += risk_of_models([cell], None, [stated])
    return found


def _asked(question: str, explicit: bool = True) -> Callable[..., list[Any]]:
    """Ask the equivalent model of each problem, by the method of that name."""

    def method(
        problems: Sequence[Problem], claims: Sequence[Any], d: int | None, **options: Any
    ) -> list[Any]:
        return [
            getattr(model(problem, claim, d, explicit=explicit), question)(**options)
            for problem, claim in zip(problems, claims, strict=True)
        ]

    return method


learned_function = _asked("learned_function")
degrees_of_freedom = _asked("degrees_of_freedom")
# Spectra need no explicit directions of the inputs.
weights, kernel, features = (_asked(name, False) for name in ("weights", "kernel", "features"))
