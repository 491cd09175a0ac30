r"""What neurons answer the samples of a batch in every step that uses it (theory §7).

Leaving a sample out, a neuron of type A sees it in step s by a Gaussian field: Φ_A^s that all
neurons of the type share, and G^s of its own, with the covariance K_A over the steps. What the
sample has added to the weights in earlier steps l of its batch comes back,

.. math:: h^s = Φ_A^s + G^s
          + \frac1α Σ_{l<s}\bigl[R_A^{sl}\,θ^l + (P_A^{sl} - R_A^{sl}f_A^l)·a^l\bigr] ,\qquad
          θ^l = η̃_lA\,r^lσ'(h^l) ,

R the response of a neuron to what is added to it, and P that to what is added to all of them, which
is Σ_c f_c a_c for the means of θ over the neurons of each type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.interpolate import BSpline, make_interp_spline

from giantsteps.errors import NotConverged
from giantsteps.functions import Function
from giantsteps.gaussian import moments, smoothed
from giantsteps.theory.solver.work import Work
from giantsteps.theory.steps.several.view import REACH, split_normal
from giantsteps.types import FloatArray

#: Nodes of a neuron's own field in the first, second, … step of a batch, the same where σ' has
#: kinks, and their least weight.
_NODES, _KINKED, _LEAST = (24, 8, 6, 4), (0, 24, 12, 8), 1e-7
#: Spacing of tabulated functions, and their degree.
_SPACING, _DEGREE = 1 / 16, 3
#: Intervals per unit between which functions are linear, how far, and how many tables are kept.
_INTERVALS, _NEAR, _KEPT = 2048, 16, 64
#: Where tables may end.
_FARTHEST = 1e4
#: Numbers that are kept at a time.
_CHUNK = 2_000_000
#: Operations of a node, about.
_OPERATIONS = 60
#: Own fields that are nothing.
_STILL = 1e-9


@dataclass(frozen=True, eq=False)
class Answers:
    """What a step of a batch finds at the nodes of its samples.

    ======  ==========  ============  ============================================
    symbol  attribute   shape         meaning
    ======  ==========  ============  ============================================
    r       residual    (Y,)
    ζ       slope       (T, Y)        E σ'(h) over the fields of a neuron's own
    \\       bend        (T, Y)        E σ''(h)
    \\       square      (T, Y)        E σ'(h)²
    \\       tilt        (j, T, Y)     E[ξ_jσ'(h)], ξ the independent parts of G in the
                                      steps of the batch until this one
    \\       echo        (l, T, Y)     E[σ'(h^l)σ'(h)] of its earlier steps
    E θ     mean        (T, Y)
    a       amplitude   (C, Y)        Σ_A π_Af_A E θ; none of the last step
    ======  ==========  ============  ============================================
    """

    residual: FloatArray
    slope: FloatArray
    bend: FloatArray
    square: FloatArray
    tilt: FloatArray
    echo: FloatArray
    mean: FloatArray
    amplitude: FloatArray


@dataclass(frozen=True, eq=False)
class Memory:
    """What neurons know of earlier steps of a batch, one of ``count`` steps until now.

    ======  ===========  ==============  =====================================================
    symbol  attribute    shape           meaning
    ======  ===========  ==============  =====================================================
    η̃       rates        (count,)
    α       samples
    \\       roots        (T, s, s)       Cholesky factor of K_A
    R       own          (T, s, s)       R[s, l]: what is left in step s of what step l added
    f       functions    (T, C) each     of every step but the last
    P       shared       (T, C)          P[s][l]
    ======  ===========  ==============  =====================================================
    """

    rates: tuple[float, ...]
    samples: float
    roots: FloatArray
    own: FloatArray
    functions: tuple[FloatArray, ...]
    shared: tuple[tuple[FloatArray, ...], ...]


@dataclass(eq=False)
class Neurons:
    """Types of neurons, and tables of their activation; ``work`` counts what they take."""

    activation: Function
    values: FloatArray
    probabilities: FloatArray
    work: Work = field(default_factory=Work)
    _tables: dict[tuple[float, int], Table] = field(default_factory=dict)

    @property
    def weights(self) -> FloatArray:
        """π_A A."""
        return np.asarray(self.probabilities * self.values)

    def means(self, h: FloatArray, spread: float) -> FloatArray:
        """E (σ, σ', σ'', σ'²)(h + spread·ξ), on a first axis of four."""
        if spread <= _STILL:
            slope = np.asarray(self.activation.derivative(h), dtype=float)
            output = np.asarray(self.activation(h), dtype=float)
            return np.stack([output, slope, np.zeros_like(h), slope**2])
        most = float(np.abs(h).max())
        if most > _FARTHEST:
            what = f"steps on a batch that is used again, which move neurons by up to {most:.3g}"
            raise NotConverged(what, most, 1, 'smaller rates, more samples, or batch="fresh"')
        key = (spread, math.ceil(most) + 1)
        if key not in self._tables:
            if len(self._tables) >= _KEPT:
                del self._tables[next(iter(self._tables))]
            self._tables[key] = _table(self.activation, *key)
        return self._tables[key](h)


#: h → means, on a first axis of four.
Table = Callable[[FloatArray], FloatArray]


def _linear(spline: BSpline, end: int) -> Table:
    """A spline, linear between many points: far cheaper to evaluate."""
    points = np.arange(-end * _INTERVALS, end * _INTERVALS + 1) / _INTERVALS
    values = np.ascontiguousarray(spline(points).T)

    def at(h: FloatArray) -> FloatArray:
        part = (h + end) * _INTERVALS
        place = part.astype(np.intp)
        part -= place
        after, found = place + 1, np.empty((len(values), *h.shape))
        for one, out in zip(values, found):
            one.take(place, out=out, mode="clip")
            step = one.take(after, mode="clip")
            step -= out
            step *= part
            out += step
        return found

    return at


def _table(activation: Function, spread: float, end: int) -> Table:
    points = np.arange(-end - 4 * _SPACING, end + 5 * _SPACING, _SPACING)
    kinks = activation.derivative.breakpoints(-end, end)
    narrow = bool(len(kinks)) and spread < 4 * _SPACING
    if narrow:
        near = spread / 4 * np.arange(30.0)
        far = np.abs(points[:, None] - kinks).min(axis=1) > near[-1]
        fine = np.add.outer(kinks, np.concatenate([-near, near])).ravel()
        points = np.unique(np.concatenate([points[far], fine]))
    output, slope = (smoothed(f, points, spread) for f in (activation, activation.derivative))
    values = [output.mean, slope.mean, slope.linear / spread, slope.second_moment]
    spline = make_interp_spline(points, np.stack(values, axis=-1), k=_DEGREE)
    if narrow or end > _NEAR:
        return lambda h: np.moveaxis(spline(h), -1, 0)
    return _linear(spline, end)


#: What is done with h of a type at its nodes in the last step: their type, the samples, h (Y, G),
#: the independent fields ξ (j, G) and the weights (G,).
Visit = Callable[[int, slice, FloatArray, FloatArray, FloatArray], None]


def answers(
    neurons: Neurons,
    memory: Memory,
    label: FloatArray,
    fields: Sequence[FloatArray],
    full: bool = True,
    visit: Visit | None = None,
) -> list[Answers]:
    """What each step of a batch finds at samples with labels (Y,), less the initial output, and
    the shared fields Φ of the steps, (T, Y) each. Not ``full``: tilt and echo are left out.

    ``visit`` sees the nodes of the last step.
    """
    count, types = len(fields), len(neurons.values)
    nodes = math.prod(len(x) for x, _ in field_rules(neurons.activation.derivative, count - 1))
    size = max(_CHUNK // (nodes * types), 8)
    neurons.work.spend(_OPERATIONS * nodes * types * len(label))
    parts = []
    for start in range(0, len(label), size):
        some = slice(start, start + size)
        own = [f[:, some] for f in fields]
        parts.append(_of_chunk(neurons, memory, label[some], own, full, some, visit))
    names = Answers.__dataclass_fields__
    return [
        Answers(*(np.concatenate([getattr(p[s], n) for p in parts], axis=-1) for n in names))
        for s in range(count)
    ]


def field_rules(slope: Function, count: int) -> list[tuple[FloatArray, FloatArray]]:
    """Quadratures of a neuron's independent fields in the first steps of a batch; that of the first
    ends its parts at the kinks of σ'.
    """
    kinks = np.asarray(slope.breakpoints(-REACH, REACH), dtype=float)
    found = []
    for number in range(count):
        if number == 0 and len(kinks):
            x, w = (part[0] for part in split_normal(kinks[None]))
        else:
            counts = _KINKED if len(kinks) else _NODES
            x, w = np.polynomial.hermite_e.hermegauss(counts[min(number, len(counts) - 1)])
        some = w > _LEAST * w.sum()
        found.append((x[some], w[some] / w[some].sum()))
    return found


def _axis(values: FloatArray, place: int, axes: int) -> FloatArray:
    """Values along one axis of the nodes, the first of which are the samples."""
    shape = [1] * (axes + 1)
    shape[place + 1] = -1
    return values.reshape(shape)


def _of_chunk(
    neurons: Neurons,
    memory: Memory,
    label: FloatArray,
    fields: list[FloatArray],
    full: bool,
    place: slice,
    visit: Visit | None,
) -> list[Answers]:
    types, size = len(neurons.values), len(label)
    rules = field_rules(neurons.activation.derivative, len(fields) - 1)
    initial = moments(neurons.activation).mean
    slopes: list[list[FloatArray]] = []
    found: list[Answers] = []
    for s, shared in enumerate(fields):
        base = np.array(shared)
        for l, one in enumerate(found):
            more = memory.shared[s][l] - memory.own[:, s, l][:, None] * memory.functions[l]
            base += more @ one.amplitude / memory.samples
        output, slope, bend, square = np.zeros((4, types, size))
        tilt, echo = np.zeros((s + 1, types, size)), np.zeros((s, types, size))
        chance = np.ones((1,) * (s + 1))
        for j in range(s):
            chance = chance * _axis(rules[j][1], j, s)
        weights, current = chance.ravel(), []
        grid = np.meshgrid(*(x for x, _ in rules[:s]), indexing="ij")
        xi = np.array([x.ravel() for x in grid]).reshape(s, len(weights))
        for t, moved in enumerate(neurons.values):
            h = base[t].reshape(-1, *(1,) * s)
            for j in range(s):
                back = memory.own[t, s, j] / memory.samples * memory.rates[j] * moved
                before = slopes[j][t]
                before = before.reshape(*before.shape, *(1,) * (s - 1 - j))
                h = h + memory.roots[t, s, j] * _axis(rules[j][0], j, s)
                h = h + (back * found[j].residual).reshape(-1, *(1,) * s) * before
            if s + 1 == len(fields) and visit is not None:
                visit(t, place, h.reshape(size, -1), xi, weights)
                continue
            if s + 1 < len(fields):
                own = h[..., None] + memory.roots[t, s, s] * rules[s][0]
                current.append(np.asarray(neurons.activation.derivative(own), dtype=float))
            means = neurons.means(h, float(memory.roots[t, s, s])).reshape(4, size, -1)
            output[t], slope[t], bend[t], square[t] = means @ weights
            tilt[s, t] = memory.roots[t, s, s] * bend[t]
            if full:
                seen = means[1] * weights
                for j in range(s):
                    tilt[j, t] = seen @ xi[j]
                    before = slopes[j][t]
                    before = before.reshape(*before.shape, *(1,) * (s - 1 - j))
                    before = np.broadcast_to(before, h.shape).reshape(size, -1)
                    echo[j, t] = (seen * before).sum(axis=1)
        slopes.append(current)
        r = label - neurons.weights @ (output - initial)
        mean = memory.rates[s] * neurons.values[:, None] * r * slope
        amplitude = np.zeros((0, size))
        if s < len(memory.functions):
            amplitude = (neurons.probabilities[:, None] * memory.functions[s]).T @ mean
        found.append(Answers(r, slope, bend, square, tilt, echo, mean, amplitude))
    return found
