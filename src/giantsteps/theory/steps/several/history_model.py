r"""The equivalent model after steps of which some use a batch again (theory §7).

Beside its lean a neuron has the covariance Σ_A, of which every sample of a batch has made a part:
x_iᵀΣ_Ax_i/d is the variance of its field there, memory and all, so that

.. math:: Σ_A ≈ Σ_b n_b^{-1}Σ_i ψ_A^b(i)\,x_ix_i^⊤ + \text{const}·I ,\qquad
          ψ_A^b = α_b\bigl[\mathrm{Var}\,h^t - K_A^{tt}\bigr] .
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from giantsteps.functions import SingleIndex
from giantsteps.gaussian import moments
from giantsteps.problem import Problem
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.norms import Norms
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.solver.bulk import Batch, Stage
from giantsteps.theory.solver.work import Work
from giantsteps.theory.steps.one import folded, movement, tails_of, types_of
from giantsteps.theory.steps.several.covariance import operators_on
from giantsteps.theory.steps.several.directions import DIRECTIONS, WEAK, kept_directions
from giantsteps.theory.steps.several.fresh_norms import LOADS
from giantsteps.theory.steps.several.histories import Neurons
from giantsteps.theory.steps.several.history_forms import forms_of_course, makers, seen
from giantsteps.theory.steps.several.history_law import follow, initial_output
from giantsteps.theory.steps.several.history_norms import HistoryNorms, norms_of_course
from giantsteps.theory.steps.several.history_view import Course, Samples, View, sample_nodes
from giantsteps.theory.steps.several.model import RESOLVED
from giantsteps.theory.steps.several.summed import batches
from giantsteps.theory.steps.several.traces import gram_of_batch
from giantsteps.theory.steps.several.trained import few_functions, pulled
from giantsteps.theory.steps.sized import at_size, by_resolution
from giantsteps.types import FloatArray

#: Operations that a model may take, about ten seconds of a core, and what to try beyond.
MOST = 1.2e10
INSTEAD = (
    "fewer steps on one batch, a constant or few-valued second layer, an odd activation, "
    'batch="fresh", or simulation'
)
#: By how much initial weights are longer for a derivative.
_LONGER = 0.01
#: Resolution of the samples of the bulk, where they have no edge, and of those of the recursion.
_BULK, _FINER = 1, 3


def remembered_steps(
    problem: Problem, d: int | None = None, *, simplify: tuple[str, ...] = (), **others: Any
) -> SpikedFeatures:
    """The equivalent model after steps on batches of which some are used again."""
    few = math.isfinite(problem.init.second_layer.distinct_nonzero)
    sized, count, shared = at_size(problem, d, levels=(0, 1), **others)
    rates = tuple(movement(sized, s, count) for s in range(len(sized.steps)))
    numbers, samples = batches_of(sized)
    work = Work("steps on a batch that is used again", INSTEAD, MOST)
    assert isinstance(sized.teacher, SingleIndex)
    link, noise = sized.teacher.link, sized.noise_variance

    @lru_cache(maxsize=2)
    def followed(level: int, norms: bool, tail: float) -> Course:
        neurons = neurons_of(sized, rates, work, tail)
        start = np.ones(len(neurons.values))
        if norms:  # and, one each, neurons whose initial weights are a little longer
            more = np.tile(neurons.values, 2), np.append(neurons.probabilities, 0.0 * start)
            neurons = Neurons(sized.activation, *more, work)
            start = np.append(start, start + _LONGER)
        return follow(neurons, link, noise, numbers, samples, rates, level, start)

    def built(level: int, tails: tuple[float, float] = (0.0, 0.0)) -> SpikedFeatures:
        norms = few and not simplify and not tails[0]
        course = followed(min(level + _FINER, 4), norms, tails[1])
        types = len(course.neurons.values) // (1 + norms)
        nodes = sample_nodes(
            link,
            noise,
            course.sizes_seen,
            initial_output(course.neurons),
            min(level + (0 if tails[0] else _BULK), 4),
            tails[0],
        )
        longer = None
        if norms:
            longer = course.leans[-1][types:], course.covariance[types:, -1, -1]
            course = course.of_types(slice(types))
        gaussian = sized.init.weights == "gaussian"
        return _model(course, nodes, simplify, level, shared, longer, gaussian)

    tails = tails_of(sized, d, count)
    return by_resolution(built, 1, lambda level: built(level, tails))


def neurons_of(
    problem: Problem, rates: tuple[float, ...], work: Work, tail: float = 0.0
) -> Neurons:
    """The types of the problem's neurons, A ≥ 0 alone where A and −A are mirror images."""
    law = problem.init.second_layer
    values, probabilities = types_of(law, 1, _steepness(problem, rates), tail)
    if law.symmetric and moments(problem.activation).is_odd:
        values, probabilities = folded(values, probabilities)
    return Neurons(problem.activation, values, probabilities, work)


def batches_of(problem: Problem) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The number of the batch of each step, and α of each batch."""
    groups = batches(problem)
    numbers = [number for number, group in enumerate(groups) for _ in group]
    return tuple(numbers), tuple(group[0].samples for group in groups)


def _steepness(problem: Problem, rates: tuple[float, ...]) -> float:
    """The lean of a neuron with A = 1 if all steps were like the first, about."""
    x = np.linspace(-8.0, 8.0, 801)
    weights = np.exp(-x * x / 2)
    assert isinstance(problem.teacher, SingleIndex)
    labels = np.asarray(problem.teacher.link(x), dtype=float)
    linear, square = (float(weights @ f) / float(weights.sum()) for f in (x * labels, labels**2))
    length = linear**2 + (square + problem.noise_variance) / problem.steps[0].samples
    return abs(moments(problem.activation).linear) * math.sqrt(length) * sum(map(abs, rates))


def _model(
    course: Course,
    nodes: Samples,
    simplify: tuple[str, ...],
    level: int,
    shared: dict[str, Any],
    longer: tuple[FloatArray, FloatArray] | None,
    gaussian: bool,
) -> SpikedFeatures:
    neurons, lean = course.neurons, course.leans[-1]
    basis, _, _ = kept_directions(lean, neurons.probabilities, np.eye(1, lean.shape[1]), WEAK)
    leans, overlap = lean @ basis, basis[0]
    totals = course.covariance[:, -1, -1] + beside_spikes(lean, leans)
    views = views_of(course, nodes)
    norms = None
    if "isotropic bulk" in simplify:
        bulk = NeuronCovariance.isotropic(totals, len(overlap))
    else:
        found, loads = None, [np.zeros((0, len(nodes.weights))) for _ in views]
        if longer is not None:
            other, total = longer
            grown = total + beside_spikes(other, other @ basis) - totals
            stretch = (other @ basis - leans)[:, :DIRECTIONS]
            found = norms_of_course(views, grown / _LONGER, stretch / _LONGER)
            loads = found.loads
        bulk, shares = _covariance(views, basis, totals, RESOLVED[level], loads)
        norms = None if found is None else _norms(found, bulk, shares, gaussian)
    return SpikedFeatures(
        spikes=leans[:, :DIRECTIONS],
        overlap=overlap[:DIRECTIONS],
        weak=leans[:, DIRECTIONS:],
        weak_overlap=overlap[DIRECTIONS:],
        probabilities=neurons.probabilities,
        bulk=bulk,
        norms=norms,
        pull=_pull(views) if math.isfinite(shared["neurons"]) else None,
        second_layer=neurons.values,
        step_directions=_first_direction(course, basis),
        **shared,
    )


def views_of(course: Course, nodes: Samples) -> list[View]:
    """All batches after the last step."""
    last = len(course.rates) - 1
    return [View.of(course, nodes, course.uses(b, last)) for b in range(len(course.samples))]


def _first_direction(course: Course, basis: FloatArray) -> FloatArray:
    """Cosines of the first step's direction with the spikes, (1, r)."""
    lean = course.leans[1]
    most = lean[np.argmax((lean**2).sum(axis=1))]
    length = float(np.linalg.norm(most))
    return np.asarray((most / (length if length > 0 else 1.0)) @ basis[: len(most)])[None]


def beside_spikes(lean: FloatArray, leans: FloatArray) -> FloatArray:
    """Squares of the leans along all directions but the spikes."""
    return np.asarray((lean**2).sum(axis=1) - (leans[:, :DIRECTIONS] ** 2).sum(axis=1))


def _norms(
    found: HistoryNorms, bulk: NeuronCovariance, shares: FloatArray, gaussian: bool
) -> Norms:
    """One fluctuation of the norms, and for Gaussian weights that of the initial ones."""
    loadings = np.zeros((len(found.growth), bulk.frame))
    loadings[:, bulk.frame - shares.shape[1] :] = shares
    spread = np.maximum(2 * (bulk.modes**2).sum(axis=1) + found.rest, 0.0)
    return Norms.after_steps(spread, loadings, found.growth, found.stretch, gaussian)


def _pull(views: list[View]) -> FloatArray:
    """What the output does to the penalty of m: weights shrink along the types' right vectors."""
    course = views[0].course
    chances, values = course.neurons.probabilities, course.neurons.values
    root = np.sqrt(chances) * values
    change = np.zeros((len(root), len(root)))
    for s, batch in enumerate(course.batches):
        view = views[batch]
        slope = view.answers[view.uses.index(s)].slope
        both = (slope * view.samples.weights) @ slope.T
        gain = course.covariance[:, s + 1, 0] / course.covariance[:, s, 0]
        total = course.covariance[:, s, s]
        pull = course.rates[s] * np.outer(root, root) * both
        change = pulled(change, total, gain, pull, total / course.samples[batch])
    return np.asarray(change / np.sqrt(np.outer(chances, chances)))[None]


def added(view: View, time: int, since: int | None = None) -> FloatArray:
    """ψ_A at the samples of a batch, (T, Y), for the weights at a time or their change since."""
    course = view.course
    own = course.own[:, time] - (0.0 if since is None else course.own[:, since])
    back = [own[:, step + 1, None] for step in view.uses]
    total = np.zeros_like(view.fields[0])
    for l, one in enumerate(back):
        total += 2 * one * view.with_field(l, time)
        if since is not None:
            total -= 2 * one * view.with_field(l, since)
        for m, other in enumerate(back):
            total += one * other * view.noise(l, m) / view.memory.samples
    return total


def coordinates(view: View, basis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """E[κ f] and E[κκᵀ f] of the samples of a batch on the spikes and the teacher's remainder."""
    (known, unseen), weights, frame = seen(view), view.samples.weights, frame_of(basis)
    kappa = frame @ known
    noise = (frame * unseen) @ frame.T
    return kappa * weights, (kappa[:, None] * kappa + noise[:, :, None]) * weights


def frame_of(basis: FloatArray) -> FloatArray:
    """Spikes and the teacher's remainder on teacher and directions, (r + 1, E)."""
    overlap = basis[0]
    remainder = math.sqrt(max(1.0 - float(overlap @ overlap), 0.0))
    inverse = 1.0 / remainder if remainder > 1e-12 else 0.0
    frame = np.concatenate([basis.T, -inverse * (overlap @ basis.T)[None]])
    frame[-1, 0] += inverse
    return frame


def _covariance(
    views: list[View],
    basis: FloatArray,
    totals: FloatArray,
    tolerance: float,
    loads: list[FloatArray],
) -> tuple[NeuronCovariance, FloatArray]:
    """Σ_A, and what norms go with as combinations of the last special vectors, (T, L)."""
    course = views[0].course
    parts = [added(view, len(course.rates)) for view in views]
    covariance, shares = sums_over_batches(views, parts, basis, totals, tolerance, loads)
    frame = frame_of(basis)
    exact = frame @ forms_of_course(views) @ frame.T
    # The squares of what is not a direction of the samples count as they do in the totals.
    more = totals - course.covariance[:, -1, -1]
    exact = exact + more[:, None, None] * np.eye(len(frame))
    covariance = replace(covariance, excess=exact - operators_on(covariance, len(frame)))
    return covariance, shares


def sums_over_batches(
    views: list[View],
    parts: list[FloatArray],
    basis: FloatArray,
    totals: FloatArray,
    tolerance: float,
    loads: list[FloatArray],
) -> tuple[NeuronCovariance, FloatArray]:
    """Σ_A of these ψ_A of the batches, and what norms go with."""
    count = basis.shape[1] + 1
    batches, stages, mixings, means, shares = [], [], [], [], []
    vectors = count
    for view, part, load in zip(views, parts, loads, strict=True):
        weights = view.samples.weights
        mixing, functions = few_functions(part, weights, tolerance)
        first, second = coordinates(view, basis)
        batches.append(
            Batch(
                samples=np.array(view.memory.samples),
                weights=weights,
                first=first,
                second=second,
                linear=functions,
                factors=np.zeros((0, len(weights))),
            )
        )
        share, sums = np.zeros((len(totals), 0)), load
        if len(load):
            share, sums = few_functions(load, weights, LOADS)
        shares.append(share)
        rest = beside(view, sums)
        carry = np.eye(vectors + len(sums), vectors)
        carry[vectors:, :count] = (sums - rest) @ first.T
        none = np.zeros((vectors, len(weights)))
        vectors += len(sums)
        stages.append(
            Stage(
                frame=np.eye(count, carry.shape[1]),
                carry=carry,
                sums=np.concatenate([none, rest]),
                place=(0,) * vectors,
            )
        )
        mixings.append(mixing)
        means.append(functions @ weights)
    mixing, mean = np.concatenate(mixings, axis=1), np.concatenate(means)
    gram = np.outer(np.append(1.0, mean), np.append(1.0, mean))
    start = 1
    for batch in batches:
        own = gram_of_batch(batch.linear, batch.factors, batch.weights, float(batch.samples))
        size = len(batch.linear)
        gram[start : start + size, start : start + size] = own[1:, 1:]
        start += size
    covariance = NeuronCovariance(
        shares=np.ones(1),
        diagonal=np.ones((1, 1)),
        coefficients=np.column_stack([totals - mixing @ mean, mixing]),
        external=np.eye(count)[:, None],
        special=np.eye(vectors),
        gram=gram,
        batches=tuple(batches),
        stages=tuple(stages),
    )
    return covariance, np.concatenate(shares, axis=1)


def beside(view: View, sums: FloatArray) -> FloatArray:
    """Sums over a batch without what makes directions of the samples' coordinates: those of its
    sums are zero beside the directions.
    """
    a, weights = makers(view), view.samples.weights
    if not len(a) or not len(sums):
        return sums
    gram = (a * weights) @ a.T
    return np.asarray(sums - (sums * weights) @ a.T @ np.linalg.pinv(gram, rcond=1e-9) @ a)
