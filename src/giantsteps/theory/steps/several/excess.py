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

from giantsteps.theory.solver.packing import transposed
from giantsteps.theory.steps.several.trained import Record, Trained
from giantsteps.types import FloatArray


@dataclass(frozen=True, eq=False)
class Push:
    """What a step does to covariances along spikes and teacher.

    ``gain`` is g_A = ϱ + sE ρ, ``constant`` what the operators add along all directions, (T,).
    """

    trained: Trained
    record: Record
    gain: FloatArray
    constant: FloatArray

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
        return self.record.kept * self._seen.old + self._seen.frame(self.record.bent)

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
        seen, record, trained, kept = self._seen, self.record, self.trained, self.record.kept
        pushed, bent, bulk = self.pushed, record.bent, self._bulk[:, None, None]
        square = kept**2 * seen.gram + 2 * kept * seen.form(bent) + seen.square(bent)
        found = bulk * square + transposed(pushed) @ self._special @ pushed
        stated = trained.onto.T @ trained.represented @ trained.onto
        stays = seen.old.T @ stated @ seen.old + trained.totals[:, None, None] * seen.inner
        unit = self.constant[:, None, None] * np.eye(found.shape[1])
        represented = (self.gain**2)[:, None, None] * stays + seen.form(record.added) + unit
        for factor in record.factors:
            once, twice = record.turned.T[:, :, None, None]
            represented = represented + once * seen.form(factor[None])
            represented = represented + twice * seen.square(factor[None])
        return found + seen.form(record.noise), represented

    def loads(self, functions: FloatArray, single: FloatArray) -> FloatArray:
        """G_AΣ_Aλ_A + ψ_A on the same vectors, (T, F), for sums λ_A and ψ_A over the batch with
        functions (T, Y)."""
        seen, bent = self._seen, self.record.bent
        own = seen.between(bent, functions) + self.record.kept * seen.inner_with(functions)
        along = self._special @ (functions @ self.record.first.T)[:, :, None]
        own = self._bulk[:, None] * own + seen.inner_with(single)
        return np.asarray(own + (transposed(self.pushed) @ along)[:, :, 0])


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

    @cached_property
    def _pairs(self) -> FloatArray:
        """Weights of E[ψκκᵀ], E[ψκa]/α, E[ψaa']/α² and E ψ, (EE + EF + FF + 1, Y)."""
        record, a = self.record, self.sums / self.record.samples
        nodes, weighted = a.shape[1], record.weights * a
        parts = [record.second, record.first[:, None] * a, weighted[:, None] * a, record.weights]
        return np.concatenate([part.reshape(-1, nodes) for part in parts])

    def _moments(self, functions: FloatArray) -> tuple[FloatArray, ...]:
        """E[ψκκᵀ] (T, E, E), E[ψκa]/α (T, E, F), E[ψaa']/α² (T, F, F), E ψ (T, 1, 1), for functions
        (T, Y).
        """
        e, f = self.old.shape
        parts = np.split(functions @ self._pairs.T, np.cumsum([e * e, e * f, f * f]), axis=1)
        shapes = (e, e), (e, f), (f, f), (1, 1)
        return tuple(part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True))

    def form(self, functions: FloatArray) -> FloatArray:
        """Of n⁻¹Σ_i ψ_i x_ix_iᵀ, (T, F, F)."""
        tilted, own, both, mean = self._moments(functions)
        mixed = self.old.T @ own
        plain = self.old.T @ tilted @ self.old
        return np.asarray(plain + mixed + transposed(mixed) + both + mean * self.inner)

    def frame(self, functions: FloatArray) -> FloatArray:
        """What the frame sees of the same times the vectors, (T, E, F)."""
        tilted, own, _, _ = self._moments(functions)
        return np.asarray(tilted @ self.old + own)

    def inner_with(self, a: FloatArray) -> FloatArray:
        """Inner products with n⁻¹Σ_i a_ix_i, (T, F), for functions (T, Y)."""
        own = (a * self.record.weights) @ self.sums.T / self.record.samples
        return np.asarray(a @ self.record.first.T @ self.old + own)

    def between(self, functions: FloatArray, a: FloatArray) -> FloatArray:
        """Of n⁻¹Σ_i ψ_i x_ix_iᵀ, between the vectors and n⁻¹Σ_i a_ix_i, (T, F)."""
        record, alpha, old = self.record, self.record.samples, (a @ self.record.first.T)[:, :, None]
        tilted, own, _, mean = self._moments(functions)
        seen = (tilted @ old)[:, :, 0] + (functions * a) @ record.first.T / alpha
        beside = (a * record.weights * (functions / alpha + mean[:, 0])) @ self.sums.T / alpha
        return np.asarray(seen @ self.old + (transposed(own) @ old)[:, :, 0] + beside)

    def square(self, functions: FloatArray) -> FloatArray:
        """Of the square of n⁻¹Σ_i ψ_i x_ix_iᵀ, (T, F, F)."""
        tilted, own, both, mean = self._moments(functions)
        seen = tilted @ self.old + own
        mixed = self.old.T @ own + both  # E[ψa(κ·o + a/α)]/α
        found = transposed(seen) @ seen + mean**2 * self.inner + mean * (mixed + transposed(mixed))
        return np.asarray(found + self.form(functions**2) / self.record.samples)
