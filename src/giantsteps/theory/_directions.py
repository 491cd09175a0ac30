"""The bulk of the weights: how much a type's rows vary along each direction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from giantsteps.errors import InvalidProblem

__all__ = ["Directions"]


@dataclass(frozen=True, eq=False)
class Directions:
    """The bulk of the weights: a type's rows have variance sₜ(ι)/d along direction ι.

    Attributes
    ----------
    weights : ndarray of shape (I,)
        ν_ι, the share of each direction.
    variances : ndarray of shape (T, I)
        sₜ(ι).
    special : ndarray of shape (J, r+1, r+1)
        How much of the r spike directions and of the teacher's remainder lies along each of J
        directions: positive semidefinite, with sum I.
    special_variances : ndarray of shape (T, J)
        sₜ along them.

    References
    ----------
    theory §5a, §5b: ν, and ν_bb, ν_bB, ν_BB.

    Examples
    --------
    >>> bulk = Directions.isotropic([1.0, 1.2], rank=1)  # two types of neurons, one spike
    >>> isinstance(bulk, Directions), bulk.variances.shape, bulk.totals
    (True, (2, 1), array([1. , 1.2]))
    """

    weights: NDArray
    variances: NDArray
    special: NDArray
    special_variances: NDArray

    def __post_init__(self) -> None:
        for name in ("weights", "variances", "special", "special_variances"):
            value = np.array(getattr(self, name), dtype=float)
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        if self.weights.ndim != 1 or abs(self.weights.sum() - 1) > 1e-6:
            raise InvalidProblem("bulk.weights", self.weights, "one-dimensional with sum one")
        if not (np.all(self.variances >= 0) and np.all(self.special_variances >= 0)):
            raise InvalidProblem("bulk.variances", self.variances, "non-negative")
        if self.variances.shape[1:] != self.weights.shape:
            raise InvalidProblem("bulk.variances", self.variances, "one column for a direction")
        total = self.special.sum(axis=0)
        if total.ndim != 2 or np.abs(total - np.eye(len(total))).max() > 1e-6:
            raise InvalidProblem("bulk.special", self.special, "matrices with sum I")

    @classmethod
    def isotropic(cls, variances: ArrayLike, rank: int) -> Directions:
        """One direction: sₜ = cₜ everywhere (cui2024)."""
        column = np.atleast_1d(np.asarray(variances, dtype=float))[:, None]
        return cls(np.ones(1), column, np.eye(rank + 1)[None], column)

    @classmethod
    def generic(cls, weights: ArrayLike, variances: ArrayLike, rank: int) -> Directions:
        """Spikes and teacher lie in generic positions: they see the directions as ν does."""
        weights = np.asarray(weights, dtype=float)
        special = weights[:, None, None] * np.eye(rank + 1)
        return cls(weights, variances, special, variances)  # type: ignore[arg-type]

    @cached_property
    def totals(self) -> NDArray:
        """cₜ = Σ ν_ι sₜ(ι) of shape (T,)."""
        return self.variances @ self.weights
