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
#: Channels that are few.
_FEW = 8


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions of the packed parameters: the first few alone, then others, (B, D, m).

    If the others are Σ_c f_tc u_tu_tᵀ over the operators c, ``shares`` are f (B, m, C) and
    ``channels`` u (B, m, R): then there may be many of them.
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

    def onto(self, matrix: Array) -> Array:
        """The directions' products with the columns of matrices (B, D, k), (B, n, k)."""
        return transposed(self.along(transposed(matrix)))

    def rows(self, places: Array) -> Array:
        """Some of their entries, (B, places, n)."""
        alone = np.zeros((len(self.others), len(places), self.alone))
        alone[:, places < self.alone, places[places < self.alone]] = 1.0
        return np.concatenate([alone, self.others[:, places]], axis=2)


class Dyson(DysonEquation):
    """The Dyson equation at given X, P and 𝔤, its traces, and how they respond."""

    @once
    def _through_z(self) -> Array:
        """What unit entries of the parameters in Z take from 𝔤, packed on the active rows, shape
        (B, P_Q, F).
        """
        layout = self.layout
        inner, outer, found = layout.inner, layout.outer, []
        # λ_ι is split between both sides of 𝔤_ι.
        side = self.resolvent[..., layout.active, :] * self._active_roots[..., None]
        for number, operator in enumerate(layout.operators):
            if operator.kind != "linear":
                pair = side[..., operator.rows], side[..., operator.columns]
                part = raised(pair[0], self.along(number), outer, inner, pair[1])
                found.append(part if operator.once else 2.0 * part)
        return np.concatenate(found, axis=2)

    @property
    def _active_roots(self) -> Array:
        """The roots of λ_ι on the active rows, (B, I, Q or 1)."""
        return np.sqrt(np.diagonal(self._active_scales, axis1=2, axis2=3))

    def _along(self, directions: Directions) -> tuple[Array, Array]:
        """For directions of the parameters, packed on the active rows, shape (B, P_Q, n): what they
        take from 𝔤 through Z, and what they add to the self-energy through Q.
        """
        through_z = product(self._through_z, directions.rows(self.layout.places[0]))
        through_q = np.zeros_like(through_z)
        for number, place in enumerate(self.layout.packed_own):
            if self._few:
                rows = directions.rows(self.layout.places[1][number])
                through_q[:, place] += product(self._through_q[number], rows)
            elif directions.shares is not None and directions.channels is not None:
                law = self._functions(number, directions.shares), directions.channels
                through_q[:, place, directions.alone :] += self._taken(number, *law)
            elif (moved := self._moved(number, directions)) is not None:
                t = self.t[number][:, :, None, :, : self.rank]
                part = self.mean(number, product(product(t, moved), transposed(t)))
                packed = packing(part.shape[-1]).pack(part)
                through_q[:, place, directions.alone :] += transposed(packed)
        return through_z, through_q

    @property
    def _few(self) -> bool:
        """Whether all entries of the operators cost less than the types one by one."""
        return self.rank <= _FEW

    @once
    def _through_q(self) -> list[Array]:
        """What unit entries of each batch's linear operators add to the self-energy, (B, P_q, LP):
        of few channels.
        """
        found = []
        for batch, t in zip(self.bulk.batches, self.t):
            rows, some = packing(t.shape[-1]), (t[..., : self.rank], self.layout.inner)
            parts = [raised(some[0], w, rows, some[1]) for w in batch.weighted.swapaxes(0, 1)]
            found.append(np.concatenate(parts, axis=2))
        return found

    def _moved(self, number: int, directions: Directions) -> Array | None:
        """How Q of one batch moves along few directions, (B, Y, m, R, R), if it does."""
        inner, batch = self.layout.inner, self.bulk.batches[number]
        others = directions.others[:, self.layout.places[1][number]]
        if not others.any():
            return None
        cells, count = len(others), others.shape[-1]
        others = others.reshape(cells, -1, len(inner), count).swapaxes(2, 3)
        flat = product(transposed(batch.linear), others.reshape(cells, len(others[0]), -1))
        return inner.unpack(flat.reshape(cells, -1, count, len(inner)))

    def _functions(self, number: int, shares: Array) -> Array:
        """Σ_c f_tcψ_c over the linear operators of one batch, (B, Y, m)."""
        of = self.layout.places[1][number][:: len(self.layout.inner)] // len(self.layout.inner) - 1
        return product(transposed(self.bulk.batches[number].linear), transposed(shares[:, :, of]))

    def _taken(self, number: int, functions: Array, channels: Array) -> Array:
        """E[f_t Tu_t(Tu_t)ᵀ] packed, (B, P_q, m)."""
        t, weights = self.t[number], self.bulk.batches[number].weights
        seen = product(t[..., : self.rank], transposed(channels)[:, None])  # (B, Y, q, m)
        seen = np.ascontiguousarray(seen.transpose(0, 3, 1, 2))
        weighted = transposed(functions * weights[:, :, None])[..., None]
        moment = product(transposed(seen * weighted), seen)
        return transposed(packing(t.shape[-1]).pack(moment))

    def _back(self, pull: Array, step: Array) -> Array:
        """The transposes of both maps on packed matrices (B, P_Q, n), shape (B, D, n)."""
        outer, inner = self.layout.outer, self.layout.inner
        found = np.zeros((len(pull), self.layout.parameters, pull.shape[-1]), pull.dtype)
        fixed, batches = self.layout.places
        found[:, fixed] = product(transposed(self._through_z), pull * outer.count[:, None])
        if self._few:
            step = step * outer.count[:, None]
            for own, place, part in zip(self.layout.packed_own, batches, self._through_q):
                found[:, place] = product(transposed(part), step[:, own])
            return found
        whole = outer.unpack(transposed(step))[:, None]  # (B, 1, n, Q, Q)
        for number, (batch, place) in enumerate(zip(self.bulk.batches, batches)):
            own, t = self.layout.own[number], self.t[number][:, :, None, :, : self.rank]
            some = whole if len(self.bulk.batches) == 1 else whole[..., own[:, None], own]
            cells, nodes, size = len(t), t.shape[1], max(_CHUNK // (some[0].size or 1), 1)
            total: Array | float = 0.0
            for start in range(0, nodes, size):
                part = t[:, start : start + size]
                felt = inner.pack(product(transposed(part), product(some, part))) * inner.count
                weights = batch.weighted[..., start : start + size]
                total = total + product(weights, felt.reshape(*felt.shape[:2], -1))
            shape = cells, -1, pull.shape[-1], len(inner)
            found[:, place] = np.reshape(total, shape).swapaxes(2, 3).reshape(cells, len(place), -1)
        return found

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

    def _change(self, directions: Directions) -> tuple[Array, Array, Array]:
        """∂𝔤 on the active rows along directions of the parameters, shape (B, P_Q, n), and of its
        sources through Z and through Q.
        """
        through_z, through_q = self._along(directions)
        change = -product(self._settled, through_z + product(self._spreading, through_q))
        return change, through_z, through_q

    def curved(self, directions: Directions) -> Array:
        """Second derivatives of the potential whose gradients are the traces, times directions,
        shape (B, D, n).

        D = (1 + m) P_R packed entries; first derivatives are the traces times the number of times
        that an entry stands in its matrix.
        """
        direct = self._direct_along(directions)
        if not self.bulk.batches:
            return direct
        change, _, own = self._change(directions)
        return direct + self._back(product(self._feedback, change) - own, change)

    def response(self, directions: Directions) -> tuple[Array, Array]:
        """Second derivatives along pairs of directions, (B, n, n), and how 𝔤 moves along them,
        packed, (B, P_Q, n).
        """
        found = self._direct_onto(directions)
        if not self.bulk.batches:
            return symmetric(found), found[:, :0]
        change, through_z, through_q = self._change(directions)
        counts = self.layout.outer.count[:, None]
        energy = through_q - product(self._feedback, change)
        found = found + product(transposed(through_q), counts * change)
        found = found - product(transposed(through_z), counts * energy)
        return symmetric(found), change

    def _direct_along(self, directions: Directions) -> Array:
        """Those at fixed 𝔤 and self-energy times few directions, (B, D, n)."""
        shape = len(self.x), self.layout.parameters, directions.count
        found, inner = np.zeros(shape, self._z.dtype), self.layout.inner
        fixed, batches = self.layout.places
        found[:, fixed] = product(self._direct_in_z, directions.rows(fixed))
        for number, (batch, place) in enumerate(zip(self.bulk.batches, batches)):
            moved = self._moved(number, directions)
            if moved is not None:  # X stands in Z alone
                psi = self.psi[number][:, :, None]
                part = inner.pack(product(product(psi, moved), psi)) * -inner.count
                part = product(batch.counted, part.reshape(*part.shape[:2], -1))
                part = part.reshape(len(part), -1, moved.shape[2], len(inner)).swapaxes(2, 3)
                found[:, place, directions.alone :] = part.reshape(len(part), len(place), -1)
        return found

    def _direct_onto(self, directions: Directions) -> Array:
        """Those at fixed 𝔤 and self-energy along pairs of directions, (B, n, n)."""
        rows = directions.rows(self.layout.places[0])
        found = product(transposed(rows), product(self._direct_in_z, rows))
        if directions.shares is not None and directions.channels is not None:
            some = slice(directions.alone, None)
            for number, place in enumerate(self.layout.places[1]):
                law = self._functions(number, directions.shares), directions.channels
                if self._few:
                    others = transposed(directions.others[:, place])
                    found[:, some, some] -= product(others, self._seen(number, *law))
                else:
                    found[:, some, some] -= self._seen_twice(number, *law)
        return found

    def _seen(self, number: int, functions: Array, channels: Array) -> Array:
        """α₀E[ψ_cf_t Ψu_t(Ψu_t)ᵀ] packed, (B, LP, m): of few channels."""
        batch, inner = self.bulk.batches[number], self.layout.inner
        seen = product(self.psi[number], transposed(channels)[:, None])  # (B, Y, R, m)
        pairs = seen[:, :, inner.rows] * seen[:, :, inner.columns] * functions[:, :, None]
        flat = (pairs * inner.count[:, None]).reshape(*pairs.shape[:2], -1)
        return product(batch.counted, flat).reshape(len(flat), -1, pairs.shape[-1])

    def _seen_twice(self, number: int, functions: Array, channels: Array) -> Array:
        """α₀E[f_sf_t (u_sᵀΨu_t)²] for pairs of channels, (B, m, m)."""
        batch, psi = self.bulk.batches[number], self.psi[number]
        weights = (batch.weights * batch.samples[:, None])[:, None]
        cells, count = channels.shape[:2]
        size, total = max(_CHUNK // count**2, 1), np.zeros((cells, 1, count**2))
        for start in range(0, psi.shape[1], size):
            some = slice(start, start + size)
            seen = product(product(channels[:, None], psi[:, some]), transposed(channels)[:, None])
            both = (seen * functions[:, some, :, None]) * (seen * functions[:, some, None])
            total = total + product(weights[..., some], both.reshape(*both.shape[:2], -1))
        return np.reshape(total, (cells, count, count))

    @once
    def _direct_in_z(self) -> Array:
        """The block of the parameters in Z."""
        layout, rank, resolvent = self.layout, self.rank, self.resolvent
        inner, size = layout.inner, len(layout.inner)
        fixed = [i for i, one in enumerate(layout.operators) if one.kind != "linear"]
        cells, count = len(self.x), len(fixed) * size
        found = np.zeros((cells, count, count), self._z.dtype)
        # X and the diagonal operators, which come first, at once.
        block = inner.squared(resolvent[..., :rank, :rank]) * -inner.count[:, None]
        block = block.reshape(cells, block.shape[1], -1)
        corners = 1 + layout.diagonal
        block = product(self.bulk.twice_along, block)
        block = block.reshape(cells, corners, corners, size, size).transpose(0, 1, 3, 2, 4)
        place = slice(corners * size)
        found[:, place, place] = block.reshape(cells, corners * size, corners * size)
        for here, i in enumerate(fixed):
            first = layout.operators[i]
            if first.kind != "product":
                continue
            others = [layout.operators[j] for j in fixed[: here + 1]]
            places = [np.stack(one) for one in zip(*((o.rows, o.columns) for o in others))]
            weights = np.stack([self.along(i) * self.plain(j) for j in fixed[: here + 1]], axis=1)
            weights, parts = weights.reshape(-1, weights.shape[2]), []
            left, right = (resolvent[:, :, rows] for rows in (first.rows, first.columns))
            for a, b in (places, places[::-1]):
                pair = (np.moveaxis(side[..., at], 3, 1) for side, at in ((left, a), (right, b)))
                one, other = (side.reshape(-1, *side.shape[2:]) for side in pair)
                parts.append(raised(one, weights, inner, inner, other))
            part = (parts[0] + parts[1]).reshape(cells, len(others), size, size).swapaxes(1, 2)
            once = np.array([0.5 if other.once else 1.0 for other in others])
            part = part * once[:, None] * (-1.0 if first.once else -2.0)
            part = (part * inner.count[:, None, None]).reshape(cells, size, -1)
            row, column = slice(here * size, (here + 1) * size), slice((here + 1) * size)
            found[:, row, column], found[:, column, row] = part, transposed(part)
        return found

    def corrected(self, by: Dyson | None = None) -> Array:
        """The traces after one Newton step of 𝔤 at fixed parameters, shape (B, 1 + m, R, R); with
        the derivatives of a point nearby, if there is one.
        """
        if not self.bulk.batches:
            return self.traces
        inner, by = self.layout.inner, by or self
        settled = self.settled(by)[:, :, None]
        change = by._back(product(by._feedback, settled), settled)
        change = change[:, :, 0].reshape(len(self.x), -1, len(inner)) / inner.count
        return self.traces + inner.unpack(change)

    def settled(self, by: Dyson | None = None) -> Array:
        """The Newton step of 𝔤 at fixed parameters, packed, shape (B, P_Q)."""
        gap = self.layout.outer.pack(self.image - self.active)
        return product((by or self)._settled, gap[:, :, None])[:, :, 0]

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
