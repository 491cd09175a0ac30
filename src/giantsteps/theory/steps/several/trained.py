"""The law of a neuron after some steps, and what it remembers of their batches (§7, §10)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from giantsteps.theory.model.functions_of_spike import left_of
from giantsteps.types import FloatArray


@dataclass(frozen=True, eq=False)
class Fluctuation:
    """A quantity that varies between the neurons of a type, by order d^{-1/2} (theory §5b).

    ======  =========  ==========  ===========================================================
    symbol  attribute  shape       meaning
    ======  =========  ==========  ===========================================================
    v       spread     (T,)        d times its variance
    f       growth     (T,)        what it makes of the squared norm of the bulk …
    f(ι)    spaces     (T, I)      … and of it in the eigenspaces; empty: in proportion
    e       stretch    (T, r)      and of the lean
    ℓ       loadings   (T, V)      d times its covariance with the weights, on the vectors that
                                   are carried along
    \\       along      (T, F)      the same as it is on spikes, weak ones and the teacher's
                                   remainder; empty: as the vectors have it
    \\       initial                whether it is that of the initial norms
    \\       heavy      (I,)        which share of f lies along single eigenvectors of the inputs;
                                   empty: nothing
    ======  =========  ==========  ===========================================================
    """

    spread: FloatArray
    growth: FloatArray
    stretch: FloatArray
    loadings: FloatArray
    along: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    initial: bool = False
    spaces: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    heavy: FloatArray = field(default_factory=lambda: np.zeros(0))

    def grown(self, trained: Trained) -> FloatArray:
        """What it makes of c_A(ι), (T, I)."""
        if self.spaces.size:
            return self.spaces
        return np.asarray(trained.along * (self.growth / trained.totals)[:, None])

    def own(self, axes: FloatArray) -> FloatArray:
        """What it makes of the squared norm beside k_j² − 1, k along these axes (r, I, m): (T, r).

        Along an eigenvector of its own a vector has one coordinate, the teacher's.
        """
        shares = axes[:, : len(self.heavy), 0] ** 2 @ self.heavy
        return np.multiply.outer(self.growth, shares)


@dataclass(frozen=True, eq=False)
class Record:
    """A batch as the bulk remembers it; nodes stand for samples with the same (k, r).

    ======  =========  ============  ==========================================================
    symbol  attribute  shape         meaning
    ======  =========  ============  ==========================================================
    α       samples                  n/d
    \\       weights    (Y,)
    κ       first,     (E, Y),       moments of the coordinates on the frame (spikes before the
            second     (E, E, Y)     step, what they leave of the teacher)
    ψ_A     added      (T, Y)        what the batch adds to Σ_A: n⁻¹Σψ_A x xᵀ …
    E ψ_A   mean       (T,)          … and its mean by a finer quadrature
    \\       linear,    (L, Y),       beside it functions and factors of operators that are kept as
            factors,   (C, Y),       they are, and their coefficients: 2M, 𝐒 and M² of a first
            turned     (T, L + …)    step …
    \\       crossed                  … and whether M differs from Mᵀ: it takes samples as they are
                                     on its right, beside explicit directions
    F       frame      (E, V)        the frame as combinations of the vectors before …
    \\       seen       (E, I, m)     … and by its coordinates
    λ^{1−p} reach      (I,)          what the step makes of its samples in the eigenspaces
    c       carry      (V', V)       vectors after the step: combinations of those before …
    a       sums       (V', Y)       … and sums over the batch
    \\       carried    (r', I, m)    what the spikes have of the vectors before, by coordinates
    \\       before     (V, I, m)     those of the norms before, by coordinates
    r'      rank                     spikes after the step, with the weak ones
    sρ      bent       (T, Y)        what multiplies xxᵀ in the step's change of the bulk …
    \\       noise      (T, Y)        … and in the covariance of its noise
    ϱ       kept                     what is left of the weights
    ======  =========  ============  ==========================================================
    """

    samples: float
    weights: FloatArray
    first: FloatArray
    second: FloatArray
    added: FloatArray
    mean: FloatArray
    linear: FloatArray
    factors: FloatArray
    turned: FloatArray
    frame: FloatArray
    seen: FloatArray
    reach: FloatArray
    carry: FloatArray
    sums: FloatArray
    carried: FloatArray
    before: FloatArray
    rank: int
    bent: FloatArray
    noise: FloatArray
    kept: float
    crossed: bool = False


@dataclass(frozen=True, eq=False)
class Trained:
    """The law of a neuron after some steps.

    In the frame of z = Σ^{-1/2}x and w' = Σ^{1/2}w, by eigenspaces ι of Σ: one, if inputs are
    isotropic. Vectors that are carried along: the r spikes, the J weak ones, then those that norms
    go with, last the teacher's R. In an eigenspace a vector has coordinates along the teacher's
    parts there and along the noise of each step.

    ======  =============  ============  =====================================================
    symbol  attribute      shape         meaning
    ======  =============  ============  =====================================================
    A, π    values,        (T,)          types
            probabilities
    S_A     spikes         (T, r)        leans
    c_A     totals         (T,)          squared norms of the bulk …
    c_A(ι)  along          (T, I)        … in the eigenspaces: c_A = Σ ν_ιc_A(ι)
    Γ       overlap        (R, r)        of the teacher's directions with the spikes
    \\       weak           (T, J)        leans along weak directions, whose squares c_A contains
    \\       weak_overlap   (R, J)        of the teacher's directions with them
    \\       axes           (r+J+R, I, m) spikes, weak ones and teacher, by coordinates
    \\       gradients      (s, I, m)     unit vectors along the direction Xᵀr of each step
    \\       vectors        (V, I, m)     those that norms go with; none where Σ = I
    \\       forms,         (T, F, F)     Σ_A on spikes, weak ones and the teacher's remainder, and
            represented                  the same of the sums over batches; empty: the same
    Q       memory         (I, T, T)     what the output did to the weights' Gram matrix along the
                                         types' right vectors
    \\       multipliers    (s, T)        Σ_A = diagonal + Σ_b multiplier_b(A) (batch b)
    \\       records                      the batches
    \\       fluctuations                 those of the norms
    \\       others         (V,)          blocks of the vectors that they go with
    \\       multiplied                   whether batches are multiplied, not added, if several turn
                                         the weights
    ======  =============  ============  =====================================================
    """

    values: FloatArray
    probabilities: FloatArray
    spikes: FloatArray
    totals: FloatArray
    along: FloatArray
    overlap: FloatArray
    axes: FloatArray
    gradients: FloatArray
    vectors: FloatArray
    memory: FloatArray
    multipliers: FloatArray
    weak: FloatArray
    weak_overlap: FloatArray
    records: tuple[Record, ...] = ()
    fluctuations: tuple[Fluctuation, ...] = ()
    others: tuple[int, ...] = ()
    forms: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    represented: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    multiplied: bool = False

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

    @property
    def teacher(self) -> FloatArray:
        """The teacher's directions by coordinates, (R, I, m)."""
        return self.axes[self.directions :]

    @cached_property
    def seen(self) -> FloatArray:
        """(spikes, teacher's remainder) by coordinates, (r + R, I, m)."""
        spikes, inverse = self.axes[: self.rank], left_of(self.overlap)[1]
        beside = self.teacher - np.tensordot(self.overlap, spikes, axes=1)
        return np.concatenate([spikes, np.tensordot(inverse, beside, axes=1)])

    @property
    def steps(self) -> FloatArray:
        """Cosines of the direction Xᵀr of each step with spikes and weak ones, (s, r + J)."""
        axes = self.axes[: self.directions]
        return np.asarray(np.tensordot(self.gradients, axes, axes=([1, 2], [1, 2])))


def pulled(
    memory: FloatArray,
    totals: FloatArray,
    gain: FloatArray,
    pull: FloatArray,
    noise: FloatArray,
) -> FloatArray:
    """Q after a step: (g − P)(Q + c)(g − P)ᵀ − g²c, with what the noise of a batch adds to P c Pᵀ.

    Arrays (…, T, T), and (…, T) for c, g and the noise, which is d⁻¹tr c/α.
    """
    left = gain[..., :, None] * np.eye(gain.shape[-1]) - pull
    crossed = pull * (totals * gain)[..., None, :]
    square = (pull * (totals + noise)[..., None, :]) @ np.swapaxes(pull, -1, -2)
    kept = left @ memory @ np.swapaxes(left, -1, -2)
    return np.asarray(kept - crossed - np.swapaxes(crossed, -1, -2) + square)


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
