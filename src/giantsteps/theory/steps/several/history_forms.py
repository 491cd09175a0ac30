r"""Covariances of neurons along teacher and directions, exactly (theory §7).

Along unit vectors e that samples have coordinates κ on, √d times a neuron's own part is q_e, which
adds κ_eq_e/√d to its fields on all samples. Beside them Σ_i a(i) x_i = 0 for the functions a that
have made the directions, which takes aλ/√d from the fields. To first order all of this is linear,

.. math::
    q^{s+1} &= q^s + Σ_k\bigl(E[κD^{sk}κ^⊤]\,q^k - E[κD^{sk}a^⊤]\,λ^k\bigr) + η^s ,\\
    ν^k &= Σ_j\bigl(E[aH^{kj}a^⊤]\,λ^j - E[a(H^{kj} - δ_{kj})κ^⊤]\,q^j\bigr) ,

D and H the mean slopes of θ and h in the fields at a sample, with Gaussian η and ν that have the
covariances of n^{-1/2}Σκθ/√α and n^{-1/2}Σah/√α. The covariance of q after all steps is that of the
neuron.
"""

from __future__ import annotations

import numpy as np

from giantsteps.theory.steps.several.history_view import View
from giantsteps.types import FloatArray


def makers(view: View) -> FloatArray:
    """Functions of the samples of a batch that have made directions, (g, Y)."""
    course, none = view.course, np.zeros((0, len(view.samples.weights)))
    found = [
        mixing @ view.answers[view.uses.index(step)].mean
        for mixing, step in zip(course.mixings, course.made)
        if step in view.uses
    ]
    return np.array(found) if found else none


def seen(view: View) -> tuple[FloatArray, FloatArray]:
    """κ on teacher and directions, (E, Y), without the part of variance one (E,) that directions of
    the last step have, which nothing depends on.
    """
    known, raw = view.along(), view.samples.raw
    kappa = known.copy()
    kappa[: len(raw)] += raw
    return kappa, (np.arange(len(known)) >= len(raw)).astype(float)


def forms_of_course(views: list[View]) -> FloatArray:
    """Σ_A on teacher and directions, (T, E, E)."""
    course = views[0].course
    types, times = len(course.neurons.values), len(course.rates) + 1
    size = len(seen(views[0])[0])
    counts = [len(makers(view)) * len(view.uses) for view in views]
    total = size * times + sum(counts)
    system = np.zeros((types, total, total))
    noise = np.zeros((types, total, total))
    system[:, np.arange(total - sum(counts)), np.arange(total - sum(counts))] = 1.0
    noise[:, np.arange(size), np.arange(size)] = 1.0

    def at(time: int) -> slice:
        return slice(size * time, size * (time + 1))

    for s in range(times - 1):
        system[:, at(s + 1), at(s)] -= np.eye(size)
    start = size * times
    for view, count in zip(views, counts, strict=True):
        _batch(view, system, noise, at, start)
        start += count
    inverse = np.linalg.inv(system)[:, at(times - 1)]
    found = inverse @ noise @ np.swapaxes(inverse, 1, 2)
    return np.asarray((found + np.swapaxes(found, 1, 2)) / 2)


def _batch(view: View, system: FloatArray, noise: FloatArray, at: object, start: int) -> None:
    """The rows of a batch: its steps, and what its samples are given with."""
    assert callable(at)
    kappa, unseen = seen(view)
    a, uses, alpha = makers(view), view.uses, view.memory.samples
    weights, count = view.samples.weights, len(a)
    types = len(view.course.neurons.values)

    def mean(one: FloatArray, f: FloatArray, other: FloatArray) -> FloatArray:
        found = np.einsum("ey,ty,fy->tef", one * weights, f, other, optimize=True)
        if one is kappa and other is kappa:
            found = found + np.diag(unseen) * (f @ weights)[:, None, None]
        return np.asarray(found)

    held = [slice(start + count * p, start + count * (p + 1)) for p in range(len(uses))]
    slopes = [view.slopes(p) for p in range(len(uses))]
    one = np.ones((types, len(weights)))
    for p, s in enumerate(uses):
        for k in range(p + 1):
            system[:, at(s + 1), at(uses[k])] -= mean(kappa, slopes[p][k], kappa)
            if count:
                system[:, at(s + 1), held[k]] += mean(kappa, slopes[p][k], a)
        for q, other in enumerate(uses):
            noise[:, at(s + 1), at(other + 1)] += mean(kappa, view.noise(p, q), kappa) / alpha
            if count:
                both = mean(kappa, view.with_sight(p, other), a) / alpha
                noise[:, at(s + 1), held[q]] += both
                noise[:, held[q], at(s + 1)] += np.swapaxes(both, 1, 2)
    if not count:
        return
    for p, s in enumerate(uses):
        for k in range(p + 1):
            more = 0.0 * one
            for l in range(k, p):
                back = view.course.own[:, s, uses[l] + 1][:, None]
                more = more + back * slopes[l][k] / alpha
            system[:, held[p], held[k]] += mean(a, more + (k == p), a)
            system[:, held[p], at(uses[k])] -= mean(a, more, kappa)
        for q in range(len(uses)):
            noise[:, held[p], held[q]] += mean(a, view.sights(s, uses[q]), a) / alpha
