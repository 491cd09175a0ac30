"""The law of a neuron after some steps, and what it remembers of their batches (theory §7)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from giantsteps.functions import Function, SingleIndex, Teacher
from giantsteps.theory.model.functions_of_spike import left_of
from giantsteps.types import FloatArray


@dataclass(frozen=True)
class Task:
    """What all steps share: the network's activation and the teacher of its labels."""

    activation: Function
    teacher: Teacher
    noise_variance: float

    @property
    def link(self) -> Function | None:
        """σ* where the teacher depends on one direction."""
        return self.teacher.link if isinstance(self.teacher, SingleIndex) else None


@dataclass(frozen=True, eq=False)
class Fluctuation:
    """A quantity that varies between the neurons of a type, by order d^{-1/2} (theory §5b).

    ======  =========  ==========  ===========================================================
    symbol  attribute  shape       meaning
    ======  =========  ==========  ===========================================================
    v       spread     (T,)        d times its variance
    f       growth     (T,)        what it makes of the squared norm of the bulk
    e       stretch    (T, r)      and of the lean
    ℓ       loadings   (T, V)      d times its covariance with the weights, on the vectors that
                                   are carried along
    \\       along      (T, F)      the same as it is on spikes, weak ones and the teacher's
                                   remainder; empty: as the vectors have it
    ======  =========  ==========  ===========================================================
    """

    spread: FloatArray
    growth: FloatArray
    stretch: FloatArray
    loadings: FloatArray
    along: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True, eq=False)
class Record:
    """A batch as the bulk remembers it; nodes stand for samples with the same (k, r).

    ======  =========  ===========  ==========================================================
    symbol  attribute  shape        meaning
    ======  =========  ===========  ==========================================================
    α       samples                 n/d
    \\       weights    (Y,)
    κ       first,     (E, Y),      moments of the coordinates on the frame (spikes before the
            second     (E, E, Y)    step, what they leave of the teacher)
    ψ_A     added      (T, Y)       what the batch adds to Σ_A: n⁻¹Σψ_A x xᵀ
    F       frame      (E, V)       the frame as combinations of the vectors before
    c       carry      (V', V)      vectors after the step: combinations of those before …
    a       sums       (V', Y)      … and sums over the batch
    r'      rank                    spikes after the step, with the weak ones
    ======  =========  ===========  ==========================================================
    """

    samples: float
    weights: FloatArray
    first: FloatArray
    second: FloatArray
    added: FloatArray
    frame: FloatArray
    carry: FloatArray
    sums: FloatArray
    rank: int


@dataclass(frozen=True, eq=False)
class Trained:
    """The law of a neuron after some steps.

    Vectors that are carried along: the r spikes, the J weak ones, then those that norms go with,
    last the teacher's R.

    ======  =============  =========  =====================================================
    symbol  attribute      shape      meaning
    ======  =============  =========  =====================================================
    A, π    values,        (T,)       types
            probabilities
    S_A     spikes         (T, r)     leans
    c_A     totals         (T,)       squared norms of the bulk
    Γ       overlap        (R, r)     of the teacher's directions with the spikes
    \\       weak           (T, J)     leans along weak directions, whose squares c_A contains
    \\       weak_overlap   (R, J)     of the teacher's directions with them
    \\       forms,         (T, F, F)  Σ_A on spikes, weak ones and the teacher's remainder, and the
            represented               same of the sums over batches above; empty: the same
    \\       steps          (s, r + J) cosines of the direction Xᵀr of each step with the spikes
    Q       memory         (T, T)     what the output did to the weights' Gram matrix along the
                                      types' right vectors
    a_A     constant       (T,)       Σ_A = a_A I + Σ_b multiplier_b(A) (batch b)
    \\       multipliers    (s, T)
    \\       records                   batches from the second one on
    \\       fluctuations
    \\       others                    blocks of the vectors that norms go with
    ======  =============  =========  =====================================================
    """

    values: FloatArray
    probabilities: FloatArray
    spikes: FloatArray
    totals: FloatArray
    overlap: FloatArray
    steps: FloatArray
    memory: FloatArray
    constant: FloatArray
    multipliers: FloatArray
    records: tuple[Record, ...] = ()
    fluctuations: tuple[Fluctuation, ...] = ()
    others: tuple[int, ...] = ()
    weak: FloatArray = field(default_factory=lambda: np.zeros((1, 0)))
    weak_overlap: FloatArray = field(default_factory=lambda: np.zeros((1, 0)))
    forms: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    represented: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))

    @property
    def rank(self) -> int:
        """r."""
        return int(self.spikes.shape[1])

    @property
    def teachers(self) -> int:
        """R."""
        return len(self.overlap)

    @cached_property
    def beside(self) -> FloatArray:
        """(I − ΓΓᵀ)^{1/2}, what the spikes leave of the teacher, (R, R)."""
        return left_of(self.overlap)[0]

    @property
    def directions(self) -> int:
        """r + J."""
        return self.rank + self.weak_overlap.shape[1]

    @cached_property
    def shares(self) -> tuple[FloatArray, FloatArray]:
        """The teacher's remainder on the weak directions, (R, J), and on what they leave of it."""
        along = left_of(self.overlap)[1] @ self.weak_overlap
        return along, left_of(along)[0]

    @property
    def onto(self) -> FloatArray:
        """(spikes, teacher's remainder) in (spikes, weak ones, what they leave of the teacher)."""
        rank, count = self.rank, self.teachers
        onto = np.zeros((self.directions + count, rank + count))
        onto[:rank, :rank] = np.eye(rank)
        onto[rank:, rank:] = np.concatenate(self.shares, axis=1).T
        return onto

    @property
    def frame(self) -> FloatArray:
        """(spikes, teacher's remainder) as combinations of the vectors that are carried along."""
        rank, count = self.rank, self.teachers
        frame = np.zeros((rank + count, self.directions + len(self.others) + count))
        frame[:rank, :rank] = np.eye(rank)
        _, inverse = left_of(self.overlap)
        frame[rank:, :rank], frame[rank:, -count:] = -inverse @ self.overlap, inverse
        return frame


def pulled(
    memory: FloatArray, totals: FloatArray, gain: FloatArray, pull: FloatArray, samples: float
) -> FloatArray:
    """Q after a step: (g − P)(Q + c)(g − P)ᵀ − g²c, with what a batch of α adds to P c Pᵀ."""
    left = np.diag(gain) - pull
    crossed = (pull * totals) * gain
    square = (pull * totals) @ pull.T * (1.0 + 1.0 / samples)
    return np.asarray(left @ memory @ left.T - crossed - crossed.T + square)


def few_functions(
    functions: FloatArray, weights: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """Functions of all types as combinations (T, L) of few functions (L, Y)."""
    if len(functions) == 1:
        return np.ones((1, 1)), functions
    left, size, _ = np.linalg.svd(functions * np.sqrt(weights), full_matrices=False)
    if not size[0] > 0:
        return np.zeros((len(functions), 1)), functions[:1]
    count = max(1, int((size > tolerance * size[0]).sum()))
    mixing = left[:, :count] * size[:count]
    # At every node by the combination that makes it: weights may be tiny.
    inverse = left[:, :count] / np.where(size[:count] > 0, size[:count], 1.0)
    return mixing, inverse.T @ functions
