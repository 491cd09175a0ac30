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
from typing import Literal, NamedTuple

import numpy as np

from giantsteps.theory.solver.bulk import Bulk
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

__all__ = ["Dyson", "Operator"]


class Operator(NamedTuple):
    """Where a parameter of the pencil stands.

    ``"corner"``: in Z at the block x, times the weights ``along`` of the directions; ``"product"``: in
    Z at the blocks ``where`` of two factors; ``"linear"``: in Q of a batch, with the function
    ``where`` = (batch, number).
    """

    kind: Literal["corner", "product", "linear"]
    where: tuple[int, int]
    along: Array | None = None


@dataclass(frozen=True, eq=False)
class Dyson:
    """The Dyson equation at given X, P and 𝔤, and what follows from it.

    Blocks are in the order x, then a and c of each factor of each batch (a = M_c x). A batch acts on
    x and on its own c: the *active* blocks, on which 𝔤 is an unknown.

    Parameters
    ----------
    bulk : Bulk
    x : ndarray of shape (B, R, R)
        X.
    strengths : ndarray of shape (B, m, R, R)
        P_c.
    active : ndarray of shape (B, Q, Q), optional
        𝔤 on the active blocks, Σ ν_ιλ_ι 𝔤_ι over the directions.
    """

    bulk: Bulk
    x: Array
    strengths: Array
    active: Array

    # -- layout of the blocks -------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """R."""
        return int(self.x.shape[-1])

    @cached_property
    def _factors(self) -> list[int]:
        return [batch.factors.shape[1] for batch in self.bulk.batches]

    def rows(self, *blocks: int) -> Array:
        """Rows of some blocks."""
        return np.concatenate([np.arange(b * self.rank, (b + 1) * self.rank) for b in blocks])

    @cached_property
    def active_rows(self) -> Array:
        """Rows of x and of every c."""
        return self.rows(0, *range(2, 2 + 2 * sum(self._factors), 2))

    @cached_property
    def own(self) -> list[Array]:
        """Of each batch: its rows among the active ones."""
        owned, start = [], 1
        for count in self._factors:
            owned.append(self.rows(0, *range(start, start + count)))
            start += count
        return owned

    @cached_property
    def operators(self) -> list[Operator]:
        """X, then the operators in their order."""
        bulk, start = self.bulk, 1
        found = [Operator("corner", (0, 0), 1.0 / bulk.scales)]
        found += [
            Operator("corner", (0, 0), bulk.diagonal[:, d]) for d in range(bulk.diagonal.shape[1])
        ]
        for number, batch in enumerate(bulk.batches):
            found += [Operator("linear", (number, a)) for a in range(batch.linear.shape[1])]
            found += [Operator("product", (start + 2 * a, start + 2 * b)) for a, b in batch.pairs]
            start += 2 * batch.factors.shape[1]
        return found

    # -- the equation ---------------------------------------------------------------------------

    @cached_property
    def _z(self) -> Array:
        """Z of shape (B, I, n, n)."""
        rank, blocks = self.rank, 1 + 2 * sum(self._factors)
        shape = (*self.bulk.shares.shape, blocks * rank, blocks * rank)
        z = np.zeros(shape, dtype=np.result_type(self.x, self.strengths))
        z[:, :, :rank, :rank] = self.x[:, None] / self.bulk.scales[:, :, None, None]
        for number, operator in enumerate(self.operators[1:]):
            p = self.strengths[:, number, None]
            if operator.kind == "corner":
                z[:, :, :rank, :rank] += operator.along[:, :, None, None] * p  # type: ignore[index]
            elif operator.kind == "product":
                for a, b in {operator.where, operator.where[::-1]}:
                    z[:, :, a * rank : (a + 1) * rank, b * rank : (b + 1) * rank] = p
        for a in range(1, blocks, 2):
            here, there = slice(a * rank, (a + 1) * rank), slice((a + 1) * rank, (a + 2) * rank)
            z[:, :, here, there] = z[:, :, there, here] = -np.eye(rank)
        return z

    @cached_property
    def q(self) -> list[Array]:
        """Q of each batch on its own rows, shape (B, Y, q, q)."""
        rank, found = self.rank, []
        for number, batch in enumerate(self.bulk.batches):
            count, shape = batch.factors.shape[1], batch.weights.shape
            q = np.zeros((*shape, (1 + count) * rank, (1 + count) * rank), dtype=self._z.dtype)
            for p, operator in zip(np.moveaxis(self.strengths, 1, 0), self.operators[1:]):
                if operator.kind == "linear" and operator.where[0] == number:
                    function = batch.linear[:, operator.where[1]]
                    q[:, :, :rank, :rank] += function[:, :, None, None] * p[:, None]
            for c in range(count):
                block = slice((1 + c) * rank, (2 + c) * rank)
                unit = batch.factors[:, c, :, None, None] * np.eye(rank)
                q[:, :, :rank, block] = q[:, :, block, :rank] = unit
            found.append(q)
        return found

    @cached_property
    def scaled(self) -> list[Array]:
        """𝔤/α on the rows of each batch, shape (B, q, q)."""
        return [
            np.ascontiguousarray(self.active[:, own[:, None], own]) / batch.samples[:, None, None]
            for own, batch in zip(self.own, self.bulk.batches)
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
        size = len(self.active_rows)
        total = np.zeros((len(self.x), size, size), dtype=self._z.dtype)
        for own, part in zip(self.own, parts):
            total[:, own[:, None], own] += part
        return total

    @cached_property
    def resolvent(self) -> Array:
        """𝔤_ι = (Z_ι + λ_ι E[S])⁻¹ of shape (B, I, n, n)."""
        energy = self.padded([self.mean(number, s) for number, s in enumerate(self.s)])
        return self._inverted(energy)

    def _inverted(self, energy: Array | float) -> Array:
        matrix, rows = self._z.copy(), self.active_rows
        if np.ndim(energy):
            energy = np.asarray(energy)[:, None] * self.bulk.scales[:, :, None, None]
        matrix[:, :, rows[:, None], rows] += energy
        return symmetric(inverse(matrix))

    def averaged(self, resolvent: Array) -> Array:
        """Σ ν_ιλ_ι 𝔤_ι on the active rows."""
        rows = self.active_rows
        weights = (self.bulk.shares * self.bulk.scales)[:, :, None, None]
        return np.asarray((weights * resolvent[:, :, rows[:, None], rows]).sum(axis=1))

    @cached_property
    def image(self) -> Array:
        """What the equation makes of 𝔤 on the active blocks."""
        return self.averaged(self.resolvent)

    def alone(self) -> Array:
        """𝔤 without samples: where an iteration may start."""
        return self.averaged(self._inverted(0.0))

    # -- traces ---------------------------------------------------------------------------------

    @cached_property
    def traces(self) -> Array:
        """τ(𝒢) and τ(Ω_c𝒢) of shape (B, 1 + m, R, R), in the order of the operators."""
        found = []
        for operator in self.operators:
            if operator.kind == "linear":
                number, a = operator.where
                batch = self.bulk.batches[number]
                weights = batch.weights * batch.linear[:, a] * batch.samples[:, None]
                found.append(self.mean(number, self.psi[number], weights))
            else:
                rows, columns = (self.rows(block) for block in operator.where)
                weights = self.bulk.shares * (1.0 if operator.along is None else operator.along)
                part = self.resolvent[:, :, rows[:, None], columns]
                twice = 1.0 if operator.where[0] == operator.where[1] else 2.0
                found.append(twice * symmetric((weights[:, :, None, None] * part).sum(axis=1)))
        return np.stack(found, axis=1)

    # -- how they respond -----------------------------------------------------------------------

    @cached_property
    def _packings(self) -> tuple[Packing, Packing]:
        """Of the channels and of the active rows."""
        return packing(self.rank), packing(len(self.active_rows))

    @cached_property
    def _stirred(self) -> dict[int, Array]:
        """𝔤_ι(∂Z)𝔤_ι for unit entries of each operator in Z, shape (B, I, P_R, n, n)."""
        inner, found = self._packings[0], {}
        for number, operator in enumerate(self.operators):
            if operator.kind == "linear":
                continue
            left, right = (self.resolvent[..., self.rows(block)] for block in operator.where)
            total: Array = np.zeros(())
            for a, b in {(0, 1), (1, 0)} if operator.where[0] != operator.where[1] else {(0, 1)}:
                pair = (left, right)
                columns = np.moveaxis(pair[a][..., inner.rows], -1, 2)[..., :, None]
                total = (
                    total + columns * np.moveaxis(pair[b][..., inner.columns], -1, 2)[..., None, :]
                )
            found[number] = symmetric(total) * inner.count[:, None, None]
        return found

    @cached_property
    def _sources(self) -> tuple[Array, Array]:
        """For unit entries of all parameters, packed on the active rows, shape (B, P_Q, D): what they
        take from 𝔤 through Z, and what they add to the self-energy through Q."""
        inner, outer = self._packings
        cells, size = len(self.x), len(inner)
        through_z = np.zeros((cells, len(outer), len(self.operators) * size), dtype=self._z.dtype)
        through_q = np.zeros_like(through_z)
        rows = self.active_rows
        weights = self.bulk.shares * self.bulk.scales
        for number, operator in enumerate(self.operators):
            place = slice(number * size, (number + 1) * size)
            if operator.kind == "linear":
                through_q[:, :, place] = self._through_samples(*operator.where)
            else:
                along = weights if operator.along is None else weights * operator.along
                part = self._stirred[number][..., rows[:, None], rows]
                total = (along[:, :, None, None, None] * part).sum(axis=1)
                through_z[:, :, place] = transposed(outer.pack(total))
        return through_z, through_q

    def _through_samples(self, number: int, a: int) -> Array:
        """E[ψ T(∂Q)Tᵀ] packed on the active rows, for unit entries, shape (B, P_Q, P_R)."""
        batch, (inner, outer) = self.bulk.batches[number], self._packings
        own = packing(self.t[number].shape[-1])
        values = self.t[number][..., : self.rank]
        found = raised(values, batch.weights * batch.linear[:, a], own, inner)
        out = np.zeros((len(found), len(outer), len(inner)), dtype=found.dtype)
        out[:, self._packed_own(number)] = found
        return out

    def _packed_own(self, number: int) -> Array:
        """Packed entries of a batch among those of the active rows."""
        own, outer = self.own[number], self._packings[1]
        small = packing(len(own))
        return outer.place[own[small.rows], own[small.columns]]

    @cached_property
    def _feedback(self) -> Array:
        """The map D ↦ Σ_b E[S D S]/α on packed matrices of the active rows."""
        outer = self._packings[1]
        total = np.zeros((len(self.x), len(outer), len(outer)), dtype=self._z.dtype)
        for number, (batch, s) in enumerate(zip(self.bulk.batches, self.s)):
            own = packing(s.shape[-1])
            packed = np.ascontiguousarray(own.pack(s))
            weights = (batch.weights / batch.samples[:, None])[:, :, None]
            moment = product(transposed(packed * weights), packed)
            place = self._packed_own(number)
            total[:, place[:, None], place] += own.congruence(moment)
        return total

    @cached_property
    def _spreading(self) -> Array:
        """The map D ↦ Σ ν_ιλ_ι² 𝔤_ι D 𝔤_ι on packed matrices of the active rows."""
        outer, rows = self._packings[1], self.active_rows
        packed = outer.pack(self.resolvent[:, :, rows[:, None], rows])
        weights = (self.bulk.shares * self.bulk.scales**2)[:, :, None]
        return outer.congruence(product(transposed(packed * weights), packed))

    @cached_property
    def _settled(self) -> Array:
        """(I − 𝒦𝓢)⁻¹: how a change of 𝔤 settles, 𝒦 the spreading and 𝓢 the feedback."""
        outer = self._packings[1]
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
        counts = self._packings[1].count[:, None]
        through_z, through_q = self._sources
        energy = through_q - product(self._feedback, self._change)
        found = product(transposed(through_q), counts * self._change)
        found = found - product(transposed(through_z), counts * energy) + self._direct
        return symmetric(found)

    @cached_property
    def _direct(self) -> Array:
        """Second derivatives at fixed 𝔤 and self-energy."""
        inner, size = self._packings[0], len(self._packings[0])
        total = len(self.operators) * size
        found = np.zeros((len(self.x), total, total), dtype=self._z.dtype)
        for i, first in enumerate(self.operators):
            for j, second in enumerate(self.operators[: i + 1]):
                place = slice(i * size, (i + 1) * size), slice(j * size, (j + 1) * size)
                if "linear" in (first.kind, second.kind):
                    if first.kind != second.kind or first.where[0] != second.where[0]:
                        continue
                    part = self._direct_in_samples(first.where[0], first.where[1], second.where[1])
                else:
                    rows, columns = (self.rows(block) for block in first.where)
                    weights = self.bulk.shares
                    for operator in (first, second):
                        weights = weights if operator.along is None else weights * operator.along
                    block = self._stirred[j][..., rows[:, None], columns]
                    block = symmetric((weights[:, :, None, None, None] * block).sum(axis=1))
                    part = -transposed(inner.pack(block))
                    part = part * (1.0 if first.where[0] == first.where[1] else 2.0)
                part = part * inner.count[:, None]
                found[:, place[0], place[1]] = part
                found[:, place[1], place[0]] = transposed(part)
        return found

    def _direct_in_samples(self, number: int, a: int, b: int) -> Array:
        batch, inner = self.bulk.batches[number], self._packings[0]
        packed = np.ascontiguousarray(inner.pack(self.psi[number]))
        weights = batch.weights * batch.linear[:, a] * batch.linear[:, b] * batch.samples[:, None]
        return -inner.congruence(product(transposed(packed * weights[:, :, None]), packed))

    def corrected(self) -> Array:
        """The traces after one Newton step of 𝔤 at fixed parameters, shape (B, 1 + m, R, R)."""
        if not self.bulk.batches:
            return self.traces
        inner, outer = self._packings
        through_z, through_q = self._sources
        step = self.settled()[:, :, None] * outer.count[:, None]
        pull = product(self._feedback, self.settled()[:, :, None]) * outer.count[:, None]
        change = product(transposed(through_q), step) + product(transposed(through_z), pull)
        change = change[:, :, 0].reshape(len(self.x), -1, len(inner)) / inner.count
        return self.traces + inner.unpack(change)

    def settled(self) -> Array:
        """The Newton step of 𝔤 at fixed parameters, packed, shape (B, P_Q)."""
        gap = self._packings[1].pack(self.image - self.active)
        return product(self._settled, gap[:, :, None])[:, :, 0]

    def followed(self, parameters: Array) -> Array:
        """The Newton step of 𝔤 when the packed parameters move by (B, D), packed."""
        return self.settled() + product(self._change, parameters[:, :, None])[:, :, 0]

    def pushed(self, drive: Array) -> tuple[Array, Array]:
        """How W responds through 𝔤 when ∂W/∂𝔤 = ``drive``, (B, n, n), and 𝔤 follows its equation.

        Returns
        -------
        ndarray of shape (B, I, n, n)
            Minus the derivative in Z_ι.
        ndarray of shape (B, n, n)
            Minus the derivative in the self-energy.
        """
        bulk, rows, outer = self.bulk, self.active_rows, self._packings[1]
        weights = (bulk.shares * bulk.scales)[:, :, None, None]
        total = np.zeros_like(drive)
        if bulk.batches:
            around = product(product(self.resolvent, drive[:, None]), self.resolvent)
            seen = (weights * bulk.scales[:, :, None, None] * around).sum(axis=1)
            packed = outer.pack(seen[:, rows[:, None], rows])[:, :, None]
            energy = product(self._settled, packed)
            back = product(self._feedback, energy)[:, :, 0]
            drive = drive.copy()
            drive[:, rows[:, None], rows] += outer.unpack(back)
            total[:, rows[:, None], rows] = outer.unpack(energy[:, :, 0])
        around = product(product(self.resolvent, drive[:, None]), self.resolvent)
        return weights * around, total
