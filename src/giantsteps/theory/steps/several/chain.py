r"""The covariance of neurons of one type after several steps: a product over the batches (§7).

A step multiplies the bulk by G = ϱ + M, M = n⁻¹Σ_i sr_iξ(k_i) x_ix_iᵀ, and adds the noise 𝐒 of its
batch,

.. math:: Σ ← GΣG + 𝐒 ,

so that Σ is made of the identity under all G, and of the noise of every batch under those that
follow. A batch is independent of what it multiplies: traces of products are those of free
operators, τ(GΩG) = τ(G²)τ(Ω) and

.. math:: τ(G²ΩG²Ω') = τ(G²)²τ(ΩΩ') + \bigl(τ(G⁴) - τ(G²)²\bigr)τ(Ω)τ(Ω') .
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.solver.bulk import Batch, Stage
from giantsteps.theory.steps.several.traces import trace_of_product
from giantsteps.theory.steps.several.trained import Record, Trained
from giantsteps.types import FloatArray


def is_chain(trained: Trained) -> bool:
    """Whether batches are multiplied: several of them on neurons of one type, isotropic inputs."""
    one = len(trained.values) == 1 and trained.along.shape[1] == 1
    return one and len(trained.records) > 1 and any(map(_turns, trained.records))


def chain_of(trained: Trained, external: FloatArray, stages: tuple[Stage, ...]) -> NeuronCovariance:
    """Σ with these vectors; those that norms go with are multiplied by all later G, too."""
    identity = NeuronCovariance(
        shares=np.ones(1),
        diagonal=np.ones((1, 1)),
        coefficients=np.ones((1, 1)),
        external=external,
        gram=np.ones((1, 1)),
    )
    means, gram = np.ones(1), np.ones((1, 1))
    for record in trained.records:
        means, gram = _after(record, means, gram)
    # The identity comes last in the solver; first what is left along all directions.
    order = [*range(1, len(means)), 0]
    means = np.append(1.0, means[order])
    whole = np.block([[np.ones((1, 1)), means[None, 1:]], [means[1:, None], gram[order][:, order]]])
    return replace(
        identity,
        coefficients=np.append(trained.totals[0] - means[1:].sum(), np.ones(len(order)))[None],
        gram=whole,
        batches=tuple(map(_batch, trained.records)),
        stages=(*stages[:-1], replace(stages[-1], place=_places(trained))),
    )


def loadings_of(trained: Trained, loadings: FloatArray) -> FloatArray:
    """Loadings (C, T, V) on the same vectors: Mv of a first step is (Gv − ϱv)/κ."""
    first, found = trained.records[0], loadings.copy()
    (factor,) = first.factors
    kappa = float((first.bent[0] * factor) @ first.weights / (factor**2 @ first.weights))
    bent = found[:, :, 3:5] / kappa
    unit, plain = first.sums[1], first.sums[4]
    length = float((plain * unit) @ first.weights / (unit**2 @ first.weights))
    found[:, :, 3:5] = bent
    found[:, :, 0] -= first.kept * length * bent[:, :, 0]
    found[:, :, 1] -= first.kept * bent[:, :, 1]
    return found


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
        factors=record.bent[: int(_turns(record))],
        kept=np.array(record.kept),
    )


def _after(record: Record, means: FloatArray, gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """τ(Ω) and τ(ΩΩ') of the operators under G, and of the batch's noise."""
    (bent,), (noise,), k = record.bent, record.noise, record.kept

    def trace(*word: FloatArray) -> float:
        return trace_of_product(word, record.weights, record.samples)

    one, two, three, four = (trace(*[bent] * j) for j in (1, 2, 3, 4))
    square = k * k + 2 * k * one + two
    fourth = k**4 + 4 * k**3 * one + 6 * k * k * two + 4 * k * three + four
    mixed = means * (k * k * trace(noise) + 2 * k * trace(bent, noise) + trace(bent, noise, bent))
    under = square**2 * gram + (fourth - square**2) * np.outer(means, means)
    own = np.array([[trace(noise, noise)]])
    return (
        np.append(square * means, trace(noise)),
        np.block([[under, mixed[:, None]], [mixed[None], own]]),
    )


def _places(trained: Trained) -> tuple[int, ...]:
    """Blocks of the last vectors: those of the norms are under the G of later steps."""
    records, teachers = trained.records, trained.teachers
    turns = [_turns(record) for record in records]
    place: list[int] = []
    for number, record in enumerate(records):
        # What the next batch that turns makes of its vectors, and x after the last one.
        later = [n for n in range(number + 1, len(records)) if turns[n]]
        here = 1 + sum(turns[: later[0]]) if later else 0
        own = 1 + sum(turns[:number])
        count = len(record.sums) - record.rank - teachers - len(place)
        others = trained.others[len(place) : len(place) + count]
        place += [own if other else here for other in others]
    return (*(0,) * records[-1].rank, *place, *(0,) * teachers)
