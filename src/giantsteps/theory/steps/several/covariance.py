"""The neurons' covariances after several steps: what batches add, and a diagonal rest (§7, §10).

Σ_A = diagonal + Σ_b (batch b), where a batch adds what it makes of a bulk with the trace of the one
that it finds; the rest makes the trace in every eigenspace right. Where inputs are isotropic every
batch makes its vectors from those before it and from its samples. With a covariance the last one
does: vectors before it are given by their coordinates in the eigenspaces.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.functions_of_spike import left_of
from giantsteps.theory.model.norms import Norms
from giantsteps.theory.solver.bulk import Batch, Stage
from giantsteps.theory.steps.several.chain import Links, chain_of, is_chain, loadings_of
from giantsteps.theory.steps.several.spectrum import Spectrum
from giantsteps.theory.steps.several.traces import trace_of_product
from giantsteps.theory.steps.several.trained import Record, Trained, few_functions
from giantsteps.types import FloatArray

#: Functions of λ that are kept, relative to the largest, and where directions are explicit.
_DIAGONAL = (1e-6, 3e-3)
#: Weight of a direction whose share vanishes in the limit.
_LEAST = 1e-6
#: How much coarser the functions of a batch are where directions are explicit.
_COARSER = 5.0
#: Functions of the eigenvalues in the output's pull that are nothing, for each type.
_PULL = 1e-5


@dataclass(frozen=True, eq=False)
class _Operators:
    """Operators of one batch: functions of its samples, factors, and coefficients of the types."""

    record: Record
    linear: FloatArray  # (L, Y)
    coefficients: FloatArray  # (T, L + pairs)
    rest: FloatArray  # (T,), means of what the functions leave out

    @classmethod
    def of(cls, record: Record, multiplier: FloatArray, tolerance: float) -> _Operators:
        added, weights = multiplier[:, None] * record.added, record.weights
        mixing, functions = np.zeros((len(added), 0)), np.zeros((0, len(weights)))
        if added.size:
            mixing, functions = few_functions(added, np.abs(weights), tolerance)
        coefficients = [mixing, multiplier[:, None] * record.turned]
        return cls(
            record,
            np.concatenate([functions, record.linear]),
            np.concatenate(coefficients, axis=1),
            multiplier * record.mean - mixing @ (functions @ weights),
        )

    def profiles(self, shares: FloatArray, scales: FloatArray, within: FloatArray) -> FloatArray:
        """Diagonals of the operators in the eigenspaces, (L + …, I)."""
        record, factors = self.record, self.record.factors
        found = [np.multiply.outer(self.linear @ record.weights, scales)]
        mean, square = factors @ record.weights, factors**2 @ record.weights / record.samples
        first = np.multiply.outer(mean, np.sqrt(scales * within))
        if record.crossed:
            found.append(2 * first)
        own = np.multiply.outer(square, scales * (shares @ within))
        return np.concatenate([*found, first**2 + own])

    def gram(self, left: float, mixed: float, right: float) -> FloatArray:
        """d⁻¹tr ΣΩΣΩ' beyond the product of means, (L + …, L + …).

        The numbers are d⁻¹tr of Σ and the frames of the samples: twice that on the left of M, of
        both, twice that on its right.
        """
        record = self.record
        linear = np.concatenate([self.linear, *([2 * record.factors] if record.crossed else [])])
        sides = np.full(len(linear), left)
        if record.crossed:
            sides[-1] = mixed
        own = (linear * record.weights) @ linear.T / record.samples * np.outer(sides, sides)
        if not len(record.factors):
            return np.asarray(own)
        if record.crossed:
            own[-1, -1] *= (1 + left * right / mixed**2) / 2
        (factor,) = record.factors
        words = [*([one] for one in linear), [factor, factor]]
        law = record.weights, record.samples
        means = np.array([trace_of_product(word, *law) for word in words])
        last = np.array([trace_of_product([*word, factor, factor], *law) for word in words])
        last = (last - means * means[-1]) * left * np.append(sides, mixed**2 / left)
        return np.block([[own, last[:-1, None]], [last[None, :-1], last[-1:, None]]])

    @property
    def batch(self) -> Batch:
        record = self.record
        return Batch(
            samples=np.array(record.samples),
            weights=record.weights,
            first=record.first,
            second=record.second,
            linear=self.linear,
            factors=record.factors,
            crossed=record.crossed,
        )


def pull_of(trained: Trained, spectrum: Spectrum) -> tuple[FloatArray, FloatArray]:
    """What the output's pull did to the weights' Gram matrix along the types' right vectors, over
    λ_ι: few functions of ι (D, I), the first of them one, and their coefficients (D, T, T).

    Explicit directions have no bulk to pull on.
    """
    types, root = len(trained.values), np.sqrt(trained.probabilities)
    change = trained.memory / np.multiply.outer(spectrum.values, np.outer(root, root))
    one, flat = np.ones((1, len(change))), change.reshape(len(change), -1).T
    if spectrum.flat:
        return one, change
    flat[:, spectrum.places] = 0.0
    weight = spectrum.generic * spectrum.values
    left, size, _ = np.linalg.svd(flat * np.sqrt(weight), full_matrices=False)
    count = int((size > _PULL * types).sum())
    functions = np.concatenate([one, left[:, :count].T @ flat])
    functions[1:, spectrum.places] = 0.0
    found = np.concatenate([np.zeros((1, len(left))), left[:, :count].T])
    return functions, found.reshape(-1, types, types)


def covariance_of_state(
    trained: Trained,
    spectrum: Spectrum,
    tolerance: float,
    whitened: bool = True,
    links: Links | None = None,
) -> NeuronCovariance:
    """Σ_A of the state, in the frame of w; not whitened, without Σ between two of them.

    With ``links`` (`links.links_of`) batches are multiplied.

    Special vectors are orthonormal where ``whitened``, for Σ^{1/2}w; otherwise they are the spikes,
    the weak ones and the teacher's directions themselves.
    """
    if links is not None or is_chain(trained):
        external, stages = _stages(trained, spectrum)
        chain = chain_of(trained, external, stages, links)
        special = _special(trained, len(chain.stages[-1].carry), whitened)
        return _orthonormal(trained, replace(chain, special=special))
    explicit = spectrum.explicit is not None
    tolerance = tolerance * (_COARSER if explicit else 1.0)
    operators = [
        _Operators.of(record, multiplier, tolerance)
        for record, multiplier in zip(trained.records, trained.multipliers, strict=True)
    ]
    scales, shares = _scales(trained, spectrum), spectrum.shares
    within = spectrum.start if any(one.record.crossed for one in operators) else None
    seen = [_seen(number, trained, spectrum) for number in range(len(operators))]
    profiles = [
        one.profiles(shares, side, side if within is None else within)
        for one, side in zip(operators, seen)
    ]
    rest = trained.along / spectrum.values
    for one, profile in zip(operators, profiles):
        rest = rest - one.coefficients @ profile
        if spectrum.flat:  # what few functions leave out stays out: there are many resolutions
            rest = rest - one.rest[:, None]
    pulled, _ = pull_of(trained, spectrum)
    size, places = np.sqrt(shares + _LEAST), spectrum.places
    known = np.zeros((len(rest), len(pulled)))
    known[:, 0] = rest @ (spectrum.generic * spectrum.values)
    left = rest - known[:, :1]
    # Explicit directions have an operator each: a small error there is one with a large eigenvalue.
    apart = np.maximum(rest[:, places], 0.0) - known[:, :1]
    left[:, places] = 0.0
    some = _DIAGONAL[explicit] * np.linalg.norm(rest * size)
    mixed, functions = np.zeros((len(rest), 0)), np.zeros((0, len(shares)))
    if np.linalg.norm(left * size) > some:
        mixed, functions = few_functions(
            left, size**2, float(some / np.linalg.norm(left * size, 2))
        )
    functions[:, places] = 0.0
    diagonal = np.concatenate([pulled, functions, np.eye(len(shares))[places]])
    external, stages = _stages(trained, spectrum)
    count = stages[-1].carry.shape[0] if stages else len(external)
    stacked = np.concatenate([diagonal, *profiles]) * (spectrum.values if whitened else 1.0)
    gram, place = (stacked * shares) @ stacked.T, len(diagonal)
    outer = shares * (spectrum.values if whitened else 1.0)
    right = scales if within is None else within
    sides = [float(outer @ one) for one in (scales, np.sqrt(scales * right), right)]
    for one, profile in zip(operators, profiles):
        here = slice(place, place + len(profile))
        gram[here, here] += one.gram(*sides)
        place += len(profile)
    flat, batches = spectrum.flat, [one.batch for one in operators]
    if len(places) and batches:
        # The first batch sees explicit directions through its frame alone.
        second, rows = batches[0].second.copy(), np.arange(len(places))
        second[rows, rows] += batches[0].weights
        batches[0] = replace(batches[0], second=second)
    coefficients = [known, mixed, apart, *(one.coefficients for one in operators)]
    found = NeuronCovariance(
        shares=shares,
        diagonal=diagonal,
        coefficients=np.concatenate(coefficients, axis=1),
        external=external,
        special=_special(trained, count, whitened),
        gram=gram,
        means=stacked @ shares,
        inputs=spectrum.values if whitened and not flat else None,
        scales=None if flat else scales,
        within=within,
        batches=tuple(batches),
        stages=stages,
    )
    if len(operators) < 2 or explicit or not whitened:
        return found
    excess = trained.forms - trained.represented if trained.forms.size else None
    return replace(_orthonormal(trained, found), excess=excess)


def _orthonormal(trained: Trained, found: NeuronCovariance) -> NeuronCovariance:
    """Spikes and remainder are orthonormal but for the error of the batches' quadratures. (Where
    directions are explicit, that of few samples before the first step is another one.)
    """
    count = trained.directions + trained.teachers
    values, vectors = np.linalg.eigh(found.forms.values[0, :count, 0, :count, 0])
    turned = (vectors / np.sqrt(np.maximum(values, 1e-6))) @ vectors.T
    assert found.special is not None
    special = np.concatenate([turned @ found.special[:count], found.special[count:]])
    return replace(found, special=special)


def _scales(trained: Trained, spectrum: Spectrum) -> FloatArray:
    """Variances of what a step takes for its samples; the explicit direction is a frame's."""
    if not trained.records:
        return spectrum.values
    scales = trained.records[-1].reach ** 2 / spectrum.values
    return scales if spectrum.explicit is None else np.where(spectrum.explicit, 0.0, scales)


def _seen(number: int, trained: Trained, spectrum: Spectrum) -> FloatArray:
    """The same of one step; in the frame of the first explicit directions are themselves."""
    if number:
        return _scales(trained, spectrum)
    return np.asarray(trained.records[-1].reach ** 2 / spectrum.values)


def _stages(trained: Trained, spectrum: Spectrum) -> tuple[FloatArray, tuple[Stage, ...]]:
    """Vectors before the batches (k, I, m), and those after each of them."""
    records, root = trained.records, np.sqrt(spectrum.values)[:, None]
    teacher = trained.teacher / root
    if not records:
        return trained.axes / root, ()

    def padded(vectors: FloatArray) -> FloatArray:
        return np.pad(vectors, ((0, 0), (0, 0), (0, teacher.shape[2] - vectors.shape[2])))

    opening = 0 if spectrum.flat else len(records) - 1
    last = records[opening]
    frames = [padded(r.seen) * (r.reach[:, None] / root) for r in records[: opening + 1]]
    # M multiplies what is left of the weights beside explicit directions, the first vectors.
    right = [padded(r.seen) * root for r in records if r.crossed]
    for one in right:
        one[: len(spectrum.places)] = 0.0
    known = [padded(part) / root for part in (last.carried, last.before)]
    known = [part if part.any() else part[:0] for part in known]
    if len(frames) == 1 and np.array_equal(frames[0], teacher):
        frames = [teacher[:0]]
    external = np.concatenate([*frames, *right, *known, teacher])
    starts = np.cumsum([0, *(len(frame) for frame in (*frames, *right))])
    stages = []
    for number, record in enumerate(records):
        frame, carry, sums, within = record.frame, record.carry, record.sums, None
        if number <= opening:
            count = len(record.seen)
            frame = np.zeros((count, len(external)))
            start = starts[number] if len(frames[number]) else len(external) - count
            frame[:, start : start + count] = np.eye(count)
            if record.crossed:
                within = np.zeros_like(frame)
                within[:, starts[len(frames)] : starts[len(frames) + 1]] = np.eye(count)
            carry, sums = np.eye(len(external)), np.zeros((len(external), sums.shape[1]))
        if number == opening:
            sums = record.sums
            carry = np.zeros((len(sums), len(external)))
            carry[-len(teacher) :, -len(teacher) :] = np.eye(len(teacher))
            for part, row, column in zip(
                known, (0, record.rank), starts[-1] + np.cumsum([0, len(known[0])])
            ):
                places = np.arange(len(part))
                carry[row + places, column + places] = 1.0
        count = len(carry)
        place = (0,) * count
        if number >= opening:
            others = trained.others[: count - record.rank - len(teacher)]
            place = (*(0,) * record.rank, *others, *(0,) * len(teacher))
        stages.append(Stage(frame=frame, carry=carry, sums=sums, place=place, within=within))
    return external, tuple(stages)


def _special(trained: Trained, count: int, whitened: bool) -> FloatArray:
    """Spikes, weak ones, teacher's remainder and the vectors of the norms as combinations of the
    last vectors; not whitened, the teacher itself.
    """
    rank, some, beside = trained.rank, trained.directions, trained.teachers
    own = some + beside
    special = np.zeros((count, count))
    special[:some, :some] = np.eye(some)
    special[np.arange(own, count), np.arange(some, count - beside)] = 1.0
    if not whitened:
        special[some:own, -beside:] = np.eye(beside)
        return special
    along, _ = trained.shares
    special[some:own, :rank] = trained.frame[rank:, :rank]
    special[some:own, -beside:] = trained.frame[rank:, -beside:]
    special[some:own, rank:some] -= along
    special[some:own] = left_of(along)[1] @ special[some:own]
    return special


@dataclass(frozen=True, eq=False)
class OfWeights:
    """W itself: leans along orthonormal vectors, their overlaps with the teacher, and bulk."""

    spikes: FloatArray
    weak: FloatArray
    overlap: FloatArray
    weak_overlap: FloatArray
    steps: FloatArray
    bulk: NeuronCovariance


def weights_of_state(trained: Trained, spectrum: Spectrum, tolerance: float) -> OfWeights:
    """What the singular values of W need, where the law is that of Σ^{1/2}W."""
    bulk = covariance_of_state(trained, spectrum, tolerance, whitened=False)
    some, rank = trained.directions, trained.rank
    own = some + trained.teachers
    gram = bulk.forms.values[0, :own, 0, :own, 0]
    gram[np.arange(some, own), np.arange(some, own)] *= 1.0 + 1e-12
    turn = np.linalg.cholesky(gram)
    assert bulk.special is not None
    special = np.concatenate([np.linalg.solve(turn, bulk.special[:own]), bulk.special[own:]])
    leans = np.concatenate([trained.spikes, trained.weak], axis=1) @ turn[:some, :some]
    overlap = turn[some:, :some] / np.sqrt(np.diag(gram)[some:, None])
    root = np.sqrt(spectrum.values)[:, None]
    axes = np.linalg.solve(turn[:some, :some], (trained.axes[:some] / root).reshape(some, -1))
    steps = (trained.gradients / root).reshape(len(trained.gradients), -1)
    steps = steps / np.linalg.norm(steps, axis=1, keepdims=True)
    return OfWeights(
        leans[:, :rank],
        leans[:, rank:],
        overlap[:, :rank],
        overlap[:, rank:],
        steps @ axes.T,
        replace(bulk, special=special),
    )


def norms_of_state(trained: Trained, bulk: NeuronCovariance) -> Norms | None:
    """Loadings follow the spikes and the remainder in the frame of special vectors."""
    start, found = trained.directions + trained.teachers, trained.fluctuations
    if not found:
        return None
    given = np.zeros((len(found), len(trained.values), len(trained.others)))
    for c, one in enumerate(found):
        given[c, :, : one.loadings.shape[1]] = one.loadings
    if is_chain(trained):
        given = loadings_of(trained, given)
    elif bulk.batches and bulk.batches[0].kept is not None:
        given[:, :, np.array(trained.others) > 0] = 0.0  # a chain has no Mv
    loadings = np.pad(given, ((0, 0), (0, 0), (start, bulk.frame - start - given.shape[2])))
    if len(trained.records) > 1 and found[0].along.size:
        # What they are on spikes and remainder, beyond what the vectors have there.
        gram = bulk.forms.values[0, :, 0, :start, 0]
        loadings[:, :, :start] = np.stack([one.along for one in found]) - loadings @ gram
    return Norms(
        np.stack([one.spread for one in found]),
        loadings,
        growth=np.stack([one.growth for one in found]),
        stretch=np.stack([one.stretch for one in found]),
        own=np.stack([one.own(trained.axes[: trained.rank]) for one in found]),
        initial=next((place for place, one in enumerate(found) if one.initial), None),
    )


def operators_on(covariance: NeuronCovariance, count: int) -> FloatArray:
    """Σ_A on the first special vectors, (T, F, F)."""
    unit, (one, other) = np.eye(count, covariance.frame), np.triu_indices(count)
    forces = np.concatenate([unit, unit[one] + unit[other]])
    along = covariance.forms.slopes(forces)[:, 1:, 0, 0] @ covariance.coefficients.T
    single, both = along[:count], along[count:]
    found = np.empty((len(covariance.coefficients), count, count))
    found[:, one, other] = found[:, other, one] = (both - single[one] - single[other]).T / 2
    return found
