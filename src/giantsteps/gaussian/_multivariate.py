"""Quadrature over one or several Gaussian coordinates."""

from __future__ import annotations

from functools import lru_cache, reduce

import numpy as np

from giantsteps.errors import InvalidProblem
from giantsteps.gaussian._quadrature import Rule, density

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
def hermite_rule(nodes: int) -> Rule:
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
    axis = hermite_rule(count) if reach is None else split_rule(count, reach)
    if rank == 1:
        return Rule(axis.nodes[:, None], axis.weights)
    return tensor_rule([axis] * rank).pruned(PRUNED)


def tensor_rule(axes: list[Rule]) -> Rule:
    """Independent coordinates: every combination of nodes, shape (K, axes)."""
    nodes = np.stack(np.meshgrid(*(axis.nodes for axis in axes), indexing="ij"), axis=-1)
    weights = reduce(np.multiply.outer, (axis.weights for axis in axes))
    return Rule(nodes.reshape(-1, len(axes)), weights.ravel())
