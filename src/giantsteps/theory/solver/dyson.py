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
from functools import cached_property

import numpy as np

from giantsteps.theory.solver.bulk import Bulk
from giantsteps.theory.solver.layout import Layout, layout_of
from giantsteps.theory.solver.packing import (
    Packing,
    inverse,
    packing,
    product,
    raised,
    symmetric,
    transposed,
)
from giantsteps.types import Array


@dataclass(frozen=True, eq=False)
class Dyson:
    """The Dyson equation at given X, P and 𝔤, and what follows from it."""

    bulk: Bulk
    x: Array  # (B, R, R): X
    strengths: Array  # (B, m, R, R): P_c
    active: Array  # (B, Q, Q): 𝔤 on the active blocks, Σ ν_ιλ_ι 𝔤_ι over the directions

    @cached_property
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
        which = operator.where[0]
        return self.bulk.inverse if which < 0 else self.bulk.diagonal[:, which]

    def along(self, number: int) -> Array:
        """The same times the shares of the directions."""
        return np.asarray(self.bulk.shares * self.plain(number))

    @cached_property
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

    @cached_property
    def _z(self) -> Array:
        """Z of shape (B, I, n, n)."""
        layout, bulk, rank = self.layout, self.bulk, self.rank
        corner = self.x[:, None] * bulk.inverse[:, :, None, None]
        for d in range(layout.diagonal):
            corner = corner + bulk.diagonal[:, d, :, None, None] * self.strengths[:, d, None]
        if layout.all_active:
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
            z[:, :, here, there] = z[:, :, there, here] = -np.eye(rank)
        return z

    @cached_property
    def q(self) -> list[Array]:
        """Q of each batch on its own rows, shape (B, Y, q, q)."""
        rank, found, first = self.rank, [], self.layout.diagonal
        for batch, count, more in zip(self.bulk.batches, self.layout.factors, self.layout.linear):
            corner = batch.linear[:, 0, :, None, None] * self.strengths[:, first, None]
            for a in range(1, more):
                corner = corner + (
                    batch.linear[:, a, :, None, None] * self.strengths[:, first + a, None]
                )
            first += more + count * (count + 1) // 2 + (count if batch.crossed else 0)
            if not count:
                found.append(corner)
                continue
            size = (1 + count) * rank
            q = np.zeros((*batch.weights.shape, size, size), dtype=corner.dtype)
            q[:, :, :rank, :rank] = corner
            for c in range(count):
                block = slice((1 + c) * rank, (2 + c) * rank)
                unit = batch.factors[:, c, :, None, None] * np.eye(rank)
                q[:, :, :rank, block] = q[:, :, block, :rank] = unit
            found.append(q)
        return found

    @cached_property
    def scaled(self) -> list[Array]:
        """𝔤/α on the rows of each batch, shape (B, q, q)."""
        if len(self.bulk.batches) == 1:
            return [self.active / self.bulk.batches[0].samples[:, None, None]]
        return [
            np.ascontiguousarray(self.active[:, own[:, None], own]) / batch.samples[:, None, None]
            for own, batch in zip(self.layout.own, self.bulk.batches)
        ]

    @cached_property
    def t(self) -> list[Array]:
        """T of each batch, shape (B, Y, q, q)."""
        return [
            inverse(np.eye(q.shape[-1]) + product(q, g[:, None]))
            for q, g in zip(self.q, self.scaled)
        ]

    @cached_property
    def s(self) -> list[Array]:
        """S of each batch, shape (B, Y, q, q)."""
        return [symmetric(product(t, q)) for t, q in zip(self.t, self.q)]

    @property
    def regular(self) -> Array:
        """Whether no sample has passed a pole, det T > 0 for all of them, shape (B,)."""
        positive = np.ones(len(self.x), dtype=bool)
        for t in self.t:
            size = t[..., 0, 0] if t.shape[-1] == 1 else np.linalg.det(t)
            positive &= np.all(size > 0, axis=1)
        return positive

    @cached_property
    def psi(self) -> list[Array]:
        """𝔤T/α at x of each batch: what a sample sees of the resolvent, shape (B, Y, R, R)."""
        rank = self.rank
        return [
            symmetric(product(g[:, None, :rank], t[..., :rank]))
            for g, t in zip(self.scaled, self.t)
        ]

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

    @cached_property
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
        """Σ ν_ιλ_ι 𝔤_ι on the active rows."""
        part = resolvent
        if not self.layout.all_active:
            rows = self.layout.active
            part = resolvent[:, :, rows[:, None], rows]
        weights = self.bulk.shares[:, :, None, None] * self._active_scales
        return np.asarray((weights * part).sum(axis=1))

    @cached_property
    def image(self) -> Array:
        """What the equation makes of 𝔤 on the active blocks."""
        return self.averaged(self.resolvent)

    def alone(self) -> Array:
        """𝔤 without samples: where an iteration may start."""
        return self.averaged(symmetric(inverse(self._z)))

    # -- traces ---------------------------------------------------------------------------------

    @cached_property
    def traces(self) -> Array:
        """τ(𝒢) and τ(Ω_c𝒢) of shape (B, 1 + m, R, R), in the order of the operators."""
        found = []
        for number, operator in enumerate(self.layout.operators):
            if operator.kind == "linear":
                which, a = operator.where
                batch = self.bulk.batches[which]
                weights = batch.weights * batch.linear[:, a] * batch.samples[:, None]
                found.append(self.mean(which, self.psi[which], weights))
            else:
                part = self.resolvent
                if not self.layout.all_active:
                    part = part[:, :, operator.rows[:, None], operator.columns]
                total = (self.along(number)[:, :, None, None] * part).sum(axis=1)
                found.append(total if operator.once else 2.0 * symmetric(total))
        return np.stack(found, axis=1)

    # -- how they respond -----------------------------------------------------------------------

    @cached_property
    def _stirred(self) -> dict[int, Array]:
        """𝔤_ι(∂Z)𝔤_ι for unit entries of each operator in Z, shape (B, I, P_R, n, n)."""
        layout, found = self.layout, {}
        inner, corner = layout.inner, None
        for number, operator in enumerate(layout.operators):
            if operator.kind == "corner" and corner is not None:
                found[number] = corner
            elif operator.kind != "linear":
                pair = self.resolvent[..., operator.rows], self.resolvent[..., operator.columns]
                total = _outer(*pair, inner)
                if not operator.once:
                    total = total + _outer(*pair[::-1], inner)
                found[number] = symmetric(total) * inner.count[:, None, None]
                corner = found[number] if operator.kind == "corner" else corner
        return found

    @cached_property
    def _sources(self) -> tuple[Array, Array]:
        """For unit entries of all parameters, packed on the active rows, shape (B, P_Q, D): what
        they take from 𝔤 through Z, and what they add to the self-energy through Q."""
        layout = self.layout
        inner, outer, rows = layout.inner, layout.outer, layout.active
        cells, size = len(self.x), len(inner)
        through_z = np.zeros((cells, len(outer), len(layout.operators) * size), self._z.dtype)
        through_q = np.zeros_like(through_z)
        for number, operator in enumerate(layout.operators):
            place = slice(number * size, (number + 1) * size)
            if operator.kind == "linear":
                which, a = operator.where
                batch, t = self.bulk.batches[which], self.t[which]
                found = raised(
                    t[..., : self.rank],
                    batch.weights * batch.linear[:, a],
                    packing(t.shape[-1]),
                    inner,
                )
                through_q[:, layout.packed_own[which], place] = found
            else:
                weights = self.along(number)[:, :, None, None] * self._active_scales
                part = self._stirred[number]
                if not layout.all_active:
                    part = part[..., rows[:, None], rows]
                total = (weights[:, :, None] * part).sum(axis=1)
                through_z[:, :, place] = transposed(outer.pack(total))
        return through_z, through_q

    @cached_property
    def _feedback(self) -> Array:
        """The map D ↦ Σ_b E[S D S]/α on packed matrices of the active rows."""
        outer = self.layout.outer
        total = np.zeros((len(self.x), len(outer), len(outer)), dtype=self._z.dtype)
        for number, (batch, s) in enumerate(zip(self.bulk.batches, self.s)):
            own = packing(s.shape[-1])
            packed = np.ascontiguousarray(own.pack(s))
            weights = (batch.weights / batch.samples[:, None])[:, :, None]
            moment = product(transposed(packed * weights), packed)
            place = self.layout.packed_own[number]
            total[:, place[:, None], place] += own.congruence(moment)
        return total

    @cached_property
    def _spreading(self) -> Array:
        """The map D ↦ Σ ν_ιλ_ι² 𝔤_ι D 𝔤_ι on packed matrices of the active rows."""
        outer, rows = self.layout.outer, self.layout.active
        packed = outer.pack(self._active_scales * self.resolvent[:, :, rows[:, None], rows])
        weights = self.bulk.shares[:, :, None]
        return outer.congruence(product(transposed(packed * weights), packed))

    @cached_property
    def _settled(self) -> Array:
        """(I − 𝒦𝓢)⁻¹: how a change of 𝔤 settles, 𝒦 the spreading and 𝓢 the feedback."""
        outer = self.layout.outer
        matrix = np.eye(len(outer)) - product(self._spreading, self._feedback)
        return inverse(matrix)

    @cached_property
    def _change(self) -> Array:
        """∂𝔤 on the active rows for unit entries of all parameters, shape (B, P_Q, D)."""
        through_z, through_q = self._sources
        return -product(self._settled, through_z + product(self._spreading, through_q))

    @cached_property
    def hessian(self) -> Array:
        """Second derivatives of the potential whose gradients are the traces, shape (B, D, D).

        D = (1 + m) P_R packed entries; first derivatives are the traces times the number of times
        that an entry stands in its matrix.
        """
        if not self.bulk.batches:
            return self._direct
        counts = self.layout.outer.count[:, None]
        through_z, through_q = self._sources
        energy = through_q - product(self._feedback, self._change)
        found = product(transposed(through_q), counts * self._change)
        found = found - product(transposed(through_z), counts * energy) + self._direct
        return symmetric(found)

    @cached_property
    def _direct(self) -> Array:
        """Second derivatives at fixed 𝔤 and self-energy."""
        layout = self.layout
        inner, size, operators = layout.inner, len(layout.inner), layout.operators
        found = np.zeros((len(self.x), len(operators) * size, len(operators) * size), self._z.dtype)
        for i, first in enumerate(operators):
            if first.kind == "linear":
                if first.where[1] == 0:
                    part = self._direct_in_samples(first.where[0])
                    place = slice(i * size, i * size + part.shape[1])
                    found[:, place, place] = part
                continue
            for j, second in enumerate(operators[: i + 1]):
                if second.kind == "linear":
                    continue
                here, there = slice(i * size, (i + 1) * size), slice(j * size, (j + 1) * size)
                weights = self.along(i) * self.plain(j)
                block = self._stirred[j][..., first.rows[:, None], first.columns]
                block = symmetric((weights[:, :, None, None, None] * block).sum(axis=1))
                part = -transposed(inner.pack(block)) * (1.0 if first.once else 2.0)
                part = part * inner.count[:, None]
                found[:, here, there] = part
                found[:, there, here] = transposed(part)
        return found

    def _direct_in_samples(self, number: int) -> Array:
        """The block of the linear operators of one batch."""
        batch, inner = self.bulk.batches[number], self.layout.inner
        cells, count, nodes = batch.linear.shape
        packed = inner.pack(self.psi[number])
        values = transposed(batch.linear)[..., None] * packed[:, :, None]  # (B, Y, L, P)
        values = values.reshape(cells, nodes, count * len(inner))
        weights = (batch.weights * batch.samples[:, None])[:, :, None]
        moment = product(transposed(values * weights), values)
        blocks = np.swapaxes(moment.reshape(cells, count, len(inner), count, len(inner)), 2, 3)
        blocks = inner.congruence(np.ascontiguousarray(blocks)) * -inner.count[:, None]
        return np.swapaxes(blocks, 2, 3).reshape(cells, count * len(inner), count * len(inner))

    def corrected(self) -> Array:
        """The traces after one Newton step of 𝔤 at fixed parameters, shape (B, 1 + m, R, R)."""
        if not self.bulk.batches:
            return self.traces
        inner, outer = self.layout.inner, self.layout.outer
        through_z, through_q = self._sources
        step = self.settled()[:, :, None] * outer.count[:, None]
        pull = product(self._feedback, self.settled()[:, :, None]) * outer.count[:, None]
        change = product(transposed(through_q), step) + product(transposed(through_z), pull)
        change = change[:, :, 0].reshape(len(self.x), -1, len(inner)) / inner.count
        return self.traces + inner.unpack(change)

    def settled(self) -> Array:
        """The Newton step of 𝔤 at fixed parameters, packed, shape (B, P_Q)."""
        gap = self.layout.outer.pack(self.image - self.active)
        return product(self._settled, gap[:, :, None])[:, :, 0]

    def followed(self, parameters: Array) -> Array:
        """How a solution 𝔤 moves when the packed parameters move by (B, D), packed."""
        return product(self._change, parameters[:, :, None])[:, :, 0]

    def pushed(self, drive: Array) -> tuple[Array, Array]:
        """How W responds through 𝔤 when ∂W/∂𝔤 = ``drive``, (B, n, n), and 𝔤 follows its equation.

        Returns
        -------
        ndarray of shape (B, I, n, n)
            Minus the derivative in Z_ι.
        ndarray of shape (B, n, n)
            Minus the derivative in the self-energy.
        """
        bulk, rows, outer = self.bulk, self.layout.active, self.layout.outer
        weights, scales = bulk.shares[:, :, None, None], self.scales
        total = np.zeros_like(drive)
        if bulk.batches:
            around = product(product(self.resolvent, scales * drive[:, None]), self.resolvent)
            seen = (weights * scales * around).sum(axis=1)
            packed = outer.pack(seen[:, rows[:, None], rows])[:, :, None]
            energy = product(self._settled, packed)
            back = product(self._feedback, energy)[:, :, 0]
            drive = drive.copy()
            drive[:, rows[:, None], rows] += outer.unpack(back)
            total[:, rows[:, None], rows] = outer.unpack(energy[:, :, 0])
        around = product(product(self.resolvent, scales * drive[:, None]), self.resolvent)
        return weights * around, total


def _outer(left: Array, right: Array, packed: Packing) -> Array:
    """left_i right_jᵀ for the packed entries i ≤ j, shape (B, I, P, n, n)."""
    first = np.moveaxis(left[..., packed.rows], -1, 2)[..., :, None]
    return np.asarray(first * np.moveaxis(right[..., packed.columns], -1, 2)[..., None, :])
