"""Expectations over several jointly Gaussian coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TYPE_CHECKING

import numpy as np

from giantsteps.errors import InvalidProblem
from giantsteps.gaussian._quadrature import Rule, density, expectation
from giantsteps.gaussian._smoothed import smoothed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from giantsteps.functions import Function

#: Nodes on each axis by rank: Gauss–Hermite, and Gauss–Legendre on either side of zero.
HERMITE = {1: 61, 2: 31, 3: 21, 4: 15}
LEGENDRE = {1: 40, 2: 24, 3: 18}
#: Nodes of a product rule that weigh less are left out.
PRUNED = 1e-16


@lru_cache(maxsize=64)
def split_rule(nodes: int = 20, reach: float = 6.0) -> Rule:
    """z ~ N(0, 1) by Gauss–Legendre on [−reach, 0] and [0, reach], `nodes` on either side.

    The weights are normalised. For outer variables with a kink at zero or steep functions of
    them, such as the types of a Gaussian second layer (2 × 20 nodes on [−6, 6]; 14 Gauss–Hermite
    nodes are 0.4 % off at η̃ = 3) and strong spikes (2 × 40 on [−8.5, 8.5]).

    * ``nodes``: on either side of zero.
    * ``reach``: where the rule ends.
    """
    x, w = np.polynomial.legendre.leggauss(nodes)
    right = reach * (1 + x) / 2
    half = w * density(right)
    z = np.concatenate([-right[::-1], right])
    weights = np.concatenate([half[::-1], half])
    return Rule(z, weights / weights.sum())


@lru_cache(maxsize=64)
def _hermite_rule(nodes: int) -> Rule:
    """z ~ N(0, 1) by Gauss–Hermite: exact for polynomials of degree 2·nodes − 1."""
    z, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return Rule(z, weights / weights.sum())


@lru_cache(maxsize=64)
def coordinate_rule(rank: int, *, reach: float | None = None, nodes: int | None = None) -> Rule:
    """A rule for the spike coordinates k ~ N(0, I_r), nodes of shape (K, r).

    The product over r axes of one rule, without the nodes of weight below 1e-16 (585 of 31² for
    r = 2, where they carry 2e-15 of the mass).

    * ``rank``: r, from 1 to 4 (to 3 with `reach`).
    * ``reach``: None: Gauss–Hermite, 61 nodes for r = 1 and 31 an axis for r = 2, enough to η̃ = 3.
      A number: Gauss–Legendre on [−reach, reach] split at zero, 2 × 40 nodes for r = 1 (take 8.5),
      for strong spikes, whose functions of k are steep.
    * ``nodes``: nodes on an axis (Gauss–Hermite), or on either side of zero (with `reach`).
    """
    sizes = HERMITE if reach is None else LEGENDRE
    if rank not in sizes:
        raise InvalidProblem("rank", rank, f"an integer from 1 to {max(sizes)}")
    count = nodes or sizes[rank]
    axis = _hermite_rule(count) if reach is None else split_rule(count, reach)
    if rank == 1:
        return Rule(axis.nodes[:, None], axis.weights)
    return _product([axis] * rank).pruned(PRUNED)


def _product(axes: list[Rule]) -> Rule:
    """Independent coordinates: every combination of nodes, shape (K, axes)."""
    nodes = np.stack(np.meshgrid(*(axis.nodes for axis in axes), indexing="ij"), axis=-1)
    weights = reduce(np.multiply.outer, (axis.weights for axis in axes))
    return Rule(nodes.reshape(-1, len(axes)), weights.ravel())


def pair_expectation(f: Function, g: Function, covariance: ArrayLike) -> float:
    """E f(u) g(v) for (u, v) ~ N(0, covariance); both may have kinks and jumps.

    E_u[f(u) E[g(v) | u]]: g is smoothed by what u does not determine of v, and the product is
    integrated over u adaptively. Without a correlation it is E f E g, with v = u it is E f g.

    Parameters
    ----------
    f, g : Function
        Functions of u and of v.
    covariance : array_like, shape (2, 2)
        Symmetric and positive semidefinite; Var u > 0.

    References
    ----------
    theory §0, §7.

    Examples
    --------
    Signs have E sign(u) sign(v) = (2/π) arcsin ρ, one third at ρ = 1/2:

    >>> from giantsteps.functions import as_function
    >>> sign = as_function("sign")
    >>> round(pair_expectation(sign, sign, [[1.0, 0.5], [0.5, 1.0]]), 12)
    0.333333333333
    """
    root = _root(covariance)
    if root.shape != (2, 2):
        raise InvalidProblem("covariance", covariance, "a 2 x 2 matrix")
    return expectation(_Pair(f, g, root[0, 0], root[1, 0], root[1, 1]))


def _root(covariance: ArrayLike) -> np.ndarray:
    """Lower triangular L with L Lᵀ = covariance; a pivot that is zero up to rounding gives 0."""
    matrix = np.array(covariance, float)
    allowed = "a symmetric positive semidefinite matrix with a positive first variance"
    if matrix.ndim != 2 or not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T):
        raise InvalidProblem("covariance", covariance, allowed)
    variances = np.diag(matrix).copy()
    root = np.zeros_like(matrix)
    for j in range(len(matrix)):
        column = matrix[j:, j] - root[j:, :j] @ root[j, :j]
        tiny = 1e-13 * variances[j]
        if column[0] > tiny:
            root[j:, j] = column / np.sqrt(column[0])
        elif column[0] < -tiny or np.any(
            np.abs(column) > 1e-6 * np.sqrt(variances[j] * variances[j:])
        ):
            raise InvalidProblem("covariance", covariance, allowed)
    if not root.size or not root[0, 0]:
        raise InvalidProblem("covariance", covariance, allowed)
    return root


@dataclass(frozen=True)
class _Pair:
    """z ↦ f(s z) E[g(slope·z + std·ε)]."""

    f: Function
    g: Function
    scale: float
    slope: float
    std: float

    def __call__(self, z: np.ndarray) -> np.ndarray:
        return self.f(self.scale * z) * smoothed(self.g, self.slope * z, self.std).mean

    def breakpoints(self, lower: float, upper: float) -> np.ndarray:
        points = [self.f.breakpoints(self.scale * lower, self.scale * upper) / self.scale]
        if self.slope:
            ends = sorted((self.slope * lower, self.slope * upper))
            points.append(self.g.breakpoints(*ends) / self.slope)
        return np.sort(np.concatenate(points))
