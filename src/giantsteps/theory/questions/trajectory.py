"""``theory.trajectory``: what the network has learned after each of its steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from giantsteps.answers import Risk, Solution, Spectrum, Trajectory
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid, Problem, integer
from giantsteps.theory.model.errors import risk_of_models
from giantsteps.theory.model.leading import leading_of_model, leading_of_spectrum
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.scope.dispatch import resolve, within_range
from giantsteps.theory.scope.rule import Claim, Rule
from giantsteps.theory.steps import build
from giantsteps.threads import capped
from giantsteps.types import FloatArray


def trajectory(problem: Problem | Grid, d: int | None = None, *, top: int = 1) -> Trajectory:
    """Errors of the readout and leading singular values of W after 0, 1, …, t steps.

    Each point is what `risk` and `weights` say of the problem with its first steps only. Steps on
    fresh batches share one recursion.

    Parameters
    ----------
    problem : Problem or Grid
        With at least one step; without a readout there are no errors.
    d : int, optional
        Input dimension, as in `risk`. Without it, the limit, where the outliers of steps with a
        positive exponent are infinite.
    top : int
        Number of singular values. Where W has fewer outliers, the edge of its bulk takes their
        place, with overlap zero.

    Returns
    -------
    Trajectory
        Over the axis "step", 0 … t.

    Raises
    ------
    NotCovered
        Where `risk` or `weights` has no answer after some of the steps.

    References
    ----------
    theory §2, §5, §7.

    Examples
    --------
    What each step brings:

    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0, noise_variance=0.05,
    ...                      steps=[gs.Step(samples=4, rate=1, exponent=0.5)] * 2,
    ...                      init=gs.Init(second_layer="constant"),
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> path = trajectory(problem, d=500)
    >>> path.test.round(2).tolist(), path.overlap[:, 0].round(2).tolist()
    ([0.26, 0.12, 0.08], [0.0, 0.75, 0.89])
    """
    integer(top, "top", "an integer >= 1")
    if not isinstance(problem, Problem | Grid):
        raise InvalidProblem("problem", problem, "a Problem or a Grid")
    with within_range("trajectory"):
        if isinstance(problem, Problem):
            return _trajectory(problem, d, top)
        return Trajectory.stack(problem, [_trajectory(cell, d, top) for cell in problem])


@capped(1)
def _trajectory(problem: Problem, d: int | None, top: int) -> Trajectory:
    if not problem.steps:
        raise InvalidProblem("steps", (), "at least one step for this question")
    prefixes = [replace(problem, steps=problem.steps[: s + 1]) for s in range(len(problem.steps))]
    # Every answer is looked up in the table before the first is computed.
    asked: dict[str, list[Rule]] = {
        question: [resolve(question, prefix, d) for prefix in prefixes]
        for question in (("risk", "weights") if problem.readout else ("weights",))
    }
    untrained = problem.untrained()
    start = resolve("weights", untrained, d)
    claims = {
        question: [rule.stated(prefix, d) for rule, prefix in zip(rules, prefixes, strict=True)]
        for question, rules in asked.items()
    }
    models: list[SpikedFeatures | None] = [None] * len(prefixes)
    if any(
        rule.method in (build.risk, build.weights) for rules in asked.values() for rule in rules
    ):
        models[:] = build.stages(problem, next(iter(claims.values())), d)
    leading = [_leading(start, untrained, start.stated(untrained, d), d, None, top)]
    for rule, prefix, claim, found in zip(
        asked["weights"], prefixes, claims["weights"], models, strict=True
    ):
        leading.append(_leading(rule, prefix, claim, d, found, top))
    leaves: dict[str, Any] = {}
    status: dict[str, Any] = {"status": "converged"}
    if problem.readout is not None:
        risks = _risks(asked["risk"], prefixes, claims["risk"], d, models)
        leaves = {
            name: np.array([float(getattr(risk, name)) for risk in risks])
            for name in ("test", "train")
        }
        solved = [risk.solution for risk in risks if risk.solution is not None]
        status = {
            "status": "converged",
            "residual": max(float(one.residual) for one in solved),
            "iterations": sum(int(one.iterations) for one in solved),
            "error": max(float(one.error) for one in solved),
        }
    last = claims["risk" if problem.readout else "weights"][-1]
    return Trajectory(
        **{**last, "problem": problem},
        solution=Solution(**status),
        **leaves,
        value=np.stack([value for value, _ in leading]),
        overlap=np.stack([overlap for _, overlap in leading]),
    )


def _leading(
    rule: Rule,
    prefix: Problem,
    claim: Claim,
    d: int | None,
    found: SpikedFeatures | None,
    top: int,
) -> tuple[FloatArray, FloatArray]:
    """The largest singular values and their squared overlaps with the teacher."""
    if rule.method is build.weights and found is not None:
        return leading_of_model(found if found.plain is None else found.plain(), top)
    answer = rule.method([prefix], [claim], d)[0]
    assert isinstance(answer, Spectrum)
    return leading_of_spectrum(answer, top)


def _risks(
    rules: list[Rule],
    prefixes: list[Problem],
    claims: list[Claim],
    d: int | None,
    models: list[SpikedFeatures | None],
) -> list[Risk]:
    """The errors before the first step and after each, those of equivalent models in one batch."""
    sized = prefixes if d is None else [prefix.realised(d) for prefix in prefixes]
    found: dict[int, Risk] = {}
    cells = {
        s: (model, prefix.require_readout())
        for s, (rule, model, prefix) in enumerate(zip(rules, models, sized, strict=True))
        if rule.method is build.risk and model is not None
    }
    if cells:
        chosen = [claims[s] for s in cells]
        found.update(zip(cells, risk_of_models(list(cells.values()), None, chosen), strict=True))
    for s, rule in enumerate(rules):
        if s not in found:
            answer = rule.method([prefixes[s]], [claims[s]], d)[0]
            assert isinstance(answer, Risk)
            found[s] = answer
    initial = build.initial_risk(prefixes[:1], claims[:1], d)
    return [*initial, *(found[s] for s in range(len(rules)))]
