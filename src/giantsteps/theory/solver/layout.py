"""Where the parameters of the Dyson equation stand: rows, blocks and packed entries (theory
§5b).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

import numpy as np

from giantsteps.theory.solver.bulk import Bulk
from giantsteps.theory.solver.packing import Packing, packing
from giantsteps.types import Array


class Operator(NamedTuple):
    """Where a parameter of the pencil stands.

    ``"corner"``: in Z at the block x, times weights of the directions (``where`` is −1 for X, else
    the number of a diagonal operator); ``"product"``: in Z at two blocks; ``"linear"``: in Q of a
    batch, (batch, number of its function).
    """

    kind: Literal["corner", "product", "linear"]
    where: tuple[int, int]
    rows: Array
    columns: Array

    @property
    def once(self) -> bool:
        """Whether it stands in one block, not in two that are transposes of each other."""
        return self.kind != "product" or self.where[0] == self.where[1]


class Blocks(ABC):
    """Rows of a pencil, of which batches act on the *active* ones, where 𝔤 is an unknown."""

    rank: int

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of rows n."""

    @property
    @abstractmethod
    def active(self) -> Array:
        """Rows on which batches act."""

    @property
    @abstractmethod
    def own(self) -> list[Array]:
        """Of each batch: its rows among the active ones."""

    @abstractmethod
    def placed(self, where: int) -> Array:
        """Rows of the channels of a vector (`Stage.place`), (R,)."""

    @cached_property
    def all_active(self) -> bool:
        """Whether there are no other rows."""
        return len(self.active) == self.size

    @cached_property
    def others(self) -> list[Array]:
        """Of each batch: all rows that are not its own."""
        return [np.setdiff1d(np.arange(self.size), self.active[own]) for own in self.own]

    @cached_property
    def packed_own(self) -> list[Array]:
        """Of each batch: its packed entries among those of the active rows."""
        found = []
        for own in self.own:
            small = packing(len(own))
            found.append(self.outer.place[own[small.rows], own[small.columns]])
        return found

    @cached_property
    def inner(self) -> Packing:
        """Packing of the channels."""
        return packing(self.rank)

    @cached_property
    def outer(self) -> Packing:
        """Packing of the active rows: of what one batch sees, if there are several."""
        size = len(self.active)
        kept = np.zeros((size, size), dtype=bool)
        for own in self.own:
            kept[own[:, None], own] = True
        return packing(size) if kept.all() or not self.own else Packing(size, kept)


@dataclass(frozen=True)
class Layout(Blocks):
    """Blocks in the order x, then a and c of each factor of each batch (a = M_c x).

    A batch acts on x and on its own c.
    """

    rank: int
    diagonal: int
    linear: tuple[int, ...]
    factors: tuple[int, ...]
    crossed: tuple[bool, ...]

    def rows(self, *blocks: int) -> Array:
        """Rows of some blocks."""
        return np.concatenate([np.arange(b * self.rank, (b + 1) * self.rank) for b in blocks])

    @cached_property
    def blocks(self) -> int:
        """Number of blocks."""
        return 1 + 2 * sum(self.factors)

    @cached_property
    def size(self) -> int:
        """Number of rows n."""
        return self.blocks * self.rank

    @cached_property
    def parameters(self) -> int:
        """D, packed entries of X and of all operators."""
        return len(self.operators) * len(self.inner)

    @cached_property
    def _active_blocks(self) -> list[int]:
        return [0, *range(2, self.blocks, 2)]

    @cached_property
    def active(self) -> Array:
        """Rows of x and of every c."""
        return self.rows(*self._active_blocks)

    @cached_property
    def left(self) -> Array:
        """Whether a row is on the left of a sum M_c, shape (n,)."""
        block = np.arange(self.size) // self.rank
        return np.asarray((block > 0) & (block % 2 == 0))

    @cached_property
    def own(self) -> list[Array]:
        """Of each batch: its rows among the active ones."""
        owned, start = [], 2
        for count in self.factors:
            blocks = [0, *range(start, start + 2 * count, 2)]
            owned.append(self.rows(*map(self._active_blocks.index, blocks)))
            start += 2 * count
        return owned

    def placed(self, where: int) -> Array:
        """Rows of the channels of a vector v, or of M_cv."""
        return np.arange(self.rank) + max(2 * where - 1, 0) * self.rank

    @cached_property
    def places(self) -> tuple[Array, list[Array]]:
        """Parameters in Z, and those that stand in Q of each batch."""
        size = len(self.inner)
        found: list[list[Array]] = [[] for _ in range(1 + len(self.linear))]
        for number, operator in enumerate(self.operators):
            batch = operator.where[0] if operator.kind == "linear" else -1
            found[batch + 1].append(np.arange(number * size, (number + 1) * size))
        fixed, *batches = (np.concatenate(part or [np.arange(0)]) for part in found)
        return fixed, batches

    @cached_property
    def operators(self) -> tuple[Operator, ...]:
        """X, then the operators in their order."""
        x = self.rows(0)
        found = [Operator("corner", (d, 0), x, x) for d in range(-1, self.diagonal)]
        start = 1
        for number, (linear, factors) in enumerate(zip(self.linear, self.factors, strict=True)):
            found += [Operator("linear", (number, a), x, x) for a in range(linear)]
            crosses = range(start, start + 2 * factors, 2) if self.crossed[number] else ()
            found += [Operator("product", (0, a), x, self.rows(a)) for a in crosses]
            for a in range(factors):
                for b in range(a, factors):
                    blocks = start + 2 * a, start + 2 * b
                    found.append(
                        Operator("product", blocks, self.rows(blocks[0]), self.rows(blocks[1]))
                    )
            start += 2 * factors
        return tuple(found)


@lru_cache(maxsize=256)
def _layout(
    rank: int,
    diagonal: int,
    linear: tuple[int, ...],
    factors: tuple[int, ...],
    crossed: tuple[bool, ...],
) -> Layout:
    return Layout(rank, diagonal, linear, factors, crossed)


def layout_of(bulk: Bulk, rank: int) -> Layout:
    """The layout of a bulk with so many channels."""
    if rank not in bulk.layouts:
        bulk.layouts[rank] = _layout(
            rank,
            bulk.diagonal.shape[1],
            tuple(batch.linear.shape[1] for batch in bulk.batches),
            tuple(batch.factors.shape[1] for batch in bulk.batches),
            tuple(batch.crossed for batch in bulk.batches),
        )
    found: Layout = bulk.layouts[rank]
    return found
