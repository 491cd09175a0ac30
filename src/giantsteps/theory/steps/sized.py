"""A problem at its size, and what every equivalent model of it shares."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import lru_cache
from typing import Any, NamedTuple

from giantsteps.problem import Problem
from giantsteps.theory.model.norm_types import halved
from giantsteps.theory.model.spiked_features import SpikedFeatures

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
