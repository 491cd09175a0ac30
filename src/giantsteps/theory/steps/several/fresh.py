r"""Any number of large steps, each on a fresh batch: a recursion over the neurons' law (theory §7).

After some steps a neuron of type A leans by S_A along r orthonormal directions e and has a bulk of
squared norm c_A. On a fresh sample with coordinates k along e its slope has the mean ζ_A(k) = E
σ'(h) and the curvature ξ_A(k) = E σ''(h), h = S_A·k + √c_A z, and the residual is r = y − f(k), f =
E_A[A E σ(h)]. A step moves the neuron by

.. math:: Δw = s\Bigl[n^{-1}Σ_i r_iζ_A(k_i)\,x_i + K_A w + \text{noise}\Bigr],\qquad
          K_A = n^{-1}Σ_i r_iξ_A(k_i)\,x_ix_i^⊤,\qquad s = η̃A :

a new lean along directions of its own, a bulk that is multiplied by I + sK_A, and noise of variance
r²(E σ'² − ζ² − cξ²) on each sample.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from giantsteps.problem import Step
from giantsteps.theory.model.rules import (
    spike_rule,
)
from giantsteps.theory.steps.several.conditional import Conditional
from giantsteps.theory.steps.several.excess import Push, Slopes
from giantsteps.theory.steps.several.fresh_norms import (
    loads_of_norms,
    new_fluctuation,
    with_fluctuations,
)
from giantsteps.theory.steps.several.trained import (
    Record,
    Task,
    Trained,
    pulled,
)
from giantsteps.theory.steps.several.view import (
    FINEST,
    RESIDUALS,
    Pace,
    View,
    coordinates_of,
    moved_neurons,
    remembered_nodes,
    sample_nodes,
)
from giantsteps.types import FloatArray

#: Directions kept as spikes, and as weak ones, with their size relative to the largest.
DIRECTIONS, WEAK, _NOTHING = 2, 4, 3e-3


def take_step(
    task: Task,
    trained: Trained,
    step: Step,
    rate: float,
    level: int,
    norms: bool = False,
    kept: float | None = None,
    tail: float = 0.0,
) -> Trained:
    r"""The law of a neuron after one more step with η̃ = ``rate`` on α fresh samples.

    .. math:: S_A ← \bigl(S_A + sE[k r ζ_A],\; sE[h_1ζ_A],\; s\sqrt{E[r²|k]/α}\,ζ_A(k)\bigr),\qquad
              c_A ← c_A(1 + s\,E[rξ_A])² + \frac{s²}{α}E[r²(E σ'² - ζ_A²)]

    Two directions are kept as spikes: the strongest, and the form of the other leans applied to the
    teacher; what is left has a few weak ones. All but the two count as bulk.

    Fluctuations of the norms are followed if ``norms``.

    ``kept`` is what is left of the weights before the step, 1 − decay unless given: with −decay
    the law is that of their change. ``tail`` is the share of the samples that the bulk remembers
    with the coordinates and residuals of their quantile, so that it has an edge.
    """
    view, pace, rate = _view_and_pace(task, trained, step, rate, level, kept)
    values, samples = trained.values, step.samples
    moved = moved_neurons(view, view.slope, trained.spikes, trained.totals, pace)
    teacher = _teacher(trained, moved.lean.shape[1])
    basis, combination = kept_directions(moved.lean, trained.probabilities, teacher, WEAK)
    leans, overlap = moved.lean @ basis, teacher @ basis
    spikes, weak = leans[:, :DIRECTIONS], leans[:, DIRECTIONS:]
    dropped = np.maximum((moved.lean**2).sum(axis=1) - (spikes**2).sum(axis=1), 0.0)
    stretch = moved.gain - pace.kept
    before = trained.constant - (trained.weak**2).sum(axis=1)
    constant = before * moved.gain**2 - 2 * trained.totals * stretch * moved.gain
    w, zeta = view.weights, view.slope.mean
    root = (np.sqrt(trained.probabilities) * values)[:, None]
    pull = rate * (root * zeta * w) @ (root * zeta).T
    after = replace(
        trained,
        spikes=spikes,
        totals=moved.totals + dropped,
        overlap=overlap[:, :DIRECTIONS],
        weak=weak,
        weak_overlap=overlap[:, DIRECTIONS:],
        steps=_directions(view, trained, samples) @ basis,
        memory=pulled(trained.memory, trained.totals, moved.gain, pull, samples),
        constant=constant + dropped,
        multipliers=np.concatenate(
            [trained.multipliers * moved.gain**2, np.ones((1, len(values)))]
        ),
    )
    remembered = View(task, trained, step, *remembered_nodes(trained, level, tail))
    top = math.inf
    if tail:
        fine = View(task, trained, step, *sample_nodes(trained.rank, FINEST))
        top = fine.largest_residual(tail)
    law = remembered.residuals(RESIDUALS[level], top)
    mixing, loads = loads_of_norms(remembered, law, pace, moved.gain, norms)
    record = _record(remembered, law, combination, pace, moved.gain, loads)
    after = replace(after, records=(*trained.records, record))
    added = after.constant - trained.constant * moved.gain**2
    push = Push(trained, record, _slopes(remembered, law, pace, moved.gain, added))
    if norms:
        new = new_fluctuation(view, trained, after.rank, pace, moved.gain, mixing)
        new = replace(new, along=push.loads(mixing @ loads.reshape(len(loads), -1)))
        strong = basis[:, : after.rank]
        after = with_fluctuations(view, trained, after, strong, pace, moved.gain, push, new)
    forms, represented = push.forms()
    return replace(after, forms=forms, represented=represented)


def leans_after(
    task: Task, trained: Trained, step: Step, rate: float, level: int
) -> tuple[FloatArray, FloatArray]:
    """Leans before and after a step in one space, with nothing dropped, (T, space) each."""
    view, pace, _ = _view_and_pace(task, trained, step, rate, level, None)
    after = moved_neurons(view, view.slope, trained.spikes, trained.totals, pace).lean
    before = np.zeros_like(after)
    before[:, : trained.rank] = trained.spikes
    before[:, after.shape[1] - trained.weak.shape[1] :] = trained.weak
    return before, after


def _teacher(trained: Trained, size: int) -> FloatArray:
    """The teacher's directions in the enlarged space, (R, size)."""
    parts = [trained.overlap, trained.beside @ trained.shares[1]]
    between = size - trained.directions - trained.teachers
    parts += [np.zeros((trained.teachers, between)), trained.weak_overlap]
    return np.concatenate(parts, axis=1)


def _view_and_pace(
    task: Task, trained: Trained, step: Step, rate: float, level: int, kept: float | None
) -> tuple[View, Pace, float]:
    """What a step sees and how far it goes; the rate that multiplies the gradient."""
    state = trained.spikes, trained.totals, trained.overlap[0]
    averages = trained.probabilities if task.link is None else None
    rule = spike_rule(level, *state, task.link, averages)
    view = View(task, trained, step, rule.nodes, rule.weights)
    if step.rule == "normalized":
        rate = rate / _gradient_norm(view, step.samples)
    left = 1.0 - step.decay if kept is None else kept
    return view, Pace(rate * trained.values, step.samples, left), rate


def _gradient_norm(view: View, samples: float) -> float:
    """‖√N G‖_F: leans and bulk of a step of the size one."""
    trained, unit = view.trained, Pace(view.trained.values, samples, 0.0)
    moved = moved_neurons(view, view.slope, 0.0 * trained.spikes, trained.totals, unit)
    return math.sqrt(float(trained.probabilities @ ((moved.lean**2).sum(axis=1) + moved.totals)))


def _directions(view: View, trained: Trained, samples: float) -> FloatArray:
    """The unit vectors Xᵀr of all steps so far, in the enlarged space."""
    w, noise = view.weights, np.sqrt(view.weights * view.square / samples)
    beside, (shares, left) = view.beside @ w, trained.shares
    along = (w * view.residual) @ view.points
    own = np.concatenate([along, beside @ left, noise, beside @ shares])
    before = np.zeros((len(trained.steps), len(own)))
    before[:, : trained.rank] = trained.steps[:, : trained.rank]
    before[:, len(own) - shares.shape[1] :] = trained.steps[:, trained.rank :]
    return np.concatenate([before, own[None] / np.linalg.norm(own)])


def kept_directions(
    lean: FloatArray, probabilities: FloatArray, teacher: FloatArray, weak: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Directions that are kept as spikes, two or fewer and then so many weak ones: (space, r + J),
    and as combinations of neurons, (T, r + J).

    Beside the strongest it is what the others' leans make of the teacher (R, space), of several
    directions that of which they make most. A second one of no size is worth terms of order 1/d²:
    as much as the model knows nothing about. Weak ones are the strongest of what the two leave.
    """
    root = np.sqrt(probabilities)[:, None]
    left, size, right = np.linalg.svd(root * lean, full_matrices=False)
    some = size > 1e-12 * size[0]
    left, size, right = left[:, some], size[some], right[some]
    mixing = [np.eye(1, len(size))[0]]
    if len(size) > 1:
        seen = size[:, None] ** 2 * (right @ teacher.T)
        seen[0] = 0.0
        most, length, _ = np.linalg.svd(seen, full_matrices=False)
        # Where nothing of the teacher is left, the second strongest.
        plain = np.eye(2, len(size))[1]
        mixing.append(most[:, 0] if length[0] > 1e-9 * size[0] ** 2 else plain)
    mixed = np.array(mixing[:DIRECTIONS])
    beside = np.eye(len(size)) - mixed.T @ mixed
    values, vectors = np.linalg.eigh((beside * size**2) @ beside)
    some = values[::-1] > (_NOTHING * size[0]) ** 2
    mixed = np.concatenate([mixed, vectors.T[::-1][some][:weak]])
    along = mixed @ (right @ teacher.T)
    largest = along[np.arange(len(along)), np.abs(along).argmax(axis=1)]
    mixed = mixed * np.where(largest < 0, -1.0, 1.0)[:, None]
    return (mixed @ right).T, root * left @ (mixed / size).T


def _slopes(
    view: View, law: Conditional, step: Pace, gain: FloatArray, constant: FloatArray
) -> Slopes:
    """What the samples of a step do to the bulk, as functions of their nodes."""
    slope, s, r = view.slope, step.moved[:, None, None], law.nodes
    xi = slope.linear / np.sqrt(view.trained.totals)[:, None]
    rest = slope.second_moment - slope.mean**2 - slope.linear**2
    bent, noise = s * r * xi[:, :, None], s**2 / step.samples * r**2 * rest[:, :, None]
    types = len(gain)
    return Slopes(bent.reshape(types, -1), noise.reshape(types, -1), step.kept, gain, constant)


def _record(
    view: View,
    law: Conditional,
    combination: FloatArray,
    step: Pace,
    gain: FloatArray,
    loads: FloatArray,
) -> Record:
    """The batch as the bulk remembers it."""
    trained = view.trained
    rank, count, shape = trained.rank, trained.teachers, law.weights.shape
    first, second = coordinates_of(view, law)
    slope, s = view.slope, step.moved[:, None, None]
    zeta = slope.mean[:, :, None]
    xi = (slope.linear / np.sqrt(trained.totals)[:, None])[:, :, None]
    noise = (slope.second_moment - slope.mean**2)[:, :, None]
    r, scale = law.nodes, (trained.totals * gain)[:, None, None]
    added = 2 * scale * s * r * xi + s**2 / step.samples * r**2 * noise
    directions, others = trained.directions, len(trained.others)
    sums = [np.tensordot(combination.T, s * r * zeta, axes=1)]
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
        weights=(view.weights[:, None] * law.weights).ravel(),
        first=first,
        second=second,
        added=added.reshape(len(added), -1),
        frame=trained.frame,
        carry=carry,
        sums=stacked.reshape(len(stacked), -1),
        rank=new,
    )
