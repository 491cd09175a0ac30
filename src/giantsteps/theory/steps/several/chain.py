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
from itertools import product

import numpy as np

from giantsteps.problem import Problem
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.solver.bulk import Batch, Stage
from giantsteps.theory.steps.several.traces import trace_of_product
from giantsteps.theory.steps.several.trained import Record, Trained
from giantsteps.types import FloatArray

#: Rows of a pencil of products up to which batches are multiplied.
_ROWS = 28


def multiplies(problem: Problem) -> bool:
    """Whether batches are multiplied: isotropic inputs and few values of the second layer."""
    rows = 2 * problem.init.second_layer.distinct_nonzero * len(problem.steps)
    return problem.inputs.isotropic and rows <= _ROWS


def is_chain(trained: Trained) -> bool:
    """Whether batches are multiplied: several of them on neurons of few types, isotropic inputs."""
    several = trained.multiplied and len(trained.records) > 1
    return several and any(map(_turns, trained.records))


def chain_of(trained: Trained, external: FloatArray, stages: tuple[Stage, ...]) -> NeuronCovariance:
    """Σ_t with these vectors; those that norms go with are multiplied by all later G_t, too."""
    types = len(trained.values)
    means, gram = np.ones(types), np.ones((types, types))
    for record in trained.records:
        means, gram = _after(record, means, gram)
    # Leans that count as bulk, along all directions but those of spikes and teacher.
    rest = trained.totals - means
    own = np.eye(trained.directions + trained.teachers)
    vectors, _, place = _columns(trained)
    last = stages[-1]
    return NeuronCovariance(
        shares=np.ones(1),
        diagonal=np.ones((1, 1)),
        coefficients=np.column_stack([rest, np.eye(types)]),
        external=external,
        gram=np.block([[np.ones((1, 1)), means[None]], [means[:, None], gram]]),
        excess=-rest[:, None, None] * own if types > 1 else None,
        batches=tuple(map(_batch, trained.records)),
        stages=(
            *stages[:-1],
            replace(last, carry=last.carry[vectors], sums=last.sums[vectors], place=place),
        ),
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


def _turns(record: Record) -> bool:
    """Whether its G is not the identity."""
    return record.kept != 1.0 or bool(np.any(record.bent))


def _batch(record: Record) -> Batch:
    return Batch(
        samples=np.array(record.samples),
        weights=record.weights,
        first=record.first,
        second=record.second,
        linear=record.noise,
        factors=record.bent if _turns(record) else record.bent[:0],
        kept=np.array(record.kept),
    )


def _after(record: Record, means: FloatArray, gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """τ(Σ_t) and τ(Σ_tΣ_s) after a batch."""
    k, types = record.kept, range(len(means))

    def trace(*factors: FloatArray | int) -> float:
        """τ of a product of noise and of G_t, which are numbers."""
        total = 0.0
        turns = [place for place, one in enumerate(factors) if isinstance(one, int)]
        for kept in product((True, False), repeat=len(turns)):
            left = [place for place, stays in zip(turns, kept) if stays]
            word = [
                record.bent[one] if isinstance(one, int) else one
                for place, one in enumerate(factors)
                if place not in left
            ]
            total += k ** len(left) * trace_of_product(word, record.weights, record.samples)
        return total

    noise = record.noise
    new, across = np.empty_like(means), np.empty_like(gram)
    for t in types:
        new[t] = trace(t, t) * means[t] + trace(noise[t])
        for s in range(t + 1):
            both, outer = trace(t, s) ** 2, means[t] * means[s]
            total = both * (gram[t, s] - outer) + trace(t, t, s, s) * outer
            total += means[t] * trace(t, noise[s], t) + means[s] * trace(s, noise[t], s)
            across[t, s] = across[s, t] = total + trace(noise[t], noise[s])
    return new, across


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
    turns = [_turns(record) for record in records]
    found: list[int] = []
    for number, record in enumerate(records):
        # What the next batch that turns makes of its vectors, and x after the last one.
        later = [n for n in range(number + 1, len(records)) if turns[n]]
        here = 1 + sum(turns[: later[0]]) if later else 0
        own = 1 + sum(turns[:number])
        count = len(record.sums) - record.rank - teachers - len(found)
        others = trained.others[len(found) : len(found) + count]
        found += [own if other else here for other in others]
    return found
