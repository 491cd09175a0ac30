r"""The bulk of the weights through one matrix Dyson equation (theory §5b).

All that the equations of the readout need of the covariances Σ_t = Σ_c m_tc Ω_c is

.. math:: 𝒢 = \bigl(X ⊗ I + Σ_c P_c ⊗ Ω_c\bigr)^{-1},\qquad P_c = Σ_t p_t m_{tc} u_tu_t^\top,

with R × R blocks over the channels. A product of two sums over samples becomes linear with two
more blocks, x'MP₂Mx = ext (a'P₂a − 2c'(a − Mx)), so that 𝒢 is a block of the inverse of
Z ⊗ I + n₀⁻¹Σ_i x_ix_iᵀ ⊗ Q(i). The mean 𝔤 of its diagonal solves

.. math:: 𝔤 = \bigl(Z + E[S]\bigr)^{-1},\qquad S = TQ,\qquad T = (I + Q𝔤/α_0)^{-1} .

No nodes, atoms or edges are involved; arguments may be real or complex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from giantsteps.theory.solver.bulk import Bulk
from giantsteps.theory.solver.layout import Layout, layout_of
from giantsteps.theory.solver.once import once
from giantsteps.theory.solver.packing import (
    identity,
    inverse,
    product,
    symmetric,
    transposed,
)
from giantsteps.types import Array


@dataclass(frozen=True, eq=False)
class DysonEquation:
    """The Dyson equation at given X, P and 𝔤, and its traces."""

    bulk: Bulk
    x: Array  # (B, R, R): X
    strengths: Array  # (B, m, R, R): P_c
    active: Array  # (B, Q, Q): 𝔤 on the active blocks, Σ ν_ιλ_ι 𝔤_ι over the directions

    @once
    def layout(self) -> Layout:
        """Where everything stands."""
        return layout_of(self.bulk, int(self.x.shape[-1]))

    @property
    def rank(self) -> int:
        """R."""
        return self.layout.rank

    def plain(self, number: int) -> Array:
        """What an operator in Z is along the directions, (B, I)."""
        operator = self.layout.operators[number]
        if operator.kind == "product":
            return np.ones_like(self.bulk.shares)
        return self.bulk.corners[:, operator.where[0] + 1]

    def along(self, number: int) -> Array:
        """The same times the shares of the directions."""
        return np.asarray(self.bulk.shares * self.plain(number))

    def over_directions(self, values: Array) -> Array:
        """Σ ν_ιω_c(ι) of values (B, I, …) for X and the diagonal operators, (B, 1 + D, …)."""
        flat = values.reshape(*values.shape[:2], -1)
        return product(self.bulk.along, flat).reshape(len(flat), -1, *values.shape[2:])

    @once
    def scales(self) -> Array:
        """What samples have along the directions in each pair of rows, shape (B, I, n or 1, …)."""
        bulk = self.bulk
        if bulk.within is None:
            return bulk.scales[:, :, None, None]
        roots = np.where(self.layout.left, bulk.within[:, :, None], bulk.scales[:, :, None]) ** 0.5
        return np.asarray(roots[..., :, None] * roots[..., None, :])

    @property
    def _active_scales(self) -> Array:
        """The same on the active rows."""
        if self.bulk.within is None:
            return self.scales
        rows = self.layout.active
        return self.scales[:, :, rows[:, None], rows]

    # -- the equation ---------------------------------------------------------------------------

    @once
    def _z(self) -> Array:
        """Z of shape (B, I, n, n)."""
        layout, bulk, rank = self.layout, self.bulk, self.rank
        corner = self.x[:, None] * bulk.inverse[:, :, None, None]
        for d in range(layout.diagonal):
            corner = corner + bulk.diagonal[:, d, :, None, None] * self.strengths[:, d, None]
        if layout.size == rank:
            return corner
        shape = (*bulk.shares.shape, layout.size, layout.size)
        z = np.zeros(shape, dtype=corner.dtype)
        z[:, :, :rank, :rank] = corner
        for number, operator in enumerate(layout.operators[1:]):
            if operator.kind == "product":
                p = self.strengths[:, number, None]
                z[:, :, operator.rows[:, None], operator.columns] = p
                z[:, :, operator.columns[:, None], operator.rows] = p
        for a in range(1, layout.blocks, 2):
            here, there = slice(a * rank, (a + 1) * rank), slice((a + 1) * rank, (a + 2) * rank)
            z[:, :, here, there] = z[:, :, there, here] = -identity(rank)
        return z

    @once
    def q(self) -> list[Array]:
        """Q of each batch on its own rows, shape (B, Y, q, q)."""
        rank, found = self.rank, []
        first = self.layout.diagonal
        for batch, count, more in zip(self.bulk.batches, self.layout.factors, self.layout.linear):
            own = self.strengths[:, first : first + more].reshape(len(self.x), more, rank * rank)
            corner = product(transposed(batch.linear), own)
            corner = corner.reshape(*batch.weights.shape, rank, rank)
            first += more + count * (count + 1) // 2 + (count if batch.crossed else 0)
            if not count:
                found.append(corner)
                continue
            size = (1 + count) * rank
            q = np.zeros((*batch.weights.shape, size, size), dtype=corner.dtype)
            q[:, :, :rank, :rank] = corner
            for c in range(count):
                block = slice((1 + c) * rank, (2 + c) * rank)
                unit = batch.factors[:, c, :, None, None] * identity(rank)
                q[:, :, :rank, block] = q[:, :, block, :rank] = unit
            found.append(q)
        return found

    @once
    def scaled(self) -> list[Array]:
        """𝔤/α on the rows of each batch, shape (B, q, q)."""
        if len(self.bulk.batches) == 1:
            return [self.active / self.bulk.batches[0].samples[:, None, None]]
        return [
            np.ascontiguousarray(self.active[:, own[:, None], own]) / batch.samples[:, None, None]
            for own, batch in zip(self.layout.own, self.bulk.batches)
        ]

    @once
    def t(self) -> list[Array]:
        """T of each batch, shape (B, Y, q, q)."""
        return [
            inverse(identity(q.shape[-1]) + product(q, g[:, None]))
            for q, g in zip(self.q, self.scaled)
        ]

    @once
    def s(self) -> list[Array]:
        """S of each batch, shape (B, Y, q, q)."""
        return [symmetric(product(t, q)) for t, q in zip(self.t, self.q)]

    @property
    def regular(self) -> Array:
        """Whether no sample and no direction has passed a pole, shape (B,).

        det T > 0 for all samples, and 𝔤_ι has as many negative eigenvalues as without samples: one
        for each row of c.
        """
        if self.layout.size == 1:
            positive = np.all(self.resolvent[..., 0, 0] > 0, axis=1)
        else:
            negative = self.rank * (self.layout.blocks // 2)
            signs = np.linalg.eigvalsh(self.resolvent) < 0
            positive = np.all(signs.sum(axis=-1) == negative, axis=1)
        for t in self.t:
            size = t[..., 0, 0] if t.shape[-1] == 1 else np.linalg.det(t)
            positive &= np.all(size > 0, axis=1)
        return positive

    @once
    def psi(self) -> list[Array]:
        """𝔤T/α at x of each batch: what a sample sees of the resolvent, shape (B, Y, R, R)."""
        rank = self.rank
        return [
            symmetric(product(g[:, None, :rank], t[..., :rank]))
            for g, t in zip(self.scaled, self.t)
        ]

    @property
    def felt(self) -> list[Array]:
        """Of each batch: what the traces of its linear operators are means of, (B, F, Y)."""
        found = []
        for batch, psi in zip(self.bulk.batches, self.psi):
            packed = self.layout.inner.pack(psi).swapaxes(1, 2)
            felt = batch.linear[:, :, None] * packed[:, None]
            found.append(felt.reshape(len(felt), -1, felt.shape[-1]))
        return found

    def mean(self, batch: int, values: Array, weights: Array | None = None) -> Array:
        """E over the samples of values (B, Y, ...)."""
        if weights is None:
            weights = self.bulk.batches[batch].weights
        flat = np.ascontiguousarray(values.reshape(*values.shape[:2], -1))
        return product(weights[:, None], flat).reshape(len(flat), *values.shape[2:])

    def padded(self, parts: Sequence[Array]) -> Array:
        """Matrices on the rows of the batches, added on the active rows."""
        if len(parts) == 1:
            return parts[0]
        size = len(self.layout.active)
        total = np.zeros((len(self.x), size, size), dtype=self._z.dtype)
        for own, part in zip(self.layout.own, parts):
            total[:, own[:, None], own] += part
        return total

    @once
    def resolvent(self) -> Array:
        """𝔤_ι = (Z_ι + λ_ι E[S])⁻¹ of shape (B, I, n, n)."""
        if not self.bulk.batches:
            return symmetric(inverse(self._z))
        energy = self.padded([self.mean(number, s) for number, s in enumerate(self.s)])
        energy = energy[:, None] * self._active_scales
        if self.layout.all_active:
            return symmetric(inverse(self._z + energy))
        matrix, rows = self._z.copy(), self.layout.active
        matrix[:, :, rows[:, None], rows] += energy
        return symmetric(inverse(matrix))

    def averaged(self, resolvent: Array) -> Array:
        """Σ ν_ιλ_ι 𝔤_ι on the active rows, zero where no batch sees it."""
        part, kept = resolvent, self.layout.outer.kept
        if not self.layout.all_active:
            rows = self.layout.active
            part = resolvent[:, :, rows[:, None], rows]
        weights = self.bulk.shares[:, :, None, None] * self._active_scales
        found = np.asarray((weights * part).sum(axis=1))
        return found if kept is None else found * kept

    @once
    def image(self) -> Array:
        """What the equation makes of 𝔤 on the active blocks."""
        return self.averaged(self.resolvent)

    def alone(self) -> Array:
        """𝔤 without samples: where an iteration may start."""
        return self.averaged(symmetric(inverse(self._z)))

    # -- traces ---------------------------------------------------------------------------------

    @once
    def traces(self) -> Array:
        """τ(𝒢) and τ(Ω_c𝒢) of shape (B, 1 + m, R, R), in the order of the operators."""
        rank, resolvent = self.rank, self.resolvent
        found = [self.over_directions(np.ascontiguousarray(resolvent[:, :, :rank, :rank]))]
        for number, operator in enumerate(self.layout.operators):
            if operator.kind == "linear":
                which, a = operator.where
                if a == 0:  # those of a batch at once
                    psi = self.psi[which]
                    flat = psi.reshape(*psi.shape[:2], -1)
                    total = product(self.bulk.batches[which].counted, flat)
                    found.append(total.reshape(len(total), -1, rank, rank))
            elif operator.kind == "product":
                part = resolvent[:, :, operator.rows[:, None], operator.columns]
                total = (self.along(number)[:, :, None, None] * part).sum(axis=1)[:, None]
                found.append(total if operator.once else 2.0 * symmetric(total))
        return np.concatenate(found, axis=1)

    def coupled(self, traces: Array) -> Array:
        """τ(1 − X𝒢) = Σ_c P_cτ(Ω_c𝒢) of these traces, (B, R, R)."""
        return np.asarray(product(self.strengths, traces[:, 1:]).sum(axis=1))
