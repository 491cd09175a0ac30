r"""Several steps, each on a fresh batch of inputs x ~ N(0, Σ): a recursion by eigenspaces (§10).

In the frame of z = Σ^{-1/2}x and w' = Σ^{1/2}w a step multiplies what it adds by Σ^{1−p}. Neurons
of a type A therefore carry their lean, and the squared norm of their bulk, by eigenspaces ι:

.. math:: S_A ← ϱS_A + sΣ^{1-p}\bigl(E[rζ_Ak]·e + E[h_1ζ_A]\,B + \text{noise}\bigr),\qquad
          c_A(ι) ← c_A(ι)\bigl(ϱ + sλ_ι^{1-p}E[rξ_A]\bigr)²
          + \frac{s²λ_ι^{2-2p}}{α}E[r²(E σ'² - ζ_A²)]

with ζ_A, ξ_A, h₁ and the noise of `fresh`, whose equations these are where Σ = I. In an eigenspace
a vector has a coordinate along the teacher's part, and further ones along the noise of each step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from giantsteps.gaussian import coordinate_rule
from giantsteps.problem import Problem, Step
from giantsteps.theory.model.rules import spike_rule
from giantsteps.theory.steps.one import movement
from giantsteps.theory.steps.several.fresh import kept_directions
from giantsteps.theory.steps.several.fresh_norms import spread_of_norms
from giantsteps.theory.steps.several.structured_first import first_step, start
from giantsteps.theory.steps.several.structured_state import Passed, Resolved, remainder_of
from giantsteps.theory.steps.several.trained import Fluctuation, Task
from giantsteps.theory.steps.several.view import (
    RESIDUALS,
    Pace,
    View,
    coordinates_of,
    sample_nodes,
)
from giantsteps.theory.steps.structured import Spectrum
from giantsteps.types import FloatArray

#: Relative step of derivatives in the norms.
_STEP = 1e-3


def resolved_steps(
    problem: Problem,
    spectrum: Spectrum,
    neurons: float,
    level: int,
    norms: bool,
    tails: tuple[float, float] = (0.0, 0.0),
) -> list[Resolved]:
    """The law of a neuron after each of the steps."""
    task = Task(problem.activation, problem.teacher, problem.noise_variance)
    first = 0 if spectrum.explicit is not None else 1
    states = [(first_step if first else start)(problem, spectrum, neurons, level, norms, tails)]
    for number, step in enumerate(problem.steps[first:], start=first):
        rate = movement(problem, number, neurons)
        states.append(
            _take_step(
                task, states[-1], spectrum, step, rate, level, norms, problem.width / neurons
            )
        )
    return states


#: So many types have a vector of norms each; more share those above this size.
_FEW, _FAINT = 4, 0.02
#: Nodes of the samples along explicit directions, by resolution, and weights that are nothing.
_ALONG, _PRUNED = (6, 7, 8, 9, 10), 1e-4


@dataclass(frozen=True, eq=False)
class _Moves:
    """What a step makes of neurons: leans on the coordinates, their noise, and c_A(ι)."""

    lean: FloatArray  # (T, I, m)
    noise: FloatArray  # (T, K), over √(Σ ν_ιλ_ι^{2−2p})
    along: FloatArray  # (T, I)
    extra: FloatArray  # (T, E), what the noise of the batch adds along explicit directions


def _reach(
    view: View, state: Resolved, spectrum: Spectrum, pace: Pace, inverse: float
) -> FloatArray:
    """λ_ι^{1−p}, and what long inputs make of it: their mean slope differs."""
    reach = spectrum.values ** (1 - spectrum.power)
    trained, slope, weight = state.trained, view.slope, view.weights * view.square
    by_type = trained.probabilities * pace.moved**2
    size = float(by_type @ (slope.mean**2 @ weight))
    if not size or not inverse:
        return reach
    bend = float(by_type @ ((slope.mean * slope.quadratic) @ weight)) / size
    own = (trained.probabilities / trained.totals) @ state.along - 1.0
    if spectrum.explicit is not None:
        own = np.where(spectrum.explicit, 0.0, own)
    return reach * (1 + 2 * bend * inverse * own)


def _moves(
    view: View,
    state: Resolved,
    spectrum: Spectrum,
    pace: Pace,
    spikes: FloatArray,
    c: FloatArray,
    reach: FloatArray,
) -> _Moves:
    """The step for neurons with these leans and squared norms."""
    w, s, rank = view.weights, pace.moved, spikes.shape[1]
    slope = view.slopes(spikes, c)
    zeta, xi = slope.mean, slope.linear / np.sqrt(c)[:, None]
    gain = pace.kept + (s * (xi @ (w * view.residual)))[:, None] * reach
    noise = (slope.second_moment - zeta**2) @ (w * view.square) / pace.samples
    along = state.along * (c / state.trained.totals)[:, None]
    pulled = s[:, None] * _on_frame(view, zeta)
    lean = pace.kept * np.tensordot(spikes, state.frame[:rank], axes=1)
    added = reach[:, None] * np.tensordot(pulled, state.frame, axes=1)
    extra = np.zeros((len(s), len(spectrum.places)))
    for number, place in enumerate(spectrum.places):
        on = state.frame[:rank, place, 0]
        square = 1.0 + (view.points @ on) ** 2 - on @ on
        variance = spectrum.shares[place] * (zeta**2 @ (w * view.square * square)) / pace.samples
        mean = added[:, place, 0]
        more = np.sqrt(mean**2 + (s * reach[place]) ** 2 * variance) - np.abs(mean)
        extra[:, number] = np.where(mean < 0, -more, more)
        added[:, place, 0] += extra[:, number]
    return _Moves(
        lean + added,
        s[:, None] * zeta * np.sqrt(w * view.square / pace.samples),
        along * gain**2 + (s[:, None] * reach) ** 2 * noise[:, None],
        extra,
    )


def _on_frame(view: View, functions: FloatArray) -> FloatArray:
    """E[r κ f_A] for the coordinates κ on spikes and remainder, (T, r + 1)."""
    sources = [view.residual * k for k in view.points.T]
    return np.asarray(functions @ (view.weights * np.stack([*sources, *view.beside])).T)


def _take_step(
    task: Task,
    state: Resolved,
    spectrum: Spectrum,
    step: Step,
    rate: float,
    level: int,
    norms: bool,
    inverse: float,
) -> Resolved:
    trained = state.trained
    rule = spike_rule(level, trained.spikes, trained.totals, trained.overlap[0], task.link)
    view = View(task, trained, step, rule.nodes, rule.weights)
    pace = Pace(rate * trained.values, step.samples, 1.0 - step.decay)
    w, s, types = view.weights, pace.moved, len(trained.values)
    reach = _reach(view, state, spectrum, pace, inverse)
    generic = spectrum.generic
    size = math.sqrt(float(generic @ reach**2))
    moves = _moves(view, state, spectrum, pace, trained.spikes, trained.totals, reach)
    flat = np.concatenate([moves.lean.reshape(types, -1), size * moves.noise], axis=1)
    inside = moves.lean[0].size
    whole = np.zeros(flat.shape[1])
    before = state.frame[-1] * trained.beside[0, 0]
    before = before + np.tensordot(trained.overlap[0], state.frame[:-1], axes=1)
    whole[:inside] = before.ravel()
    if spectrum.explicit is None:
        basis, combination = kept_directions(flat, trained.probabilities, whole[None])
    else:
        count = len(spectrum.places) + 1
        basis, combination = _strongest(flat, trained.probabilities, whole, count)
    spikes = flat @ basis
    dropped = flat - spikes @ basis.T
    by_class = (dropped[:, :inside].reshape(moves.lean.shape) ** 2).sum(axis=2)
    by_class = by_class + np.multiply.outer(
        (dropped[:, inside:] ** 2).sum(axis=1), generic * reach**2 / size**2
    )
    # A share of zero has no bulk: what is dropped there is spread over all directions.
    some = spectrum.shares > 0
    shares = np.where(some, spectrum.shares, 1.0)
    along = moves.along + np.where(some, by_class / shares, 0.0)
    along = along + by_class[:, ~some].sum(axis=1)[:, None]
    tilt = view.slope.linear / np.sqrt(trained.totals)[:, None]
    gain = pace.kept + s * (tilt @ (w * view.residual))
    # Vectors that norms go with, and how much of each those of a type go with.
    spread = np.sqrt(w * view.square / pace.samples)
    plain = reach[:, None] * np.tensordot(
        _on_frame(view, 1.0 + 0.0 * w[None])[0], state.frame, axes=1
    )
    own = np.append(plain.ravel(), size * spread)
    own = own / np.linalg.norm(own)
    bent = 4 * (s * gain)[:, None] * view.slope.quadratic
    beside = reach[:, None] * np.tensordot(_on_frame(view, bent), state.frame, axes=1)
    vectors = np.concatenate([beside.reshape(types, -1), size * bent * spread], axis=1)
    mixing, parts = _few_vectors(vectors) if norms else (np.zeros((types, 0)),) * 2
    others = parts.T @ vectors
    noisy = np.concatenate([basis[inside:].T, own[None, inside:], others[:, inside:]])
    coordinates = np.asarray(np.linalg.qr(noisy.T, mode="r")).T  # (r' + 1 + V, q)
    profile = np.sqrt(generic) * reach / size
    rank = basis.shape[1]
    kept = basis[:inside].T.reshape(rank, *moves.lean.shape[1:])
    fresh = np.concatenate([own[None, :inside], others[:, :inside]])
    inner = np.concatenate([kept, fresh.reshape(len(fresh), *moves.lean.shape[1:])])
    grown = np.concatenate([inner, profile[:, None] * coordinates[:, None]], axis=2)
    wider = ((0, 0), (0, 0), (0, coordinates.shape[1]))
    teacher = np.pad(before[None], wider)[0]
    overlap = basis.T @ whole
    after = replace(
        trained,
        spikes=spikes,
        totals=along @ spectrum.shares,
        overlap=overlap[None],
        steps=np.concatenate([_flat(state.gradients) @ basis[:inside], [own @ basis]]),
    )
    if norms:
        after = replace(
            after,
            fluctuations=_fluctuations(view, state, spectrum, pace, basis, beside, mixing, reach),
        )
    root = (np.sqrt(trained.probabilities) * trained.values)[:, None]
    pull = rate * (root * view.slope.mean * w) @ (root * view.slope.mean).T
    left = pace.kept * np.eye(types) - reach[:, None, None] * pull
    nodes = sample_nodes(trained.rank, level) if state.passed else _few_nodes(trained.rank, level)
    remembered = View(task, trained, step, *nodes)
    passed = _passed(remembered, state, combination, pace, gain, parts, RESIDUALS[level])
    passed = replace(passed, reach=reach, noise=combination.T @ moves.extra)
    return Resolved(
        trained=after,
        along=along,
        frame=np.concatenate([grown[:rank], remainder_of(teacher, grown[:rank], overlap)[None]]),
        others=np.concatenate([np.pad(state.others, wider), grown[rank + 1 :]]),
        gradients=np.concatenate([np.pad(state.gradients, wider), grown[rank : rank + 1]]),
        memory=left @ state.memory,
        passed=(
            *(replace(one, multiplier=one.multiplier * gain**2) for one in state.passed),
            passed,
        ),
    )


def _strongest(
    lean: FloatArray, probabilities: FloatArray, teacher: FloatArray, count: int
) -> tuple[FloatArray, FloatArray]:
    """As `kept_directions`, so many of the strongest."""
    root = np.sqrt(probabilities)[:, None]
    left, size, right = np.linalg.svd(root * lean, full_matrices=False)
    some = (size > 1e-12 * size[0]) & (np.arange(len(size)) < count)
    left, size, right = left[:, some], size[some], right[some]
    sign = np.where(right @ teacher < 0, -1.0, 1.0)
    return (sign[:, None] * right).T, root * left * (sign / size)


def _few_nodes(rank: int, level: int) -> tuple[FloatArray, FloatArray]:
    """As `sample_nodes` before all steps, when neurons lean little."""
    rule = coordinate_rule(rank, nodes=_ALONG[level])
    some = rule.weights > _PRUNED
    return rule.nodes[some], rule.weights[some] / rule.weights[some].sum()


def _few_vectors(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Vectors (T, space) as mixing (T, V) of V vectors, which are parts (T, V) of them."""
    types = len(vectors)
    if types <= _FEW:
        return np.eye(types), np.eye(types)
    left, size, _ = np.linalg.svd(vectors, full_matrices=False)
    some = size > _FAINT * size[0]
    if not size[0] > 0:
        return np.zeros((types, 0)), np.zeros((types, 0))
    return left[:, some] * size[some], left[:, some] / size[some]


def _flat(vectors: FloatArray) -> FloatArray:
    return vectors.reshape(len(vectors), vectors.shape[1] * vectors.shape[2])


def _fluctuations(
    view: View,
    state: Resolved,
    spectrum: Spectrum,
    pace: Pace,
    basis: FloatArray,
    beside: FloatArray,
    mixing: FloatArray,
    reach: FloatArray,
) -> tuple[Fluctuation, ...]:
    """The fluctuations before, as the step changes them, and that of the step itself.

    That of the step goes with the weights along vectors of the types, whose part before the noise
    of the batch is ``beside``, and so with those before, as in `fresh`; ``mixing`` makes them of
    the vectors that are kept.
    """
    trained, types = state.trained, len(state.trained.values)
    square, count = float(spectrum.shares @ spectrum.start**2), len(state.others)
    size = math.sqrt(float(spectrum.generic @ reach**2))

    def after(spikes: FloatArray, totals: FloatArray) -> tuple[FloatArray, FloatArray]:
        moves = _moves(view, state, spectrum, pace, spikes, totals, reach)
        flat = np.concatenate([moves.lean.reshape(types, -1), size * moves.noise], axis=1)
        return flat @ basis, moves.along @ spectrum.shares

    # Inner products of the weights themselves.
    tilt = view.slope.linear / np.sqrt(trained.totals)[:, None]
    gain = pace.kept + pace.moved * (tilt @ (view.weights * view.residual))
    seen = square * np.einsum("aim,vim,i->av", beside, state.others, 1.0 / spectrum.values)
    loadings = np.zeros((types, count + mixing.shape[1]))
    loadings[:, count:] = square * (trained.totals * gain)[:, None] * mixing
    spread = square * spread_of_norms(view, trained, pace, gain)
    found = []
    for old in trained.fluctuations:
        small = _STEP * float(trained.totals.min())
        small /= max(float(np.abs(old.growth).max()), float(np.abs(old.stretch).max()), 1e-12)
        ends = [
            after(
                trained.spikes + sign * small * old.stretch,
                trained.totals + sign * small * old.growth,
            )
            for sign in (1.0, -1.0)
        ]
        before = old.loadings.shape[1]
        both = (old.loadings * seen[:, :before]).sum(axis=1)
        share = np.where(old.spread > 0, both / np.where(old.spread > 0, old.spread, 1.0), 0.0)
        wider = np.zeros_like(loadings)
        wider[:, :before] = gain[:, None] * old.loadings
        spread = np.maximum(spread - share * both, 0.0)
        loadings = loadings - share[:, None] * wider
        found.append(
            Fluctuation(
                spread=old.spread,
                growth=(ends[0][1] - ends[1][1]) / (2 * small) + share,
                stretch=(ends[0][0] - ends[1][0]) / (2 * small),
                loadings=wider,
            )
        )
    one = np.ones(types)
    found.append(Fluctuation(spread, one, np.zeros((types, basis.shape[1])), loadings))
    return tuple(found)


def _passed(
    view: View,
    state: Resolved,
    combination: FloatArray,
    pace: Pace,
    gain: FloatArray,
    parts: FloatArray,
    count: int,
) -> Passed:
    """The batch as the bulk remembers it; ``parts`` (T, V) make the vectors of norms."""
    trained, w = state.trained, view.weights
    law = view.residuals(count)
    first, second = coordinates_of(view, law)
    slope, s, r = view.slope, pace.moved[:, None, None], law.nodes
    xi = (slope.linear / np.sqrt(trained.totals)[:, None])[:, :, None]
    noise = (slope.second_moment - slope.mean**2)[:, :, None]
    scale = (trained.totals * gain)[:, None, None]
    added = 2 * scale * s * r * xi + s**2 / pace.samples * r**2 * noise
    tilt, turned = np.zeros((0, r.size)), np.zeros((len(pace.moved), 2))
    by_type = trained.probabilities * pace.moved**2
    usual = np.tensordot(by_type / (by_type.sum() or 1.0), xi, axes=1)
    if not state.passed and np.abs(usual).max() > 1e-9 * np.abs(slope.mean).max():
        # The sum over samples that multiplies the initial weights, by what most neurons see.
        tilt = (r * usual).reshape(1, -1)
        turned = np.stack([pace.kept * pace.moved, pace.moved**2], axis=1)
        still = trained.totals[:, None, None] * usual**2
        added = 2 * scale * s * r * (xi - usual) + s**2 / pace.samples * r**2 * (noise - still)
    sums = [np.tensordot(combination.T, s * r * slope.mean[:, :, None], axes=1)]
    bent = 4 * s * gain[:, None, None] * r * slope.quadratic[:, :, None]
    sums.append(np.tensordot(parts.T, bent, axes=1))
    return Passed(
        samples=pace.samples,
        weights=(w[:, None] * law.weights).ravel(),
        first=first,
        second=second,
        added=added.reshape(len(added), -1),
        frame=state.frame,
        multiplier=np.ones(len(trained.values)),
        sums=np.concatenate(sums).reshape(-1, w.size * count),
        carry=pace.kept * combination.T @ trained.spikes,
        reach=np.ones(0),
        noise=np.zeros((0, 0)),
        tilt=tilt,
        turned=turned,
    )
