"""Answers after several small steps (theory §7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from giantsteps.answers import Risk, Spectrum, Spike
from giantsteps.problem import Problem
from giantsteps.theory.model.ridge_batch import risks_of
from giantsteps.theory.steps.first import closed_form, spikes_of
from giantsteps.theory.steps.several.batches import first_batch_alignment, summed
from giantsteps.theory.steps.small import small_errors, untrained_risk


def risk(problems: Sequence[Problem], claims: Sequence[Any], d: None) -> list[Risk]:
    """The limit of one step with the sum of the rates."""
    errors = small_errors([summed(problem) for problem in problems])
    return risks_of(errors, claims, untrained_risk(problems, claims, d))


def weights(problems: Sequence[Problem], claims: Sequence[Any], d: None) -> list[Spectrum]:
    """One outlier, that of the summed step, in the limit."""
    return [
        closed_form(problem.width, _spikes(problem), claim)
        for problem, claim in zip(problems, claims, strict=True)
    ]


def _spikes(problem: Problem) -> tuple[Spike, ...]:
    cosine = first_batch_alignment(problem)
    return tuple(
        Spike(
            value=spike.value,
            overlaps={**spike.overlaps, "gradient": cosine * spike.overlaps["gradient"]},
        )
        for spike in spikes_of(summed(problem))
    )
