r"""The covariances of neurons of few types after several steps: products over the batches (§7).

A step multiplies the bulk of type t by G_t = ϱ + M_t, M_t = n⁻¹Σ_i s_tr_iξ_t(k_i) x_ix_iᵀ, and adds
the noise 𝐒_t of its batch,

.. math:: Σ_t ← G_tΣ_tG_t + 𝐒_t ,

so that Σ_t is made of the identity under all G_t, and of the noise of every batch under those that
follow. A batch is independent of what it multiplies: traces of products are those of free
operators, τ(GΩG) = τ(G²)τ(Ω) and

.. math:: τ(G_tΣ_tG_tG_sΣ_sG_s) = τ(G_tG_s)²\bigl(τ(Σ_tΣ_s) - τ(Σ_t)τ(Σ_s)\bigr)
          + τ(G_t²G_s²)τ(Σ_t)τ(Σ_s) .
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from giantsteps.problem import Problem
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.solver.bulk import Batch, Stage
from giantsteps.theory.steps.several.trained import Record, Trained
from giantsteps.types import FloatArray

#: Functions of A and their duals, (2, T, L), for each batch that turns the weights.
Links = tuple[FloatArray | None, ...]

#: Rows of a pencil of products up to which batches are multiplied.
_ROWS = 28


def multiplies(problem: Problem) -> bool:
    """Whether batches are multiplied: isotropic inputs and few values of the second layer."""
    rows = 2 * problem.init.second_layer.distinct_nonzero * len(problem.steps)
    return problem.inputs.isotropic and rows <= _ROWS


def is_chain(trained: Trained) -> bool:
    """Whether batches are multiplied: several of them on neurons of few types, isotropic inputs."""
    several = trained.multiplied and len(trained.records) > 1
    return several and any(map(turns, trained.records))


def chain_of(
    trained: Trained,
    external: FloatArray,
    stages: tuple[Stage, ...],
    links: Links | None = None,
) -> NeuronCovariance:
    """Σ_t with these vectors; those that norms go with are multiplied by all later G_t, too, where
    each type has rows of its own, and are as they were with ``links``.
    """
    types, last = len(trained.values), stages[-1]
    means, gram = np.ones(types), np.ones((types, types))
    for record in trained.records:
        means, gram = _after(record, means, gram)
    # Leans that count as bulk, along all directions but those of spikes and teacher.
    rest = trained.totals - means
    own = np.eye(trained.directions + trained.teachers)
    if links is None:
        vectors, _, place = _columns(trained)
        last = replace(last, carry=last.carry[vectors], sums=last.sums[vectors], place=place)
        links = (None,) * len(trained.records)
    else:
        last = replace(last, place=(0,) * len(last.place))
    return NeuronCovariance(
        shares=np.ones(1),
        diagonal=np.ones((1, 1)),
        coefficients=np.column_stack([rest, np.eye(types)]),
        external=external,
        gram=np.block([[np.ones((1, 1)), means[None]], [means[:, None], gram]]),
        excess=-rest[:, None, None] * own if types > 1 else None,
        batches=tuple(map(_batch, trained.records, links)),
        stages=(*stages[:-1], last),
    )


def loadings_of(trained: Trained, loadings: FloatArray) -> FloatArray:
    """Loadings (C, T, V) by the vectors of the chain (C, T, V'): Mv of a first step is
    (Gv − ϱv)/κ, and those under the G_t of a type are that type's.
    """
    first, found = trained.records[0], loadings.copy()
    for factor in first.factors:
        kappa = (first.bent * factor) @ first.weights / (factor**2 @ first.weights)
        bent = found[:, :, 3:5] / np.where(kappa != 0, kappa, 1.0)[:, None]
        unit, plain = first.sums[1], first.sums[4]
        length = float((plain * unit) @ first.weights / (unit**2 @ first.weights))
        found[:, :, 3:5] = bent
        found[:, :, 0] -= first.kept * length * bent[:, :, 0]
        found[:, :, 1] -= first.kept * bent[:, :, 1]
    columns, of, _ = _columns(trained)
    rank, count = trained.records[-1].rank, len(columns) - trained.teachers
    types, vectors = np.array(of[rank:count]), np.array(columns[rank:count], dtype=int) - rank
    seen = (types == np.arange(len(trained.values))[:, None]) | (types < 0)
    return np.asarray(found[:, :, vectors] * seen)


def turns(record: Record) -> bool:
    """Whether its G is not the identity."""
    return record.kept != 1.0 or bool(np.any(record.bent))


def _batch(record: Record, links: FloatArray | None) -> Batch:
    return Batch(
        samples=np.array(record.samples),
        weights=record.weights,
        first=record.first,
        second=record.second,
        linear=record.noise,
        factors=record.bent if turns(record) else record.bent[:0],
        kept=np.array(record.kept),
        links=links,
    )


def _after(record: Record, means: FloatArray, gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """τ(Σ_t) and τ(Σ_tΣ_s) after a batch, by the free cumulants of G_t and of the noise."""
    w, alpha, bent, noise = record.weights, record.samples, record.bent, record.noise
    g, n = record.kept + bent @ w, noise @ w
    gg, gn, nn = ((a * w) @ b.T / alpha for a, b in ((bent, bent), (bent, noise), (noise, noise)))
    ggg, ggn = ((bent**2 * w) @ b.T / alpha**2 for b in (bent, noise))
    gggg = (bent**2 * w) @ (bent**2).T / alpha**3
    t, square = g[:, None], g**2 + np.diag(gg)
    four = np.outer(square, square) + 4 * t * g * gg + gg**2 + 2 * (ggg * g + ggg.T * t) + gggg
    outer = np.outer(means, means)
    mixed = means[:, None] * (np.outer(square, n) + 2 * t * gn + ggn)
    across = (t * g + gg) ** 2 * (gram - outer) + four * outer + mixed + mixed.T
    return square * means + n, across + np.outer(n, n) + nn


def _columns(trained: Trained) -> tuple[list[int], list[int], tuple[int, ...]]:
    """The last vectors of the chain: which of the last vectors they are, of which type, or −1, and
    their places.
    """
    last, teachers, types = trained.records[-1], trained.teachers, len(trained.values)
    levels = [0] * last.rank + _levels(trained) + [0] * teachers
    found = [
        (vector, t, 1 + (level - 1) * types + t if level else 0)
        for vector, level in enumerate(levels)
        for t in (range(types) if level else (-1,))
    ]
    vectors, of_types, place = zip(*found)
    return list(vectors), list(of_types), place


def _levels(trained: Trained) -> list[int]:
    """How many batches that turn come before or with those which vectors of the norms are under
    the G of, and zero for none.
    """
    records, teachers = trained.records, trained.teachers
    turning = [turns(record) for record in records]
    found: list[int] = []
    for number, record in enumerate(records):
        # What the next batch that turns makes of its vectors, and x after the last one.
        later = [n for n in range(number + 1, len(records)) if turning[n]]
        here = 1 + sum(turning[: later[0]]) if later else 0
        own = 1 + sum(turning[:number])
        count = len(record.sums) - record.rank - teachers - len(found)
        others = trained.others[len(found) : len(found) + count]
        found += [own if other else here for other in others]
    return found
