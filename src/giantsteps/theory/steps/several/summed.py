"""Small steps add up: one step whose limit is that of many (theory §7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from giantsteps.answers import Spectrum, Spike
from giantsteps.problem import Problem, Step
from giantsteps.theory.steps.first import closed_form, first_step, spikes_of


def batches(problem: Problem) -> list[list[Step]]:
    """The steps, grouped by the batch they use."""
    starts = np.cumsum([step.batch == "fresh" for step in problem.steps])
    pairs = zip(starts, problem.steps, strict=True)
    return [[step for _, step in group] for _, group in groupby(pairs, key=lambda pair: pair[0])]


def summed(problem: Problem) -> Problem:
    """The problem with one step whose limit is that of its small ones; with at most one, itself."""
    if len(problem.steps) < 2:
        return problem
    rates = [sum(step.rate for step in batch) for batch in batches(problem)]
    samples = [batch[0].samples for batch in batches(problem)]
    total = sum(rates)
    noise = sum(rate**2 / size for rate, size in zip(rates, samples))
    one = Step(samples=total**2 / noise if noise else samples[0], rate=total)
    return problem.replace({"steps": [one]})


def first_batch_alignment(problem: Problem) -> float:
    """⟨B, b⟩²/(‖B‖²‖b‖²) in the limit, b the direction of the first step."""
    groups = batches(problem)
    whole, first = first_step(summed(problem)), first_step(problem)
    total = sum(step.rate for step in problem.steps)
    share = sum(step.rate for step in groups[0]) / total if total else 1.0
    noise = share * first.label_moment / groups[0][0].samples
    linear = first.norm_squared * first.alignment
    return (linear + noise) ** 2 / (whole.norm_squared * first.norm_squared)


def weights(problems: Sequence[Problem], claims: Sequence[Any], d: None) -> list[Spectrum]:
    """One outlier, that of the summed step, in the limit."""
    return [
        closed_form(problem.width, _spikes(problem), claim)
        for problem, claim in zip(problems, claims, strict=True)
    ]


def _spikes(problem: Problem) -> tuple[Spike, ...]:
    cosine = first_batch_alignment(problem)
    return tuple(
        replace(one, overlaps={**one.overlaps, "gradient": cosine * one.overlaps["gradient"]})
        for one in spikes_of(summed(problem))
    )
