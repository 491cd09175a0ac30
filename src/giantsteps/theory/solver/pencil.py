r"""The pencil of the Dyson equation on all its rows: what samples see of them (theory §5b).

A batch acts on rows of its own. There T and S are those of the equation; beside them T is the
identity and −S𝔤/α, and S is zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from giantsteps.theory.solver.dyson import Dyson
from giantsteps.theory.solver.once import once
from giantsteps.theory.solver.packing import product, transposed
from giantsteps.types import Array


@dataclass(frozen=True, eq=False)
class Pencil:
    """Averages over the samples of each batch, on all rows of the pencil."""

    dyson: Dyson

    @property
    def cells(self) -> int:
        """B."""
        return len(self.dyson.x)

    @property
    def size(self) -> int:
        """n."""
        return self.dyson.layout.size

    @once
    def averaged(self) -> Array:
        """Σ ν_ιλ_ι 𝔤_ι on all rows, shape (B, n, n)."""
        weights = self.dyson.bulk.shares[:, :, None, None] * self.dyson.scales
        return np.asarray((weights * self.dyson.resolvent).sum(axis=1))

    def scaled(self, number: int) -> Array:
        """𝔤/α of a batch on all rows, shape (B, n, n)."""
        return self.averaged / self.dyson.bulk.batches[number].samples[:, None, None]

    def rows(self, number: int) -> Array:
        """The rows of a batch."""
        layout = self.dyson.layout
        return layout.active[layout.own[number]]

    def others(self, number: int) -> tuple[Array, Array]:
        """The other rows, and 𝔤/α between its own and them."""
        others = self.dyson.layout.others[number]
        return others, self.scaled(number)[:, self.rows(number)[:, None], others]

    def seen(self, number: int, functions: Array, columns: Array) -> Array:
        """E[fT] for functions with the weights of the samples, (B, F, Y), in these columns, (B, F,
        n, C).
        """
        rows = self.rows(number)
        same = rows[:, None] == columns
        inside = same.any(axis=0)
        t = self.dyson.t[number][..., same[:, inside].argmax(axis=0)]

        def mean(values: Array) -> Array:
            found = product(functions, values.reshape(*values.shape[:2], -1))
            return found.reshape(*functions.shape[:2], *values.shape[2:])

        if len(rows) == self.size and inside.all():
            return mean(t)
        found: Array = np.zeros((*functions.shape[:2], self.size, len(columns)), dtype=t.dtype)
        here, there = np.flatnonzero(inside), np.flatnonzero(~inside)
        if len(here):
            found[:, :, rows[:, None], here] = mean(t)
        if len(there):
            beside = self.scaled(number)[:, None, rows[:, None], columns[there]]
            found[:, :, rows[:, None], there] = -product(mean(self.dyson.s[number]), beside)
            found[:, :, columns[there], there] = functions.sum(axis=2)[:, :, None]
        return found

    def pulled(self, number: int, sums: Array) -> Array:
        """T a of vectors (B, Y, n)."""
        rows, t = self.rows(number), self.dyson.t[number]
        found = np.array(sums, dtype=self.averaged.dtype)
        found[..., rows] = product(t, sums[..., rows, None])[..., 0]
        if len(rows) < self.size:
            others, beside = self.others(number)
            across = product(sums[..., others], transposed(beside))
            found[..., rows] -= product(self.dyson.s[number], across[..., None])[..., 0]
        return found
