r"""Covariances along spikes and teacher after two steps on one batch, exactly (theory §7).

A vector f is o on the directions that the samples have coordinates κ on, and n⁻¹Σ_i a_ix_i beside
them. Sums K_c = n⁻¹Σ_i c(i) x_ix_iᵀ act on it one after the other, g_k = K_{c_k}…K_{c_1}f. Leaving
it out, a sample sees

.. math:: h_k = x·g_k = κ·o_k + ν_k + \frac1α Σ_{l≤k} τ(K_{c_k}…K_{c_{l+1}})\,(c_lh_{l-1} - e_ly)
          + \frac1α τ(K_{c_k}…K_{c_1})\,a,

with o_k = E[c_kκh_{k-1}], ν Gaussian with the inner products of what the g_k have beside the
directions for covariances, and e_l = E[c_lyh_{l-1}]/E y²: samples are given with Σ_i y_ix_i = 0
there. Then ⟨g_k, g'⟩ = E[c_kh_{k-1}h'].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from giantsteps.theory.solver.bulk import Batch
from giantsteps.theory.steps.several.reused_covariance import Parts
from giantsteps.types import FloatArray


@dataclass(frozen=True, eq=False)
class Word:
    """g_k of F vectors, as a sample sees it, for each of T types.

    ======  =========  ============  ======================================================
    symbol  attribute  shape         meaning
    ======  =========  ============  ======================================================
    o_k     along      (T, F, E)
    h_k     seen       (T, F, D, Y)  coefficients of one and of κ, D = 1 + E …
    \\       noise      (T, Y)        … and of the ν of each word
    c_k     letter     (T, Y)        the last one …
    \\       before                   … and the word that it was applied to; None: the vectors
    ======  =========  ============  ======================================================
    """

    along: FloatArray
    seen: FloatArray
    noise: dict[Word | None, FloatArray]
    letter: FloatArray
    before: Word | None


class Vectors:
    """F vectors, o on the directions of a batch's samples (F, E), and sums beside them (F, Y) with
    E[ya] = 0.
    """

    def __init__(self, batch: Batch, along: FloatArray, sums: FloatArray) -> None:
        assert batch.given is not None
        self.batch, self.label, self.alpha = batch, batch.given, float(batch.samples)
        self._along, self._sums = along, sums
        self._known: dict[tuple[Word | None, Word | None], FloatArray] = {}

    @cached_property
    def _moments(self) -> FloatArray:
        """E[(1, κ)(1, κ)ᵀ f], (D, D, Y)."""
        batch, (count, nodes) = self.batch, self.batch.first.shape
        found = np.empty((1 + count, 1 + count, nodes))
        found[0, 0], found[1:, 1:] = batch.weights, batch.second
        found[0, 1:] = found[1:, 0] = batch.first
        return found

    @cached_property
    def _plain(self) -> FloatArray:
        """What a sample sees of the vectors themselves, (1, F, D, Y)."""
        along = np.repeat(self._along[:, :, None], self._sums.shape[1], axis=2)
        return np.concatenate([self._sums[:, None] / self.alpha, along], axis=1)[None]

    def _seen(self, word: Word | None) -> FloatArray:
        return self._plain if word is None else word.seen

    def _noise(self, word: Word | None) -> dict[Word | None, FloatArray]:
        return {None: np.ones_like(self.batch.weights)[None]} if word is None else word.noise

    def _weighted(self, letter: FloatArray, word: Word | None) -> FloatArray:
        """E[c h (1, κ) f], (T, F, D, Y)."""
        seen = np.einsum("tfdy,dey->tfey", self._seen(word), self._moments)
        return np.asarray(letter[:, None, None] * seen)

    def applied(self, letter: FloatArray, word: Word | None = None) -> Word:
        """K_c times a word, of c for each type (T, Y)."""
        weighted = self._weighted(letter, word)
        along = weighted[:, :, 1:].sum(axis=-1)
        own, noise = self._own(letter, word, weighted)
        mean, earlier, total = letter @ self.batch.weights, word, letter @ self.batch.weights
        if earlier is not None:
            assert earlier.before is None
            more, others = self._own(earlier.letter, None, self._weighted(earlier.letter, None))
            own = own + mean[:, None, None, None] * more
            for key, value in others.items():
                noise[key] = noise.get(key, 0.0) + mean[:, None] * value
            both = (letter * earlier.letter) @ self.batch.weights
            total = both / self.alpha + mean * (earlier.letter @ self.batch.weights)
        own[:, :, 0] += total[:, None, None] * self._sums / self.alpha
        own[:, :, 1:] += along[..., None]
        found = Word(along, own, noise, letter, word)
        noise[found] = np.ones_like(letter)
        return found

    def _own(
        self, letter: FloatArray, word: Word | None, weighted: FloatArray
    ) -> tuple[FloatArray, dict[Word | None, FloatArray]]:
        """(ch − ey)/α: its part that is linear in (1, κ), and that in ν."""
        own = letter[:, None, None] * self._seen(word) / self.alpha
        e = weighted[:, :, 0] @ self.label / float(self.batch.weights @ self.label**2)
        own[:, :, 0] -= e[:, :, None] * self.label / self.alpha
        return own, {key: letter * part / self.alpha for key, part in self._noise(word).items()}

    def inner(self, one: Word | None, other: Word | None) -> FloatArray:
        """⟨g_f, g'_f'⟩ of two words, (T, F, F)."""
        if (one, other) not in self._known:
            if one is not None:
                found = self.form(one.letter, one.before, other)
            elif other is not None:
                found = np.swapaxes(self.inner(other, one), -1, -2)
            else:
                beside = (self._sums * self.batch.weights) @ self._sums.T / self.alpha
                found = (self._along @ self._along.T + beside)[None]
            self._known[one, other] = found
        return self._known[one, other]

    def form(self, function: FloatArray, one: Word | None, other: Word | None) -> FloatArray:
        """E[ψh_fh'_f'] for a function of each type (T, Y): ⟨g_f, K_ψg'_f'⟩, (T, F, F)."""
        left, right = self._weighted(function, one), self._seen(other)
        count = left.shape[1]
        flat = np.swapaxes(right.reshape(len(right), count, -1), 1, 2)
        total = left.reshape(len(left), count, -1) @ flat
        for a, mine in self._noise(one).items():
            for b, its in self._noise(other).items():
                beside = self.inner(a, b) - self._on(a) @ np.swapaxes(self._on(b), -1, -2)
                share = (function * mine * its) @ self.batch.weights
                total = total + share[:, None, None] * beside
        return np.asarray(total)

    def _on(self, word: Word | None) -> FloatArray:
        return self._along[None] if word is None else word.along


def forms_of_neurons(vectors: Vectors, parts: Parts) -> FloatArray:
    r"""Σ_A on the vectors, (T, F, F).

    .. math:: Σ_A = GG^⊤ + \frac{v_h}{α_0}\bigl[K_{ψ²} + s_1(K_RK_{yψ} + K_{yψ}K_R)
              + s_1²K_RK_{y²}K_R\bigr] + K_χ/α_0,\qquad G = I + K_P + K_Q + K_RK_P .
    """
    y, alpha, moved = vectors.label, vectors.alpha, parts.moved[:, None, None]
    first = vectors.applied(parts.first + parts.tilt)
    second = vectors.applied(parts.second)
    crossed = vectors.applied(y * parts.own)
    words = [None, first, vectors.applied(parts.first, second)]
    total = sum(vectors.inner(one, other) for one in words for other in words)
    noise = vectors.form(parts.own**2, None, None)
    mixed = vectors.inner(second, crossed)
    noise = noise + moved * (mixed + np.swapaxes(mixed, 1, 2))
    noise = noise + moved**2 * vectors.form(np.tile(y**2, (len(moved), 1)), second, second)
    total = total + parts.noise / alpha * noise + vectors.form(parts.fresh, None, None) / alpha
    return np.asarray((total + np.swapaxes(total, 1, 2)) / 2)
