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

from giantsteps.problem import Problem, Step
from giantsteps.theory.model.rules import spike_rule
from giantsteps.theory.steps.one import movement, neuron_law, types_of
from giantsteps.theory.steps.several.fresh import (
    RESIDUALS,
    Pace,
    View,
    coordinates_of,
    kept_directions,
    sample_nodes,
    spread_of_norms,
)
from giantsteps.theory.steps.several.trained import Fluctuation, Task, Trained
from giantsteps.theory.steps.structured import Spectrum, direction, norms_of
from giantsteps.types import FloatArray

#: Relative step of derivatives in the norms.
_STEP = 1e-3


@dataclass(frozen=True, eq=False)
class Passed:
    """A batch that is behind: what it adds to the bulk, and the frame of its samples.

    ======  ==========  ============  =======================================================
    symbol  attribute   shape         meaning
    ======  ==========  ============  =======================================================
    α       samples
    \\       weights     (Y,)          of the nodes
    κ       first,      (E, Y),       moments of the coordinates on the frame
            second      (E, E, Y)
    ψ_A     added       (T, Y)        n⁻¹Σψ_A x xᵀ is what the batch adds to Σ_A
    \\       frame       (E, I, m)     spikes before the step and the teacher's remainder
    \\       multiplier  (T,)          what later steps make of it
    a       sums        (r' + V, Y)   new spikes and new vectors of norms as sums over it …
    c       carry       (r', r)       … beside the spikes before
    ======  ==========  ============  =======================================================
    """

    samples: float
    weights: FloatArray
    first: FloatArray
    second: FloatArray
    added: FloatArray
    frame: FloatArray
    multiplier: FloatArray
    sums: FloatArray
    carry: FloatArray


@dataclass(frozen=True, eq=False)
class Resolved:
    """The law of a neuron after some steps, by eigenspaces.

    ======  ============  ============  =======================================================
    symbol  attribute     shape         meaning
    ======  ============  ============  =======================================================
    \\       trained                     S_A, c_A, γ and the fluctuations of norms
    c_A(ι)  along         (T, I)        squared norm of the bulk: c_A = Σ ν_ιc_A(ι)
    \\       frame         (r + 1, I, m) spikes and teacher's remainder, by coordinates
    \\       others        (V, I, m)     vectors that norms go with
    \\       gradients     (s, I, m)     unit vectors along the direction Xᵀr of each step
    J(ι)    memory        (I, T, T)     what is left of W₀ along the types' right vectors
    \\       passed                      the batches
    ======  ============  ============  =======================================================
    """

    trained: Trained
    along: FloatArray
    frame: FloatArray
    others: FloatArray
    gradients: FloatArray
    memory: FloatArray
    passed: tuple[Passed, ...]


def resolved_steps(
    problem: Problem,
    spectrum: Spectrum,
    neurons: float,
    level: int,
    norms: bool,
    tails: tuple[float, float] = (0.0, 0.0),
) -> list[Resolved]:
    """The law of a neuron after each of the steps."""
    states = [_first(problem, spectrum, neurons, level, norms, tails)]
    task = Task(problem.activation, problem.teacher, problem.noise_variance)
    for number, step in enumerate(problem.steps[1:], start=1):
        rate = movement(problem, number, neurons)
        states.append(_take_step(task, states[-1], spectrum, step, rate, level, norms))
    return states


def _first(
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
    )
    identity = law.kept * np.eye(len(values))
    return Resolved(
        trained=trained,
        along=along,
        frame=np.stack([spike, _remainder(teacher, spike[None], np.array([gamma]))]),
        others=others,
        gradients=spike[None],
        memory=identity - reach[:, None, None] * pull,
        passed=(passed,),
    )


def _remainder(teacher: FloatArray, spikes: FloatArray, overlap: FloatArray) -> FloatArray:
    """B = (β* − Σγe)/√(1 − |γ|²)."""
    rest = math.sqrt(max(1.0 - float(overlap @ overlap), 0.0))
    beside = teacher - np.tensordot(overlap, spikes, axes=1)
    return np.asarray(beside / rest if rest > 1e-12 else 0.0 * beside)


@dataclass(frozen=True, eq=False)
class _Moves:
    """What a step makes of neurons: leans on the coordinates, their noise, and c_A(ι)."""

    lean: FloatArray  # (T, I, m)
    noise: FloatArray  # (T, K), over √(Σ ν_ιλ_ι^{2−2p})
    along: FloatArray  # (T, I)


def _moves(
    view: View, state: Resolved, spectrum: Spectrum, pace: Pace, spikes: FloatArray, c: FloatArray
) -> _Moves:
    """The step for neurons with these leans and squared norms."""
    w, s, rank = view.weights, pace.moved, spikes.shape[1]
    slope = view.slopes(spikes, c)
    zeta, xi = slope.mean, slope.linear / np.sqrt(c)[:, None]
    reach = spectrum.values ** (1 - spectrum.power)
    gain = pace.kept + (s * (xi @ (w * view.residual)))[:, None] * reach
    noise = (slope.second_moment - zeta**2) @ (w * view.square) / pace.samples
    along = state.along * (c / state.trained.totals)[:, None]
    pulled = s[:, None] * _on_frame(view, zeta)
    lean = pace.kept * np.tensordot(spikes, state.frame[:rank], axes=1)
    lean = lean + reach[:, None] * np.tensordot(pulled, state.frame, axes=1)
    return _Moves(
        lean,
        s[:, None] * zeta * np.sqrt(w * view.square / pace.samples),
        along * gain**2 + (s[:, None] * reach) ** 2 * noise[:, None],
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
) -> Resolved:
    trained = state.trained
    rule = spike_rule(level, trained.spikes, trained.totals, trained.overlap[0], task.link)
    view = View(task, trained, step, rule.nodes, rule.weights)
    pace = Pace(rate * trained.values, step.samples, 1.0 - step.decay)
    w, s, types = view.weights, pace.moved, len(trained.values)
    reach = spectrum.values ** (1 - spectrum.power)
    size = math.sqrt(float(spectrum.shares @ reach**2))
    moves = _moves(view, state, spectrum, pace, trained.spikes, trained.totals)
    flat = np.concatenate([moves.lean.reshape(types, -1), size * moves.noise], axis=1)
    inside = moves.lean[0].size
    whole = np.zeros(flat.shape[1])
    before = state.frame[-1] * trained.beside[0, 0]
    before = before + np.tensordot(trained.overlap[0], state.frame[:-1], axes=1)
    whole[:inside] = before.ravel()
    basis, combination = kept_directions(flat, trained.probabilities, whole[None])
    spikes = flat @ basis
    dropped = flat - spikes @ basis.T
    by_class = (dropped[:, :inside].reshape(moves.lean.shape) ** 2).sum(axis=2)
    by_class = by_class + np.multiply.outer(
        (dropped[:, inside:] ** 2).sum(axis=1), spectrum.shares * reach**2 / size**2
    )
    # A share of zero has no bulk: what is dropped there is spread over all directions.
    some = spectrum.shares > 0
    shares = np.where(some, spectrum.shares, 1.0)
    along = moves.along + np.where(some, by_class / shares, 0.0)
    along = along + by_class[:, ~some].sum(axis=1)[:, None]
    tilt = view.slope.linear / np.sqrt(trained.totals)[:, None]
    gain = pace.kept + s * (tilt @ (w * view.residual))
    # Vectors that norms go with.
    bend = 2 * view.slope.quadratic
    scale = (2 * s * gain)[:, None]
    new = np.zeros((types if norms else 0, *state.frame.shape[1:]))
    plain = reach[:, None] * np.tensordot(
        _on_frame(view, 1.0 + 0.0 * w[None])[0], state.frame, axes=1
    )
    own = np.append(plain.ravel(), size * np.sqrt(w * view.square / pace.samples))
    own = own / np.linalg.norm(own)
    noisy = [basis[inside:].T, own[None, inside:]]
    if norms:
        new = reach[:, None] * np.tensordot(scale * _on_frame(view, bend), state.frame, axes=1)
        noisy.append(size * scale * bend * np.sqrt(w * view.square / pace.samples))
    coordinates = np.asarray(np.linalg.qr(np.concatenate(noisy).T, mode="r")).T  # (r' + 1 + V, q)
    profile = np.sqrt(spectrum.shares) * reach / size
    rank = basis.shape[1]
    kept = basis[:inside].T.reshape(rank, *moves.lean.shape[1:])
    inner = np.concatenate([kept, own[:inside].reshape(1, *moves.lean.shape[1:]), new])
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
            fluctuations=_fluctuations(view, state, spectrum, pace, basis, gain, new),
        )
    root = (np.sqrt(trained.probabilities) * trained.values)[:, None]
    pull = rate * (root * view.slope.mean * w) @ (root * view.slope.mean).T
    left = pace.kept * np.eye(types) - reach[:, None, None] * pull
    remembered = View(task, trained, step, *sample_nodes(trained.rank, level))
    passed = _passed(remembered, state, combination, pace, gain, norms, RESIDUALS[level])
    return Resolved(
        trained=after,
        along=along,
        frame=np.concatenate([grown[:rank], _remainder(teacher, grown[:rank], overlap)[None]]),
        others=np.concatenate([np.pad(state.others, wider), grown[rank + 1 :]]),
        gradients=np.concatenate([np.pad(state.gradients, wider), grown[rank : rank + 1]]),
        memory=left @ state.memory,
        passed=(
            *(replace(one, multiplier=one.multiplier * gain**2) for one in state.passed),
            passed,
        ),
    )


def _flat(vectors: FloatArray) -> FloatArray:
    return vectors.reshape(len(vectors), -1)


def _fluctuations(
    view: View,
    state: Resolved,
    spectrum: Spectrum,
    pace: Pace,
    basis: FloatArray,
    gain: FloatArray,
    new: FloatArray,
) -> tuple[Fluctuation, ...]:
    """The fluctuations before, as the step changes them, and that of the step itself.

    That of the step goes with the weights along ``new``, and so with those before, as in `fresh`.
    """
    trained, types = state.trained, len(state.trained.values)
    square, count = spectrum.mean(2), len(state.others)
    reach = spectrum.values ** (1 - spectrum.power)
    size = math.sqrt(float(spectrum.shares @ reach**2))

    def after(spikes: FloatArray, totals: FloatArray) -> tuple[FloatArray, FloatArray]:
        moves = _moves(view, state, spectrum, pace, spikes, totals)
        flat = np.concatenate([moves.lean.reshape(types, -1), size * moves.noise], axis=1)
        return flat @ basis, moves.along @ spectrum.shares

    # Inner products of the weights themselves.
    seen = square * np.einsum("aim,vim,i->av", new, state.others, 1.0 / spectrum.values)
    loadings = np.zeros((types, count + types))
    loadings[:, count:] = square * np.diag(trained.totals * gain)
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
    norms: bool,
    count: int,
) -> Passed:
    """The batch as the bulk remembers it."""
    trained, w = state.trained, view.weights
    law = view.residuals(count)
    first, second = coordinates_of(view, law)
    slope, s, r = view.slope, pace.moved[:, None, None], law.nodes
    xi = (slope.linear / np.sqrt(trained.totals)[:, None])[:, :, None]
    noise = (slope.second_moment - slope.mean**2)[:, :, None]
    scale = (trained.totals * gain)[:, None, None]
    added = 2 * scale * s * r * xi + s**2 / pace.samples * r**2 * noise
    sums = [np.tensordot(combination.T, s * r * slope.mean[:, :, None], axes=1)]
    if norms:
        sums.append(2 * s * gain[:, None, None] * r * 2 * slope.quadratic[:, :, None])
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
    )
