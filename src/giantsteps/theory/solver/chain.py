r"""The Dyson equation where batches are multiplied, each type of neurons by its own (theory §7).

The covariances are Σ_t ← G_tΣ_tG_t + 𝐒_t, batch by batch, G_t = ϱ + n⁻¹Σ_i φ_t(i) x_ix_iᵀ. With
y_t = u_tᵀx, u_t the channels of a type, a chain of a's, a = G_t y_t and so on, and a multiplier c
for each of its links makes Σ_t p_t y_tᵀΣ_ty_t linear in the samples: t batches of T types have 2tT
rows beside x. Many types share L rows a_c, y_t = Σ_c V_tc a_c with a_c = Σ_t W_tc G_t(·), for L
functions V of the type and their duals W. The operators are the identity and Σ_t itself, whose
strength is P_t = p_t u_tu_tᵀ, so that p_t = w_tᵀP_tw_t with w_t = u_t/|u_t|².
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from giantsteps.theory.solver.bulk import Bulk
from giantsteps.theory.solver.dyson import Directions, Dyson
from giantsteps.theory.solver.layout import Blocks
from giantsteps.theory.solver.once import once
from giantsteps.theory.solver.packing import identity, packing, product, symmetric, transposed
from giantsteps.types import Array


@dataclass(frozen=True)
class ChainLayout(Blocks):
    """Rows in the order x, then a and c of each batch that turns, so many of each as ``counts``.

    The last batch acts on x and on its own c; the one before acts on the a that the last makes.
    """

    rank: int
    types: int
    counts: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        """Number of rows n."""
        return self.rank + 2 * self.negative

    @property
    def negative(self) -> int:
        """Rows of multipliers."""
        return sum(self.counts)

    @property
    def parameters(self) -> int:
        """D, packed entries of X, of the identity and of all types."""
        return (2 + self.types) * len(self.inner)

    def links(self, number: int) -> tuple[Array, Array]:
        """Rows of a and c of a batch that turns."""
        count = self.counts[number]
        rows = self.rank + 2 * sum(self.counts[:number]) + np.arange(count)
        return rows, rows + count

    def later(self, number: int) -> int | None:
        """The next batch that turns, whose a a batch acts on; none: it acts on x."""
        return next((n for n in range(number + 1, len(self.counts)) if self.counts[n]), None)

    @cached_property
    def sources(self) -> tuple[Array, ...]:
        """Rows that each batch acts on, and last those that the first of them makes."""
        found, rows = [], np.arange(self.rank)
        for number in reversed(range(len(self.counts))):
            found.append(rows)
            rows = self.links(number)[0] if self.counts[number] else rows
        return (*found[::-1], rows)

    @cached_property
    def _owned(self) -> list[Array]:
        return [
            np.concatenate([source, self.links(number)[1]])
            for number, source in enumerate(self.sources[:-1])
        ]

    @cached_property
    def active(self) -> Array:
        """Rows of x, of every c, and of what batches act on."""
        return np.unique(np.concatenate(self._owned))

    @cached_property
    def own(self) -> list[Array]:
        """Of each batch: its rows among the active ones."""
        return [np.searchsorted(self.active, rows) for rows in self._owned]

    def placed(self, where: int) -> Array:
        """Rows of a vector in one of the a's, the same for all channels, or in x."""
        if not where:
            return np.arange(self.rank)
        made = np.concatenate([self.links(number)[0] for number in range(len(self.counts))])
        return np.full(self.rank, made[where - 1])


@lru_cache(maxsize=64)
def _layout(rank: int, types: int, counts: tuple[int, ...]) -> ChainLayout:
    return ChainLayout(rank, types, counts)


@dataclass(frozen=True, eq=False)
class Chain(Dyson):
    """The Dyson equation of a chain at given X, P and 𝔤, its traces, and how they respond."""

    mixing: Array | None = None  # (B, T, R): u_t; None: one channel that all types share

    @once
    def layout(self) -> ChainLayout:  # type: ignore[override]
        """Where everything stands."""
        counts = tuple(batch.made for batch in self.bulk.batches)
        return _layout(int(self.x.shape[-1]), self.bulk.batches[0].linear.shape[1], counts)

    @once
    def _channels(self) -> Array:
        """u_t, (B, T, R), of all types that operators have."""
        if self.mixing is None:
            return np.ones((len(self.x), self.layout.types, 1))
        return product(transposed(self.bulk.coefficients[:, :, 1:]), self.mixing)

    @once
    def back(self) -> Array:
        """w_t, (B, T, R)."""
        size = (self._channels**2).sum(axis=-1, keepdims=True)
        return np.divide(self._channels, size, out=np.zeros_like(self._channels), where=size > 0)

    @once
    def _strength(self) -> Array:
        """p_t, (B, T)."""
        rows = self.back[:, :, None]
        return product(product(rows, self.strengths[:, 1:]), transposed(rows))[:, :, 0, 0]

    @once
    def _spread(self) -> Array:
        """Packed w_tw_tᵀ, as often as each entry stands there: p_t in entries of P_t, (B, T, P)."""
        outer = self.back[..., :, None] * self.back[..., None, :]
        return self.layout.inner.pack(outer) * self.layout.inner.count

    def _whole(self, few: Array) -> Array:
        """Columns for X, the identity and p_t, (B, m, 2P + T), as columns for all entries."""
        plain = 2 * len(self.layout.inner)
        types = few[:, :, plain:, None] * self._spread[:, None]
        return np.concatenate([few[:, :, :plain], types.reshape(*few.shape[:2], -1)], axis=2)

    def _ends(self, number: int) -> Array:
        """y_t on the rows that a batch acts on, (B, T, rows)."""
        later = self.layout.later(number)
        return self._channels if later is None else self._made(later)[:, 0]

    def _made(self, number: int) -> Array:
        """Functions of the types and their duals for the rows that a batch makes, (B, 2, T, L)."""
        links = self.bulk.batches[number].links
        if links is None:
            types = self.layout.types
            links = np.broadcast_to(identity(types), (len(self.x), 2, types, types))
        return links

    @property
    def _last(self) -> Array:
        """y_t on the rows that the first of the batches makes, (B, T, rows)."""
        return self._ends(-1)

    def shares(self, place: tuple[int, ...]) -> Array:
        """What the channels of a vector have of the rows of its place, (B, k, R): all, or where
        there is one for each type w_t.
        """
        found = np.ones((len(self.x), len(place), self.rank))
        for v, where in enumerate(place):
            if where:
                found[:, v] = self.back[:, (where - 1) % self.layout.types]
        return found

    # -- the equation ---------------------------------------------------------------------------

    @once
    def _z(self) -> Array:
        layout, rank = self.layout, self.rank
        dtype = np.result_type(self.x, self.strengths)
        z: Array = np.zeros((len(self.x), layout.size, layout.size), dtype=dtype)
        z[:, :rank, :rank] = self.x + self.strengths[:, 0]
        for number, batch in enumerate(self.bulk.batches):
            if not layout.counts[number]:
                continue
            assert batch.kept is not None
            made, link = layout.links(number)
            source = layout.sources[number][:, None]
            z[:, made, link] = z[:, link, made] = -1.0
            ends = product(transposed(self._ends(number)), self._made(number)[:, 1])
            ends = batch.kept[:, None, None] * ends
            z[:, source, link] = ends
            z[:, link[:, None], source[:, 0]] = transposed(ends)
        last = layout.sources[-1]
        weighted = self._strength[:, :, None] * self._last
        z[:, last[:, None], last] += product(transposed(self._last), weighted)
        return z[:, None]

    @once
    def q(self) -> list[Array]:
        """Q of each batch on its own rows, shape (B, Y, q, q)."""
        found = []
        for number, batch in enumerate(self.bulk.batches):
            ends = transposed(self._ends(number))[:, None]  # (B, 1, rows, T)
            noise = transposed(batch.linear) * self._strength[:, None]  # (B, Y, T)
            corner = product(ends * noise[:, :, None], transposed(ends))
            if not self.layout.counts[number]:
                found.append(corner)
                continue
            rows, made = ends.shape[2], self._made(number)[:, 1]
            size = rows + made.shape[2]
            q = np.zeros((*noise.shape[:2], size, size), dtype=corner.dtype)
            q[:, :, :rows, :rows] = corner
            turned = product(ends * transposed(batch.factors)[:, :, None], made[:, None])
            q[:, :, :rows, rows:], q[:, :, rows:, :rows] = turned, transposed(turned)
            found.append(q)
        return found

    @once
    def seen(self) -> list[Array]:
        """𝔤T/α between the types' rows of each batch, shape (B, Y, T, T)."""
        found = []
        for number, (g, t) in enumerate(zip(self.scaled, self.t)):
            ends = self._ends(number)
            rows = ends.shape[2]
            psi = symmetric(product(g[:, None, :rows], t[..., :rows]))
            found.append(product(product(ends[:, None], psi), transposed(ends)[:, None]))
        return found

    @property
    def felt(self) -> list[Array]:
        pairs = zip(self.bulk.batches, self.seen)
        return [batch.linear * transposed(np.diagonal(seen, 0, 2, 3)) for batch, seen in pairs]

    @property
    def regular(self) -> Array:
        """Whether no sample has passed a pole, shape (B,)."""
        signs = np.linalg.eigvalsh(self.resolvent) < 0
        positive = np.all(signs.sum(axis=-1) == self.layout.negative, axis=1)
        for t in self.t:
            positive &= np.all(np.linalg.det(t) > 0, axis=1)
        return positive

    # -- traces and their derivatives -------------------------------------------------------------

    @once
    def forces(self) -> Array:
        """u_tᵀτ(Σ_t𝒢)u_t, (B, T)."""
        last = self.layout.sources[-1]
        total = self._squared(self.resolvent[:, 0, last[:, None], last])
        for batch, seen in zip(self.bulk.batches, self.seen):
            own = np.diagonal(seen, axis1=2, axis2=3)  # (B, Y, T)
            total = total + (transposed(batch.counted) * own).sum(axis=1)
        return np.asarray(total)

    def _squared(self, matrix: Array) -> Array:
        """y_tᵀ(matrix)y_t on the rows that the first batch makes, (B, T)."""
        return np.asarray((product(self._last, matrix) * self._last).sum(axis=2))

    @once
    def traces(self) -> Array:
        """τ(𝒢) twice, and for each type a matrix with u_tᵀ(·)u_t = u_tᵀτ(Σ_t𝒢)u_t."""
        corner = self.resolvent[:, :, : self.rank, : self.rank]
        outer = self.back[..., :, None] * self.back[..., None, :]
        return np.concatenate([corner, corner, self.forces[..., None, None] * outer], axis=1)

    def coupled(self, traces: Array) -> Array:
        """τ(1 − X𝒢), without taking the difference, (B, R, R)."""
        rank, rows = self.rank, self.layout.active
        pulls = self._z[:, 0, :rank].copy()
        pulls[:, :, :rank] = self.strengths[:, 0]
        energy = self.padded([self.mean(number, s) for number, s in enumerate(self.s)])
        pulls[:, :, rows] += energy[:, :rank]
        found = product(pulls, self.resolvent[:, 0, :, :rank])
        return np.asarray(found - product(self.x, traces[:, 0] - self.traces[:, 0]))

    @once
    def _sources(self) -> tuple[Array, Array]:
        """For unit entries of all parameters, packed on the active rows, shape (B, P_Q, D): what
        they take from 𝔤 through Z, and what they add to the self-energy through Q.
        """
        layout, inner, outer = self.layout, self.layout.inner, self.layout.outer
        active = np.ascontiguousarray(self.resolvent[:, 0][..., layout.active])  # symmetric
        x, last = active[:, : self.rank], product(self._last, active[:, layout.sources[-1]])
        corner = outer.pack(_outer(x[:, inner.rows], x[:, inner.columns]))
        corner = transposed(corner * inner.count[:, None])
        through_z = np.concatenate(
            [corner, corner, transposed(outer.pack(_outer(last, last)))], axis=2
        )
        through_q = np.zeros_like(through_z)
        for number, (batch, t) in enumerate(zip(self.bulk.batches, self.t)):
            ends = transposed(self._ends(number))[:, None]
            columns = product(t[..., : ends.shape[2]], ends)  # (B, Y, q, T)
            own = packing(columns.shape[2])
            pairs = columns[:, :, own.rows] * columns[:, :, own.columns]  # (B, Y, P, T)
            moment = (transposed(batch.weighted)[:, :, None] * pairs).sum(axis=1)
            through_q[:, layout.packed_own[number], 2 * len(inner) :] += moment
        return self._whole(through_z), self._whole(through_q)

    @once
    def _direct(self) -> Array:
        """Second derivatives at fixed 𝔤 and self-energy, (B, D, D)."""
        layout, inner, g = self.layout, self.layout.inner, self.resolvent[:, 0]
        last, size = layout.sources[-1], len(self.layout.inner)
        x, across = g[:, : self.rank, : self.rank], product(self._last, g[:, last, : self.rank])
        corner = -inner.pack(_outer(x[:, inner.rows], x[:, inner.columns]))
        corner = corner * inner.count * inner.count[:, None]
        mixed = -inner.pack(_outer(across, across)) * inner.count
        few: Array = np.zeros((len(g), 2 * size + layout.types, 2 * size + layout.types), g.dtype)
        for one in (slice(size), slice(size, 2 * size)):
            for other in (slice(size), slice(size, 2 * size)):
                few[:, one, other] = corner
            few[:, one, 2 * size :], few[:, 2 * size :, one] = transposed(mixed), mixed
        ends = product(product(self._last, g[:, last[:, None], last]), transposed(self._last))
        own = -(ends**2)
        for batch, seen in zip(self.bulk.batches, self.seen):
            noise = transposed(batch.linear)
            pairs = noise[..., :, None] * noise[..., None, :] * seen**2
            weights = batch.weights * batch.samples[:, None]
            own = own - (weights[..., None, None] * pairs).sum(axis=1)
        few[:, 2 * size :, 2 * size :] = own
        return self._whole(transposed(self._whole(few)))

    def _along(self, directions: Directions) -> tuple[Array, Array]:
        through_z, through_q = self._sources
        return directions.along(through_z), directions.along(through_q)

    def _back(self, pull: Array, step: Array) -> Array:
        through_z, through_q = map(transposed, self._sources)
        counts = self.layout.outer.count[:, None]
        return product(through_z, counts * pull) + product(through_q, counts * step)

    def _direct_along(self, directions: Directions) -> Array:
        return directions.along(self._direct)

    def _direct_onto(self, directions: Directions) -> Array:
        return directions.onto(self._direct_along(directions))

    def slopes(self, core: Array, seen: list[tuple[Array, Array]], rests: list[Array]) -> Array:
        """Minus the derivatives of a form in X, in the identity and in every P_t, (B, m, R, R).

        ``core`` is what Z sees of the form, (B, n, n), and of each batch ``seen`` are what its
        samples see of the form themselves and by each coordinate, and ``rests`` what they see on
        average on the batch's rows.
        """
        last, rank = self.layout.sources[-1], self.rank
        total = self._squared(core[:, last[:, None], last])
        for number, (batch, (own, back), rest) in enumerate(zip(self.bulk.batches, seen, rests)):
            ends, rows = transposed(self._ends(number)), self.layout.sources[number]
            columns = product(self.t[number][..., : len(rows)], ends[:, None])  # (B, Y, q, T)
            own, back = product(own[..., rows], ends), product(back[..., rows], ends[:, None])
            whole = (columns * product(rest[:, None], columns)).sum(axis=2)
            parts = []
            for a in range(total.shape[1]):
                pair = own[..., a : a + 1], back[..., a : a + 1]
                part = batch.square(*pair, batch.linear[:, a])[:, 0, 0]
                parts.append(part + (batch.weighted[:, a] * whole[..., a]).sum(axis=1))
            total = total + np.stack(parts, axis=1)
        corner = symmetric(core[:, None, :rank, :rank])
        types = self.back[..., :, None] * self.back[..., None, :]
        return np.concatenate([corner, corner, total[..., None, None] * types], axis=1)


def _outer(left: Array, right: Array) -> Array:
    """The symmetric part of left_a right_aᵀ for rows a, (B, P, n) to (B, P, n, n)."""
    return symmetric(left[..., :, None] * right[..., None, :])


def dyson_at(
    bulk: Bulk, x: Array, strengths: Array, active: Array, mixing: Array | None = None
) -> Dyson:
    """The Dyson equation of a bulk; ``mixing`` are the channels of the types, (B, T, R)."""
    if bulk.chained:
        return Chain(bulk, x, strengths, active, mixing)
    return Dyson(bulk, x, strengths, active)
