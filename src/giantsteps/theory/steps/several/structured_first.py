"""The first of several steps on inputs with a covariance, and the law before it (theory §10)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from giantsteps.problem import Problem
from giantsteps.theory.steps.one import movement, neuron_law, types_of
from giantsteps.theory.steps.several.structured_state import Passed, Resolved, remainder_of
from giantsteps.theory.steps.several.trained import Fluctuation, Trained
from giantsteps.theory.steps.structured import Spectrum, direction, norms_of

#: Nodes of the initial weights along an explicit direction, by resolution.
_NODES = (5, 6, 7, 8, 9)


def start(
    problem: Problem,
    spectrum: Spectrum,
    neurons: float,
    level: int,
    norms: bool,
    tails: tuple[float, float],
) -> Resolved:
    """Before all steps: neurons lean along the explicit direction by their initial weights."""
    d = neurons / problem.width
    rate = sum(movement(problem, number, neurons) for number in range(len(problem.steps)))
    unit = neuron_law(problem, np.array([rate]), level, tails[0])
    length, _ = direction(unit, spectrum)
    steepness = abs(rate) * abs(unit.slope.hermite[0]) * length
    values, probabilities = types_of(problem.init.second_layer, level, steepness, tails[1])
    places = spectrum.places
    spikes = np.zeros((len(values), 0))
    many = 2 if math.isinf(problem.init.second_layer.distinct_nonzero) else 0
    for number, place in enumerate(places):
        count = max(_NODES[level] - max(many, 2 * number), 3)
        z, weights = np.polynomial.hermite_e.hermegauss(count)
        z = math.sqrt(spectrum.values[place] / d) * z
        more = np.tile(z, len(spikes))[:, None]
        spikes = np.concatenate([np.repeat(spikes, len(z), axis=0), more], axis=1)
        values = np.repeat(values, len(z))
        probabilities = np.multiply.outer(probabilities, weights / weights.sum()).ravel()
    types, rank = spikes.shape
    root = np.sqrt(spectrum.teacher)
    along = np.tile(spectrum.start, (types, 1))
    overlap = root[places]
    spike = np.zeros((rank, len(root), 1))
    spike[np.arange(rank), places] = 1.0
    trained = Trained(
        values=values,
        probabilities=probabilities,
        spikes=spikes,
        totals=along @ spectrum.shares,
        overlap=overlap[None],
        steps=np.zeros((0, rank)),
        memory=np.eye(types),
        constant=np.zeros(types),
        multipliers=np.ones((0, types)),
    )
    if norms:
        square = float(spectrum.shares @ spectrum.start**2)
        if problem.init.weights != "gaussian":
            square -= float(spectrum.shares @ spectrum.start) ** 2
        one = np.ones(types)
        initial = Fluctuation(2 * square * one, one, 0 * spikes, spikes[:, :0])
        trained = replace(trained, fluctuations=(initial,))
    return Resolved(
        trained=trained,
        along=along,
        frame=np.concatenate([spike, remainder_of(root[:, None], spike, overlap)[None]]),
        others=spike[:0],
        gradients=spike[:0],
        memory=np.tile(np.eye(types), (len(root), 1, 1)),
        passed=(),
    )


def first_step(
    problem: Problem,
    spectrum: Spectrum,
    neurons: float,
    level: int,
    norms: bool,
    tails: tuple[float, float],
) -> Resolved:
    """After the first step, whose neurons lean along b."""
    rate = movement(problem, 0, neurons)
    unit = neuron_law(problem, np.array([rate]), level, tails[0])
    raw, _ = direction(unit, spectrum)
    length, _ = direction(unit, spectrum, problem.width / neurons)
    linear, tilt, _, _ = unit.slope.hermite
    later = sum(movement(problem, number, neurons) for number in range(1, len(problem.steps)))
    steepness = (abs(rate) + abs(later)) * abs(linear) * length
    values, probabilities = types_of(problem.init.second_layer, level, steepness, tails[1])
    law = replace(unit, moved=rate * values)
    s, alpha, reach = law.moved, law.samples, spectrum.values ** (1 - spectrum.power)
    r, e = law.labels.nodes, law.labels.moment
    gain = law.kept + s[:, None] * tilt * e(1) * reach
    noise = (law.slope.noise + tilt**2) * e(2) / alpha
    along = spectrum.values * gain**2 + (s[:, None] * reach) ** 2 * noise
    # Coordinates in an eigenspace: the teacher's, then the noise of this step.
    root = np.sqrt(spectrum.teacher)
    size = np.sqrt(e(2) / alpha * spectrum.shares)
    spike = np.stack([law.labels.signal * root, size], axis=1) * (reach / raw)[:, None]
    teacher = np.stack([root, 0.0 * root], axis=1)
    gamma = float((spike * teacher).sum())
    spikes = (s * linear * length)[:, None]
    second = np.sqrt(probabilities) * values
    pull = rate * linear**2 * np.outer(second, second)
    trained = Trained(
        values=values,
        probabilities=probabilities,
        spikes=spikes,
        totals=along @ spectrum.shares,
        overlap=np.array([[gamma]]),
        steps=np.ones((1, 1)),
        memory=np.eye(len(values)),
        constant=np.zeros(len(values)),
        multipliers=np.ones((1, len(values))),
    )
    others = spike[None, :, :][:0]
    if norms and rate:
        found = norms_of(law, spectrum, raw, problem.init.weights == "gaussian")
        loading = found.loadings[0, :, 2:3]
        zero = np.zeros_like(spikes)
        trained = replace(
            trained,
            fluctuations=(
                Fluctuation(found.spread[0], np.ones_like(s), zero, loading),
                Fluctuation(
                    found.spread[1],
                    found.growth[1],
                    found.stretch[1],
                    np.zeros_like(loading),
                ),
            ),
        )
        others = spike[None]
    added = 2 * law.kept * (tilt * s)[:, None] * r
    added = added + s[:, None] ** 2 / alpha * (law.slope.noise + tilt**2) * r**2
    passed = Passed(
        samples=alpha,
        weights=law.labels.weights,
        first=law.labels.first,
        second=law.labels.second,
        added=added,
        frame=root[None, :, None],
        multiplier=np.ones(len(values)),
        sums=np.stack([r / raw] * (1 + len(others))),
        carry=np.zeros((1, 0)),
        reach=reach,
        noise=np.zeros((1, 0)),
        tilt=np.zeros((0, len(r))),
        turned=np.zeros((len(values), 2)),
    )
    identity = law.kept * np.eye(len(values))
    return Resolved(
        trained=trained,
        along=along,
        frame=np.stack([spike, remainder_of(teacher, spike[None], np.array([gamma]))]),
        others=others,
        gradients=spike[None],
        memory=identity - reach[:, None, None] * pull,
        passed=(passed,),
    )
