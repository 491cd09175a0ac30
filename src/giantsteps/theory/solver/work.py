"""How much work a spectrum may take, counted in operations (theory §5d)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from giantsteps.errors import NotConverged
from giantsteps.theory.solver.bulk import Bulk

#: Operations of one answer: about five seconds of a core at 3 GHz.
MOST = 6e9
#: What of them a finer resolution may take.
_SHARE = 0.75


class Work:
    """Counts the operations of one answer, about, and ends it where they are too many.

    Parameters
    ----------
    what : str
        The answer, for the message.
    instead : str
        What else to try.
    most : float
        Operations that it may take: any number by default.
    """

    def __init__(self, what: str = "", instead: str = "", most: float = math.inf) -> None:
        self.spent, self.most, self._rounds = 0.0, most, 0
        self._what, self._instead = what, instead

    def spend(self, operations: float) -> None:
        """Count operations.

        Raises
        ------
        NotConverged
            Where there are too many.
        """
        self.spent, self._rounds = self.spent + operations, self._rounds + 1
        if self.spent > self.most:
            raise self.too_much(self._what)

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """Count nothing: of what is asked of an answer at points of the caller's own."""
        spent, most = self.spent, self.most
        self.most = math.inf
        try:
            yield
        finally:
            self.spent, self.most = spent, most

    def allows(self, operations: float) -> bool:
        """Whether so many more leave enough for a density."""
        return self.spent + operations <= _SHARE * self.most

    def too_much(self, what: str) -> NotConverged:
        """What ends an answer that takes more than it may."""
        limit = f"more than {self.most / 1e9:g} thousand million operations"
        return NotConverged(f"{what}: {limit}", math.inf, self._rounds, self._instead)


def of_forms(bulk: Bulk, rank: int) -> float:
    """Operations of the forms of special vectors of one cell, about."""
    total = 0
    for batch, stage in zip(bulk.batches, bulk.stages, strict=True):
        count, blocks = stage.carry.shape[1], 1 + batch.factors.shape[1]
        total += batch.weights.shape[1] * rank**2 * (count**2 + 20 * blocks**2)
    return float(total)
