"""Every question but the risk, asked of many networks that are computed together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from giantsteps.answers import Answer, Spectrum
from giantsteps.problem import Grid, Problem
from giantsteps.simulation import (
    _diagnostics,
    _learned,
    _movement,
    _spectrum,
    _trajectory,
)
from giantsteps.simulation._answers import SimulatedSpectrum, lazily
from giantsteps.simulation._cost import networks_together
from giantsteps.simulation._engine._numpy_arrays import NumpyArrays
from giantsteps.simulation._networks import Networks
from giantsteps.simulation._options import split_options
from giantsteps.simulation._run import Run

#: Matrices d × N in float64 that a question may hold beside weights and readout.
_MATRICES = 4


@dataclass(frozen=True)
class _Question:
    """How many networks answer a question."""

    ask: Callable[..., Sequence[Answer]]  # answers of `Networks`, given the options of the question
    #: Whether it needs a readout, and test points.
    readout: bool = False
    points: bool = False


def _spectra(matrix: str, networks: Networks, top: int = 4, **_: Any) -> list[Answer]:
    found = _spectrum.fields(networks, matrix, top)
    seeds, options = networks.network.streams.seeds, networks.options
    assert isinstance(seeds, tuple)
    before = partial(_before, matrix, networks.problem, networks.d, top, options)
    return [
        lazily(SimulatedSpectrum, fields | {"bulk": None}, initial=partial(before, seed))
        for seed, fields in zip(seeds, found)
    ]


def _before(
    matrix: str, problem: Problem, d: int, top: int, options: Mapping[str, Any], seed: int
) -> Spectrum:
    return _spectrum.complete(Run(problem, d, seed, **options).after(0), matrix, top, False)


_QUESTIONS = {
    "degrees_of_freedom": _Question(_diagnostics.degrees_of_freedom, readout=True),
    "features": _Question(partial(_spectra, "features"), readout=True),
    "gradient": _Question(_spectrum.first_gradient),
    "kernel": _Question(partial(_spectra, "kernel"), readout=True),
    "learned_function": _Question(_learned.learned_function, readout=True),
    "movement": _Question(_movement.movement, points=True),
    "trajectory": _Question(_trajectory.trajectory, readout=True, points=True),
    "weights": _Question(partial(_spectra, "weights")),
}


@dataclass(frozen=True)
class _Plan:
    question: str
    alone: Callable[..., Answer]
    problem: Problem
    d: int
    seeds: Sequence[int]
    together: int
    how: dict[str, Any]
    asked: dict[str, Any]

    def run(self) -> list[Answer]:
        return [answer for start in range(0, len(self.seeds), self.together)
                for answer in self._group(self.seeds[start : start + self.together])]  # fmt: skip

    def _group(self, seeds: Sequence[int]) -> Iterator[Answer]:
        networks = Networks(self.problem, self.d, tuple(seeds), **self.how)
        answers = _QUESTIONS[self.question].ask(networks, **self.asked)
        for seed, answer in zip(seeds, answers):
            # A factorisation or an iteration failed: alone, the network has another way.
            good = all(np.all(np.isfinite(each)) for each in _numbers(answer))
            yield answer if good else self._alone(seed)

    def _alone(self, seed: int) -> Answer:
        return self.alone(self.problem, self.d, seed, **self.how, **self.asked)


def plan(
    question: str,
    alone: Callable[..., Answer],
    asked: Problem | Grid,
    d: int | None,
    seeds: Sequence[int],
    options: Mapping[str, Any],
) -> _Plan | None:
    """How the seeds are computed together; None if one after the other is the way."""
    if question not in _QUESTIONS or d is None or not isinstance(asked, Problem):
        return None
    kind, (how, given) = _QUESTIONS[question], split_options(options)
    if how.get("data") is not None or given.get("kind", "conjugate") != "conjugate":
        return None
    if question in ("weights", "kernel", "features") and given.get("bulk", True):
        return None  # all values of a spectrum are found one network at a time
    readout = asked.readout if kind.readout else None
    if readout is not None and not readout.penalty:
        return None
    probe = Networks(asked, d, seeds[0], **how)
    if isinstance(probe.backend, NumpyArrays) or (kind.points and not probe.test_samples):
        return None
    sizes, stages = probe.sizes, len(asked.steps) + 1 if question == "trajectory" else 1
    held = probe.step_bytes + _MATRICES * 8 * sizes.d * sizes.neurons
    longest = max(sizes.step_samples, default=1)
    if readout is not None and sizes.samples is not None:
        smaller = min(sizes.samples, sizes.neurons)
        cells = {sizes.samples: (readout.penalty,)}
        held += probe.readout_bytes(cells, stages) + 2 * 8 * smaller**2
        longest = max(longest, sizes.samples)
    if kind.points:
        longest = max(longest, probe.test_samples or 0)
    together = min(networks_together(probe, held, longest), len(seeds))
    if together < 2:
        return None
    return _Plan(question, alone, asked, d, seeds, together, how, given)


def _numbers(value: Any) -> Iterator[Any]:
    """All numbers of an answer that are there without being computed."""
    if isinstance(value, float | np.ndarray):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _numbers(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from _numbers(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, Problem):
        for field in dataclasses.fields(value):
            if field.name in vars(value):
                yield from _numbers(vars(value)[field.name])
