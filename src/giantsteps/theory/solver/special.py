r"""Forms of the vectors that are not generic in the bulk: spikes, teacher, norms (theory §5b, §7).

Vectors are built batch by batch: v = Σ (earlier vectors) + n⁻¹Σ_i a_v(i) x_i, beginning with given
ones (the teacher's). The weights of a batch depend on the coordinates κ of its samples on a frame
of earlier vectors. Leaving one sample out, with T, S and Ψ = 𝔤T of the Dyson equation, a batch
first changes the forms of what was there,

.. math:: 𝒮 → \bigl(𝒮^{-1} + F^⊤ΔF\bigr)^{-1},\qquad Δ = E[(κκ^⊤ - I) ⊗ S],

and then adds its sums,

.. math:: v^⊤𝒢v' = (c_v + F^⊤z_v)^⊤𝒮(c_{v'} + F^⊤z_{v'}) + E[a_v^⊤ Ψ a_{v'}]/α,\qquad z_v = E[κ\,T
a_v] .

Where samples are given together with Σ_i y_ix_i = 0 beside their frame (a batch that is used twice,
given the direction of its first step), a_v is a_v − yλ_v beside the frame, with the λ_v that makes
the form least:

.. math:: λ_v = D^{-1}(E[yΨa_v]/α - k^⊤ζ),\qquad D = E[y²Ψ]/α,\qquad k = E[κy(I - T)],

ζ the frame's part of 𝒢v. So E[a_vΨa_{v'}]/α loses E[a_vΨy]D^{-1}E[yΨa_{v'}]/α², and Δ and z_v gain
kD^{-1}k^⊤ and kD^{-1}E[yΨa_v]/α.

Their derivatives in the parameters of the equation need no more than what a sample of each batch
sees of the vector ρ = 𝒢f, and the Dyson equation's own response.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from giantsteps.theory.solver.chain import Chain
from giantsteps.theory.solver.layout import Blocks
from giantsteps.theory.solver.once import once
from giantsteps.theory.solver.packing import identity, inverse, product, symmetric, transposed
from giantsteps.theory.solver.pencil import Pencil
from giantsteps.types import Array


@dataclass(frozen=True, eq=False)
class _Held:
    """A batch whose samples have a given sum.

    ======  =========  ============  ================
    symbol  attribute  shape         meaning
    ======  =========  ============  ================
    y       y          (B, Y)        at the samples
    k       k          (B, En, n)    E[κy(I − T)]
    D⁻¹     soft       (B, n, n)     (E[y²Ψ]/α)⁻¹
    ======  =========  ============  ================
    """

    y: Array
    k: Array
    soft: Array


@dataclass(frozen=True, eq=False)
class Forms(Pencil):
    """f_aᵀ𝒢f_b of the special vectors at a solution of the Dyson equation.

    Columns are numbered by vector and row of the pencil, (v, p) ↦ vn + p.
    """

    # -- forms, batch after batch -----------------------------------------------------------------

    @once
    def _given(self) -> Array:
        """Forms of the given vectors, shape (B, mn, mn)."""
        external, resolvent = self.dyson.bulk.external, self.dyson.resolvent
        cells, count, directions, more = external.shape
        flat = external.reshape(cells, count, directions * more)
        pairs = (flat[:, :, None] * flat[:, None]).reshape(cells, count, count, directions, more)
        weights = pairs.sum(axis=-1).transpose(0, 3, 1, 2)  # (B, I, m, m)
        blocks = (weights[..., None, None] * resolvent[:, :, None, None]).sum(axis=1)
        size = count * self.size
        return blocks.swapaxes(2, 3).reshape(cells, size, size)

    @once
    def _stages(self) -> list[tuple[Array, Array]]:
        """Of each batch: forms of the vectors before it, and F𝒮 with its frame, (B, En, mn)."""
        before, found = self._given, []
        last = len(self.dyson.bulk.batches) - 1
        for number in range(last + 1):
            found.append((before, product(self._framed(number), before)))
            if number < last:
                before = self._after(number, before, last=False)
        return found

    def _framed(self, number: int) -> Array:
        """F ⊗ I of a batch, shape (B, En, mn); each row has its own F where samples differ."""
        stage = self.dyson.bulk.stages[number]
        found = _lifted(stage.frame, self.size)
        if stage.within is None:
            return found
        left = np.tile(self.dyson.layout.left, stage.frame.shape[1])
        return np.where(left[:, None], _lifted(stage.within, self.size), found)

    @once
    def _extra(self) -> list[Array]:
        """Δ = E[(κκᵀ − I) ⊗ S] of each batch, shape (B, En, En)."""
        found, n = [], self.size
        for number, batch in enumerate(self.dyson.bulk.batches):
            s, rows = self.dyson.s[number], self.rows(number)
            count = batch.first.shape[1]
            out = np.zeros((self.cells, count, n, count, n), dtype=s.dtype)
            for e in range(count):
                for f in range(count):
                    weights = batch.second[:, e, f] - (batch.weights if e == f else 0.0)
                    out[:, e, rows[:, None], f, rows] = self.dyson.mean(number, s, weights)
            total = out.reshape(self.cells, count * n, count * n)
            if (held := self._held[number]) is not None:
                total = total + product(product(held.k, held.soft), transposed(held.k))
            found.append(total)
        return found

    @once
    def _held(self) -> list[_Held | None]:
        """Of each batch whose samples have a given sum."""
        found: list[_Held | None] = []
        for number, batch in enumerate(self.dyson.bulk.batches):
            if batch.given is None:
                found.append(None)
                continue
            y, every = batch.given[:, None], np.arange(self.size)
            seen = -self.seen(number, batch.first * y, every)
            seen[:, :, every, every] += product(y, transposed(batch.first))[:, 0, :, None]
            stiff = self.seen(number, batch.weights[:, None] * y**2, every)[:, 0]
            k = seen.reshape(self.cells, -1, self.size)
            soft = inverse(symmetric(product(self.scaled(number), stiff)))
            found.append(_Held(batch.given, k, soft))
        return found

    @staticmethod
    def _opening(inner: Array, extra: Array) -> Array:
        """(I + 𝒮_FΔ)⁻¹, 𝒮_F the forms of a batch's frame before it, (B, En, En)."""
        return inverse(identity(extra.shape[-1]) + product(inner, extra))

    def _groups(self, number: int, last: bool) -> list[tuple[Array, Array]]:
        """Vectors after a batch, and the rows on which their forms are wanted: all of them if
        another batch follows, else the channels of each vector in its own place."""
        place = self.dyson.bulk.stages[number].place
        if not last:
            return [(np.arange(len(place)), np.arange(self.size))]
        return _by_place(place, self.dyson.layout)

    def _after(self, number: int, before: Array, last: bool) -> Array:
        """Forms of the vectors after a batch, by vector and row of `_groups`.

        A vector has its sum over the samples in one row of the pencil at a time: T a is a column of
        T times a number.
        """
        batch, stage = self.dyson.bulk.batches[number], self.dyson.bulk.stages[number]
        cells, n, groups = self.cells, self.size, self._groups(number, last)
        count, m = stage.carry.shape[1:]
        size, directions = len(groups[0][1]), batch.first.shape[1]
        scaled = self.scaled(number)
        z: Array = np.zeros((cells, directions, n, count, size), dtype=scaled.dtype)
        own: Array = np.zeros((cells, count, size, count, size), dtype=scaled.dtype)
        seen_by = batch.first[:, :, None] * stage.sums[:, None]  # (B, E, k, Y)
        weighted = batch.weights[:, None] * stage.sums
        for vectors, rows in groups:
            flat = seen_by[:, :, vectors].reshape(cells, -1, seen_by.shape[-1])
            found = self.seen(number, flat, rows)
            found = found.reshape(cells, directions, len(vectors), n, size)
            z[:, :, :, vectors] = found.swapaxes(2, 3)
            for others, across in groups:
                pairs = weighted[:, others][:, :, None] * stage.sums[:, vectors][:, None]
                flat = pairs.reshape(cells, -1, pairs.shape[-1])
                found = product(scaled[:, None, across], self.seen(number, flat, rows))  # Ψ/α
                found = found.reshape(cells, len(others), len(vectors), size, size)
                own[:, others[:, None], :, vectors] = found.transpose(1, 2, 0, 3, 4)
        z, own = (part.reshape(cells, -1, count * size) for part in (z, own))
        if (held := self._held[number]) is not None:
            c: Array = np.zeros((cells, n, count, size), dtype=scaled.dtype)
            for vectors, rows in groups:
                given = self.seen(number, weighted[:, vectors] * held.y[:, None], rows)
                c[:, :, vectors] = product(scaled[:, None], given).swapaxes(1, 2)
            c = c.reshape(cells, n, count * size)
            less = product(held.soft, c)
            z, own = z + product(held.k, less), own - product(transposed(c), less)

        def carried(forms: Array) -> Array:
            """Rows (v, p) of the vectors before as the carry has them after, (B, count·size, …)."""
            wide = forms.reshape(cells, m, n, -1)
            out: Array = np.empty((cells, count, size, wide.shape[3]), dtype=wide.dtype)
            for vectors, rows in groups:
                some = wide[:, :, rows].reshape(cells, m, -1)
                mixed = product(stage.carry[:, vectors], some)
                out[:, vectors] = mixed.reshape(cells, len(vectors), size, -1)
            return out.reshape(cells, count * size, -1)

        # Of c + F^⊤z, c what is carried.
        frame, extra = self._framed(number), self._extra[number]
        half = product(frame, before)
        inner, across = product(half, transposed(frame)), carried(transposed(half))
        seen = transposed(across) + product(inner, z)
        back = product(extra, product(self._opening(inner, extra), seen))
        total = carried(transposed(carried(before)))
        total = total + product(across, z) + product(transposed(z - back), seen)
        return symmetric(total + own)

    @once
    def values(self) -> Array:
        """f_aᵀ𝒢f_b of shape (B, F, R, F, R)."""
        bulk, rank = self.dyson.bulk, self.dyson.rank
        if bulk.batches:
            number = len(bulk.batches) - 1
            forms = self._after(number, self._stages[number][0], last=True)
            if isinstance(self.dyson, Chain):
                rows = self.dyson.shares(bulk.stages[-1].place).reshape(self.cells, 1, -1)
                forms = forms * transposed(rows) * rows
        else:
            count = bulk.external.shape[1]
            forms = self._given.reshape(self.cells, count, self.size, count, self.size)
            forms = forms[:, :, :rank, :, :rank].reshape(self.cells, count * rank, count * rank)
        mixed = _lifted(bulk.special, rank)
        found = product(product(mixed, forms), transposed(mixed))
        count = bulk.special.shape[1]
        return symmetric(found).reshape(self.cells, count, rank, count, rank)

    # -- derivatives ----------------------------------------------------------------------------

    def slopes(self, force: Array) -> Array:
        r"""Minus the derivatives of W = Σ φ_aᵀ(f_aᵀ𝒢f_b)φ_b in X and every P_c.

        They are forms of the vector ρ = 𝒢Σ_a φ_a ⊗ f_a: −∂W/∂P_c = ρᵀ(· ⊗ Ω_c)ρ.

        Parameters
        ----------
        force : ndarray of shape (B, FR)
            φ; any number of them for one cell.

        Returns
        -------
        ndarray of shape (B, 1 + m, R, R)
        """
        dyson, bulk = self.dyson, self.dyson.bulk
        hat, seen, pulled = self._traced(force)
        outer = (hat[..., :, None] * hat[..., None, :]).sum(axis=2)  # (B, I, n, n)
        over = (dyson.scales * outer).sum(axis=1)
        drive = np.zeros((len(force), self.size, self.size), dtype=hat.dtype)
        rests, samples = [], []
        for number, batch in enumerate(bulk.batches):
            t, s, rows = dyson.t[number], dyson.s[number], self.rows(number)
            reach = seen[number]  # ζ, (B, E, n)
            rest = over - (reach[..., :, None] * reach[..., None, :]).sum(axis=1)
            rest = rest[:, rows[:, None], rows]
            own = reach[:, None, :, rows, None]
            along = np.zeros((len(force), s.shape[1], *reach.shape[1:]), dtype=hat.dtype)
            along[..., rows] = product(s[:, :, None], own)[..., 0]  # Sζ_e
            back = np.broadcast_to(reach[:, None], along.shape).copy()  # Tᵀζ_e
            back[..., rows] = product(transposed(t)[:, :, None], own)[..., 0]
            if len(rows) < self.size:
                others, beside = self.others(number)
                back[..., others] -= product(along[..., rows], beside[:, None])
            drive += batch.square(pulled[number], -along) / batch.samples[:, None, None]
            more = dyson.mean(number, product(product(s, rest[:, None]), s))
            drive[:, rows[:, None], rows] += more / batch.samples[:, None, None]
            rests.append(rest)
            samples.append((product(pulled[number], self.scaled(number)), back))  # Ψa/α
        settled, energy = dyson.pushed(symmetric(drive))
        for number, rest in enumerate(rests):
            rows = self.rows(number)
            rest += energy[:, rows[:, None], rows]
        if isinstance(dyson, Chain):
            return dyson.slopes((outer + settled)[:, 0], samples, rests)
        found = []
        for place, operator in enumerate(dyson.layout.operators):
            if operator.kind == "linear":
                number, which = operator.where
                batch, rows = bulk.batches[number], operator.rows
                t, (own, back) = dyson.t[number][..., : dyson.rank], samples[number]
                function = batch.linear[:, which]
                part = batch.square(own[..., rows], back[..., rows], function)
                whole = product(product(transposed(t), rests[number][:, None]), t)
                found.append(part + dyson.mean(number, whole, batch.weights * function))
            else:
                block = (outer + settled)[:, :, operator.rows[:, None], operator.columns]
                block = (dyson.plain(place)[:, :, None, None] * block).sum(axis=1)
                found.append(symmetric(block) * (1.0 if operator.once else 2.0))
        return np.stack(found, axis=1)

    def _returned(self, number: int, seen: Array) -> Array:
        """Fᵀ of what a batch's frame sees, (B, E, n) to (B, m, n)."""
        stage = self.dyson.bulk.stages[number]
        found = product(transposed(stage.frame), seen)
        if stage.within is None:
            return found
        left = self.dyson.layout.left
        return np.where(left, product(transposed(stage.within), seen), found)

    def _traced(self, force: Array) -> tuple[Array, list[Array], list[Array]]:
        """Where the force goes, from the last batch to the first.

        Returns
        -------
        hat : ndarray of shape (B, I, E, n)
            ρ on the given vectors' own directions.
        seen : list of ndarray of shape (B, E, n)
            ρ on the frame of each batch.
        pulled : list of ndarray of shape (B, Y, n)
            T a of each batch.
        """
        bulk, rank, n = self.dyson.bulk, self.dyson.rank, self.size
        count = len(bulk.batches)
        spread = product(transposed(_lifted(bulk.special, rank)), force[:, :, None])
        spread = spread.reshape(len(force), -1, rank)  # on the last vectors
        source = np.zeros((len(force), spread.shape[1], n), dtype=force.dtype)
        place = bulk.stages[-1].place if count else (0,) * spread.shape[1]
        if isinstance(self.dyson, Chain):
            spread = spread * self.dyson.shares(place)
        for vectors, rows in _by_place(place, self.dyson.layout):
            if bulk.chained and place[vectors[0]]:  # one row for each type, shared by channels
                source[:, vectors, rows[0]] = spread[:, vectors].sum(axis=2)
            else:
                source[:, vectors[:, None], rows] = spread[:, vectors]
        seen: list[Array] = [np.zeros(0)] * count
        pulled: list[Array] = [np.zeros(0)] * count
        for number in reversed(range(count)):
            batch, stage = bulk.batches[number], bulk.stages[number]
            pulled[number] = self.pulled(number, product(transposed(stage.sums), source))
            z = product(batch.first, pulled[number])  # (B, E, n)
            if (held := self._held[number]) is not None:
                given = batch.weights * held.y
                c = product(given[:, None], pulled[number])[:, 0, :, None]
                c = product(self.scaled(number), c)
                z = z + product(held.k, product(held.soft, c)).reshape(z.shape)
            source = product(transposed(stage.carry), source)
            source = source + self._returned(number, z)
            flat = source.reshape(len(force), -1, 1)
            view = product(self._stages[number][1], flat)
            inner = product(self._stages[number][1], transposed(self._framed(number)))
            reach = product(self._opening(inner, self._extra[number]), view)
            back = product(self._extra[number], reach).reshape(z.shape)
            source = source - self._returned(number, back)
            seen[number] = reach.reshape(z.shape)
            if held is not None:
                less = product(held.soft, c - product(transposed(held.k), reach))  # λ
                less = held.y[:, :, None] * transposed(less)
                pulled[number] = pulled[number] - self.pulled(number, less)
        onto = bulk.external.transpose(0, 2, 3, 1)  # (B, I, E, m)
        given = product(onto, source[:, None])  # (B, I, E, n)
        hat = product(given, self.dyson.resolvent)  # symmetric
        return hat, seen, pulled


@lru_cache(maxsize=128)
def _by_place(place: tuple[int, ...], layout: Blocks) -> list[tuple[Array, Array]]:
    """Vectors in the same place of the pencil, and its rows."""
    return [
        (np.flatnonzero(np.array(place) == where), layout.placed(where))
        for where in sorted(set(place))
    ]


def _lifted(matrix: Array, size: int) -> Array:
    """matrix ⊗ I, of shape (B, m·size, k·size)."""
    if size == 1:
        return matrix
    cells, m, k = matrix.shape
    out = matrix[:, :, None, :, None] * identity(size)[None, None, :, None, :]
    return out.reshape(cells, m * size, k * size)
