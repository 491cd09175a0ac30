"""Networks of many seeds as one computation: how they answer, and how many at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from giantsteps.answers import Answer, Risk, Spectrum
from giantsteps.problem import Grid, Problem, integer
from giantsteps.simulation import (
    _diagnostics,
    _learned,
    _movement,
    _risk,
    _spectrum,
    _trajectory,
)
from giantsteps.simulation._answers import SimulatedRisk, SimulatedSpectrum, lazily
from giantsteps.simulation._cost import networks_together, peak_bytes
from giantsteps.simulation._engine._memory import as_bytes
from giantsteps.simulation._engine._numpy_arrays import NumpyArrays
from giantsteps.simulation._networks import Networks
from giantsteps.simulation._options import split_options
from giantsteps.simulation._readout._ridge import EIGEN_FROM
from giantsteps.simulation._run import Run

#: Matrices d × N in float64 that a question may hold beside weights and readout.
_MATRICES = 4
#: Queues of a GPU for the risk: one factorises while the other multiplies.
_QUEUES = 2

#: Enqueues the work of some networks; what it returns waits for it and reads the answers.
Ask: TypeAlias = Callable[[Networks], Callable[[], Sequence[Answer]]]


@dataclass(frozen=True)
class Plan:
    """How the networks of many seeds are computed together."""

    problem: Problem  # whose networks are drawn
    d: int
    seeds: Sequence[int]
    together: int  # so many at a time
    queues: int
    options: Mapping[str, Any]  # of the networks
    ask: Ask
    alone: Callable[[int], Answer]  # the answer of one seed

    def run(self) -> list[Answer]:
        groups = [
            self.seeds[start : start + self.together]
            for start in range(0, len(self.seeds), self.together)
        ]
        pending = [self._start(number % self.queues, group) for number, group in enumerate(groups)]
        answers = [answer for finish in pending for answer in finish()]
        # Where a factorisation or an iteration failed, the network has another way alone.
        good = [all(np.all(np.isfinite(x)) for x in _numbers(answer)) for answer in answers]
        return [
            answer if fine else self.alone(seed)
            for seed, answer, fine in zip(self.seeds, answers, good)
        ]

    def _start(self, queue: int, seeds: Sequence[int]) -> Callable[[], Sequence[Answer]]:
        networks = Networks(self.problem, self.d, tuple(seeds), **self.options)
        stream = partial(networks.backend.stream, queue)
        with stream():
            finish = self.ask(networks)

        def waited() -> Sequence[Answer]:
            with stream():
                return finish()

        return waited


def plan(
    question: str,
    alone: Callable[..., Answer],
    asked: Problem | Grid,
    d: int | None,
    seeds: Sequence[int],
    options: Mapping[str, Any],
) -> Plan | None:
    """How the seeds are computed together; None if one after the other is the way."""
    how, given = split_options(options)
    if d is None or how.get("data") is not None or given.pop("kind", "conjugate") != "conjugate":
        return None

    def single(seed: int) -> Answer:
        return alone(asked, d, seed, **options)

    if question == "risk":
        return _plan_risk(asked, d, seeds, how, single, **given)
    if question not in _QUESTIONS or not isinstance(asked, Problem):
        return None
    if question in ("weights", "kernel", "features") and given.get("bulk", True):
        return None  # all values of a spectrum are found one network at a time
    kind = _QUESTIONS[question]
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

    def ask(networks: Networks) -> Callable[[], Sequence[Answer]]:
        answers = kind.ask(networks, **given)
        return lambda: answers

    return Plan(asked, d, seeds, together, 1, how, ask, single) if together > 1 else None


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
    elif dataclasses.is_dataclass(value) and not isinstance(value, Problem | Grid):
        for field in dataclasses.fields(value):
            if field.name in vars(value):
                yield from _numbers(vars(value)[field.name])


# Every question but the risk ------------------------------------------------------------------


@dataclass(frozen=True)
class _Question:
    """How many networks answer a question."""

    ask: Callable[..., Sequence[Answer]]  # answers of `Networks`, given the options of the question
    #: Whether it needs a readout, and test points.
    readout: bool = False
    points: bool = False


def _spectra(matrix: str, networks: Networks, top: int = 4, **_: Any) -> list[Answer]:
    found = _spectrum.fields(networks, matrix, top)
    before = partial(_before, matrix, networks.problem, networks.d, top, networks.options)
    return [
        lazily(SimulatedSpectrum, fields | {"bulk": None}, initial=partial(before, seed))
        for seed, fields in zip(networks.seeds, found)
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


# The risk -------------------------------------------------------------------------------------


def _plan_risk(
    asked: Problem | Grid,
    d: int,
    seeds: Sequence[int],
    how: Mapping[str, Any],
    alone: Callable[[int], Answer],
    degrees: Any = 4,
    initial: bool = False,
) -> Plan | None:
    """Cells of a grid that differ in their readout alone are read off the same networks."""
    degrees = integer(degrees, "degrees", "an integer >= 0", lower=0)
    if not isinstance(asked, Problem | Grid):
        return None
    members = _risk.groups(asked, _risk.without_readout)
    if len(members) != 1:
        return None
    memory = as_bytes(how.get("memory"))
    options = {**how, "memory": None if memory is None else memory // _QUEUES}
    probe, cells, places = _risk.of_group(
        asked, d, lambda cell: Networks(cell, d, seeds[0], **options), members[0]
    )
    if isinstance(probe.backend, NumpyArrays) or not probe.test_samples:
        return None
    if any(0 in penalties or len(penalties) >= EIGEN_FROM for penalties in cells.values()):
        return None
    longest = max(probe.test_samples, *cells, *probe.sizes.step_samples)
    shares = _QUEUES if memory is None else 1
    most = networks_together(probe, peak_bytes(probe, cells, 1 + bool(initial)), longest, shares)
    # Two queues at least, so that one computes while the other factorises.
    together = min(most, -(-len(seeds) // _QUEUES))

    def ask(networks: Networks) -> Callable[[], list[Answer]]:
        stages = [networks.trained.weights]
        stages += [networks.network.weights()] if initial else []
        errors = _risk.errors_of(networks, stages, cells, degrees)
        networks.__dict__.pop("trained")
        return partial(_risks, networks, asked, errors, places, degrees, options)

    if together < 2:
        return None
    return Plan(probe.problem, d, seeds, together, _QUEUES, options, ask, alone)


def _risks(
    networks: Networks,
    asked: Problem | Grid,
    errors: Sequence[_risk.Errors],
    places: Mapping[int, _risk.Place],
    degrees: int,
    options: Mapping[str, Any],
) -> list[Answer]:
    """The answer of each network; ``errors`` after the steps, and before them if that was asked."""
    stages, facts, d = [each.to_host(networks) for each in errors], networks.facts(), networks.d
    answers: list[Answer] = []
    for at, seed in enumerate(networks.seeds):
        after, *before = (
            _risk.over_cells(
                asked,
                {
                    number: {name: leaf[at] for name, leaf in stage[place].items()}
                    for number, place in places.items()
                },
                facts,
            )
            for stage in stages
        )
        if before:
            answers.append(Risk(**after, initial=Risk(**before[0])))
            continue
        run_for = partial(_run, d, seed, options)
        start = partial(_risk.initial, asked, d, run_for, "conjugate", degrees)
        answers.append(lazily(SimulatedRisk, after, initial=start))
    return answers


def _run(d: int, seed: int, options: Mapping[str, Any], problem: Problem) -> Run:
    return Run(problem, d, seed, **options)
