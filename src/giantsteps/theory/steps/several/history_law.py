r"""Steps on batches in any order, some of them used again: where the neurons go (theory §7).

A neuron of type A is F_A, what all neurons of its type share, and a part of its own with the
covariances K_A over the steps. A step on a batch adds n⁻¹Σ_i x_iθ_i to it. With the samples' fields
and memories of :mod:`histories` every inner product follows from x_i·F_A and x_i·w at the samples:

.. math:: ⟨F_A^{s+1} - F_A^s, F_B^k⟩ = E[\bar θ_A^s\,x·F_B^k],\qquad
          K_A^{s+1,k} = K_A^{s,k} + E\,\mathrm{Cov}(θ^s, h^k) ,

and responses from how means of θ change with the fields.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from giantsteps.functions import Function
from giantsteps.gaussian import moments
from giantsteps.theory.steps.several.histories import Neurons, answers
from giantsteps.theory.steps.several.history_view import Course, Samples, View, sample_nodes
from giantsteps.types import FloatArray

#: Directions that a step adds, at most, and their least size next to neurons of norm one.
_MORE, _FAINT = 3, 5e-3
#: Functions of the types that a step adds, at most, and their least share.
_FUNCTIONS, _SHARE = 3, 1e-6
#: By how much fields are moved for a derivative: standard deviation.
_STEP = 0.02
#: Resolution of the samples for derivatives.
_COARSE = 0


def follow(
    neurons: Neurons,
    link: Function,
    noise: float,
    batches: tuple[int, ...],
    samples: tuple[float, ...],
    rates: tuple[float, ...],
    level: int,
    start: FloatArray | None = None,
) -> Course:
    """All steps, one after the other.

    Types of probability zero are neurons among the others; ``start`` are the squared norms of the
    initial weights of each type, one unless given.
    """
    types, times = len(neurons.values), len(rates) + 1
    covariance, own = np.zeros((2, types, times, times))
    covariance[:, 0, 0] = 1.0 if start is None else start
    own[:, np.arange(1, times), np.arange(1, times)] = 1.0
    zero = (np.zeros((types, 1)),)
    course = Course(neurons, batches, samples, rates, zero, covariance, own)
    shift = initial_output(neurons)
    for _ in rates:
        nodes = [sample_nodes(link, noise, course.sizes, shift, one) for one in (level, _COARSE)]
        course = _stepped(course, *nodes)
    return course


def initial_output(neurons: Neurons) -> float:
    """Mean output of the initial network."""
    return moments(neurons.activation).mean * float(neurons.weights.sum())


def _stepped(course: Course, samples: Samples, few: Samples) -> Course:
    """One step more; ``few`` samples are enough for what all neurons answer to a sample."""
    s = course.time
    uses = course.uses(course.batches[s], s)
    view, rough = View.of(course, samples, uses), View.of(course, few, uses)
    place = len(uses) - 1
    own, functions, shared = _responses(course, view, rough, place)
    course = replace(course, own=own, functions=functions, shared=shared)
    view = replace(view, course=course)
    covariance = course.covariance.copy()
    for k in range(s + 1):
        seen = covariance[:, s, k] + view.mean(view.with_sight(place, k))
        covariance[:, s + 1, k] = covariance[:, k, s + 1] = seen
    course = replace(course, covariance=covariance)
    view = replace(view, course=course)
    total = covariance[:, s + 1, s] + view.mean(view.with_sight(place, s + 1))
    # What directions that are left out have of the new norms is taken as a neuron's own.
    lean, mixings, before, lost = _directions(course, view, place)
    covariance[:, s + 1, s + 1] = total + lost
    return replace(
        course,
        leans=(*course.leans, lean),
        mixings=(*course.mixings, *mixings),
        before=(*course.before, *before),
        made=(*course.made, *(s for _ in mixings)),
    )


def _responses(
    course: Course, view: View, rough: View, place: int
) -> tuple[FloatArray, tuple[FloatArray, ...], tuple[dict[int, FloatArray], ...]]:
    """R, f and P with those of the step."""
    s, own, answer = course.time, course.own.copy(), view.answers[place]
    slopes = view.mean(view.slopes(place))
    for l in range(1, s + 1):
        own[:, s + 1, l] = own[:, s, l]
        for j, k in enumerate(view.uses):
            if k >= l:
                own[:, s + 1, l] += slopes[j] * own[:, k, l]
    shared = tuple({**one} for one in course.shared)
    for l, one in enumerate(shared):
        one[s + 1] = one[s] + _moved(rough, l, place)
    chances, mean = course.neurons.probabilities, answer.mean
    power = (mean * view.samples.weights) @ mean.T
    root = np.sqrt(chances)
    values, vectors = np.linalg.eigh(root[:, None] * power * root)
    some = np.flatnonzero(values > _SHARE * max(float(values[-1]), 1e-300))[::-1][:_FUNCTIONS]
    functions = power @ (root[:, None] * vectors[:, some]) / values[some]
    return own, (*course.functions, functions), (*shared, {s + 1: functions})


def _moved(view: View, step: int, place: int) -> FloatArray:
    """How E θ of a step moves with the fields by what an earlier step has added, (T, C)."""
    course, chances = view.course, view.course.neurons.probabilities
    along = [course.shared[step][k] if k > step else None for k in view.uses]
    found = np.zeros_like(course.functions[step])
    for c in range(found.shape[1]):
        sizes = [float(chances @ one[:, c] ** 2) for one in along if one is not None]
        if not max(sizes, default=0.0) > 0:
            continue
        far = _STEP / math.sqrt(max(sizes))
        for sign in (1.0, -1.0):
            fields = [
                field if one is None else field + sign * far * one[:, c, None]
                for field, one in zip(view.fields, along)
            ]
            seen = answers(course.neurons, view.memory, view.samples.label, fields, full=False)
            found[:, c] += sign * view.mean(seen[place].mean) / (2 * far)
    return found


def _directions(
    course: Course, view: View, place: int
) -> tuple[FloatArray, list[FloatArray], list[FloatArray], FloatArray]:
    """Leans after the step, new directions by combinations of what it has added and of those
    before, and the squared leans along directions that are left out.
    """
    s, raw, chances = course.time, view.samples.raw, course.neurons.probabilities
    mean, weights = view.answers[place].mean, view.samples.weights
    known = view.along()
    sums = mean @ ((raw + known) * weights).T  # ⟨D_A, e⟩
    added = view.remembered(s + 1) - view.remembered(s)
    gram = (mean @ (raw * weights).T) @ sums.T + (mean * weights) @ added.T
    beside = (gram + gram.T) / 2 - sums @ sums.T
    root = np.sqrt(chances)
    values, vectors = np.linalg.eigh(root[:, None] * beside * root)
    last = s + 1 == len(course.rates)
    least = 1e-5 if last else _FAINT
    some = np.flatnonzero(values > least**2)[::-1][: None if last else _MORE]
    size = np.sqrt(values[some])
    mixing = root[:, None] * vectors[:, some] / size
    new = beside @ mixing
    lean = np.zeros((len(chances), raw.shape[0]))
    old = course.leans[s]
    lean[:, : old.shape[1]] = old
    lost = np.maximum(np.diag(beside) - (new**2).sum(axis=1), 0.0)
    lost = np.where(chances > 0, lost, 0.0)
    found = np.concatenate([lean + sums, new], axis=1)
    return found, list(mixing.T), list(mixing.T @ sums), lost
