r"""Two steps on one batch: their equivalent model (theory §7).

The directions are those of :mod:`field`, the covariances those of :mod:`reused_covariance`, and the
norms those of :mod:`reused_norms`. Samples see the direction of the first step, which they have
made: given it they are independent (:mod:`samples`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from giantsteps.functions import SingleIndex
from giantsteps.gaussian import moments
from giantsteps.problem import Problem
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.norms import Norms
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.solver.bulk import Batch, Stage
from giantsteps.theory.steps.one import folded, movement, tails_of
from giantsteps.theory.steps.several.covariance import operators_on
from giantsteps.theory.steps.several.directions import DIRECTIONS, WEAK, kept_directions
from giantsteps.theory.steps.several.field import Field, two_step_field
from giantsteps.theory.steps.several.fresh_norms import LOADS
from giantsteps.theory.steps.several.model import RESOLVED
from giantsteps.theory.steps.several.response import Response, gains, lengths
from giantsteps.theory.steps.several.reused_covariance import (
    parts_of_neurons,
    products,
    with_factors,
)
from giantsteps.theory.steps.several.reused_forms import Vectors, forms_of_neurons
from giantsteps.theory.steps.several.reused_norms import ReusedNorms, reused_norms
from giantsteps.theory.steps.several.sample_law import sample_law
from giantsteps.theory.steps.several.samples import Samples
from giantsteps.theory.steps.several.traces import gram_of_batch
from giantsteps.theory.steps.several.trained import few_functions, pulled
from giantsteps.theory.steps.sized import at_size, by_resolution
from giantsteps.types import FloatArray

#: Nodes on each panel of the label and of the first step, by resolution, and their least weight.
_ORDERS, _PRUNED = (4, 5, 6, 8, 10), 1e-8
#: Size of functions of the samples whose products are exact, for few types and for many.
_FACTORS = (0.1, 0.3)


def reused_steps(
    problem: Problem, d: int | None = None, *, simplify: tuple[str, ...] = (), **others: Any
) -> SpikedFeatures:
    """The equivalent model after two steps on one batch.

    For a teacher of several directions the bulk is isotropic.
    """
    simplify = simplify if problem.teacher.rank == 1 else ("isotropic bulk",)
    few = math.isfinite(problem.init.second_layer.distinct_nonzero)
    sized, neurons, shared = at_size(problem, d, levels=(0, 4 if few else 2), **others)
    rates = movement(sized, 0, neurons), movement(sized, 1, neurons)

    def built(level: int, tails: tuple[float, float] = (0.0, 0.0)) -> SpikedFeatures:
        field = two_step_field(
            sized.activation,
            sized.teacher,
            sized.noise_variance,
            sized.init.second_layer,
            sized.steps[0].samples,
            rates,
            tails[1],
        )
        if not tails[1] and sized.init.second_layer.symmetric and moments(sized.activation).is_odd:
            field = _folded(field)
        return _at_level(sized, field, rates, simplify, level, shared, tails[0])

    tails = tails_of(sized, d, neurons)
    cut = None if sized.teacher.rank > 1 else lambda level: built(level, tails)
    return by_resolution(built, 1, cut)


def _folded(field: Field) -> Field:
    """Types A ≥ 0 alone, where F is odd."""
    kept = field.values >= 0
    values, probabilities = folded(field.values, field.probabilities)
    return replace(
        field,
        values=values,
        probabilities=probabilities,
        kernel=field.kernel[np.ix_(kept, kept)],
        teacher=field.teacher[kept],
        first=field.first[kept],
        variances=field.variances[kept],
        response=Response(*(getattr(field.response, one.name)[kept] for one in fields(Response))),
    )


@dataclass(frozen=True, eq=False)
class _Kept:
    """Directions that are kept as spikes, and neurons in them."""

    leans: FloatArray  # along the spikes and the weak ones, (T, r + J)
    totals: FloatArray  # (T,), with the squares of the weak ones
    overlap: FloatArray  # (r + J,), or (R, r + J)
    first: FloatArray  # cosines with b̂, (r + J,)
    combination: FloatArray  # directions as combinations of neurons' leans, (T, r + J)


def _directions(field: Field) -> _Kept:
    modes = field.modes
    if not len(modes.strength):
        types = len(field.values)
        zero, none = np.zeros((len(modes.teacher), 1)), np.zeros((types, 1))
        return _Kept(none, field.variances, _rows(zero), np.zeros(1), none)
    teacher = modes.teacher
    basis, combination, _ = kept_directions(modes.spikes, field.probabilities, teacher, WEAK)
    leans = modes.spikes @ basis
    dropped = (modes.spikes**2).sum(axis=1) - (leans[:, :DIRECTIONS] ** 2).sum(axis=1)
    return _Kept(
        leans=leans,
        totals=field.variances + np.maximum(dropped, 0.0),
        overlap=_rows(teacher @ basis),
        first=modes.first @ basis,
        combination=combination,
    )


def _rows(overlap: FloatArray) -> FloatArray:
    """Overlaps of the teacher's directions; without the axis where there is one."""
    return overlap if len(overlap) > 1 else overlap[0]


def _at_level(
    problem: Problem,
    field: Field,
    rates: tuple[float, float],
    simplify: tuple[str, ...],
    level: int,
    shared: dict[str, Any],
    tail: float,
) -> SpikedFeatures:
    kept = _directions(field)
    size = kept.leans.shape[1], problem.teacher.rank
    bulk, slope, norms = NeuronCovariance.isotropic(kept.totals, *size), None, None
    # Without a penalty a continuous second layer fits every function that norms could add.
    few = math.isfinite(min(problem.init.second_layer.distinct_nonzero, shared["neurons"]))
    if "isotropic bulk" not in simplify:
        bulk, slope, norms = _covariance(
            problem, field, kept, rates, level, few and not simplify, tail
        )
    pull = None
    if math.isfinite(shared["neurons"]):
        pull = _pull(problem, field, rates, slope)
    return SpikedFeatures(
        spikes=kept.leans[:, :DIRECTIONS],
        overlap=kept.overlap[..., :DIRECTIONS],
        weak=kept.leans[:, DIRECTIONS:],
        weak_overlap=kept.overlap[..., DIRECTIONS:],
        probabilities=field.probabilities,
        bulk=bulk,
        norms=norms,
        pull=pull,
        second_layer=field.values,
        step_directions=kept.first[None],
        **shared,
    )


def _initial(problem: Problem) -> float:
    """Mean output of the initial network."""
    return moments(problem.activation).mean * problem.init.second_layer.mean


def _pull(
    problem: Problem,
    field: Field,
    rates: tuple[float, float],
    slope: tuple[FloatArray, FloatArray] | None,
) -> FloatArray:
    """What the initial output does to the penalty of m: W₀ shrinks along the types' right
    vectors.
    """
    root = np.sqrt(field.probabilities) * field.values
    sigma, alpha, one = moments(problem.activation), problem.steps[0].samples, np.ones(len(root))
    first = rates[0] * sigma.linear**2 * np.outer(root, root)
    grown = lengths(sigma, field.law, rates[0] * field.values)
    turned = gains(sigma, field.law, rates[0] * field.values)
    change = pulled(np.zeros_like(first), one, turned, first, one / alpha)
    second, gain = (sigma.linear**2, one) if slope is None else slope
    pull = rates[1] * np.outer(root, root) * second
    change = pulled(change, grown, gain, pull, grown / alpha)
    spread = np.sqrt(field.probabilities)
    return np.asarray(change / np.outer(spread, spread))[None]


def _covariance(
    problem: Problem,
    field: Field,
    kept: _Kept,
    rates: tuple[float, float],
    level: int,
    few: bool,
    tail: float,
) -> tuple[NeuronCovariance, tuple[FloatArray, FloatArray], Norms | None]:
    """Σ_A from the batch, E[ζ_Aζ_A'] over its samples with what the second step makes of old
    weights, and the norms of the types.
    """
    alpha, values = problem.steps[0].samples, field.values
    law = sample_law(
        problem.teacher,
        problem.noise_variance,
        alpha,
        _ORDERS[min(level + 2, 4) if tail else level],
        _initial(problem),
    )
    response, r = field.seen_by(law)
    samples = Samples.of(law, r, _PRUNED)
    if tail:
        assert isinstance(problem.teacher, SingleIndex)
        samples = Samples.bounded(
            law, r, problem.teacher, problem.noise_variance, tail, level, _initial(problem)
        )
    zeta = samples.take(response.slope)
    linear = rates[0] * moments(problem.activation).linear
    lean = values[:, None] * (linear * samples.label + rates[1] * samples.residual * zeta)
    parts = parts_of_neurons(problem.activation, samples, response, values, rates)
    exact = _FACTORS[math.isinf(problem.init.second_layer.distinct_nonzero)]
    factors, shares, squares, added = with_factors(
        products(parts, samples), field.probabilities, samples, exact
    )
    mixing, functions = few_functions(added, np.abs(samples.weights), RESOLVED[level])
    vectors, place = [kept.combination.T @ lean], [0] * len(kept.overlap)
    norms, loads = None, []
    if few:
        passed = parts.second @ samples.weights
        norms = reused_norms(problem.activation, samples, values, rates, kept.totals, passed)
        old = norms.linear + samples.passed_on(parts.first, norms.moves)
        old = old - (parts.first @ samples.weights)[:, None] * norms.moves  # ν is beside a₁g
        for c, functions_of_types in enumerate([old + norms.own, old]):
            load, some = few_functions(functions_of_types, np.abs(samples.weights), LOADS)
            loads.append(load)
            for block in [0] if c == 0 else range(1, 1 + len(factors)):
                vectors.append(some)
                place += [block] * len(some)
    stacked = np.concatenate([*vectors, np.zeros((1, len(samples.weights)))])
    carry, sums = samples.conditioned(stacked)
    carry[-1, 0] = 1.0
    first, second = samples.coordinates()
    batch = Batch(
        samples=np.array(alpha),
        weights=samples.weights,
        first=first,
        second=second,
        linear=functions,
        factors=factors,
        given=samples.label,
    )
    count, rank = len(stacked), len(kept.overlap)
    gram = gram_of_batch(functions, factors, samples.weights, alpha)
    others = np.concatenate([mixing, squares], axis=1)
    own = carry[:rank] + sums[:rank] @ first.T  # on the teacher, and on b beside it
    beside = (sums[:rank] * samples.weights) @ sums[:rank].T / alpha
    frame = _frame(kept.overlap, own[:, 0], beside + np.outer(own[:, 1], own[:, 1]))
    special = np.zeros((count, count))
    special[: rank + 1, :rank], special[: rank + 1, -1] = frame[:, :rank], frame[:, rank]
    special[np.arange(rank + 1, count), np.arange(rank, count - 1)] = 1.0
    covariance = NeuronCovariance(
        shares=np.ones(1),
        diagonal=np.ones((1, 1)),
        coefficients=np.column_stack([kept.totals - others @ gram[0, 1:], others]),
        external=np.eye(2)[:, None],
        special=special,
        gram=gram,
        batches=(batch,),
        stages=(Stage(frame=np.eye(2), carry=carry, sums=sums, place=(*place, 0)),),
    )
    spikes = special[: rank + 1]
    along = Vectors(batch, spikes @ (carry + sums @ first.T), spikes @ sums)
    excess = forms_of_neurons(along, parts) - operators_on(covariance, rank + 1)
    covariance = replace(covariance, excess=excess)
    tilt = samples.take(response.tilt) @ (samples.residual * samples.weights)
    turned = 1.0 + parts.first @ samples.weights
    slope = (zeta * samples.weights) @ zeta.T, 1.0 + rates[1] * values * tilt / turned
    if norms is None:
        return covariance, slope, None
    stretch = samples.inner(norms.stretch, lean) @ kept.combination[:, :DIRECTIONS]
    gaussian = problem.init.weights == "gaussian"
    found = _norms(norms, stretch, shares, loads, covariance, rank, gaussian)
    return covariance, slope, found


def _frame(overlap: FloatArray, seen: FloatArray, beside: FloatArray) -> FloatArray:
    """Spikes and teacher's remainder as combinations of sums over the batch and the teacher.

    The sums have the overlaps ``seen`` with the teacher and, beside it, the Gram matrix ``beside``:
    those of the spikes, γ and I − γγᵀ, but for the error of the quadrature, which is taken out.
    """
    rank = len(overlap)
    rest = np.eye(rank) - np.outer(overlap, overlap)
    turned = _root(rest) @ np.linalg.pinv(_root(beside), rcond=1e-9)
    frame = np.zeros((rank + 1, rank + 1))
    frame[:rank, :rank], frame[:rank, rank] = turned, overlap - turned @ seen
    remainder = math.sqrt(max(1.0 - float(overlap @ overlap), 0.0))
    inverse = 1.0 / remainder if remainder > 1e-12 else 0.0
    frame[rank] = -inverse * (overlap @ frame[:rank])
    frame[rank, rank] += inverse
    return frame


def _root(matrix: FloatArray) -> FloatArray:
    """The symmetric square root of a positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _norms(
    found: ReusedNorms,
    stretch: FloatArray,
    shares: FloatArray,
    loads: list[FloatArray],
    bulk: NeuronCovariance,
    rank: int,
    gaussian: bool,
) -> Norms:
    """One fluctuation of the norms, and for Gaussian weights that of the initial ones."""
    types = len(stretch)
    loadings, start = np.zeros((types, bulk.frame)), rank + 1
    for c, share in enumerate([np.ones(types), *shares.T]):
        load = loads[min(c, 1)]
        loadings[:, start : start + load.shape[1]] = share[:, None] * load
        start += load.shape[1]
    spread = np.maximum(2 * (bulk.modes**2).sum(axis=1) + found.spread, 0.0)
    return Norms.after_steps(spread, loadings, found.growth, stretch, gaussian)
