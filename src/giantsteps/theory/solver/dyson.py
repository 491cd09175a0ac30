"""How the traces of the Dyson equation respond to their arguments (theory §5b).

Derivatives in X and P at the solution 𝔤: of the traces (a Hessian, as they are gradients of a
potential), and of 𝔤 itself, whose changes settle through (I − 𝒦𝓢)⁻¹.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from giantsteps.theory.solver.dyson_equation import DysonEquation
from giantsteps.theory.solver.once import once
from giantsteps.theory.solver.packing import (
    Packing,
    identity,
    inverse,
    packing,
    product,
    raised,
    symmetric,
    transposed,
)
from giantsteps.types import Array

#: Numbers that are kept at a time, for each cell.
_CHUNK = 500_000


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions of the packed parameters: the first few alone, then others, (B, D, m).

    If these are f_tc u_tu_tᵀ for each operator c, ``shares`` are f (B, m, C) and ``channels`` u
    (B, m, R).
    """

    alone: int
    others: Array
    shares: Array | None = None
    channels: Array | None = None

    @property
    def count(self) -> int:
        """n."""
        return self.alone + int(self.others.shape[-1])

    def along(self, matrix: Array) -> Array:
        """Matrices (…, D) times the directions, (…, n)."""
        found = product(matrix, self.others)
        if not self.alone:
            return found
        return np.concatenate([matrix[..., : self.alone], found], axis=-1)

    def rows(self, places: Array) -> Array:
        """Some of their entries, (B, places, n)."""
        alone = np.zeros((len(self.others), len(places), self.alone))
        alone[:, places < self.alone, places[places < self.alone]] = 1.0
        return np.concatenate([alone, self.others[:, places]], axis=2)


class Dyson(DysonEquation):
    """The Dyson equation at given X, P and 𝔤, its traces, and how they respond."""

    @once
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

    @once
    def _sources(self) -> tuple[Array, Array]:
        """For unit entries of all parameters, packed on the active rows, shape (B, P_Q, D): what
        they take from 𝔤 through Z, and what they add to the self-energy through Q."""
        layout = self.layout
        inner, outer = layout.inner, layout.outer
        cells, size = len(self.x), len(inner)
        through_z = np.zeros((cells, len(outer), len(layout.operators) * size), self._z.dtype)
        through_q = np.zeros_like(through_z)
        # X and the diagonal operators, which come first, at once.
        corners = self.over_directions(self._stirred_active(0))
        packed = outer.pack(corners).reshape(cells, -1, len(outer))
        through_z[:, :, : packed.shape[1]] = transposed(packed)
        for number, operator in enumerate(layout.operators):
            place = slice(number * size, (number + 1) * size)
            if operator.kind == "linear":
                which, a = operator.where
                t, weights = self.t[which], self.bulk.batches[which].weighted[:, a]
                found = raised(t[..., : self.rank], weights, packing(t.shape[-1]), inner)
                through_q[:, layout.packed_own[which], place] = found
            elif operator.kind == "product":
                weights = self.along(number)[:, :, None, None, None]
                total = (weights * self._stirred_active(number)).sum(axis=1)
                through_z[:, :, place] = transposed(outer.pack(total))
        return through_z, through_q

    def _stirred_active(self, number: int) -> Array:
        """λ_ι𝔤_ι(∂Z)𝔤_ι on the active rows, (B, I, P_R, Q, Q)."""
        part, rows = self._stirred[number], self.layout.active
        if not self.layout.all_active:
            part = part[..., rows[:, None], rows]
        return np.asarray(self._active_scales[:, :, None] * part)

    @once
    def _feedback(self) -> Array:
        """The map D ↦ Σ_b E[S D S]/α on packed matrices of the active rows."""
        outer, maps = self.layout.outer, []
        for batch, s in zip(self.bulk.batches, self.s):
            own = packing(s.shape[-1])
            packed = np.ascontiguousarray(own.pack(s))
            moment = product(transposed(packed * batch.shared[:, :, None]), packed)
            maps.append(own.congruence(moment))
        if len(maps) == 1:
            return maps[0]
        total = np.zeros((len(self.x), len(outer), len(outer)), dtype=self._z.dtype)
        for place, part in zip(self.layout.packed_own, maps):
            total[:, place[:, None], place] += part
        return total

    @once
    def _spreading(self) -> Array:
        """The map D ↦ Σ ν_ιλ_ι² 𝔤_ι D 𝔤_ι on packed matrices of the active rows."""
        outer, rows, part = self.layout.outer, self.layout.active, self.resolvent
        if not self.layout.all_active:
            part = part[:, :, rows[:, None], rows]
        packed = outer.whole.pack(self._active_scales * part)
        weights = self.bulk.shares[:, :, None]
        return outer.congruence(product(transposed(packed * weights), packed))

    @once
    def _settled(self) -> Array:
        """(I − 𝒦𝓢)⁻¹: how a change of 𝔤 settles, 𝒦 the spreading and 𝓢 the feedback."""
        outer = self.layout.outer
        matrix = identity(len(outer)) - product(self._spreading, self._feedback)
        return inverse(matrix)

    def _change(self, directions: Directions | None) -> tuple[Array, Array]:
        """∂𝔤 on the active rows along some or all directions of the parameters, shape (B, P_Q, n),
        and what they add to the self-energy at fixed 𝔤.
        """
        through_z, through_q = self._sources
        if directions is not None:
            through_z, through_q = map(directions.along, (through_z, through_q))
        return -product(self._settled, through_z + product(self._spreading, through_q)), through_q

    @once
    def hessian(self) -> Array:
        """Second derivatives of the potential whose gradients are the traces, shape (B, D, D).

        D = (1 + m) P_R packed entries; first derivatives are the traces times the number of times
        that an entry stands in its matrix.
        """
        return symmetric(self._curved(None))

    def curved(self, directions: Directions) -> Array:
        """The hessian times some directions of the parameters, shape (B, D, n); few directions do
        not need the whole hessian.
        """
        if "hessian" in self.__dict__ or 2 * directions.count >= self.layout.parameters:
            return directions.along(self.hessian)
        return self._curved(directions)

    def _curved(self, directions: Directions | None) -> Array:
        direct = self._direct if directions is None else self._direct_along(directions)
        if not self.bulk.batches:
            return direct
        counts = self.layout.outer.count[:, None]
        through_z, through_q = self._sources
        change, own = self._change(directions)
        energy = own - product(self._feedback, change)
        found = product(transposed(through_q), counts * change)
        return found - product(transposed(through_z), counts * energy) + direct

    @once
    def _direct(self) -> Array:
        """Second derivatives at fixed 𝔤 and self-energy, those in the functions of a batch apart
        from the others.
        """
        found = np.zeros((len(self.x), *(2 * (self.layout.parameters,))), self._z.dtype)
        fixed, batches = self._places
        found[:, fixed[:, None], fixed] = self._direct_in_z
        for number, place in enumerate(batches):
            found[:, place[:, None], place] = self._direct_in_samples(number)
        return found

    def _direct_along(self, directions: Directions) -> Array:
        """The same times some directions, (B, D, n)."""
        shape = len(self.x), self.layout.parameters, directions.count
        found = np.zeros(shape, self._z.dtype)
        fixed, batches = self._places
        found[:, fixed] = product(self._direct_in_z, directions.rows(fixed))
        for number, place in enumerate(batches):  # X stands in Z alone
            others = directions.others[:, place]
            if directions.shares is not None and directions.channels is not None:
                of = place[:: len(self.layout.inner)] // len(self.layout.inner) - 1
                law = directions.shares[:, :, of], directions.channels
                part = self._direct_in_samples_along(number, *law)
            elif others.any():
                part = product(self._direct_in_samples(number), others)
            else:
                continue
            found[:, place, directions.alone :] = part
        return found

    @property
    def _places(self) -> tuple[Array, list[Array]]:
        """Parameters in Z, and those that stand in Q of each batch."""
        size = len(self.layout.inner)
        found: list[list[Array]] = [[] for _ in range(1 + len(self.bulk.batches))]
        for number, operator in enumerate(self.layout.operators):
            batch = operator.where[0] if operator.kind == "linear" else -1
            found[batch + 1].append(np.arange(number * size, (number + 1) * size))
        fixed, *batches = (np.concatenate(part or [np.arange(0)]) for part in found)
        return fixed, batches

    @once
    def _direct_in_z(self) -> Array:
        """The block of the parameters in Z."""
        layout, rank = self.layout, self.rank
        inner, size = layout.inner, len(layout.inner)
        fixed = [i for i, one in enumerate(layout.operators) if one.kind != "linear"]
        cells, count = len(self.x), len(fixed) * size
        found = np.zeros((cells, count, count), self._z.dtype)
        # X and the diagonal operators, which come first, at once.
        block = symmetric(self._stirred[0][..., :rank, :rank])
        block = (inner.pack(block) * -inner.count).reshape(cells, block.shape[1], -1)
        corners = 1 + layout.diagonal
        block = product(self.bulk.twice_along, block)
        block = block.reshape(cells, corners, corners, size, size).transpose(0, 1, 4, 2, 3)
        place = slice(corners * size)
        found[:, place, place] = block.reshape(cells, corners * size, corners * size)
        for here, i in enumerate(fixed):
            first = layout.operators[i]
            if first.kind != "product":
                continue
            for there, j in enumerate(fixed[: here + 1]):
                weights = self.along(i) * self.plain(j)
                block = self._stirred[j][..., first.rows[:, None], first.columns]
                block = symmetric((weights[:, :, None, None, None] * block).sum(axis=1))
                part = -transposed(inner.pack(block)) * (1.0 if first.once else 2.0)
                part = part * inner.count[:, None]
                row, column = (slice(place * size, (place + 1) * size) for place in (here, there))
                found[:, row, column] = part
                found[:, column, row] = transposed(part)
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

    def _direct_in_samples_along(self, number: int, shares: Array, channels: Array) -> Array:
        """The same along Σ_c f_tcψ_c u_tu_tᵀ, (B, LP, m), of which Ψ makes Ψu_t (Ψu_t)ᵀ."""
        batch, inner = self.bulk.batches[number], self.layout.inner
        cells, count, nodes = batch.linear.shape
        m = channels.shape[1]
        weighted = batch.linear * (batch.weights * batch.samples[:, None])[:, None]
        found: Array | float = 0.0
        size = max(_CHUNK // (m * len(inner)), 1)
        for start in range(0, nodes, size):
            some = slice(start, start + size)
            seen = product(self.psi[number][:, some], transposed(channels)[:, None])  # (B, Y, R, m)
            functions = product(transposed(batch.linear[..., some]), transposed(shares))
            pairs = seen[:, :, inner.rows]
            pairs *= seen[:, :, inner.columns]
            pairs *= functions[:, :, None]
            flat = pairs.reshape(cells, pairs.shape[1], -1)
            found = found + product(weighted[..., some], flat)
        found = np.reshape(found, (cells, count, len(inner), m)) * -inner.count[:, None]
        return found.reshape(cells, count * len(inner), m)

    def corrected(self, by: Dyson | None = None) -> Array:
        """The traces after one Newton step of 𝔤 at fixed parameters, shape (B, 1 + m, R, R); with
        the derivatives of a point nearby, if there is one.
        """
        if not self.bulk.batches:
            return self.traces
        inner, outer, by = self.layout.inner, self.layout.outer, by or self
        through_z, through_q = by._sources
        settled = self.settled(by)[:, :, None]
        step = settled * outer.count[:, None]
        pull = product(by._feedback, settled) * outer.count[:, None]
        change = product(transposed(through_q), step) + product(transposed(through_z), pull)
        change = change[:, :, 0].reshape(len(self.x), -1, len(inner)) / inner.count
        return self.traces + inner.unpack(change)

    def settled(self, by: Dyson | None = None) -> Array:
        """The Newton step of 𝔤 at fixed parameters, packed, shape (B, P_Q)."""
        gap = self.layout.outer.pack(self.image - self.active)
        return product((by or self)._settled, gap[:, :, None])[:, :, 0]

    def followed(self, parameters: Array) -> Array:
        """How a solution 𝔤 moves when the packed parameters move by (B, D), packed."""
        return self._change(Directions(0, parameters[:, :, None]))[0][:, :, 0]

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
    first = transposed(left[..., packed.rows])[..., :, None]
    return np.asarray(first * transposed(right[..., packed.columns])[..., None, :])
