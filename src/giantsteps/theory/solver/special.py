r"""Forms of the vectors that are not generic in the bulk: spikes, teacher, norms (theory §5b).

A special vector is a sum over the samples of the batch, f = n₀⁻¹Σ_i a(i) x_i, beside components y on
external directions (the teacher's). Leaving one sample out, with T, S and Ψ = 𝔤T of the Dyson
equation and κ the coordinates of a sample on the external directions,

.. math:: f^\top 𝒢 f = z^\top G z + E[a^\top Ψ a]/α_0,\qquad z = y + E[κ\, T a],\qquad
          G = \bigl(Z + E[κκ^\top S]\bigr)^{-1} .

Its derivative in the parameters of the equation needs no more than ẑ = Gz and the Dyson equation's
own response.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from giantsteps.theory.solver.bulk import Batch
from giantsteps.theory.solver.dyson import Dyson
from giantsteps.theory.solver.packing import (
    product,
    symmetric,
    transposed,
)
from giantsteps.types import Array

__all__ = ["Forms"]


@dataclass(frozen=True, eq=False)
class Forms:
    """f_aᵀ𝒢f_b of the special vectors at a solution of the Dyson equation.

    Columns are numbered by vector and channel, (a, i) ↦ aR + i; rows by the blocks of the pencil.
    """

    dyson: Dyson

    # -- the pencil on all its rows --------------------------------------------------------------

    @property
    def _cells(self) -> int:
        return len(self.dyson.x)

    @property
    def _size(self) -> int:
        return int(self.dyson.resolvent.shape[-1])

    @cached_property
    def _averaged(self) -> Array:
        """Σ ν_ιλ_ι 𝔤_ι on all rows, shape (B, n, n)."""
        bulk = self.dyson.bulk
        weights = (bulk.shares * bulk.scales)[:, :, None, None]
        return np.asarray((weights * self.dyson.resolvent).sum(axis=1))

    def _on_all_rows(self, number: int) -> tuple[Array, Array]:
        """T and S of a batch on all rows, shape (B, Y, n, n)."""
        dyson, batch = self.dyson, self.dyson.bulk.batches[number]
        rows = dyson.layout.active[dyson.layout.own[number]]
        others = np.setdiff1d(np.arange(self._size), rows)
        t, s = (
            np.zeros((*batch.weights.shape, self._size, self._size), dtype=dyson.resolvent.dtype)
            for _ in range(2)
        )
        t[:, :, rows[:, None], rows], s[:, :, rows[:, None], rows] = (
            dyson.t[number],
            dyson.s[number],
        )
        if len(others):
            scaled = self._averaged[:, rows[:, None], others] / batch.samples[:, None, None]
            t[:, :, rows[:, None], others] = -product(dyson.s[number], scaled[:, None])
            t[:, :, others, others] = 1.0
        return t, s

    @cached_property
    def _t(self) -> list[Array]:
        return [self._on_all_rows(number)[0] for number in range(len(self.dyson.bulk.batches))]

    @cached_property
    def _s(self) -> list[Array]:
        return [self._on_all_rows(number)[1] for number in range(len(self.dyson.bulk.batches))]

    def _columns(self, values: Array) -> Array:
        """Coefficients (..., F) of the vectors as columns (..., n, FR) in their blocks."""
        rank, place = self.dyson.rank, self.dyson.bulk.place
        out = np.zeros((*values.shape[:-1], self._size, len(place) * rank), dtype=values.dtype)
        for a, where in enumerate(place):
            row = 0 if where == 0 else (2 * where - 1) * rank
            for i in range(rank):
                out[..., row + i, a * rank + i] = values[..., a]
        return out

    @cached_property
    def _sums(self) -> list[Array]:
        """a(i) as columns, shape (B, Y, n, FR), of each batch."""
        return [
            self._columns(np.ascontiguousarray(transposed(sums))) for sums in self.dyson.bulk.sums
        ]

    # -- external directions ----------------------------------------------------------------------

    @cached_property
    def _reach(self) -> Array:
        """√λ_ι e_ι of shape (B, I, E): a sample's coordinates on the components of the external
        directions, for each of its coordinates κ."""
        bulk = self.dyson.bulk
        return np.sqrt(bulk.scales)[:, :, None] * bulk.spread

    @cached_property
    def _z(self) -> Array:
        """z of shape (B, I, E, n, FR)."""
        bulk = self.dyson.bulk
        z = self._columns(np.moveaxis(bulk.external, 1, -1)).astype(self.dyson.resolvent.dtype)
        for number, batch in enumerate(bulk.batches):
            pulled = product(self._t[number], self._sums[number])
            for e in range(batch.first.shape[1]):
                mean = self.dyson.mean(number, pulled, batch.first[:, e])
                z[:, :, e] += self._reach[:, :, e, None, None] * mean[:, None]
        return z

    @cached_property
    def _extra(self) -> Array:
        """E[(κκᵀ − I) ⊗ S] over all batches, shape (B, En, En)."""
        bulk, n = self.dyson.bulk, self._size
        count = bulk.spread.shape[2]
        out = np.zeros((self._cells, count, n, count, n), dtype=self.dyson.resolvent.dtype)
        for number, batch in enumerate(bulk.batches):
            for e in range(count):
                for f in range(count):
                    weights = batch.second[:, e, f] - (batch.weights if e == f else 0.0)
                    out[:, e, :, f] += self.dyson.mean(number, self._s[number], weights)
        return out.reshape(self._cells, count * n, count * n)

    @cached_property
    def _hat(self) -> tuple[Array, Array]:
        """ẑ = Gz of shape (B, I, E, n, FR), and its reach ζ_e = Σ_ι√λ_ι e_ι ẑ, (B, E, n, FR)."""
        resolvent, reach, z = self.dyson.resolvent, self._reach, self._z
        count, n = reach.shape[2], self._size
        plain = product(resolvent[:, :, None], z)
        if not np.any(self._extra):
            return plain, (reach[..., None, None] * plain).sum(axis=1)
        seen = (reach[..., None, None] * plain).sum(axis=1).reshape(self._cells, count * n, -1)
        along = (reach**2)[..., None, None] * resolvent[:, :, None]
        corner = np.zeros((self._cells, count, n, count, n), dtype=resolvent.dtype)
        for e in range(count):
            corner[:, e, :, e] = along[:, :, e].sum(axis=1)
        corner = corner.reshape(self._cells, count * n, count * n)
        back = product(
            self._extra,
            np.linalg.solve(np.eye(count * n) + product(corner, self._extra), seen),
        ).reshape(self._cells, 1, count, n, -1)
        hat = plain - product(resolvent[:, :, None], reach[..., None, None] * back)
        return hat, (reach[..., None, None] * hat).sum(axis=1)

    # -- forms and their derivatives --------------------------------------------------------------

    @cached_property
    def values(self) -> Array:
        """f_aᵀ𝒢f_b of shape (B, F, R, F, R)."""
        hat, _ = self._hat
        cells, *_, n, columns = hat.shape
        flat = [np.ascontiguousarray(part.reshape(cells, -1, columns)) for part in (self._z, hat)]
        total = product(transposed(flat[0]), flat[1])
        for number, batch in enumerate(self.dyson.bulk.batches):
            a = self._sums[number]
            scaled = self._averaged / batch.samples[:, None, None]
            seen = product(scaled[:, None], product(self._t[number], a))
            weighted = batch.weights[:, :, None, None] * a
            left, right = (
                np.ascontiguousarray(part.reshape(cells, -1, columns)) for part in (weighted, seen)
            )
            total = total + product(transposed(left), right)
        rank = self.dyson.rank
        return symmetric(total).reshape(cells, columns // rank, rank, columns // rank, rank)

    def slopes(self, force: Array) -> Array:
        r"""Minus the derivatives of W = Σ φ_aᵀ(f_aᵀ𝒢f_b)φ_b in X and every P_c.

        They are forms of the vector ρ = 𝒢Σ_a φ_a ⊗ f_a: −∂W/∂P_c = ρᵀ(· ⊗ Ω_c)ρ.

        Parameters
        ----------
        force : ndarray of shape (B, FR)
            φ.

        Returns
        -------
        ndarray of shape (B, 1 + m, R, R)
        """
        dyson, bulk, rank = self.dyson, self.dyson.bulk, self.dyson.rank
        hat, reach = self._hat
        hat = product(hat, force[:, None, None, :, None])[..., 0]  # (B, I, E, n)
        reach = product(reach, force[:, None, :, None])[..., 0]  # (B, E, n)
        outer = hat[..., :, None] * hat[..., None, :]
        over = (bulk.scales[:, :, None, None, None] * outer).sum(axis=(1, 2))
        rest = over - (reach[..., :, None] * reach[..., None, :]).sum(axis=1)
        drive = np.zeros((self._cells, self._size, self._size), dtype=hat.dtype)
        samples = []
        for number, batch in enumerate(bulk.batches):
            t, s = self._t[number], self._s[number]
            a = product(self._sums[number], force[:, None, :, None])[..., 0]
            pulled = product(t, a[..., None])[..., 0]  # Ta, (B, Y, n)
            scaled = self._averaged / batch.samples[:, None, None]
            own = product(scaled[:, None], pulled[..., None])[..., 0]  # Ψa/α
            along = product(s[:, :, None], reach[:, None, :, :, None])[..., 0]  # Sζ_e
            more = dyson.mean(number, product(product(s, rest[:, None]), s))
            drive += (_second(pulled, -along, batch) + more) / batch.samples[:, None, None]
            back = product(transposed(t)[:, :, None], reach[:, None, :, :, None])[..., 0]  # Tᵀζ_e
            samples.append((own, back))
        settled, energy = dyson.pushed(symmetric(drive))
        found = []
        for place, operator in enumerate(dyson.layout.operators):
            if operator.kind == "linear":
                number, which = operator.where
                batch, t = bulk.batches[number], self._t[number][..., :rank]
                own, along = samples[number]
                function = batch.linear[:, which]
                part = _second(own[..., :rank], along[..., :rank], batch, function)
                whole = product(product(transposed(t), (rest + energy)[:, None]), t)
                found.append(part + dyson.mean(number, whole, batch.weights * function))
            else:
                block = (outer.sum(axis=2) + settled)[:, :, operator.rows[:, None], operator.columns]
                block = (dyson.plain(place)[:, :, None, None] * block).sum(axis=1)
                found.append(symmetric(block) * (1.0 if operator.once else 2.0))
        return np.stack(found, axis=1)


def _second(plain: Array, along: Array, batch: Batch, function: Array | None = None) -> Array:
    """E[(v + Σκ_e v_e)(v + Σκ_e v_e)ᵀ ψ] for vectors v (B, Y, n) and v_e (B, Y, E, n)."""
    function = np.ones_like(batch.weights) if function is None else function

    def moment(left: Array, right: Array, weights: Array) -> Array:
        return product(transposed(left * (weights * function)[:, :, None]), right)

    total = moment(plain, plain, batch.weights)
    for e in range(along.shape[2]):
        cross = moment(plain, along[:, :, e], batch.first[:, e])
        total = total + cross + transposed(cross)
        for f in range(along.shape[2]):
            total = total + moment(along[:, :, e], along[:, :, f], batch.second[:, e, f])
    return total
