"""The minimum of the readout's objective, its penalty included (theory §6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from giantsteps.answers import Solution, TrainingLoss
from giantsteps.problem import Problem
from giantsteps.theory.steps.effective_penalty import (
    GaussianFeatures,
    effective_penalty,
    shrinkage,
)
from giantsteps.theory.steps.small import ridge_errors
from giantsteps.theory.steps.staircase.risk import loss_staircase
from giantsteps.types import FloatArray


def small_step(
    problems: Sequence[Problem], claims: Sequence[Any], d: int | None, *, lengthening: bool = True
) -> list[TrainingLoss]:
    """No step, or one with η = Θ(1); no neuron is lengthened there."""
    return _answers(problems, claims, _loss_small_step(problems))


def staircase(
    problems: Sequence[Problem], claims: Sequence[Any], d: int | None, *, lengthening: bool = True
) -> list[TrainingLoss]:
    """One step with 0 < e < 1/2."""
    return _answers(problems, claims, loss_staircase(problems, lengthening=lengthening))


def _loss_small_step(problems: Sequence[Problem]) -> FloatArray:
    """(λ/κ)(E y² − P) of theory §4."""
    f = GaussianFeatures.of(problems)
    kappa, _, _ = effective_penalty(f)
    explained = f.teacher_linear * (1 - ridge_errors(f).unlearned)
    return shrinkage(f, kappa) * (f.label_moment - explained)


def _answers(
    problems: Sequence[Problem], claims: Sequence[Any], losses: FloatArray
) -> list[TrainingLoss]:
    untrained = [problem.untrained() for problem in problems]
    before = _loss_small_step(untrained)
    solution = Solution(status="converged", error=1e-14)
    return [
        TrainingLoss(
            **claim,
            solution=solution,
            loss=losses[i],
            initial=TrainingLoss(
                **{**claim, "problem": untrained[i]}, solution=solution, loss=before[i]
            ),
        )
        for i, claim in enumerate(claims)
    ]
