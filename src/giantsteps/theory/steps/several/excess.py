r"""Covariances of the neurons along their own spikes, step by step (theory §7).

A step multiplies the bulk by G_A = ϱ + sK_A, K_A = n⁻¹Σ_i ρ_i x_ix_iᵀ with ρ = rξ_A. Between
generic directions K_AΣ_A is K_A times the trace of Σ_A. Along spikes and teacher, which both depend
on, it is not. A vector f is made of earlier ones and of a sum over the batch: o on the frame of the
samples, and n⁻¹Σ_i a_ix_i beside it. A sample sees it as κ·o + a/α and noise of variance
n = E a²/α, so that the forms of K_A and K_A² follow:

.. math:: f^⊤K_Af' &= E[ρ(κ·o + a/α)(κ·o' + a'/α)] + \bar ρn,\\
          f^⊤K_A^2f' &= q·q' + \bar ρ²n + \frac{\barρ}{α}(t + t') + \frac1αE[ρ²(\dots)(\dots)] +
          \frac1αE[ρ²]\,n,

with q = E[ρκ(κ·o + a/α)], what the frame sees of K_Af, and t = E[ρa(κ·o' + a'/α)].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from giantsteps.theory.steps.several.trained import Record, Trained
from giantsteps.types import FloatArray


@dataclass(frozen=True, eq=False)
class Slopes:
    """Functions of the samples of a step, (T, Y), and numbers of the types, (T,).

    ======  ==========  ============================================================
    symbol  attribute   meaning
    ======  ==========  ============================================================
    sρ      bent        what multiplies xxᵀ in sK_A
    \\       noise       the same in the covariance of the noise
    ϱ       kept        what is left of the weights
    g_A     gain        ϱ + sE ρ
    \\       constant    what the operators add along all directions
    ======  ==========  ============================================================
    """

    bent: FloatArray
    noise: FloatArray
    kept: float
    gain: FloatArray
    constant: FloatArray


@dataclass(frozen=True, eq=False)
class Push:
    """What a step does to covariances along spikes and teacher."""

    trained: Trained
    record: Record
    slopes: Slopes

    @cached_property
    def _seen(self) -> _Seen:
        return _Seen.of(self.trained, self.record)

    @cached_property
    def _bulk(self) -> FloatArray:
        """Traces of Σ_A without the leans that count as bulk elsewhere, (T,)."""
        return np.asarray(self.trained.totals - (self.trained.weak**2).sum(axis=1))

    @cached_property
    def pushed(self) -> FloatArray:
        """G_Af on the samples' frame, for spikes and remainder f after the step, (T, E, F)."""
        kept, seen = self.slopes.kept, self._seen
        return np.stack([kept * seen.old + seen.frame(bent) for bent in self.slopes.bent])

    @cached_property
    def _special(self) -> FloatArray:
        """Σ_A − c_A on the samples' frame, (T, E, E)."""
        onto = self.trained.onto
        found = onto.T @ self.trained.forms @ onto
        return np.asarray(found - self._bulk[:, None, None] * np.eye(len(onto.T)))

    def forms(self) -> tuple[FloatArray, FloatArray]:
        """Σ_A on the spikes and the teacher's remainder after the step, (T, F, F): as it is, and as
        the operators have it.
        """
        seen, slopes, trained, kept = self._seen, self.slopes, self.trained, self.slopes.kept
        stated = trained.onto.T @ trained.represented @ trained.onto
        found, represented = [], []
        for t, (bent, pushed) in enumerate(zip(slopes.bent, self.pushed)):
            square = kept**2 * seen.gram + 2 * kept * seen.form(bent) + seen.square(bent)
            form = self._bulk[t] * square + pushed.T @ self._special[t] @ pushed
            found.append(form + seen.form(slopes.noise[t]))
            stays = seen.old.T @ stated[t] @ seen.old + trained.totals[t] * seen.inner
            added = seen.form(self.record.added[t]) + slopes.constant[t] * np.eye(len(form))
            for factor in self.record.factors:
                once, twice = self.record.turned[t]
                added = added + once * seen.form(factor) + twice * seen.square(factor)
            represented.append(slopes.gain[t] ** 2 * stays + added)
        return np.stack(found), np.stack(represented)

    def loads(self, functions: FloatArray, single: FloatArray) -> FloatArray:
        """G_AΣ_Aλ_A + ψ_A on the same vectors, (T, F), for sums λ_A and ψ_A over the batch with
        functions (T, Y)."""
        found = []
        for t, (bent, a) in enumerate(zip(self.slopes.bent, functions)):
            own = self._seen.between(bent, a) + self.slopes.kept * self._seen.inner_with(a)
            along = self._special[t] @ (self.record.first @ a)
            own = self._bulk[t] * own + self._seen.inner_with(single[t])
            found.append(own + self.pushed[t].T @ along)
        return np.stack(found)


@dataclass(frozen=True, eq=False)
class _Seen:
    """Spikes and remainder after a step as its samples see them, F vectors.

    ======  =========  =======  =====================================================
    symbol  attribute  shape    meaning
    ======  =========  =======  =====================================================
    o       old        (E, F)   on the samples' frame
    a       sums       (F, Y)
    n       inner      (F, F)   inner products of what is beside the frame
    ======  =========  =======  =====================================================
    """

    record: Record
    old: FloatArray
    sums: FloatArray
    inner: FloatArray

    @classmethod
    def of(cls, trained: Trained, record: Record) -> _Seen:
        rank, count, alpha = trained.rank, record.rank, record.samples
        sums, whole = record.sums[:count], count + trained.teachers
        old = np.zeros((rank + trained.teachers, whole))
        old[:rank, :count] = record.carry[:count, :rank].T
        old[:, :count] += record.first @ sums.T
        weak = record.carry[:count, rank : trained.directions]
        inner = np.zeros((whole, whole))
        inner[:count, :count] = (sums * record.weights) @ sums.T / alpha + weak @ weak.T
        old[:rank, count:], old[rank:, count:] = trained.overlap.T, trained.beside
        gram = old.T @ old + inner
        # The teacher without its spikes, and all of them orthonormal.
        values, vectors = np.linalg.eigh(gram[:count, :count])
        own = (vectors / np.sqrt(np.maximum(values, 1e-6))) @ vectors.T
        turn = np.zeros_like(gram)
        turn[:count, :count] = own
        along = own @ gram[:count, count:]
        values, vectors = np.linalg.eigh(gram[count:, count:] - along.T @ along)
        left = (vectors / np.sqrt(np.maximum(values, 1e-12))) @ vectors.T
        turn[:count, count:], turn[count:, count:] = -own @ along @ left, left
        padded = np.concatenate([sums, np.zeros((trained.teachers, sums.shape[1]))])
        return cls(record, old @ turn, turn.T @ padded, turn.T @ inner @ turn)

    @property
    def gram(self) -> FloatArray:
        """Inner products of the vectors."""
        return np.asarray(self.old.T @ self.old + self.inner)

    def _mean(self, function: FloatArray) -> float:
        return float(self.record.weights @ function)

    def _tilted(self, function: FloatArray) -> FloatArray:
        """E[ψκκᵀ], (E, E)."""
        return np.asarray(self.record.second @ function)

    def _own(self, function: FloatArray) -> FloatArray:
        """E[ψκa]/α, (E, F)."""
        return np.asarray((self.record.first * function) @ self.sums.T / self.record.samples)

    def _both(self, function: FloatArray) -> FloatArray:
        """E[ψaa']/α², (F, F)."""
        weights = self.record.weights * function
        return np.asarray((self.sums * weights) @ self.sums.T / self.record.samples**2)

    def form(self, function: FloatArray) -> FloatArray:
        """Of n⁻¹Σ_i ψ_i x_ix_iᵀ, (F, F)."""
        mixed = self.old.T @ self._own(function)
        plain = self.old.T @ self._tilted(function) @ self.old
        return plain + mixed + mixed.T + self._both(function) + self._mean(function) * self.inner

    def frame(self, function: FloatArray) -> FloatArray:
        """What the frame sees of the same times the vectors, (E, F)."""
        return np.asarray(self._tilted(function) @ self.old + self._own(function))

    def inner_with(self, a: FloatArray) -> FloatArray:
        """Inner products with n⁻¹Σ_i a_ix_i, (F,)."""
        own = (self.sums * self.record.weights) @ a / self.record.samples
        return np.asarray(self.old.T @ (self.record.first @ a) + own)

    def between(self, function: FloatArray, a: FloatArray) -> FloatArray:
        """Of n⁻¹Σ_i ψ_i x_ix_iᵀ, between the vectors and n⁻¹Σ_i a_ix_i, (F,)."""
        record, old = self.record, self.record.first @ a
        seen = self._tilted(function) @ old + (record.first * function) @ a / record.samples
        weights = record.weights * (function / record.samples + self._mean(function))
        own = self._own(function).T @ old + (self.sums * weights) @ a / record.samples
        return np.asarray(self.old.T @ seen + own)

    def square(self, function: FloatArray) -> FloatArray:
        """Of the square of n⁻¹Σ_i ψ_i x_ix_iᵀ, (F, F)."""
        mean, seen, alpha = self._mean(function), self.frame(function), self.record.samples
        # E[ψa(κ·o + a/α)]/α.
        mixed = self.old.T @ self._own(function) + self._both(function)
        found = seen.T @ seen + mean**2 * self.inner + mean * (mixed + mixed.T)
        return found + self.form(function**2) / alpha
