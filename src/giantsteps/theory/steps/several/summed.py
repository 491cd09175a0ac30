"""Answers after several small steps (theory §7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from giantsteps.answers import Risk, Solution, Spectrum, Spike
from giantsteps.laws import MarchenkoPastur
from giantsteps.problem import Problem
from giantsteps.theory.model.ridge_batch import risks_of
from giantsteps.theory.steps.first import spikes_of
from giantsteps.theory.steps.several.batches import first_batch_alignment, summed
from giantsteps.theory.steps.small import small_errors, untrained_risk


def risk(problems: Sequence[Problem], claims: Sequence[Any], d: int | None) -> list[Risk]:
    """The limit of one step with the sum of the rates."""
    errors = small_errors([summed(problem) for problem in problems], d)
    return risks_of(errors, claims, untrained_risk(problems, claims, d))


def weights(problems: Sequence[Problem], claims: Sequence[Any], d: None) -> list[Spectrum]:
    """One outlier, that of the summed step, in the limit."""
    return [
        Spectrum(
            **claim,
            solution=Solution(status="closed form", error=1e-12),
            matrix="weights",
            bulk=MarchenkoPastur(problem.width).singular_values(),
            spikes=_spikes(problem),
        )
        for problem, claim in zip(problems, claims, strict=True)
    ]


def _spikes(problem: Problem) -> tuple[Spike, ...]:
    cosine = first_batch_alignment(problem)
    return tuple(
        Spike(
            value=spike.value,
            overlaps={**spike.overlaps, "gradient": cosine * spike.overlaps["gradient"]},
        )
        for spike in spikes_of(summed(problem), None)
    )
