"""The covariances of the neurons of each type, and the vectors that are special in them (§5a)."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from giantsteps.errors import NotConverged
from giantsteps.theory.solver.bulk import Batch, Bulk, Stage
from giantsteps.theory.solver.chain import dyson_at
from giantsteps.theory.solver.once import once
from giantsteps.theory.solver.special import Forms
from giantsteps.types import FloatArray

#: Strengths on the way to those of a resolvent, rounds of Newton's method there, and the last step.
_PARTS, _ROUNDS, _CLOSE = (0.1, 0.3, 0.6), 30, 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class NeuronCovariance:
    r"""Covariances Σ_t/d = d⁻¹Σ_c m_tc Ω_c of the neurons of each type, apart from their spikes.

    Operators Ω_c are diagonal in given directions ι, or sums n₀⁻¹Σ_i ψ(i) x_ix_iᵀ over the samples
    of a batch, or products of two such sums (`giantsteps.theory.solver.bulk`). Special vectors are
    the r spikes, the teacher's remainder, and those that norms of neurons go with.

    ======  ============  =========  =====================================================
    symbol  attribute     shape      meaning
    ======  ============  =========  =====================================================
    ν_ι     shares        (I,)       of the directions
    λ_ι     inputs        (I,)       variance of the inputs along them; None: one
    \       scales        (I,)       the same for what a step takes for its samples
    \       within        (I,)       the same on the left of its sums M_c; None: as scales
    ω_c(ι)  diagonal      (D, I)     operators that are diagonal; the first is the identity
    m_tc    coefficients  (T, m)
    \       batches                  the samples of the steps …
    \       stages                   … and the vectors after each, without an axis of cells
    \       external      (k, I, E)  vectors before all batches: their components along ι
    f_a     special       (F, k)     special vectors, combinations of the last vectors
    \       gram          (m, m)     d⁻¹tr ΣΩ_cΣΩ_c', Σ the covariance of the inputs
    \       means         (m,)       d⁻¹tr ΣΩ_c; None: the first row of gram
    \       excess        (T, F', F')  forms of Σ_t on the first special vectors beyond those of the
                                     operators; None: none
    ======  ============  =========  =====================================================
    """

    shares: FloatArray
    diagonal: FloatArray
    coefficients: FloatArray
    external: FloatArray
    gram: FloatArray
    special: FloatArray | None = None
    means: FloatArray | None = None
    excess: FloatArray | None = None
    inputs: FloatArray | None = None
    scales: FloatArray | None = None
    within: FloatArray | None = None
    batches: tuple[Batch, ...] = ()
    stages: tuple[Stage, ...] = ()

    @classmethod
    def isotropic(cls, variances: ArrayLike, rank: int, directions: int = 1) -> NeuronCovariance:
        """Σ_t = c_t I: spikes and teacher see what every direction sees (cui2024)."""
        column = np.atleast_1d(np.asarray(variances, dtype=float))[:, None]
        return cls(
            shares=np.ones(1),
            diagonal=np.ones((1, 1)),
            coefficients=column,
            external=np.eye(rank + directions)[:, None],
            gram=np.ones((1, 1)),
        )

    @once
    def totals(self) -> FloatArray:
        """c_t = d⁻¹tr Σ_t of shape (T,): squared norms of the neurons beside their spikes."""
        return self.coefficients @ self._means

    @property
    def _means(self) -> FloatArray:
        return self.gram[0] if self.means is None else self.means

    @once
    def modes(self) -> FloatArray:
        """y_te with d⁻¹tr Σ_tΣ_s = Σ_e y_te y_se and y_t0 = c_t, then the largest: shape (T, M)."""
        centred, least = (
            self.gram - np.outer(self._means, self._means),
            1e-15 * np.abs(self.gram).max(),
        )
        if len(self.coefficients) == 1:
            square = float(self.coefficients[0] @ centred @ self.coefficients[0])
            return np.array([[self.totals[0], *([math.sqrt(square)] if square > least else [])]])
        values, vectors = np.linalg.eigh(centred)
        kept = values > least
        rest = self.coefficients @ (vectors[:, kept] * np.sqrt(values[kept]))
        # By what they are to the neurons: batches of equal size have equal eigenvalues.
        left, size, _ = np.linalg.svd(rest, full_matrices=False)
        return np.concatenate([self.totals[:, None], left * size], axis=1)

    @once
    def forms(self) -> Forms:
        """Inner products of the special vectors, and forms of the operators in their slopes."""
        return self.forms_at(np.zeros((1, self.coefficients.shape[1])))

    def forms_at(self, strengths: FloatArray) -> Forms:
        """Forms of the special vectors under (1 + Σ_c p_cΩ_c)⁻¹, p (P, m)."""
        bulk, unit = self.bulk().repeated(len(strengths)), np.ones((len(strengths), 1, 1))
        given = strengths[:, :, None, None]
        found = dyson_at(bulk, unit, 0.0 * given, np.zeros((len(strengths), 0, 0)))
        found = replace(found, active=found.alone())
        if not self.batches or not strengths.any():
            return Forms(replace(found, strengths=given))
        change = math.inf
        for part in (*_PARTS, *(1.0,) * _ROUNDS):
            found = replace(found, strengths=part * given)
            step = found.layout.outer.unpack(found.settled())
            found = replace(found, active=found.active + step)
            change = float(np.abs(step).max() / np.abs(found.active).max())
            if part == 1.0 and change <= _CLOSE:
                return Forms(found)
        what = "the resolvent of the neurons' covariance"
        raise NotConverged(what, change, _ROUNDS, "smaller rates, or the limit")

    def seen(self, vector: FloatArray, weights: FloatArray, p: FloatArray) -> FloatArray:
        """fᵀ(1 + pΣ)⁻¹f of a combination f of the special vectors, Σ = Σ_t weight_t Σ_t, (P,)."""
        forms = self.forms_at(p[:, None] * (weights @ self.coefficients)).values[:, :, 0, :, 0]
        if self.excess is not None:
            count = self.excess.shape[1]
            more = np.zeros_like(forms)
            mean = np.tensordot(weights, self.excess, 1)
            more[:, :count] = p[:, None, None] * mean @ forms[:, :count]
            forms = forms @ np.linalg.inv(np.eye(forms.shape[1]) + more)
        return np.asarray(np.einsum("a,pab,b->p", vector, forms, vector))

    def on(self, vector: FloatArray) -> FloatArray:
        """fᵀΣ_tf of a combination f of the special vectors, shape (T,)."""
        found = self.coefficients @ self.forms.slopes(vector[None])[0, 1:, 0, 0]
        if self.excess is None:
            return np.asarray(found)
        first = vector[: self.excess.shape[1]]
        return np.asarray(found + first @ self.excess @ first)

    @property
    def frame(self) -> int:
        """Number of special vectors F."""
        return len(self.external if self.special is None else self.special)

    def bulk(self) -> Bulk:
        """What the solver sees, a stack of one cell."""
        inputs = np.ones(len(self.shares)) if self.inputs is None else self.inputs
        scales = inputs if self.scales is None else self.scales
        special = np.eye(len(self.external)) if self.special is None else self.special
        return Bulk(
            shares=self.shares[None],
            inverse=1.0 / inputs[None],
            scales=scales[None],
            diagonal=self.diagonal[None],
            coefficients=self.coefficients[None],
            batches=tuple(_one_cell(batch) for batch in self.batches),
            stages=tuple(_one_cell(stage) for stage in self.stages),
            external=self.external[None],
            special=special[None],
            within=None if self.within is None else self.within[None],
        )


@lru_cache(maxsize=32)
def _one_cell(part: Any) -> Any:
    """The same with an axis of cells; models of one batch share it."""
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    arrays = {name: v[None] for name, v in values.items() if isinstance(v, np.ndarray)}
    return replace(part, **arrays)
