"""From a problem with several steps to its equivalent model (theory §7)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from giantsteps.errors import NotConverged
from giantsteps.problem import Problem
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.functions_of_spike import left_of
from giantsteps.theory.model.norms import Norms
from giantsteps.theory.model.spiked_features import USUAL, SpikedFeatures
from giantsteps.theory.solver.bulk import Batch, Stage
from giantsteps.theory.solver.dyson import Dyson
from giantsteps.theory.solver.special import Forms
from giantsteps.theory.steps.neuron import NeuronLaw
from giantsteps.theory.steps.one import (
    first_movement,
    movement,
    neuron_law,
    tails_of,
    types_of,
)
from giantsteps.theory.steps.several.fresh import take_step
from giantsteps.theory.steps.several.trained import (
    Fluctuation,
    Record,
    Task,
    Trained,
    few_functions,
    pulled,
)
from giantsteps.theory.steps.sized import at_size, stages_by_resolution
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from giantsteps.theory.steps.several.structured_state import Passed

#: Functions of a batch that are kept, relative to the largest, by resolution.
RESOLVED = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4)

#: Leans of neurons of norm one that no user means.
_DIVERGED = 1e8


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
    sized, neurons, shared = at_size(problem, d)
    continuous = math.isinf(sized.init.second_layer.distinct_nonzero)
    shared["levels"] = (0, 2) if continuous else (0, 3)
    # Without a penalty a continuous second layer fits every function that norms could add.
    norms = not simplify and not (continuous and d is None)

    def built(
        states: tuple[NeuronLaw, list[Trained]], number: int, fields: Mapping[str, Any], level: int
    ) -> SpikedFeatures:
        law, trained = states
        return _model(law, trained[number], simplify, {**shared, **fields}, RESOLVED[level])

    return stages_by_resolution(
        others,
        level,
        lambda level: trained_by(sized, neurons, level, norms),
        lambda level: trained_by(sized, neurons, level, norms, tails_of(sized, d, neurons)),
        built,
        lambda level: trained_by(sized, neurons, level, False, tails_of(sized, d, neurons)),
    )


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
        tail = tails[0] * problem.steps[0].samples / step.samples
        states.append(take_step(task, states[-1], step, rate, level, norms, tail=tail))
        size = float(np.abs(states[-1].spikes).max(initial=0.0))
        if not size < _DIVERGED:
            what = f"weights that grow from step to step, to {size:.0e} times their size"
            raise NotConverged(what, math.inf, number + 1, "smaller rates, or a bounded activation")
    return first, states


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
    pull, one = rate * law.slope.hermite[0] ** 2 * np.outer(root, root), np.ones(types)
    memory = pulled(np.zeros((types, types)), one, law.kept * one, pull, problem.steps[0].samples)
    trained = Trained(
        values=values,
        probabilities=probabilities,
        spikes=law.spikes[:, None],
        totals=law.covariance().totals,
        overlap=law.overlaps[:, None],
        weak_overlap=np.zeros((len(law.overlaps), 0)),
        steps=np.ones((1, 1)),
        memory=memory,
        constant=np.zeros(types),
        multipliers=np.ones((1, types)),
    )
    own = 1 + trained.teachers
    forms = operators_on(covariance_of_state(law, trained, 1.0), own)
    trained = replace(trained, forms=forms, represented=forms)
    if not norms or not np.any(law.moved):
        return law, trained
    found = law.norms(problem.init.weights == "gaussian")
    place = (0, 0, 0, *((1, 1) if np.any(law.tilt) else ()))
    fluctuations = []
    for c in range(len(found.spread)):
        # On b̂, the teacher's remainder, which has none, b₂, b₃, M b, M b₂.
        loadings = np.delete(found.loadings[c], np.arange(1, 1 + trained.teachers), axis=1)
        loadings = np.pad(loadings, ((0, 0), (0, len(place) - loadings.shape[1])))
        stretch = found.stretch[c] if found.stretch.shape[2] else np.zeros((types, 1))
        fluctuations.append(Fluctuation(found.spread[c], found.growth[c], stretch, loadings))
    trained = replace(trained, fluctuations=tuple(fluctuations), others=place)
    gram = forms_of(covariance_of_state(law, trained, 1.0)).values[0, own:, 0, :own, 0]
    known = tuple(replace(one, along=one.loadings @ gram) for one in fluctuations)
    return law, replace(trained, fluctuations=known)


def _model(
    law: NeuronLaw,
    trained: Trained,
    simplify: tuple[str, ...],
    shared: dict[str, Any],
    tolerance: float,
) -> SpikedFeatures:
    if "isotropic bulk" in simplify:
        bulk = NeuronCovariance.isotropic(trained.totals, trained.directions, trained.teachers)
    else:
        bulk = covariance_of_state(law, trained, tolerance)
    pull = None
    if math.isfinite(shared["neurons"]):
        root = np.sqrt(trained.probabilities)
        pull = (trained.memory / np.outer(root, root))[None]
    return SpikedFeatures(
        spikes=trained.spikes,
        overlap=trained.overlap if trained.teachers > 1 else trained.overlap[0],
        probabilities=trained.probabilities,
        bulk=bulk,
        norms=None if simplify else norms_of(trained, bulk),
        pull=pull,
        weak=trained.weak,
        weak_overlap=trained.weak_overlap,
        second_layer=trained.values,
        step_directions=trained.steps,
        **shared,
    )


def norms_of(trained: Trained, bulk: NeuronCovariance) -> Norms | None:
    """Loadings follow the spikes and the remainder in the frame of special vectors."""
    start, found = trained.directions + trained.teachers, trained.fluctuations
    if not found:
        return None
    loadings = np.zeros((len(found), len(trained.values), bulk.frame))
    for c, one in enumerate(found):
        loadings[c, :, start : start + one.loadings.shape[1]] = one.loadings
    if trained.records and found[0].along.size:
        # What they are on spikes and remainder, beyond what the vectors have there.
        gram = forms_of(bulk).values[0, :, 0, :start, 0]
        loadings[:, :, :start] = np.stack([one.along for one in found]) - loadings @ gram
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
        batches.append(batch_of(record, functions))
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
    rank, some, beside = trained.rank, trained.directions, trained.teachers
    own = some + beside
    count = own + len(trained.others)
    special = np.zeros((count, count))
    special[:some, :some] = np.eye(some)
    along, _ = trained.shares
    special[some:own] = trained.frame[rank:]
    special[some:own, rank:some] -= along
    special[some:own] = left_of(along)[1] @ special[some:own]
    special[np.arange(own, count), np.arange(some, count - beside)] = 1.0
    found = NeuronCovariance(
        shares=np.ones(1),
        diagonal=np.ones((1, 1)),
        coefficients=np.concatenate(columns, axis=1),
        external=np.eye(beside)[:, None],
        special=special,
        gram=gram_of(blocks),
        batches=tuple(batches),
        stages=tuple(stages),
    )
    if not trained.records:
        return found
    # Spikes and remainder are orthonormal but for the error of the batches' quadratures.
    values, vectors = np.linalg.eigh(forms_of(found).values[0, :own, 0, :own, 0])
    turned = (vectors / np.sqrt(np.maximum(values, 1e-6))) @ vectors.T
    special = np.concatenate([turned @ special[:own], special[own:]])
    return replace(found, special=special, excess=trained.forms - trained.represented)


def operators_on(covariance: NeuronCovariance, count: int) -> FloatArray:
    """Σ_A on the first special vectors, (T, F, F)."""
    forms, unit = forms_of(covariance), np.eye(count, covariance.frame)

    def along(force: FloatArray) -> FloatArray:
        return covariance.coefficients @ forms.slopes(force[None])[0, 1:, 0, 0]

    single = [along(unit[a]) for a in range(count)]
    found = np.zeros((len(covariance.coefficients), count, count))
    for a in range(count):
        for b in range(a + 1):
            both = single[a] if a == b else (along(unit[a] + unit[b]) - single[a] - single[b]) / 2
            found[:, a, b] = found[:, b, a] = both
    return found


def forms_of(covariance: NeuronCovariance) -> Forms:
    """Inner products of the special vectors, and forms of the operators in their slopes."""
    bulk = covariance.bulk()
    unit = np.ones((1, 1, 1))
    bare = Dyson(bulk, unit, np.zeros((1, bulk.coefficients.shape[2], 1, 1)), np.zeros((1, 0, 0)))
    return Forms(replace(bare, active=bare.alone()))


def batch_of(record: Record | Passed, functions: FloatArray) -> Batch:
    """A batch that adds sums with these functions (L, Y) of its samples."""
    return Batch(
        samples=np.array(record.samples),
        weights=record.weights,
        first=record.first,
        second=record.second,
        linear=functions,
        factors=np.zeros((0, len(record.weights))),
    )


def _place(trained: Trained, rank: int, count: int) -> tuple[int, ...]:
    """Blocks of the vectors after a step: spikes, those of the norms so far, the teacher's."""
    teachers = trained.teachers
    return (*(0,) * rank, *trained.others[: count - rank - teachers], *(0,) * teachers)


def _first_stage(law: NeuronLaw, trained: Trained) -> Stage:
    """The vectors after the first step: b̂, then b̂, b₂, b₃ (and M b, M b₂) for norms, the
    teacher's.
    """
    r = law.labels.nodes
    unit = r / law.length
    powers = [unit, unit, r**2, r**3, r, r**2]
    known = trained.fluctuations and np.any(law.moved)  # a step of rate zero has none
    some = 3 + 2 * bool(np.any(law.tilt)) if known else 0
    directions = np.eye(trained.teachers)
    carry = np.concatenate([np.zeros((some + 1, len(directions))), directions])
    sums = np.stack([*powers[: some + 1], *(0.0 * r for _ in directions)])
    return Stage(frame=directions, carry=carry, sums=sums, place=_place(trained, 1, len(carry)))


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
