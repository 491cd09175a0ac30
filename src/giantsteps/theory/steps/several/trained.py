"""The law of a neuron after some steps, and what it remembers of their batches (theory §7)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from giantsteps.functions import Function
from giantsteps.types import FloatArray


@dataclass(frozen=True)
class Task:
    """What all steps share: the network's activation and the teacher of its labels."""

    activation: Function
    link: Function
    noise_variance: float


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
            second     (E, E, Y)    step, teacher's remainder)
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
    last the teacher.

    ======  =============  =========  =====================================================
    symbol  attribute      shape      meaning
    ======  =============  =========  =====================================================
    A, π    values,        (T,)       types
            probabilities
    S_A     spikes         (T, r)     leans
    c_A     totals         (T,)       squared norms of the bulk
    γ       overlap        (r,)       of the teacher with the spikes
    \\       weak           (T, J)     leans along weak directions, whose squares c_A contains
    \\       weak_overlap   (J,)       of the teacher with them
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
    weak_overlap: FloatArray = field(default_factory=lambda: np.zeros(0))
    forms: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    represented: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))

    @property
    def rank(self) -> int:
        """r."""
        return int(self.spikes.shape[1])

    @property
    def remainder(self) -> float:
        """√(1 − |γ|²)."""
        return math.sqrt(max(1.0 - float(self.overlap @ self.overlap), 0.0))

    @property
    def directions(self) -> int:
        """r + J."""
        return self.rank + len(self.weak_overlap)

    @property
    def shares(self) -> FloatArray:
        """Cosines of the teacher's remainder with the weak directions and beside them, (J + 1,)."""
        size = self.remainder
        along = self.weak_overlap / size if size > 1e-12 else 0.0 * self.weak_overlap
        return np.append(along, math.sqrt(max(1.0 - float(along @ along), 0.0)))

    @property
    def onto(self) -> FloatArray:
        """(spikes, teacher's remainder) in (spikes, weak ones, what they leave of the teacher)."""
        rank = self.rank
        onto = np.zeros((self.directions + 1, rank + 1))
        onto[:rank, :rank], onto[rank:, rank] = np.eye(rank), self.shares
        return onto

    @property
    def frame(self) -> FloatArray:
        """(spikes, teacher's remainder) as combinations of the vectors that are carried along."""
        rank = self.rank
        frame = np.zeros((rank + 1, self.directions + len(self.others) + 1))
        frame[:rank, :rank] = np.eye(rank)
        inverse = 1.0 / self.remainder if self.remainder > 1e-12 else 0.0
        frame[rank, :rank], frame[rank, -1] = -inverse * self.overlap, inverse
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
