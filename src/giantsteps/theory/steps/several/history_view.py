"""What is known of neurons after some steps, and a batch as they see it (theory §7)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from giantsteps.errors import NotConverged
from giantsteps.functions import Function
from giantsteps.gaussian import Rule, hermite_rule
from giantsteps.theory.model.rules import bounded_normal
from giantsteps.theory.steps.several.histories import Answers, Memory, Neurons, Visit, answers
from giantsteps.theory.steps.several.view import REACH, split_normal
from giantsteps.types import FloatArray

#: Nodes of u and of the noise by resolution, and least weight of a node of a sample.
_TEACHER, _NOISE, _LEAST = (8, 11, 14, 18, 24), (2, 3, 3, 4, 5), (1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
#: Nodes along a direction: so many, and more for each octave of the leans above a size.
_FEW, _OCTAVE, _SMALL = 2, (0.8, 1.2, 1.6, 2.0, 2.6), 0.03
#: Nodes of samples that are affordable: with more, the next lower resolution; and at any one.
_MOST, _LARGEST = 9_000, 1_000_000
#: Least mass of the nodes that are not left out.
_KEPT = 0.5
#: Samples whose squared label is so many times the mean count by its square, as in tr Σ².
_RARE = 10.0
#: Cholesky factors that are nothing.
_STILL = 1e-7


@dataclass(frozen=True, eq=False)
class Course:
    """What is known after some steps; times are numbers of steps taken.

    ======  ============  ==============  =====================================================
    symbol  attribute     shape           meaning
    ======  ============  ==============  =====================================================
    \\       neurons                       the types
    \\       batches       (t,)            number of the batch of each step
    α       samples                       of each batch
    η̃       rates         (t,)
    F_A     leans         (T, V) each     at each time, on the teacher and the directions until then
    K_A     covariance    (T, t+1, t+1)
    R_A     own           (T, t+1, t+1)   at time k of what is added at time l
    f       functions     (T, C) each     of each step
    P       shared        (T, C)          [step][time]: of what the step adds, from the next time on
    \\       mixings       (T,) each       directions as combinations of what their step added …
    \\       before        (V,) each       … less so much of the earlier ones …
    \\       made                          … and these steps
    ======  ============  ==============  =====================================================
    """

    neurons: Neurons
    batches: tuple[int, ...]
    samples: tuple[float, ...]
    rates: tuple[float, ...]
    leans: tuple[FloatArray, ...]
    covariance: FloatArray
    own: FloatArray
    functions: tuple[FloatArray, ...] = ()
    shared: tuple[dict[int, FloatArray], ...] = ()
    mixings: tuple[FloatArray, ...] = ()
    before: tuple[FloatArray, ...] = ()
    made: tuple[int, ...] = ()

    @property
    def time(self) -> int:
        """Steps taken."""
        return len(self.leans) - 1

    def uses(self, batch: int, until: int) -> list[int]:
        """The steps of a batch up to one."""
        return [s for s in range(until + 1) if self.batches[s] == batch]

    def memory(self, uses: list[int]) -> Memory:
        """What the neurons know in these steps of one batch; the last one may be the end."""
        times, rates = np.array(uses), (*self.rates, 0.0)
        return Memory(
            rates=tuple(rates[s] for s in uses),
            samples=self.samples[self.batches[uses[0]]],
            roots=factor(self.covariance[:, times[:, None], times]),
            own=self.own[:, times[:, None], np.minimum(times + 1, len(self.rates))],
            functions=tuple(self.functions[s] for s in uses[:-1]),
            shared=tuple(tuple(self.shared[l][s] for l in uses if l < s) for s in uses),
        )

    def of_types(self, some: slice) -> Course:
        """The same for some of the types, which are all that have a probability."""
        whole = self.neurons
        return replace(
            self,
            neurons=Neurons(whole.activation, whole.values[some], whole.probabilities[some]),
            leans=tuple(lean[some] for lean in self.leans),
            covariance=self.covariance[some],
            own=self.own[some],
            functions=tuple(f[some] for f in self.functions),
            shared=tuple({k: p[some] for k, p in one.items()} for one in self.shared),
            mixings=tuple(mixing[some] for mixing in self.mixings),
        )

    @property
    def sizes(self) -> FloatArray:
        """Root mean square of the leans along each direction, at the time when it is largest."""
        found = np.zeros(len(self.mixings))
        for lean in self.leans:
            size = np.sqrt(self.neurons.probabilities @ lean[:, 1:] ** 2)
            found[: len(size)] = np.maximum(found[: len(size)], size)
        return found

    @property
    def sizes_seen(self) -> FloatArray:
        """The same without the directions of the last step, which no sample sees."""
        return self.sizes[np.array(self.made, dtype=int) < len(self.rates) - 1]


@dataclass(frozen=True, eq=False)
class Samples:
    """Nodes that stand for samples: labels less the initial output, weights, u and the
    coordinates along the directions without a sample's own part, (1 + V, Y).
    """

    label: FloatArray
    weights: FloatArray
    raw: FloatArray


def sample_nodes(
    link: Function,
    noise: float,
    sizes: FloatArray,
    shift: float,
    level: int,
    tail: float = 0.0,
) -> Samples:
    """A product rule for samples; ``sizes`` are those of the leans along each direction."""

    def normal(count: int) -> Rule:
        rule = bounded_normal(count, tail) if tail else hermite_rule(count)
        return Rule(rule.nodes, rule.weights / rule.weights.sum())

    jumps = np.asarray(link.breakpoints(-REACH, REACH), dtype=float)
    u = normal(_TEACHER[level])
    if len(jumps) and not tail:
        u = Rule(*(part[0] for part in split_normal(jumps[None])))
    counts = [_FEW + round(_OCTAVE[level] * math.log2(1.0 + size / _SMALL)) for size in sizes]
    axes = [u, normal(_NOISE[level] if noise else 1), *map(normal, counts)]
    raw, weights = u.nodes[None], u.weights
    power = (np.asarray(link(raw[0]), dtype=float) - shift) ** 2
    rare = np.maximum(power / (_RARE * float(power @ weights) + 1e-300), 1.0) ** 2
    for axis in axes[1:]:
        grid = np.multiply.outer(weights, axis.weights)
        old, new = np.nonzero(grid * rare[:, None] > (1e-3 * tail if tail else _LEAST[level]))
        if len(old) > _LARGEST:
            weights = np.zeros(0)
            break
        raw = np.concatenate([raw[:, old], axis.nodes[new][None]])
        weights, rare = grid[old, new], rare[old]
    mass = float(weights.sum())
    if level > 0 and (len(old) > _MOST or mass < _KEPT):
        return sample_nodes(link, noise, sizes, shift, level - 1, tail)
    if mass < _KEPT:
        what = "the nodes of samples of a batch that is used again"
        raise NotConverged(what, 1.0 - mass, len(old), 'smaller rates, or batch="fresh"')
    weights = weights / mass
    square = raw[1:] ** 2 @ weights  # nodes that are left out are far out
    raw[1:] /= np.sqrt(np.where(square > 0, square, 1.0))[:, None]
    label = np.asarray(link(raw[0]), dtype=float) + math.sqrt(noise) * raw[1] - shift
    return Samples(label, weights, np.delete(raw, 1, axis=0))


@dataclass(frozen=True, eq=False)
class View:
    """A batch in its steps ``uses``, as the course knows it."""

    course: Course
    samples: Samples
    uses: list[int]
    fields: list[FloatArray]
    memory: Memory
    answers: list[Answers]

    @classmethod
    def of(cls, course: Course, samples: Samples, uses: list[int]) -> View:
        """Everything that these steps find."""
        fields = [course.leans[s] @ samples.raw[: course.leans[s].shape[1]] for s in uses]
        memory = course.memory(uses)
        found = answers(course.neurons, memory, samples.label, fields)
        return cls(course, samples, uses, fields, memory, found)

    def mean(self, values: FloatArray) -> FloatArray:
        """E over the samples, on the last axis."""
        return np.asarray(values @ self.samples.weights)

    def pull(self, place: int) -> FloatArray:
        """η̃Ar of a step."""
        rate = self.course.rates[self.uses[place]]
        return rate * self.course.neurons.values[:, None] * self.answers[place].residual

    def tilt(self, place: int) -> FloatArray:
        """Cov(ξ_j, θ), (j, T, Y)."""
        return self.pull(place) * self.answers[place].tilt

    def noise(self, one: int, other: int) -> FloatArray:
        """Cov(θ^l, θ^s) at each sample, (T, Y)."""
        one, other = min(one, other), max(one, other)
        low, high = self.answers[one], self.answers[other]
        both = high.square if one == other else high.echo[one]
        return self.pull(one) * self.pull(other) * (both - low.slope * high.slope)

    def loads(self, time: int) -> FloatArray:
        """A neuron's own field at a time on the ξ_j, (T, j)."""
        return solved(self.memory.roots, self.course.covariance[:, time, self.uses])

    def with_field(self, place: int, time: int) -> FloatArray:
        """Cov(θ, G) of a step and a time, (T, Y)."""
        return np.asarray(
            np.einsum("tj,jty->ty", self.loads(time)[:, : place + 1], self.tilt(place))
        )

    def with_sight(self, place: int, time: int) -> FloatArray:
        """Cov(θ, h) of a step and a time, (T, Y)."""
        total = self.with_field(place, time)
        for l, step in enumerate(self.uses):
            if step < time:
                back = self.course.own[:, time, step + 1] / self.memory.samples
                total = total + back[:, None] * self.noise(l, place)
        return total

    def sights(self, one: int, other: int) -> FloatArray:
        """Cov(h, h) at two times, (T, Y)."""
        total = self.course.covariance[:, one, other, None] + 0.0 * self.fields[0]
        for l, step in enumerate(self.uses):
            back = self.course.own[:, :, step + 1] / self.memory.samples
            if step < one:
                total = total + back[:, one, None] * self.with_sight(l, other)
            if step < other:
                total = total + back[:, other, None] * self.with_field(l, one)
        return total

    def slopes(self, place: int) -> FloatArray:
        """E ∂θ/∂G of a step in the fields of the batch's steps until then, (j, T, Y)."""
        tilt, roots, found = self.tilt(place), self.memory.roots, 0.0 * self.tilt(place)
        found[place] = self.pull(place) * self.answers[place].bend
        for j in range(place - 1, -1, -1):
            later = np.einsum("kty,tk->ty", found[j + 1 :], roots[:, j + 1 : place + 1, j])
            some = roots[:, j, j] > _STILL
            found[j, some] = (tilt[j] - later)[some] / roots[some, j, j, None]
        return found

    def amplitude(self, place: int) -> FloatArray:
        """a of a step, (C, Y)."""
        chances = self.course.neurons.probabilities[:, None]
        functions = self.course.functions[self.uses[place]]
        return np.asarray((chances * functions).T @ self.answers[place].mean)

    def remembered(self, time: int) -> FloatArray:
        """What a sample has added to x·F_A until a time, (T, Y)."""
        course, total = self.course, np.zeros_like(self.fields[0])
        for place, step in enumerate(self.uses):
            if step < time:
                own = course.own[:, time, step + 1][:, None]
                shared = course.shared[step][time] - own * course.functions[step]
                total += own * self.answers[place].mean + shared @ self.amplitude(place)
        return total / self.memory.samples

    def visited(self, visit: Visit) -> None:
        """Show what neurons see of the samples after all steps, apart from their mean."""
        course = self.course
        memory = course.memory([*self.uses, len(course.rates)])
        fields = [*self.fields, np.zeros_like(self.fields[0])]
        answers(course.neurons, memory, self.samples.label, fields, visit=visit)

    def along(self) -> FloatArray:
        """The same along teacher and directions, (1 + V, Y)."""
        found, course = [np.zeros_like(self.samples.weights)], self.course
        for mixing, before, step in zip(course.mixings, course.before, course.made):
            new = mixing @ (self.remembered(step + 1) - self.remembered(step))
            found.append(new - before @ np.array(found[: len(before)]))
        return np.array(found)


def factor(covariance: FloatArray) -> FloatArray:
    """Cholesky factors (T, s, s), zero where nothing is left."""
    root = np.zeros_like(covariance)
    for j in range(covariance.shape[-1]):
        beside = covariance[:, j:, j] - np.einsum("til,tl->ti", root[:, j:, :j], root[:, j, :j])
        size = np.sqrt(np.maximum(beside[:, 0], 0.0))
        some = size > _STILL
        root[some, j:, j] = beside[some] / size[some, None]
    return root


def solved(root: FloatArray, values: FloatArray) -> FloatArray:
    """L⁻¹v by forward substitution, (T, s)."""
    found = np.zeros_like(values)
    for j in range(values.shape[1]):
        rest = values[:, j] - (root[:, j, :j] * found[:, :j]).sum(axis=1)
        some = root[:, j, j] > _STILL
        found[some, j] = rest[some] / root[some, j, j]
    return found
