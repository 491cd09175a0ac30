"""From a problem with several steps to its equivalent model (theory §7)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from giantsteps.problem import Problem
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.norms import Norms
from giantsteps.theory.model.spiked_features import USUAL, SpikedFeatures
from giantsteps.theory.solver.bulk import Batch, Stage
from giantsteps.theory.solver.dyson import Dyson
from giantsteps.theory.solver.special import Forms
from giantsteps.theory.steps.neuron import NeuronLaw
from giantsteps.theory.steps.one import (
    SPECTRA,
    first_movement,
    movement,
    neuron_law,
    tails_of,
    types_of,
)
from giantsteps.theory.steps.several.fresh import take_step
from giantsteps.theory.steps.several.trained import Fluctuation, Task, Trained
from giantsteps.types import FloatArray

#: Functions of a batch that are kept, relative to the largest, by resolution.
_RESOLVED = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4)


def several_steps(
    problem: Problem,
    d: int | None = None,
    *,
    simplify: tuple[str, ...] = (),
    level: int = USUAL,
    **others: Any,
) -> SpikedFeatures:
    """The equivalent model after several steps on fresh batches.

    The bulk is Σ_A = a_A I + Σ_b (batch b): what a batch adds to the covariance, with the bulk that
    it finds replaced by its trace. Traces are exact.
    """
    return stages_of_steps(problem, d, [others], simplify=simplify, level=level)[0]


def stages_of_steps(
    problem: Problem,
    d: int | None,
    others: Sequence[Mapping[str, Any]],
    *,
    simplify: tuple[str, ...] = (),
    level: int = USUAL,
) -> list[SpikedFeatures]:
    """The equivalent models after the last steps, one for each of ``others``, from one recursion.

    ``others`` are further fields of each model; ``problem`` among them is the one that it is of.
    """
    neurons = math.inf if d is None else float(problem.at(d).neurons)
    sized = problem if d is None else problem.realised(d)
    continuous = math.isinf(sized.init.second_layer.distinct_nonzero)
    shared: dict[str, Any] = {
        "activation": sized.activation,
        "teacher": sized.teacher,
        "noise_variance": sized.noise_variance,
        "width": sized.width,
        "neurons": neurons,
        "problem": problem,
        "levels": (0, 2) if continuous else (0, 3),
    }
    # A continuous second layer fits every function that norms could add.
    norms = not simplify and not continuous

    @lru_cache(maxsize=8)
    def states(level: int) -> tuple[NeuronLaw, list[Trained]]:
        return trained_by(sized, neurons, level, norms=norms)

    @lru_cache(maxsize=2)
    def cut(level: int) -> tuple[NeuronLaw, list[Trained]]:
        tails = tails_of(sized, d, neurons)
        return trained_by(sized, neurons, level, norms=norms, tails=tails)

    def stage(number: int, fields: Mapping[str, Any]) -> SpikedFeatures:
        @lru_cache(maxsize=8)
        def finer(level: int) -> SpikedFeatures:
            law, trained = states(level)
            return _model(law, trained[number], simplify, {**shared, **fields}, _RESOLVED[level])

        def bounded(more: int) -> SpikedFeatures:
            law, trained = cut(SPECTRA + more)
            resolved = _RESOLVED[SPECTRA + more]
            return _model(law, trained[number], simplify, {**shared, **fields}, resolved)

        return replace(finer(min(level, 1)), finer=finer, bounded=bounded)

    return [stage(number - len(others), fields) for number, fields in enumerate(others)]


def trained_by(
    problem: Problem,
    neurons: float,
    level: int,
    norms: bool = True,
    tails: tuple[float, float] = (0.0, 0.0),
) -> tuple[NeuronLaw, list[Trained]]:
    """The law of the first step, and that of a neuron after each of the steps.

    ``tails`` are the shares of labels and second layer that are cut off (`one.tails_of`).
    """
    first, trained = _first(problem, neurons, level, norms, tails)
    task = Task(problem.activation, problem.teacher, problem.noise_variance)
    states = [trained]
    norms = norms and bool(np.any(trained.values))  # a second layer of zeros moves nothing
    for number, step in enumerate(problem.steps[1:], start=1):
        rate = movement(problem, number, neurons)
        if not np.any(rate * trained.values) and not step.decay:
            states.append(states[-1])
            continue
        known = _components(first, states[-1]) if norms else None
        states.append(take_step(task, states[-1], step, rate, level, known))
    return first, states


def _components(law: NeuronLaw, trained: Trained) -> FloatArray:
    """The vectors that norms go with, on the spikes and the teacher's remainder, (V, r + R)."""
    bulk = covariance_of_state(law, trained, 1.0).bulk()
    unit = np.ones((1, 1, 1))
    bare = Dyson(bulk, unit, np.zeros((1, bulk.coefficients.shape[2], 1, 1)), np.zeros((1, 0, 0)))
    gram = Forms(replace(bare, active=bare.alone())).values[0, :, 0, :, 0]
    known = trained.rank + trained.directions
    return np.asarray(gram[known:, :known])


def _first(
    problem: Problem, neurons: float, level: int, norms: bool, tails: tuple[float, float]
) -> tuple[NeuronLaw, Trained]:
    """The first step, in the form that later steps continue."""
    rate = first_movement(problem, neurons)
    unit = neuron_law(problem, np.array([rate]), level, tails[0])
    strength = abs(float(unit.spikes[0]))
    later = sum(movement(problem, number, neurons) for number in range(1, len(problem.steps)))
    steepness = strength + abs(later * unit.slope.hermite[0] * unit.length)
    values, probabilities = types_of(problem.init.second_layer, level, steepness, tails[1])
    law = replace(unit, moved=rate * values)
    types = len(values)
    root = np.sqrt(probabilities) * values
    memory = law.kept * np.eye(types) - rate * law.slope.hermite[0] ** 2 * np.outer(root, root)
    trained = Trained(
        values=values,
        probabilities=probabilities,
        spikes=law.spikes[:, None],
        totals=law.covariance().totals,
        overlap=law.overlaps[:, None],
        steps=np.ones((1, 1)),
        memory=memory,
        constant=np.zeros(types),
        multipliers=np.ones((1, types)),
    )
    if not norms or not np.any(law.moved):
        return law, trained
    found = law.norms(problem.init.weights == "gaussian")
    place = (0, 0, 0, *((1, 1) if np.any(law.tilt) else ()))
    fluctuations = []
    for c in range(len(found.spread)):
        # On b̂, the teacher's remainder, which has none, b₂, b₃, M b, M b₂.
        loadings = np.delete(found.loadings[c], np.arange(1, 1 + trained.directions), axis=1)
        loadings = np.pad(loadings, ((0, 0), (0, len(place) - loadings.shape[1])))
        stretch = found.stretch[c] if found.stretch.shape[2] else np.zeros((types, 1))
        fluctuations.append(Fluctuation(found.spread[c], found.growth[c], stretch, loadings))
    return law, replace(trained, fluctuations=tuple(fluctuations), others=place)


def _model(
    law: NeuronLaw,
    trained: Trained,
    simplify: tuple[str, ...],
    shared: dict[str, Any],
    tolerance: float,
) -> SpikedFeatures:
    isotropic = "isotropic bulk" in simplify
    bulk = (
        NeuronCovariance.isotropic(trained.totals, trained.rank + trained.directions - 1)
        if isotropic
        else covariance_of_state(law, trained, tolerance)
    )
    pull = None
    if math.isfinite(shared["neurons"]):
        root = np.sqrt(trained.probabilities)
        kept = (trained.memory * trained.totals) @ trained.memory.T - np.diag(trained.totals)
        pull = (kept / np.outer(root, root))[None]
    return SpikedFeatures(
        spikes=trained.spikes,
        overlap=trained.overlap if trained.directions > 1 else trained.overlap[0],
        probabilities=trained.probabilities,
        bulk=bulk,
        norms=_norms(trained, bulk.frame) if trained.fluctuations and not simplify else None,
        pull=pull,
        second_layer=trained.values,
        step_directions=trained.steps,
        **shared,
    )


def _norms(trained: Trained, frame: int) -> Norms:
    """Loadings follow the spikes and the remainder in the frame of special vectors."""
    start, found = trained.rank + trained.directions, trained.fluctuations
    loadings = np.zeros((len(found), len(trained.values), frame))
    for c, one in enumerate(found):
        loadings[c, :, start : start + one.loadings.shape[1]] = one.loadings
    return Norms(
        np.stack([one.spread for one in found]),
        loadings,
        growth=np.stack([one.growth for one in found]),
        stretch=np.stack([one.stretch for one in found]),
    )


def covariance_of_state(law: NeuronLaw, trained: Trained, tolerance: float) -> NeuronCovariance:
    """Σ_A from the first step, exactly, and from what later batches add."""
    first = law.covariance()
    columns = [trained.multipliers[0][:, None] * first.coefficients]
    columns[0][:, 0] += trained.constant
    batches, stages = [first.batches[0]], [_first_stage(law, trained)]
    blocks = [(first.gram[1:, 1:], first.gram[0, 1:])]
    for record, multiplier in zip(trained.records, trained.multipliers[1:], strict=True):
        mixing, functions = few_functions(
            multiplier[:, None] * record.added, record.weights, tolerance
        )
        columns.append(mixing)
        batches.append(
            Batch(
                samples=np.array(record.samples),
                weights=record.weights,
                first=record.first,
                second=record.second,
                linear=functions,
                factors=np.zeros((0, len(record.weights))),
            )
        )
        stages.append(
            Stage(
                frame=record.frame,
                carry=record.carry,
                sums=record.sums,
                place=_place(trained, record.rank, len(record.carry)),
            )
        )
        mean = functions @ record.weights
        within = (functions * record.weights) @ functions.T / record.samples
        blocks.append((within + np.outer(mean, mean), mean))
    rank, beside = trained.rank, trained.directions
    count = rank + beside + len(trained.others)
    special = np.zeros((count, count))
    special[: rank + beside] = trained.frame
    special[np.arange(rank + beside, count), np.arange(rank, count - beside)] = 1.0
    return NeuronCovariance(
        shares=np.ones(1),
        diagonal=np.ones((1, 1)),
        coefficients=np.concatenate(columns, axis=1),
        external=np.eye(beside)[:, None],
        special=special,
        gram=gram_of(blocks),
        batches=tuple(batches),
        stages=tuple(stages),
    )


def _place(trained: Trained, rank: int, count: int) -> tuple[int, ...]:
    """Blocks of the vectors after a step: spikes, those of the norms so far, the teacher's."""
    directions = trained.directions
    return (*(0,) * rank, *trained.others[: count - rank - directions], *(0,) * directions)


def _first_stage(law: NeuronLaw, trained: Trained) -> Stage:
    """The vectors after the first step: b̂, then b̂, b₂, b₃ (and M b, M b₂) for norms, the
    teacher's.
    """
    r = law.labels.nodes
    unit = r / law.length
    powers = [unit, unit, r**2, r**3, r, r**2]
    known = trained.fluctuations and np.any(law.moved)  # a step of rate zero has none
    some = 3 + 2 * bool(np.any(law.tilt)) if known else 0
    directions = np.eye(trained.directions)
    carry = np.concatenate([np.zeros((some + 1, len(directions))), directions])
    sums = np.stack([*powers[: some + 1], *(0.0 * r for _ in directions)])
    return Stage(frame=directions, carry=carry, sums=sums, place=_place(trained, 1, len(carry)))


def few_functions(
    functions: FloatArray, weights: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """Functions of all types as combinations (T, L) of few functions (L, Y)."""
    if len(functions) == 1:
        return np.ones((1, 1)), functions
    left, size, _ = np.linalg.svd(functions * np.sqrt(weights), full_matrices=False)
    if not size[0] > 0:
        return np.zeros((len(functions), 1)), functions[:1]
    count = max(1, int((size > tolerance * size[0]).sum()))
    mixing = left[:, :count] * size[:count]
    # At every node by the combination that makes it: weights may be tiny.
    inverse = left[:, :count] / np.where(size[:count] > 0, size[:count], 1.0)
    return mixing, inverse.T @ functions


def gram_of(blocks: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """d⁻¹tr Ω_cΩ_c' of the identity and of independent batches: their own, and products of
    means.
    """
    means = np.concatenate([[1.0], *(mean for _, mean in blocks)])
    gram = np.outer(means, means)
    start = 1
    for own, mean in blocks:
        gram[start : start + len(mean), start : start + len(mean)] = own
        start += len(mean)
    return gram
