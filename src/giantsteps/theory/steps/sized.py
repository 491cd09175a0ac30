"""A problem at its size, and what every equivalent model of it shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from giantsteps.problem import Problem
from giantsteps.theory.model.norm_types import halved
from giantsteps.theory.model.spiked_features import SpikedFeatures

State = TypeVar("State")
#: Resolution of the spectra.
SPECTRA = 1


class Sized(NamedTuple):
    """Sizes of a problem at dimension d, or in the limit, and fields of its models."""

    problem: Problem
    neurons: float
    shared: dict[str, Any]


def at_size(problem: Problem, d: int | None, **others: Any) -> Sized:
    """``problem`` with the sizes of d, N (∞ without d), and the fields that its models share.

    ``others`` are further fields of the model.
    """
    neurons = math.inf if d is None else float(problem.at(d).neurons)
    sized = problem if d is None else problem.realised(d)
    shared: dict[str, Any] = {
        "activation": sized.activation,
        "teacher": sized.teacher,
        "noise_variance": sized.noise_variance,
        "width": sized.width,
        "neurons": neurons,
        "problem": problem,
        **others,
    }
    return Sized(sized, neurons, shared)


def by_resolution(
    built: Callable[[int], SpikedFeatures],
    level: int,
    bounded: Callable[[int], SpikedFeatures] | None = None,
    **others: Any,
) -> SpikedFeatures:
    """A model at one resolution that knows itself at the others.

    ``built`` and ``bounded`` make it at a resolution, as it is and with labels and second layer cut
    at their largest draws; ``others`` are further fields.
    """
    finer = lru_cache(maxsize=8)(lambda level: halved(built(level)))
    if bounded is not None:
        cut = bounded
        others["bounded"] = lambda more: cut(SPECTRA + more)
    model = copy(finer(level))
    model.__dict__.update(finer=finer, **others)  # nothing that is validated
    return model


def stages_by_resolution(
    others: Sequence[Mapping[str, Any]],
    level: int,
    states: Callable[[int], State],
    cut: Callable[[int], State],
    built: Callable[[State, int, Mapping[str, Any], int, bool], SpikedFeatures],
    bare: Callable[[int], State],
    weights: Callable[[State, int, Mapping[str, Any], int], SpikedFeatures],
) -> list[SpikedFeatures]:
    """The models after the last steps, one for each of ``others``, which are their fields.

    ``states`` and ``cut`` give the laws after all steps at a resolution; ``built`` makes a model of
    them from the number of the step, counted from the end, and from whether they are cut. ``bare``
    is ``cut`` without norms, which the singular values of W do not see, and ``weights`` makes the
    model of these.
    """
    states, cut, bare = (lru_cache(maxsize=8)(law) for law in (states, cut, bare))

    def stage(number: int, fields: Mapping[str, Any]) -> SpikedFeatures:
        @lru_cache(maxsize=2)
        def at(more: int) -> SpikedFeatures:
            return weights(bare(SPECTRA + more), number, fields, SPECTRA + more)

        return by_resolution(
            lambda level: built(states(level), number, fields, level, False),
            min(level, 1),
            lambda level: built(cut(level), number, fields, level, True),
            own_weights=lambda: replace(at(0), bounded=at),
        )

    return [stage(number - len(others), fields) for number, fields in enumerate(others)]
