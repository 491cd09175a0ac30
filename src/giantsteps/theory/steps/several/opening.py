"""The law before several steps, or after the first of them, from which others go on (§7, §10)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from giantsteps.gaussian import hermite_rule
from giantsteps.problem import Problem
from giantsteps.theory.steps.first import curvature
from giantsteps.theory.steps.neuron import NeuronLaw
from giantsteps.theory.steps.one import first_movement, folded_types, movement, neuron_law
from giantsteps.theory.steps.several.chain import multiplies
from giantsteps.theory.steps.several.covariance import covariance_of_state, operators_on
from giantsteps.theory.steps.several.first_norms import first_norms, initial_norms
from giantsteps.theory.steps.several.spectrum import Spectrum
from giantsteps.theory.steps.several.trained import Fluctuation, Record, Trained, pulled
from giantsteps.types import FloatArray

#: Nodes of the initial weights along an explicit direction, by resolution.
_NODES = (6, 7, 8, 9, 10)


def before_steps(
    problem: Problem,
    spectrum: Spectrum,
    neurons: float,
    level: int,
    norms: bool,
    tails: tuple[float, float],
) -> Trained:
    """Before all steps: neurons lean along explicit directions by their initial weights."""
    d = neurons / problem.width
    rate = sum(movement(problem, number, neurons) for number in range(len(problem.steps)))
    unit = neuron_law(problem, np.array([rate]), level, tails[0])
    reach = spectrum.values ** (1 - spectrum.power)
    steepness = abs(rate * unit.slope.hermite[0]) * float(
        np.linalg.norm(_sum(unit, spectrum, reach))
    )
    values, probabilities = np.ones(1), np.ones(1)  # where nothing moves, all neurons are alike
    if rate:
        values, probabilities = folded_types(problem, level, steepness, tails[1])
    places = spectrum.places
    spikes = np.zeros((len(values), 0))
    many = 3 if rate and math.isinf(problem.init.second_layer.distinct_nonzero) else 0
    for number, place in enumerate(places):
        count = max(_NODES[level] - max(many, 3 * number), 3)
        normal = hermite_rule(count)
        z = math.sqrt(spectrum.values[place] / d) * normal.nodes
        more = np.tile(z, len(spikes))[:, None]
        spikes = np.concatenate([np.repeat(spikes, len(z), axis=0), more], axis=1)
        values = np.repeat(values, len(z))
        probabilities = np.multiply.outer(probabilities, normal.weights).ravel()
    rank = len(places)
    teacher = _teacher(unit, spectrum)
    spike = np.zeros((rank, *teacher.shape[1:]))
    spike[np.arange(rank), places, 0] = 1.0
    along = np.tile(spectrum.start, (len(values), 1))
    trained = _with_axes(values, probabilities, spikes, along, spike, teacher, spectrum)
    if norms:
        gaussian, one = problem.init.weights == "gaussian", np.ones(len(values))
        variance, profile = initial_norms(spectrum, spectrum.start, gaussian)
        initial = Fluctuation(
            variance * one,
            one,
            0 * spikes,
            spikes[:, :0],
            initial=True,
            spaces=np.tile(profile, (len(one), 1)),
        )
        trained = replace(trained, fluctuations=(initial,))
    return trained


def after_first(
    problem: Problem,
    spectrum: Spectrum,
    neurons: float,
    level: int,
    norms: bool,
    tails: tuple[float, float],
    change: bool = False,
    fine: bool = False,
    types: tuple[FloatArray, FloatArray] | None = None,
) -> Trained:
    """After the first step, whose neurons lean along b, or the law of its change.

    ``types`` are values of the second layer and their probabilities, for others than a quadrature.
    """
    rate, inverse = first_movement(problem, neurons), problem.width / neurons
    unit = neuron_law(problem, np.array([rate]), level, tails[0])
    linear, tilt, bend, _ = unit.slope.hermite
    reach = spectrum.values ** (1 - spectrum.power)
    if linear:  # a sample with a long x has another mean slope
        longer = 2 * inverse * (spectrum.values - 1) + spectrum.mean(1) - 1
        reach = reach * (1 + bend / linear * longer)
    direction = _sum(unit, spectrum, reach)
    length = float(np.linalg.norm(direction))
    later = sum(movement(problem, number, neurons) for number in range(1, len(problem.steps)))
    steepness = (abs(rate) + abs(later)) * abs(linear) * length
    values, probabilities = types or folded_types(problem, level + fine, steepness, tails[1])
    law = replace(unit, moved=rate * values, kept=unit.kept - float(change))
    s, alpha, e = law.moved, law.samples, law.labels.moment
    gain = law.kept + s[:, None] * tilt * e(1) * reach
    noise = (law.slope.noise + tilt**2) * e(2) / alpha
    along = spectrum.values * gain**2 + (s[:, None] * reach) ** 2 * noise
    spike = direction / length if length else direction
    teacher = np.pad(_teacher(law, spectrum), ((0, 0), (0, 0), (0, 1)))
    spikes = (s * linear * length)[:, None]
    trained = _with_axes(values, probabilities, spikes, along, spike[None], teacher, spectrum)
    root, one = np.sqrt(probabilities) * values, np.ones(len(values))
    trained = replace(
        trained,
        gradients=spike[None],
        memory=pulled(
            trained.memory,
            np.multiply.outer(spectrum.values, one),
            law.kept * one,
            np.multiply.outer(reach, rate * curvature(problem) * linear**2 * np.outer(root, root)),
            one / alpha,
        ),
        multipliers=np.ones((1, len(values))),
    )
    found: tuple[Fluctuation, ...] = ()
    if norms and (np.any(s) or not spectrum.flat):
        found = first_norms(problem, law, spectrum, direction, reach, gain, along)
        count = found[0].loadings.shape[1]
        trained = replace(trained, fluctuations=found, others=(0, 0, 0, 1, 1)[:count])
        if not spectrum.flat:
            trained = replace(trained, vectors=spike[None])
    trained = replace(trained, records=(_first_record(law, trained, spectrum, reach, length),))
    if not spectrum.flat:
        return trained
    trained = replace(trained, multiplied=multiplies(problem) or len(values) == 1)
    own, bulk = 1 + trained.teachers, covariance_of_state(trained, spectrum, 1.0)
    forms, gram = operators_on(bulk, own), bulk.forms.values[0, own:, 0, :own, 0]
    found = tuple(replace(part, along=part.loadings @ gram) for part in found)
    return replace(trained, fluctuations=found, forms=forms, represented=forms)


def _sum(law: NeuronLaw, spectrum: Spectrum, reach: FloatArray) -> FloatArray:
    """Σ^{1/2}b by coordinates: the teacher's parts in the eigenspaces, then noise, (I, R + 1)."""
    seen, noise = law.labels.teacher(1), law.labels.moment(2) / law.samples
    parts = [*(one * np.sqrt(spectrum.teacher) for one in seen), np.sqrt(noise * spectrum.shares)]
    return np.asarray(np.stack(parts, axis=1) * reach[:, None])


def _teacher(law: NeuronLaw, spectrum: Spectrum) -> FloatArray:
    """The teacher's directions in the same coordinates without the noise, (R, I, R)."""
    some = np.eye(len(law.labels.teacher(1)))
    return np.asarray(np.sqrt(spectrum.teacher)[:, None] * some[:, None])


def _with_axes(
    values: FloatArray,
    probabilities: FloatArray,
    spikes: FloatArray,
    along: FloatArray,
    axes: FloatArray,
    teacher: FloatArray,
    spectrum: Spectrum,
) -> Trained:
    """Neurons with these leans along these axes, and no memory of batches."""
    none, types = teacher[:0], len(values)
    return Trained(
        values=values,
        probabilities=probabilities,
        spikes=spikes,
        totals=along @ spectrum.shares,
        along=along,
        overlap=np.tensordot(teacher, axes, axes=([1, 2], [1, 2])),
        axes=np.concatenate([axes, teacher]),
        gradients=none,
        vectors=none,
        memory=np.zeros((len(spectrum.values), types, types)),
        multipliers=np.ones((0, types)),
        weak=np.zeros((types, 0)),
        weak_overlap=np.zeros((len(teacher), 0)),
    )


def _first_record(
    law: NeuronLaw, trained: Trained, spectrum: Spectrum, reach: FloatArray, length: float
) -> Record:
    """The first batch: b̂, what norms go with, and the teacher's directions after it."""
    first, r = law.covariance(), law.labels.nodes
    batch, count = first.batches[0], trained.teachers
    linear, turned = batch.linear, first.coefficients[:, 1:]
    crossed = len(batch.factors) > 0 and spectrum.power > 0 and not spectrum.flat
    if crossed:
        linear, turned = linear[1:], turned[:, [1, 0, 2]]
    unit = r / length if length else 0.0 * r
    powers = [unit, unit, r**2, r**3, r, r**2][: 1 + len(trained.others)]
    teacher = trained.teacher
    return Record(
        samples=law.samples,
        weights=batch.weights,
        first=batch.first,
        second=batch.second,
        added=np.zeros((len(law.moved), 0)),
        mean=0.0 * law.moved,
        linear=linear,
        factors=batch.factors,
        turned=turned,
        frame=np.eye(count),
        seen=teacher,
        reach=reach,
        carry=np.concatenate([np.zeros((len(powers), count)), np.eye(count)]),
        sums=np.concatenate([np.stack(powers), np.zeros((count, len(r)))]),
        carried=np.zeros((1, *teacher.shape[1:])),
        before=teacher[:0],
        rank=1,
        bent=np.multiply.outer(law.tilt, r),
        noise=np.multiply.outer(law.noise, r**2),
        kept=law.kept,
        crossed=crossed,
    )
