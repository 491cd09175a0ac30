"""Errors of many readouts at once: what every method for the risk returns."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import NDArray

__all__ = ["DEGREES", "RidgeBatch"]

#: Degrees 0, 1, … reported by ``Risk.by_degree``.
DEGREES = 5


@dataclass(frozen=True, eq=False)
class RidgeBatch:
    """Errors of many readouts, one entry each, and how far they may be off (relative); ``by_degree`` has the degree on its last axis."""

    test: NDArray
    train: NDArray
    by_degree: NDArray
    residual: NDArray
    iterations: NDArray
    error: NDArray
    status: str = "converged"

    def take(self, cells: NDArray) -> RidgeBatch:
        """Some of the entries, in this order."""
        return RidgeBatch(
            self.test[cells],
            self.train[cells],
            self.by_degree[cells],
            self.residual[cells],
            self.iterations[cells],
            self.error[cells],
            self.status,
        )
