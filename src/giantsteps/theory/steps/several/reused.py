r"""Two steps on one batch: their equivalent model (theory §7).

A neuron gains n₀⁻¹Σ_iθ_ix_i, θ = s₁y(σ'(g) − μ₁) + s₂r(σ'(h) − ζ) beside its leans. Given a sample,
θ goes with the initial weights through E[gθ] and has the variance Var θ over neurons, so that the
batch adds

.. math:: n_0^{-1}Σ_iψ_A(i)\,x_ix_i^⊤,\qquad ψ_A = 2E[gθ] + \mathrm{Var}(θ)/α_0

to Σ_A, and the identity what is left of its trace.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from giantsteps.gaussian import moments
from giantsteps.problem import Problem
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.norms import Norms
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.solver.bulk import Batch, Stage
from giantsteps.theory.steps.first import link_of
from giantsteps.theory.steps.one import movement
from giantsteps.theory.steps.several.field import Field, respond, two_step_field
from giantsteps.theory.steps.several.fresh import kept_directions
from giantsteps.theory.steps.several.model import few_functions, gram_of, trained_by
from giantsteps.theory.steps.several.response import smoothed_slope
from giantsteps.theory.steps.several.sample_law import SampleLaw, sample_law
from giantsteps.types import FloatArray

__all__ = ["reused_steps"]

#: Nodes on each panel of the label and of the first step, by resolution, and their least weight.
_ORDERS, _PRUNED = (4, 5, 6, 8, 10), 1e-8
_RESOLVED = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4)


def reused_steps(
    problem: Problem, d: int | None = None, *, simplify: tuple[str, ...] = (), **others: Any
) -> SpikedFeatures:
    """The equivalent model after two steps on one batch."""
    neurons = math.inf if d is None else float(problem.at(d).neurons)
    sized = problem if d is None else problem.realised(d)
    rates = movement(sized, 0, neurons), movement(sized, 1, neurons)
    first, second = sized.steps
    shared: dict[str, Any] = {
        "activation": sized.activation,
        "teacher": link_of(sized),
        "noise_variance": sized.noise_variance,
        "width": sized.width,
        "neurons": neurons,
        "problem": problem,
        "levels": (0, 2),
        **others,
    }
    field = two_step_field(
        sized.activation,
        sized.teacher,
        sized.noise_variance,
        sized.init.second_layer,
        (first.samples, second.samples),
        rates,
        True,
    )

    @lru_cache(maxsize=8)
    def finer(level: int) -> SpikedFeatures:
        return _at_level(sized, field, rates, simplify, level, shared)

    return replace(finer(1), finer=finer)


@dataclass(frozen=True, eq=False)
class _Kept:
    """Directions that are kept as spikes, and neurons in them."""

    spikes: FloatArray  # (T, r)
    totals: FloatArray  # (T,)
    overlap: FloatArray  # (r,)
    first: FloatArray  # cosines with b̂, (r,)
    combination: FloatArray  # directions as combinations of neurons' leans, (T, r)


def _directions(field: Field) -> _Kept:
    modes = field.modes
    if not len(modes.strength):
        types = len(field.values)
        zero = np.zeros(1)
        return _Kept(np.zeros((types, 1)), field.variances, zero, zero, np.zeros((types, 1)))
    basis, combination = kept_directions(modes.spikes, field.probabilities, modes.teacher[0])
    spikes = modes.spikes @ basis
    dropped = (modes.spikes**2).sum(axis=1) - (spikes**2).sum(axis=1)
    return _Kept(
        spikes=spikes,
        totals=field.variances + np.maximum(dropped, 0.0),
        overlap=modes.teacher[0] @ basis,
        first=modes.first @ basis,
        combination=combination,
    )


def _at_level(
    problem: Problem,
    field: Field,
    rates: tuple[float, float],
    simplify: tuple[str, ...],
    level: int,
    shared: dict[str, Any],
) -> SpikedFeatures:
    kept = _directions(field)
    bulk, slope = NeuronCovariance.isotropic(kept.totals, len(kept.overlap)), None
    few = math.isfinite(problem.init.second_layer.distinct_nonzero)
    if "isotropic bulk" not in simplify:
        bulk, slope = _covariance(problem, field, kept, rates, level)
    pull = None
    if math.isfinite(shared["neurons"]):
        pull = _pull(problem, field, kept.totals, rates, slope)
    return SpikedFeatures(
        spikes=kept.spikes,
        overlap=kept.overlap,
        probabilities=field.probabilities,
        bulk=bulk,
        norms=_norms(problem, shared["neurons"], kept) if few and not simplify else None,
        pull=pull,
        second_layer=field.values,
        step_directions=kept.first[None],
        **shared,
    )


def _pull(
    problem: Problem,
    field: Field,
    totals: FloatArray,
    rates: tuple[float, float],
    slope: FloatArray | None,
) -> FloatArray:
    """What the initial output does to the penalty of m: W₀ shrinks along the types' right
    vectors.
    """
    root = np.sqrt(field.probabilities) * field.values
    linear = moments(problem.activation).linear
    memory = np.eye(len(root)) - rates[0] * linear**2 * np.outer(root, root)
    second = linear**2 * np.ones((len(root), len(root))) if slope is None else slope
    memory = (np.eye(len(root)) - rates[1] * np.outer(root, root) * second) @ memory
    change = (memory * totals) @ memory.T - np.diag(totals)
    spread = np.sqrt(field.probabilities)
    return np.asarray(change / np.outer(spread, spread))[None]


def _covariance(
    problem: Problem, field: Field, kept: _Kept, rates: tuple[float, float], level: int
) -> tuple[NeuronCovariance, FloatArray]:
    """Σ_A from the batch, and E[ζ_Aζ_A'] over its samples."""
    alpha, sigma = problem.steps[0].samples, moments(problem.activation)
    law = sample_law(problem.teacher, problem.noise_variance, alpha, _ORDERS[level])
    values, probabilities = field.values, field.probabilities
    response, r = respond(problem.activation, law, values, probabilities, rates[0], True)
    first, second = ((rate * values)[:, None, None] for rate in rates)
    y, zeta = law.label, response.slope
    linear = first * y * 2 * sigma.quadratic + second * r * response.tilt  # E[gθ]
    spread = first**2 * y**2 * sigma.derivative_variance
    spread = spread + 2 * first * second * y * r * (response.echo - sigma.linear * zeta)
    spread = spread + second**2 * r**2 * (response.slope_square - zeta**2)
    added = 2 * linear + spread / alpha
    lean = first * sigma.linear * y + second * r * zeta
    sums = np.tensordot(kept.combination.T, np.broadcast_to(lean, added.shape), axes=1)
    nodes = np.abs(law.mass) > _PRUNED
    scale = law.mass[nodes].sum()
    weights, along, square = (part[nodes] / scale for part in (law.mass, law.along[0], law.square))
    mixing, functions = few_functions(added[:, nodes], np.abs(weights), _RESOLVED[level])
    sums = sums[:, nodes]
    mean = functions @ weights
    within = (functions * weights) @ functions.T / alpha + np.outer(mean, mean)
    batch = Batch(
        samples=np.array(alpha),
        weights=weights,
        first=along[None],
        second=square[None, None],
        linear=functions,
        factors=np.zeros((0, len(weights))),
    )
    vectors = [sums, np.zeros((1, len(weights)))]
    if math.isfinite(problem.init.second_layer.distinct_nonzero):
        vectors.insert(1, _bent(problem, law, values, rates, r)[:, nodes])
    stacked = np.concatenate(vectors)
    count = len(stacked)
    stage = Stage(
        frame=np.ones((1, 1)),
        carry=np.eye(count)[:, -1:],
        sums=stacked,
        place=(0,) * count,
    )
    frame = _frame(kept.overlap, sums @ along, (sums * weights) @ sums.T / alpha)
    rank = len(sums)
    special = np.zeros((count, count))
    special[: rank + 1, :rank], special[: rank + 1, -1] = frame[:, :rank], frame[:, rank]
    special[np.arange(rank + 1, count), np.arange(rank, count - 1)] = 1.0
    covariance = NeuronCovariance(
        shares=np.ones(1),
        diagonal=np.ones((1, 1)),
        coefficients=np.concatenate([(kept.totals - mixing @ mean)[:, None], mixing], axis=1),
        external=np.ones((1, 1, 1)),
        special=special,
        gram=gram_of([(within, mean)]),
        batches=(batch,),
        stages=(stage,),
    )
    return covariance, np.einsum("tyv,syv,yv->ts", zeta, zeta, law.mass)


def _frame(overlap: FloatArray, seen: FloatArray, noise: FloatArray) -> FloatArray:
    """Spikes and teacher's remainder as combinations of sums over the batch and the teacher.

    The sums have the overlaps ``seen`` with the teacher and, beside it, the Gram matrix ``noise``;
    on a batch that is used twice spikes have another one, I − γγᵀ, as samples enter each other's
    weights. So the sums are turned and scaled beside the teacher.
    """
    rank = len(overlap)
    rest = np.eye(rank) - np.outer(overlap, overlap)
    turned = _root(rest) @ np.linalg.pinv(_root(noise), rcond=1e-9)
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


def _bent(
    problem: Problem,
    law: SampleLaw,
    values: FloatArray,
    rates: tuple[float, float],
    r: FloatArray,
) -> FloatArray:
    """What the norms of neurons go with: b̂, and for each type Σ_i r_iE[(z² − 1)σ'(h)]x_i, (1 +
    T, Y, V).
    """
    found = smoothed_slope(problem.activation, law, rates[0] * values)
    second = 2 * (rates[1] * values)[:, None, None] * r * 2 * found.quadratic[:, None]
    first = np.broadcast_to(law.label / math.sqrt(law.norm_squared), r.shape)
    return np.concatenate([first[None], second])


def _norms(problem: Problem, neurons: float, kept: _Kept) -> Norms:
    """Fluctuations of the norms: those of two steps on fresh batches, with weights of this one."""
    fresh = problem.replace({"steps": [replace(step, batch="fresh") for step in problem.steps]})
    _, states = trained_by(fresh, neurons, 1)
    trained = states[-1]
    rank, types = len(kept.overlap), len(trained.values)
    found = trained.fluctuations
    loadings = np.zeros((len(found), types, rank + 2 + types))
    stretch = np.zeros((len(found), types, rank))
    for c, one in enumerate(found):
        stretch[c, :, : min(rank, one.stretch.shape[1])] = one.stretch[:, :rank]
        loadings[c, :, rank + 1] = one.loadings[:, 0]
        loadings[c, :, rank + 2 :] = one.loadings[:, -types:]
    return Norms(
        np.stack([one.spread for one in found]),
        loadings,
        growth=np.stack([one.growth for one in found]),
        stretch=stretch,
    )
