"""What the fields of a problem must satisfy together."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from giantsteps.errors import InvalidProblem
from giantsteps.functions import Function, Teacher
from giantsteps.gaussian import check_function, gauss_rule
from giantsteps.problem._checks import integer
from giantsteps.problem._part import Part, as_part
from giantsteps.problem._parts import Ridge
from giantsteps.problem._step import Step


@lru_cache(maxsize=256)
def check_function_once(function: Function, field: str) -> None:
    """Refuse functions without a finite second moment, with NaN, or constant: once each."""
    check_function(function, field)


@lru_cache(maxsize=256)
def check_slope(activation: Function) -> None:
    """Refuse an activation whose derivative says nothing, or has no finite variance."""
    if activation.has_jumps:
        raise InvalidProblem(
            "activation",
            activation,
            "continuous when steps are taken: the gradient does not see a jump "
            "(use a smooth activation, or steps=() for random features)",
        )
    try:
        gauss_rule(activation.derivative)
    except InvalidProblem as error:
        raise InvalidProblem(
            "activation",
            activation,
            f"one with a square-integrable derivative when steps are taken ({error.allowed})",
        ) from None


def as_steps(value: object) -> tuple[Step, ...]:
    if not isinstance(value, list | tuple):
        one = " ([[steps]] in TOML)" if isinstance(value, Mapping) else ""
        raise InvalidProblem("steps", value, f"a list of steps, such as [Step(...)]{one}")
    steps = tuple(as_part(step, Step, f"steps.{index}") for index, step in enumerate(value))
    for index, step in enumerate(steps):
        if step.batch == "fresh":
            continue
        if index == 0:
            raise InvalidProblem(
                "steps.0.batch", step.batch, '"fresh": the first step has no previous batch'
            )
        if step.samples != steps[index - 1].samples:
            raise InvalidProblem(
                f"steps.{index}.samples",
                step.samples,
                f"{steps[index - 1].samples!r}, the samples of the previous step, whose batch is "
                f'used again (or set steps.{index}.batch="fresh")',
            )
    return steps


def check_readout(readout: Ridge | None, steps: tuple[Step, ...]) -> None:
    """Refuse a readout on the last step's batch where there is no step, or other samples."""
    if readout is None or readout.batch == "fresh":
        return
    if not steps:
        raise InvalidProblem(
            "readout.batch", readout.batch, '"fresh": there is no step whose batch it could use'
        )
    if readout.samples != steps[-1].samples:
        raise InvalidProblem(
            "readout.samples",
            readout.samples,
            f"{steps[-1].samples!r}, the samples of the last step, whose batch is used again "
            '(or set readout.batch="fresh")',
        )


@lru_cache(maxsize=256)
def is_binary(teacher: Teacher) -> bool:
    """Whether a teacher takes the values ±1 at every one of some thousand points."""
    points = np.random.default_rng(0).standard_normal((4096, teacher.rank)) * 2
    return bool(np.all(np.abs(np.asarray(teacher(points))) == 1))


def size_at(ratio: float, d: int, field: str) -> int:
    """The integer round(ratio · d), at least one."""
    size = round(ratio * d)
    if size < 1:
        raise InvalidProblem(field, ratio, f"larger at d = {d}: round({ratio!r} * {d}) is below 1")
    return size


def with_samples(part: Any, size: object, d: int, field: str) -> Any:
    """A step or a readout whose samples are ``size``/d."""
    samples = integer(size, field, "an integer >= 1") / d
    if isinstance(part, Part):
        return dataclasses.replace(part, samples=samples)  # type: ignore[type-var]
    if isinstance(part, Mapping) and "samples" not in part:
        return {**part, "samples": samples}
    raise InvalidProblem(
        field.replace("step_samples", "steps"),
        part,
        "a part of the problem, or a mapping of its fields without samples",
    )
