r"""Any number of large steps, each on a fresh batch: a recursion over the neurons' law (§7, §10).

After some steps a neuron of type A leans by S_A along r orthonormal directions e and has a bulk of
squared norm c_A. On a fresh sample with coordinates k along e its slope has the mean ζ_A(k) = E
σ'(h) and the curvature ξ_A(k) = E σ''(h), h = S_A·k + √c_A z, and the residual is r = y − f(k), f =
E_A[A E σ(h)]. A step moves the neuron by

.. math:: Δw = s\Bigl[n^{-1}Σ_i r_iζ_A(k_i)\,x_i + K_A w + \text{noise}\Bigr],\qquad
          K_A = n^{-1}Σ_i r_iξ_A(k_i)\,x_ix_i^⊤,\qquad s = η̃A :

a new lean along directions of its own, a bulk that is multiplied by I + sK_A, and noise of variance
r²(E σ'² − ζ² − cξ²) on each sample. Inputs with a covariance Σ have this in every eigenspace, in
the frame of Σ^{1/2}w.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from giantsteps.problem import Problem, Step
from giantsteps.theory.model.rules import spike_rule
from giantsteps.theory.model.teacher import single_link
from giantsteps.theory.steps.neuron import slopes
from giantsteps.theory.steps.several.conditional import Conditional
from giantsteps.theory.steps.several.directions import WEAK, kept_directions
from giantsteps.theory.steps.several.excess import Push
from giantsteps.theory.steps.several.fresh_norms import (
    NewNorms,
    new_fluctuation,
    with_fluctuations,
)
from giantsteps.theory.steps.several.moves import (
    MovedNeurons,
    Pace,
    along_frame,
    gradient_norm,
    moved_neurons,
    reach_of,
)
from giantsteps.theory.steps.several.spectrum import Spectrum
from giantsteps.theory.steps.several.trained import Record, Trained, pulled
from giantsteps.theory.steps.several.view import (
    FINE_RESIDUALS,
    FINEST,
    RESIDUALS,
    View,
    coordinates_of,
    few_nodes,
    remembered_nodes,
    sample_nodes,
)
from giantsteps.types import FloatArray

#: Leans, relative to the norms of the neurons, that are rounding.
_ROUNDING = 1e-13
#: Share of the teacher along explicit directions from which on their samples need many nodes.
_SEEN = 0.1


def take_step(
    problem: Problem,
    trained: Trained,
    step: Step,
    rate: float,
    level: int,
    spectrum: Spectrum,
    norms: bool = False,
    kept: float | None = None,
    tail: float = 0.0,
    inverse: float = 0.0,
    fine: bool = False,
) -> Trained:
    r"""The law of a neuron after one more step with η̃ = ``rate`` on α fresh samples.

    Two directions are kept as spikes: the strongest, and the form of the other leans applied to the
    teacher; what is left has a few weak ones. All but the two count as bulk. Beside explicit
    directions of the inputs there is one more.

    Fluctuations of the norms are followed if ``norms``.

    ``kept`` is what is left of the weights before the step, 1 − decay unless given: with −decay
    the law is that of their change. ``tail`` is the share of the samples that the bulk remembers
    with the coordinates and residuals of their quantile, so that it has an edge; ``inverse`` is
    1/d, zero in the limit. ``fine`` is whether errors shall be resolved to 1e-6.
    """
    view, pace, rate = _view_and_pace(problem, trained, step, rate, level, spectrum, kept, inverse)
    moved = moved_neurons(view, view.slope, trained.spikes, trained.along, pace)
    gain, types = moved.gain, len(trained.values)
    teacher = np.zeros((trained.teachers, moved.lean.shape[1]))
    inside = moved.carried[0].size
    teacher[:, :inside] = trained.teacher.reshape(trained.teachers, -1)
    law = (moved.lean, trained.probabilities, teacher)
    # The direction of the step: the spike where no neuron leans (an even activation, no step).
    own = _sums(view, np.ones((1, len(view.weights))), pace)
    length, alone = np.linalg.norm(own), 0.0
    if np.abs(moved.lean).max() <= _ROUNDING * math.sqrt(max(moved.totals.max(), 0.0)):
        basis, combination, rank = own.T / length, np.zeros((types, 1)), 1
        alone = 1.0 / float(length)
    elif spectrum.explicit is None:
        basis, combination, rank = kept_directions(*law, WEAK)
    else:
        # An even part moves neurons by M w: those that lean along an explicit direction do so
        # along what M makes of it, too, and this goes with the weights that it makes lean there.
        even = not trained.records and bool(slopes(problem.activation).hermite[1])
        basis, combination, rank = kept_directions(*law, int(even), len(spectrum.places) + 1)
    leans, overlap = moved.lean @ basis, teacher @ basis
    strong = basis[:, :rank]
    dropped = _by_class(moved.lean - leans[:, :rank] @ strong.T, moved, pace)
    few = not trained.records and float((trained.overlap**2).sum()) < _SEEN
    nodes = few_nodes(trained.rank, level) if few else remembered_nodes(trained, level, tail, fine)
    remembered = View(problem, trained, step, *nodes)
    top = math.inf
    if tail:
        many = View(problem, trained, step, *sample_nodes(trained.rank, FINEST))
        top = many.largest_residual(tail)
    residuals = remembered.residuals((FINE_RESIDUALS if fine else RESIDUALS)[level], top)
    own_norms = NewNorms(remembered, residuals, pace, gain)
    mixing, loads = np.zeros((types, 0)), np.zeros((0, *residuals.weights.shape))
    if norms:
        mixing, loads = own_norms.few()
    # With the direction of the step, and vectors that norms go with.
    found = [basis.T, own / length]
    if not spectrum.flat:
        bent = 4 * (pace.moved * gain)[:, None] * view.slope.quadratic
        found.append((mixing / (mixing**2).sum(axis=0)).T @ _sums(view, bent, pace))
    stacked = np.concatenate(found)
    noise = np.asarray(np.linalg.qr(stacked[:, inside:].T, mode="r")).T
    grown = stacked[:, :inside].reshape(len(stacked), *moved.carried.shape[1:])
    grown = np.concatenate([grown, pace.profile[:, None] * noise[:, None]], axis=2)
    count, wider = basis.shape[1], ((0, 0), (0, 0), (0, noise.shape[1]))
    root = (np.sqrt(trained.probabilities) * trained.values)[:, None]
    pull = rate * (root * view.slope.mean * view.weights) @ (root * view.slope.mean).T
    reach = pace.reach[:, None]
    after = replace(
        trained,
        spikes=leans[:, :rank],
        totals=moved.totals + dropped @ spectrum.shares,
        along=moved.along + dropped,
        overlap=overlap[:, :rank],
        weak=leans[:, rank:],
        weak_overlap=overlap[:, rank:],
        axes=np.concatenate([grown[:count], np.pad(trained.teacher, wider)]),
        gradients=np.concatenate([np.pad(trained.gradients, wider), grown[count : count + 1]]),
        vectors=np.concatenate([np.pad(trained.vectors, wider), grown[count + 1 :]]),
        memory=pulled(
            trained.memory,
            trained.along.T,
            pace.kept + (gain - pace.kept) * reach,
            reach[:, :, None] * pull,
            trained.totals / pace.samples,
        ),
        multipliers=np.concatenate([trained.multipliers * gain**2, np.ones((1, types))]),
    )
    record = _record(remembered, residuals, combination, alone, pace, moved, loads)
    after = replace(after, records=(*trained.records, record))
    # Along spikes and teacher, covariances of one eigenspace are known beyond those of batches.
    push = None
    if spectrum.flat:
        usual = float((record.factors @ record.weights).sum())
        turn = gain - pace.kept - pace.moved * usual
        added = dropped[:, 0] - gain**2 * (trained.weak**2).sum(axis=1)
        added = added - 2 * trained.totals * gain * turn
        if len(record.factors):
            added = added - record.turned @ [usual, usual**2]
        push = Push(trained, record, gain, added)
    if norms:
        new = new_fluctuation(own_norms, trained, moved, rank, mixing)
        if push is not None:
            new = replace(new, along=push.loads(own_norms.linear, own_norms.single))
        after = with_fluctuations(view, trained, after, strong, own_norms, push, new)
    if push is None:
        return after
    forms, represented = push.forms()
    return replace(after, forms=forms, represented=represented)


def leans_after(
    problem: Problem,
    trained: Trained,
    step: Step,
    rate: float,
    level: int,
    spectrum: Spectrum,
    inverse: float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """Leans before and after a step in one space, with nothing dropped, (T, space) each."""
    view, pace, _ = _view_and_pace(problem, trained, step, rate, level, spectrum, None, inverse)
    after = moved_neurons(view, view.slope, trained.spikes, trained.along, pace).lean
    leans = np.concatenate([trained.spikes, trained.weak], axis=1)
    inside = np.tensordot(leans, trained.axes[: trained.directions], axes=1)
    before = np.zeros_like(after)
    before[:, : inside[0].size] = inside.reshape(len(before), -1)
    return before, after


def _view_and_pace(
    problem: Problem,
    trained: Trained,
    step: Step,
    rate: float,
    level: int,
    spectrum: Spectrum,
    kept: float | None,
    inverse: float,
) -> tuple[View, Pace, float]:
    """What a step sees and how far it goes; the rate that multiplies the gradient."""
    state = trained.spikes, trained.totals, trained.overlap[0]
    link = single_link(problem.teacher)
    averages = trained.probabilities if link is None or trained.rank > 1 else None
    rule = spike_rule(level, *state, link, averages)
    view = View(problem, trained, step, rule.nodes, rule.weights)
    reach = reach_of(view, rate * trained.values, spectrum, inverse)
    left = 1.0 - step.decay if kept is None else kept
    pace = Pace(rate * trained.values, step.samples, left, reach, spectrum)
    if step.rule == "normalized":
        rate = rate / gradient_norm(view, pace)
        pace = replace(pace, moved=rate * trained.values)
    return view, pace, rate


def _sums(view: View, functions: FloatArray, pace: Pace) -> FloatArray:
    """Σ^{1−p}n⁻¹Σ_i r_if(k_i) z_i in the enlarged space, for functions (V, K)."""
    inside = along_frame(view, functions, pace).reshape(len(functions), -1)
    noise = pace.size * functions * np.sqrt(view.weights * view.square / pace.samples)
    return np.concatenate([inside, noise], axis=1)


def _by_class(dropped: FloatArray, moved: MovedNeurons, pace: Pace) -> FloatArray:
    """What leans of the enlarged space add to c_A(ι), (T, I)."""
    inside, shares = moved.carried[0].size, pace.spectrum.shares
    found = (dropped[:, :inside].reshape(moved.carried.shape) ** 2).sum(axis=2)
    noise = (dropped[:, inside:] ** 2).sum(axis=1)
    found = found + np.multiply.outer(noise, pace.profile**2)
    # A share of zero has no bulk: what is dropped there is spread over all directions.
    some = shares > 0
    spread = found[:, ~some].sum(axis=1)[:, None]
    return np.asarray(np.where(some, found / np.where(some, shares, 1.0), 0.0) + spread)


def _record(
    view: View,
    law: Conditional,
    combination: FloatArray,
    alone: float,
    step: Pace,
    moved: MovedNeurons,
    loads: FloatArray,
) -> Record:
    """The batch as the bulk remembers it; its plain sum, of this size, where that is the spike."""
    trained, gain = view.trained, moved.gain
    rank, count, shape = trained.rank, trained.teachers, law.weights.shape
    first, second = coordinates_of(view, law)
    slope, s = view.slope, step.moved[:, None, None]
    zeta = slope.mean[:, :, None]
    xi = (slope.linear / np.sqrt(trained.totals)[:, None])[:, :, None]
    noise = (slope.second_moment - slope.mean**2)[:, :, None]
    curved = trained.totals[:, None, None] * xi**2
    r, scale = law.nodes, (trained.totals * gain)[:, None, None]
    bent, own_noise = s * r * xi, s**2 / step.samples * r**2 * (noise - curved)
    factors, turned = np.zeros((0, r.size)), np.zeros((len(gain), 0))
    linear, crossed = factors, not trained.records
    by_type = trained.probabilities * step.moved**2
    usual = np.tensordot(by_type / (by_type.sum() or 1.0), xi, axes=1)
    # Continuous second layers are symmetric: without an output of their own, squares M² of later
    # batches are not worth their cost.
    few = math.isfinite(view.problem.init.second_layer.distinct_nonzero)
    known = not trained.records or (step.spectrum.explicit is None and few)
    if known and np.abs(usual).max() > 1e-9 * np.abs(slope.mean).max():
        # The sum over samples that multiplies the weights, by what most neurons see.
        factors = (r * usual).reshape(1, -1)
        linear = factors[: 0 if crossed else 1]
        both = [(1 if crossed else 2) * step.kept * step.moved, step.moved**2]
        turned = trained.totals[:, None] * np.stack(both, axis=1)
        noise = noise - trained.totals[:, None, None] * usual**2
        xi = xi - usual
    weights = (view.weights[:, None] * law.weights).ravel()
    added = (2 * scale * s * r * xi + s**2 / step.samples * r**2 * noise).reshape(len(gain), -1)
    first_moment, second_moment = (float((factors**j @ weights).sum()) for j in (1, 2))
    taken = 2 * gain * step.moved * first_moment + step.moved**2 / step.samples * second_moment
    directions, others = trained.directions, len(trained.others)
    sums = [np.tensordot(combination.T, s * r * zeta, axes=1) + alone * r]
    sums += [np.zeros((others, *shape)), loads, np.zeros((count, *shape))]
    stacked = np.concatenate(sums)
    new = combination.shape[1]
    carry = np.zeros((len(stacked), directions + others + count))
    carry[:new, :rank] = step.kept * combination.T @ trained.spikes
    carry[:new, rank:directions] = combination.T @ (gain[:, None] * trained.weak)
    carry[np.arange(new, new + others), np.arange(directions, directions + others)] = 1.0
    carry[-count:, -count:] = np.eye(count)
    return Record(
        samples=step.samples,
        weights=weights,
        first=first,
        second=second,
        added=added,
        mean=moved.mean - trained.totals * taken,
        linear=linear,
        factors=factors,
        turned=turned,
        frame=trained.frame,
        seen=trained.seen,
        reach=step.reach,
        carry=carry,
        sums=stacked.reshape(len(stacked), -1),
        carried=np.tensordot(combination.T, moved.carried, axes=1),
        before=trained.vectors,
        rank=new,
        bent=bent.reshape(len(gain), -1),
        noise=own_noise.reshape(len(gain), -1),
        kept=step.kept,
        crossed=crossed and len(factors) > 0,
    )
