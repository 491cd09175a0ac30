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
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from giantsteps.functions import Function
from giantsteps.gaussian import Smoothed, coordinate_rule
from giantsteps.problem import Step
from giantsteps.theory.model.classification import jumps_of_link
from giantsteps.theory.model.functions_of_spike import (
    Wanted,
    smoothed_by_symmetry,
    teacher_given,
)
from giantsteps.theory.model.rules import bounded_normal, spike_rule
from giantsteps.theory.steps.several.conditional import Conditional, conditional_rule
from giantsteps.theory.steps.several.excess import Push, Slopes
from giantsteps.theory.steps.several.trained import (
    Fluctuation,
    Record,
    Task,
    Trained,
    few_functions,
    pulled,
)
from giantsteps.types import FloatArray

#: Directions kept as spikes, and as weak ones, with their size relative to the largest.
DIRECTIONS, WEAK, _NOTHING = 2, 4, 3e-3
#: Nodes of r at each k, by resolution.
RESIDUALS = (4, 5, 6, 7, 8)
#: Nodes of z and of the noise behind r.
_HIDDEN, _NOISE = 24, 8
#: Where z ends if its quadrature is split at jumps of the labels, and nodes of a part.
_REACH, _SPLIT = 7.0, 16
#: Gauss–Hermite nodes of a batch along its first spike and beside it, by resolution.
_ALONG, _BESIDE, _PRUNED = (14, 18, 24, 32, 42), (6, 8, 10, 13, 16), 1e-9
#: Variance of the norms, relative to their squares, that is rounding.
_NO_SPREAD = 1e-26
#: Functions of a batch that the norms of its types go with, relative to the largest.
LOADS = 1e-2
#: Relative step of derivatives in c and S, and nodes of moments of σ' beyond the second.
_STEP, _GAUSSIAN = 1e-3, 40


@dataclass(frozen=True, eq=False)
class View:
    """What neurons and teacher do at points k (K, r), and the residuals of a step there."""

    task: Task
    trained: Trained
    step: Step
    points: FloatArray
    weights: FloatArray

    @cached_property
    def wanted(self) -> Wanted:
        trained = self.trained
        along = tuple((self.points @ trained.overlap).tolist())
        return teacher_given(self.task.link, along, trained.remainder)

    @cached_property
    def output(self) -> FloatArray:
        """f(k)."""
        trained = self.trained
        scale = np.sqrt(trained.totals)[:, None]
        seen = smoothed_by_symmetry(self.task.activation, trained.spikes @ self.points.T, scale)
        return np.asarray((trained.probabilities * trained.values) @ seen.mean)

    @cached_property
    def slope(self) -> Smoothed:
        """Moments of σ'(S_A·k + √c_A z), (T, K)."""
        return self.slopes(self.trained.spikes, self.trained.totals)

    def slopes(self, spikes: FloatArray, totals: FloatArray) -> Smoothed:
        """The same for neurons with other leans and norms."""
        scale = np.sqrt(totals)[:, None]
        return smoothed_by_symmetry(self.task.activation.derivative, spikes @ self.points.T, scale)

    @cached_property
    def _hidden(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """r at a quadrature of (z, noise), (K, Q), its weights and z, (K, Q) or (1, Q)."""
        trained, task = self.trained, self.task
        along = self.points @ trained.overlap
        z, chances = _hidden_rule(task.link, along, trained.remainder)
        noise = coordinate_rule(1, nodes=_NOISE if task.noise_variance else 1)
        e = math.sqrt(task.noise_variance) * noise.nodes[:, 0]
        u = along[:, None] + trained.remainder * z
        labels = np.asarray(task.link(u), dtype=float)[:, :, None] + e
        output = np.broadcast_to(self.output[:, None, None], labels.shape)
        r = self.step.residual(output, labels).reshape(len(labels), -1)
        weights = (chances[:, :, None] * noise.weights).reshape(len(chances), -1)
        return r, weights, np.repeat(z, len(e), axis=1)

    @cached_property
    def _plain(self) -> bool:
        return self.step.loss == "squared"

    @cached_property
    def residual(self) -> FloatArray:
        """E[r | k]."""
        if self._plain:
            return np.asarray(self.wanted.mean - self.output)
        r, weights, _ = self._hidden
        return np.asarray((r * weights).sum(axis=1))

    @cached_property
    def beside(self) -> FloatArray:
        """E[z r | k], z the teacher's coordinate beside the spikes."""
        if self._plain:
            return self.wanted.linear
        r, weights, z = self._hidden
        return np.asarray((r * weights * z).sum(axis=1))

    @cached_property
    def square(self) -> FloatArray:
        """E[r² | k]."""
        if self._plain:
            wanted, f = self.wanted, self.output
            known = wanted.square + self.task.noise_variance
            return np.asarray(known - 2 * wanted.mean * f + f * f)
        r, weights, _ = self._hidden
        return np.asarray((r**2 * weights).sum(axis=1))

    def residuals(self, count: int, top: float = math.inf) -> Conditional:
        """The law of r at each k, with so many nodes; |r| up to ``top``, E r² what it is."""
        r, weights, z = self._hidden
        cut = np.clip(r, -top, top)
        if not np.array_equal(cut, r):
            square, left = (self.weights @ (x**2 * weights).sum(axis=1) for x in (r, cut))
            cut = cut * math.sqrt(float(square / left))
        return conditional_rule(cut, weights, z, count)

    def largest_residual(self, tail: float) -> float:
        """The |r| that samples exceed with a probability."""
        r, weights, _ = self._hidden
        share = (self.weights[:, None] * weights).ravel()
        order = np.argsort(np.abs(r).ravel())
        return float(np.interp(1.0 - tail, np.cumsum(share[order]), np.abs(r).ravel()[order]))


def _hidden_rule(link: Function, along: FloatArray, beside: float) -> tuple[FloatArray, FloatArray]:
    """z ~ N(0, 1) and its weights, (1, Q), or (K, Q) with parts that end at jumps of the labels."""
    jumps = jumps_of_link(link, along, beside)
    if not jumps.shape[1]:
        rule = coordinate_rule(1, nodes=_HIDDEN)
        return rule.nodes.T, rule.weights[None]
    ends = np.broadcast_to(np.array([-_REACH, 0.0, _REACH]), (len(along), 3))
    edges = np.sort(np.clip(np.concatenate([ends, jumps], axis=1), -_REACH, _REACH), axis=1)
    x, w = np.polynomial.legendre.leggauss(_SPLIT)
    half = np.diff(edges, axis=1)[:, :, None] / 2
    z = (edges[:, :-1, None] + half * (1 + x)).reshape(len(along), -1)
    weights = (half * w).reshape(z.shape) * np.exp(-z * z / 2)
    return z, weights / weights.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class _Moved:
    """Neurons after the step: their leans in the enlarged space, and their squared norms.

    The space has the spikes before the step, what they and the weak ones leave of the teacher,
    functions of k (noise of the batch), and the weak spikes.
    """

    lean: FloatArray  # (T, space)
    totals: FloatArray  # (T,), without leans that are dropped
    gain: FloatArray  # ϱ + sE[rξ_A], (T,)


def _moved(
    view: View, slope: Smoothed, spikes: FloatArray, totals: FloatArray, step: Pace
) -> _Moved:
    """What the step makes of neurons with these leans, norms and slopes."""
    k, w, s, trained = view.points, view.weights, step.moved, view.trained
    zeta, xi = slope.mean, slope.linear / np.sqrt(totals)[:, None]
    gain = step.kept + s * (xi @ (w * view.residual))
    noise = (slope.second_moment - zeta**2) @ (w * view.square) / step.samples
    beside = (s * (zeta @ (w * view.beside)))[:, None] * trained.shares
    lean = [
        step.kept * spikes + s[:, None] * (zeta @ ((w * view.residual)[:, None] * k)),
        beside[:, -1:],
        s[:, None] * zeta * np.sqrt(w * view.square / step.samples),
        gain[:, None] * trained.weak + beside[:, :-1],
    ]
    bulk = totals - (trained.weak**2).sum(axis=1)
    return _Moved(np.concatenate(lean, axis=1), bulk * gain**2 + s**2 * noise, gain)


@dataclass(frozen=True, eq=False)
class Pace:
    """s = η̃A of the types, α, and ϱ = 1 − decay."""

    moved: FloatArray
    samples: float
    kept: float = 1.0


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
    moved = _moved(view, view.slope, trained.spikes, trained.totals, pace)
    teacher = _teacher(trained, moved.lean.shape[1])
    basis, combination = kept_directions(moved.lean, trained.probabilities, teacher, WEAK)
    leans, overlap = moved.lean @ basis, basis.T @ teacher
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
        overlap=overlap[:DIRECTIONS],
        weak=weak,
        weak_overlap=overlap[DIRECTIONS:],
        steps=_directions(view, trained, samples) @ basis,
        memory=pulled(trained.memory, trained.totals, moved.gain, pull, samples),
        constant=constant + dropped,
        multipliers=np.concatenate(
            [trained.multipliers * moved.gain**2, np.ones((1, len(values)))]
        ),
    )
    remembered = View(task, trained, step, *sample_nodes(trained.rank, level, tail))
    top = math.inf
    if tail:
        fine = View(task, trained, step, *sample_nodes(trained.rank, len(_ALONG) - 1))
        top = fine.largest_residual(tail)
    law = remembered.residuals(RESIDUALS[level], top)
    mixing, loads = _loads(remembered, law, pace, moved.gain, norms)
    record = _record(remembered, law, combination, pace, moved.gain, loads)
    after = replace(after, records=(*trained.records, record))
    added = after.constant - trained.constant * moved.gain**2
    push = Push(trained, record, _slopes(remembered, law, pace, moved.gain, added))
    if norms:
        new = _fluctuation(view, trained, after.rank, pace, moved.gain, mixing)
        new = replace(new, along=push.loads(mixing @ loads.reshape(len(loads), -1)))
        strong = basis[:, : after.rank]
        after = _with_fluctuations(view, trained, after, strong, pace, moved.gain, push, new)
    forms, represented = push.forms()
    return replace(after, forms=forms, represented=represented)


def leans_after(
    task: Task, trained: Trained, step: Step, rate: float, level: int
) -> tuple[FloatArray, FloatArray]:
    """Leans before and after a step in one space, with nothing dropped, (T, space) each."""
    view, pace, _ = _view_and_pace(task, trained, step, rate, level, None)
    after = _moved(view, view.slope, trained.spikes, trained.totals, pace).lean
    before = np.zeros_like(after)
    before[:, : trained.rank] = trained.spikes
    before[:, after.shape[1] - trained.weak.shape[1] :] = trained.weak
    return before, after


def _teacher(trained: Trained, size: int) -> FloatArray:
    """β* in the enlarged space."""
    teacher = np.zeros(size)
    teacher[: trained.rank] = trained.overlap
    teacher[trained.rank] = trained.remainder * trained.shares[-1]
    teacher[size - len(trained.weak_overlap) :] = trained.weak_overlap
    return teacher


def _view_and_pace(
    task: Task, trained: Trained, step: Step, rate: float, level: int, kept: float | None
) -> tuple[View, Pace, float]:
    """What a step sees and how far it goes; the rate that multiplies the gradient."""
    rule = spike_rule(level, trained.spikes, trained.totals, trained.overlap, task.link)
    view = View(task, trained, step, rule.nodes, rule.weights)
    if step.rule == "normalized":
        rate = rate / _gradient_norm(view, step.samples)
    left = 1.0 - step.decay if kept is None else kept
    return view, Pace(rate * trained.values, step.samples, left), rate


def _gradient_norm(view: View, samples: float) -> float:
    """‖√N G‖_F: leans and bulk of a step of the size one."""
    trained, unit = view.trained, Pace(view.trained.values, samples, 0.0)
    moved = _moved(view, view.slope, 0.0 * trained.spikes, trained.totals, unit)
    return math.sqrt(float(trained.probabilities @ ((moved.lean**2).sum(axis=1) + moved.totals)))


def _directions(view: View, trained: Trained, samples: float) -> FloatArray:
    """The unit vectors Xᵀr of all steps so far, in the enlarged space."""
    w, noise = view.weights, np.sqrt(view.weights * view.square / samples)
    beside = float(w @ view.beside) * trained.shares
    own = np.concatenate([(w * view.residual) @ view.points, beside[-1:], noise, beside[:-1]])
    before = np.zeros((len(trained.steps), len(own)))
    before[:, : trained.rank] = trained.steps[:, : trained.rank]
    before[:, len(own) - len(trained.weak_overlap) :] = trained.steps[:, trained.rank :]
    return np.concatenate([before, own[None] / np.linalg.norm(own)])


def kept_directions(
    lean: FloatArray, probabilities: FloatArray, teacher: FloatArray, weak: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Directions that are kept as spikes, two or fewer and then so many weak ones: (space, r + J),
    and as combinations of neurons, (T, r + J).

    A second one of no size is worth terms of order 1/d²: as much as the model knows nothing about.
    Weak ones are the strongest of what the two leave.
    """
    root = np.sqrt(probabilities)[:, None]
    left, size, right = np.linalg.svd(root * lean, full_matrices=False)
    some = size > 1e-12 * size[0]
    left, size, right = left[:, some], size[some], right[some]
    mixing = [np.eye(1, len(size))[0]]
    if len(size) > 1:
        seen = size**2 * (right @ teacher)
        seen[0] = 0.0
        length = float(np.linalg.norm(seen))
        # Where nothing of the teacher is left, the second strongest.
        plain = np.eye(2, len(size))[1]
        mixing.append(seen / length if length > 1e-9 * size[0] ** 2 else plain)
    mixed = np.array(mixing[:DIRECTIONS])
    beside = np.eye(len(size)) - mixed.T @ mixed
    values, vectors = np.linalg.eigh((beside * size**2) @ beside)
    some = values[::-1] > (_NOTHING * size[0]) ** 2
    mixed = np.concatenate([mixed, vectors.T[::-1][some][:weak]])
    mixed = mixed * np.where(mixed @ (right @ teacher) < 0, -1.0, 1.0)[:, None]
    return (mixed @ right).T, root * left @ (mixed / size).T


def _with_fluctuations(
    view: View,
    trained: Trained,
    after: Trained,
    basis: FloatArray,
    step: Pace,
    gain: FloatArray,
    push: Push,
    new: Fluctuation,
) -> Trained:
    """The fluctuations of the neurons after the step: those before, and a new one of the norms.

    The new one goes with the weights along λ, and so with those before: ϖ = ϖ' + Σ_c ρ_cϖ_c with
    ρ_c = ⟨λ, ℓ_c⟩/v_c, and ϖ' independent of them.
    """
    count = new.loadings.shape[1] - len(trained.others)
    linear = _along(view, trained, step, gain)  # λ_A, (T, E)
    found = []
    for old in trained.fluctuations:
        size = _STEP * float(trained.totals.min())
        size /= max(float(np.abs(old.growth).max()), float(np.abs(old.stretch).max()), 1e-12)
        ends = []
        for sign in (1.0, -1.0):
            spikes = trained.spikes + sign * size * old.stretch
            totals = trained.totals + sign * size * old.growth
            ends.append(_moved(view, view.slopes(spikes, totals), spikes, totals, step))
        before = old.along @ trained.onto
        both = (before * linear).sum(axis=1)
        share = np.where(old.spread > 0, both / np.where(old.spread > 0, old.spread, 1.0), 0.0)
        loadings = np.zeros_like(new.loadings)
        loadings[:, : old.loadings.shape[1]] = gain[:, None] * old.loadings
        along = (before[:, :, None] * push.pushed).sum(axis=1)
        new = replace(
            new,
            spread=np.maximum(new.spread - share * both, 0.0),
            loadings=new.loadings - share[:, None] * loadings,
            along=new.along - share[:, None] * along,
        )
        found.append(
            Fluctuation(
                spread=old.spread,
                growth=(ends[0].totals - ends[1].totals) / (2 * size) + share,
                stretch=(ends[0].lean - ends[1].lean) @ basis / (2 * size),
                loadings=loadings,
                along=along,
            )
        )
    others = (*trained.others, *(0,) * count)
    return replace(after, fluctuations=(*found, new), others=others)


def _loads(
    view: View, law: Conditional, step: Pace, gain: FloatArray, norms: bool
) -> tuple[FloatArray, FloatArray]:
    """λ_A as combinations (T, L) of sums n⁻¹Σ a x over the batch with few functions a."""
    if not norms:
        return np.zeros((len(gain), 0)), np.zeros((0, *law.weights.shape))
    bend = 2 * view.slope.quadratic[:, :, None]
    functions = 2 * (step.moved * gain)[:, None, None] * law.nodes * bend
    weights = (view.weights[:, None] * law.weights).ravel()
    mixing, few = few_functions(functions.reshape(len(functions), -1), weights, LOADS)
    return mixing, few.reshape(-1, *law.weights.shape)


def _fluctuation(
    view: View, trained: Trained, rank: int, step: Pace, gain: FloatArray, mixing: FloatArray
) -> Fluctuation:
    """What the step itself adds to the norms."""
    types = len(trained.values)
    spread = spread_of_norms(view, trained, step, gain)
    spread = np.where(spread > _NO_SPREAD * trained.totals**2, spread, 0.0)  # linear activations
    size = np.where(spread > 0, trained.totals * gain, 0.0)
    loadings = np.pad(size[:, None] * mixing, ((0, 0), (len(trained.others), 0)))
    return Fluctuation(
        spread=spread,
        growth=np.ones(types),
        stretch=np.zeros((types, rank)),
        loadings=loadings,
    )


def _along(view: View, trained: Trained, step: Pace, gain: FloatArray) -> FloatArray:
    """λ_A, the part of ‖w‖² that is linear in w, on the spikes and the teacher's remainder."""
    linear = 2 * (2 * view.slope.quadratic) * (step.moved * gain)[:, None]
    sources = [view.residual * view.points[:, j] for j in range(trained.rank)]
    return np.asarray(linear @ (view.weights * np.stack([*sources, view.beside])).T)


def spread_of_norms(view: View, trained: Trained, step: Pace, gain: FloatArray) -> FloatArray:
    r"""v of the norms' new fluctuation: old weights times new ones, the new ones, and (I + sK)².

    With φ = σ' − ζ − ξh, the terms of theory §5b for one step, in an isotropic bulk.
    """
    rule = coordinate_rule(1, nodes=_GAUSSIAN)
    z, mean = rule.nodes[:, 0], rule.weights
    c, s, alpha, w = trained.totals, step.moved, step.samples, view.weights
    slope, r2 = view.slope, view.square
    h = (trained.spikes @ view.points.T)[:, :, None] + np.sqrt(c)[:, None, None] * z
    sigma = np.asarray(view.task.activation.derivative(h), dtype=float)
    phi = sigma - slope.mean[:, :, None] - slope.linear[:, :, None] * z
    phi *= phi  # powers of large arrays are slow
    second, product, fourth = phi @ mean, phi @ (mean * z * z), (phi * phi) @ mean
    tilt = slope.linear / np.sqrt(c)[:, None]  # ξ
    bent = tilt * tilt
    moments = [np.ones_like(c), s * (tilt @ (w * view.residual))]
    moments.append(s**2 * (bent @ (w * r2)))
    # Third and fourth moments of r only matter beside large curvatures: those of a Gaussian.
    cubes = 3 * r2 * view.residual - 2 * view.residual**3
    moments.append(s**3 * ((bent * tilt) @ (w * cubes)))
    moments.append(s**4 * ((bent * bent) @ (w * 3 * r2**2)))
    k1, k2, k3, k4 = step.kept + moments[1], *(moments[j] / alpha ** (j - 1) for j in (2, 3, 4))
    n2 = k2 + k1**2
    n4 = k4 + 4 * k1 * k3 + 2 * k2**2 + 6 * k1**2 * k2 + k1**4
    new = second @ (w * r2)  # E[r² φ²]
    seen = _along(view, trained, step, gain)
    total = 2 * c**2 * (n4 - n2**2) + c * (seen**2).sum(axis=1)
    total = total + 4 * c * s**2 / alpha * (gain**2 * (product @ (w * r2)) + k2 * new)
    total = total + s**4 / alpha**3 * ((fourth - second**2) @ (w * 3 * r2**2))
    return np.asarray(np.maximum(total + 2 * s**4 / alpha**2 * new**2, 0.0))


def sample_nodes(rank: int, level: int, tail: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Nodes k (K, r) and weights that stand for the samples of a batch.

    ``tail`` is the share of each coordinate that is moved to its quantile.
    """
    counts = (_ALONG[level], _BESIDE[level])[:rank]
    axes = [
        bounded_normal(count, tail) if tail else coordinate_rule(1, nodes=count) for count in counts
    ]
    nodes, weights = axes[0].nodes, axes[0].weights
    for axis in axes[1:]:
        count = len(axis.weights)
        nodes = np.concatenate(
            [np.repeat(nodes, count, axis=0), np.tile(axis.nodes, (len(nodes), 1))], axis=1
        )
        weights = np.multiply.outer(weights, axis.weights).ravel()
    kept = weights > _PRUNED
    return nodes[kept], weights[kept] / weights[kept].sum()


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
    trained, k, w = view.trained, view.points, view.weights
    weights = w[:, None] * law.weights
    shape = weights.shape
    first = [(w * k[:, j])[:, None] * law.weights for j in range(trained.rank)]
    first.append(w[:, None] * law.first)
    second = np.empty((trained.rank + 1, trained.rank + 1, *shape))
    for i in range(trained.rank):
        for j in range(trained.rank):
            second[i, j] = (w * k[:, i] * k[:, j])[:, None] * law.weights
        second[i, -1] = second[-1, i] = (w * k[:, i])[:, None] * law.first
    second[-1, -1] = w[:, None] * law.second
    slope, s = view.slope, step.moved[:, None, None]
    zeta = slope.mean[:, :, None]
    xi = (slope.linear / np.sqrt(trained.totals)[:, None])[:, :, None]
    noise = (slope.second_moment - slope.mean**2)[:, :, None]
    r, scale = law.nodes, (trained.totals * gain)[:, None, None]
    added = 2 * scale * s * r * xi + s**2 / step.samples * r**2 * noise
    directions, rank, others = trained.directions, trained.rank, len(trained.others)
    sums = [np.tensordot(combination.T, s * r * zeta, axes=1)]
    sums += [np.zeros((others, *shape)), loads, np.zeros((1, *shape))]
    stacked = np.concatenate(sums)
    new = combination.shape[1]
    carry = np.zeros((len(stacked), directions + others + 1))
    carry[:new, :rank] = step.kept * combination.T @ trained.spikes
    carry[:new, rank:directions] = combination.T @ (gain[:, None] * trained.weak)
    carry[np.arange(new, new + others), np.arange(directions, directions + others)] = 1.0
    carry[-1, -1] = 1.0
    flat = -1
    return Record(
        samples=step.samples,
        weights=weights.ravel(),
        first=np.stack(first).reshape(rank + 1, flat),
        second=second.reshape(rank + 1, rank + 1, flat),
        added=added.reshape(len(added), flat),
        frame=trained.frame,
        carry=carry,
        sums=stacked.reshape(len(stacked), flat),
        rank=new,
    )
