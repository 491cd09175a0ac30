"""The equations of the equivalent model as arrays: what the solver sees (theory §5c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from giantsteps.theory.solver.bulk import Bulk
from giantsteps.theory.solver.once import once
from giantsteps.types import Array

#: Channels below this, relative to the largest, are rounding.
_RESOLVED = 1e-9
#: A linear part below this, relative to the rest, is rounding too.
_NONE = 1e-8
#: Arrays with the nodes of the coordinates on their last axis.
_OF_NODES = (
    "weights",
    "mean",
    "linear",
    "residual",
    "target",
    "target_linear",
    "target_square",
    "norms",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class System:
    r"""Coefficients of the equivalent model (theory §5c) for a stack of cells.

    Every array has the cells on its first axis (B of them).
    T types, K nodes of the r spike coordinates, M modes: of the norm of the input, and of the J
    weak spikes, whose coordinates count to first order; F special vectors of the bulk: the r + J
    spikes, the E directions that they leave of the teacher, and what the norms of neurons go with;
    C independent fluctuations of the norms, of each type.

    ==========================  ========================  ==================================
    symbol                      attribute                 shape
    ==========================  ========================  ==================================
    k, its weights              coordinates, weights      (B, K, r), (B, K)
    μ₀ₜ, and its response to    mean                      (B, T, 1 + M, K)
    the norm of the input and
    to weak spikes
    remainder of the r spikes:  shares, left              (B, E, J), (B, E, E)
    on the weak ones, and on
    what these leave of it
    h, and its response         target                    (B, 1 + M, K)
    μ₁ₜ, μ₂ₜ²                   linear, residual          (B, T, K)
    h₁, hh                      target_linear,            (B, E, K), (B, K)
                                target_square
    what norms add to μ₀ₜ and   norms                     (B, CT, Q, K)
    to Q − 1 modes of second
    degree; shares of z² in     second                    (B, Q)
    norm of the input and these
    ℓ on the special vectors    loadings                  (B, CT, F)
    v                           spread                    (B, CT)
    πₜ                          probabilities             (B, T)
    \                           bulk                      Bulk
    of Σ_t on the first F'      excess                    (B, T, F', F')
    special vectors, beyond it
    pull of f₀ on m, for the    pull                      (B, ≤ m, T, T)
    first operators
    β, Γ, 1/p                   width, ratio,             (B,)
                                inverse_neurons
    λ_s, and 1 in ω = 1/(1+V)   penalty, unit             (B,)
    of the channels             tolerance                 (B,)
    ==========================  ========================  ==================================

    The equations are homogeneous in (λ_s, 1): λ → 0 with n < N is (1, 0).
    """

    coordinates: Array
    weights: Array
    mean: Array
    linear: Array
    residual: Array
    target: Array
    target_linear: Array
    target_square: Array
    shares: Array
    left: Array
    norms: Array
    second: Array
    loadings: Array
    spread: Array
    probabilities: Array
    bulk: Bulk
    excess: Array
    pull: Array
    width: Array
    ratio: Array
    inverse_neurons: Array
    penalty: Array
    unit: Array
    tolerance: Array

    @property
    def cells(self) -> int:
        """Number of cells B."""
        return len(self.width)

    @property
    def rank(self) -> int:
        """Number of spike directions r + J."""
        return int(self.coordinates.shape[2]) + self.weak

    @property
    def size(self) -> int:
        """Numbers that one cell holds."""
        rank = int(self.decomposed[2][0])
        types, modes, nodes = self.mean.shape[1:]
        packed = rank * (rank + 1) // 2
        size = (packed + types) * (nodes + 3 * (packed + types)) + types * modes * nodes
        own = rank
        for batch, stage in reversed(list(zip(self.bulk.batches, self.bulk.stages, strict=True))):
            blocks = (1 + 2 * batch.factors.shape[1]) * rank
            if self.bulk.chained:  # what it acts on, and what it makes
                blocks, own = own + batch.made, batch.made or own
            size += batch.weights.shape[1] * (6 * blocks**2 + 3 * blocks * len(stage.place) * rank)
        return int(size)

    @property
    def work(self) -> int:
        """Operations of a round of the solver for one cell, about."""
        return self.size * int(self.decomposed[2][0])

    @property
    def weak(self) -> int:
        """Number of weak spikes J, whose modes are the last."""
        return int(self.shares.shape[2])

    @property
    def beside(self) -> int:
        """Number of directions E that the spikes leave of the teacher."""
        return int(self.target_linear.shape[1])

    @property
    def modes(self) -> Array:
        """The modes, those with regressors first: the function itself, the teacher's second degree,
        then the weak spikes.
        """
        count, bent = self.mean.shape[2], self.norms.shape[2]
        first = (*range(bent), *range(count - self.weak, count))
        return np.array([*first, *range(bent, count - self.weak)])

    def regressors(self, channels: Array) -> Array:
        """What multiplies χ and the norms, on all modes, (B, (r + J)R + CT, 1 + M, K)."""
        own = self.own_regressors(channels)
        found = np.zeros((*own.shape[:2], *self.mean.shape[2:]))
        found[:, :, self.modes[: own.shape[2]]] = own
        return found

    def own_regressors(self, channels: Array) -> Array:
        """The same on the first Q + J of the `modes`, (B, (r + J)R + CT, Q + J, K)."""
        cells, rank, nodes = channels.shape
        along = np.ascontiguousarray(np.swapaxes(self.coordinates, 1, 2))
        spikes = (along[:, :, None] * channels[:, None]).reshape(cells, -1, nodes)
        (norms, bent), strong, count = self.norms.shape[1:3], spikes.shape[1], self.weak * rank
        found = np.zeros((cells, strong + count + norms, bent + self.weak, nodes))
        found[:, :strong, 0], found[:, strong + count :, :bent] = spikes, self.norms
        for j in range(self.weak):
            start = strong + j * rank
            found[:, start : start + rank, bent + j] = channels
        return found

    @property
    def shape(self) -> tuple[Any, ...]:
        """Cells of one shape are solved in one stack."""
        return (
            self.mean.shape[1:],
            self.rank,
            self.weak,
            self.beside,
            self.norms.shape[1:3],
            self.excess.shape[2],
            self.bulk.shape,
        )

    def take(self, cells: Array) -> System:
        """The system of some of the cells."""
        taken = self._map(lambda name: getattr(self, name)[cells], self.bulk.take(cells))
        if "decomposed" in self.__dict__:
            taken.__dict__["decomposed"] = tuple(part[cells] for part in self.decomposed)
        return taken

    @classmethod
    def stack(cls, systems: Sequence[System]) -> System:
        """One system from several of one shape."""
        stacked = systems[0]._map(
            lambda name: np.concatenate([getattr(system, name) for system in systems]),
            Bulk.stack([system.bulk for system in systems]),
        )
        known = [system.decomposed for system in systems]
        stacked.__dict__["decomposed"] = tuple(np.concatenate(part) for part in zip(*known))
        return stacked

    def with_rank(self, rank: int) -> System:
        """The same system with so many channels, or as many as are more than rounding."""
        left, values, _ = self.decomposed
        most = np.maximum((values > _RESOLVED * values[:, :1]).sum(axis=1), 1)
        return self._with(decomposed=(left, values, np.minimum(most, rank)))

    def with_readouts(self, ratio: Array, penalty: Array, unit: Array) -> System:
        """The cell of this system with several readouts."""
        self.decomposed  # noqa: B018 - once for all of them
        wider = self if len(ratio) == 1 else self.take(np.zeros(len(ratio), dtype=int))
        return wider._with(ratio=ratio, penalty=penalty, unit=unit)

    def on_nodes(self, nodes: Array, weights: Array) -> System:
        """The same system on some of its nodes of the coordinates, with other weights (B, K)."""
        fewer = {name: getattr(self, name)[..., nodes] for name in _OF_NODES}
        fewer |= {"weights": weights, "coordinates": self.coordinates[:, nodes]}
        return replace(self, **fewer)

    def padded(self, other: System) -> System:
        """The same system on as many nodes as another of its kind, the new ones without weight."""
        bulk, nodes = self.bulk.padded(other.bulk), other.weights.shape[1]
        if bulk is self.bulk and nodes == self.weights.shape[1]:
            return self
        place = np.minimum(np.arange(nodes), self.weights.shape[1] - 1)
        wider = {name: self.__dict__[name].take(place, axis=-1) for name in _OF_NODES}
        wider["weights"][:, self.weights.shape[1] :] = 0.0
        return self._with(bulk=bulk, coordinates=self.coordinates.take(place, axis=1), **wider)

    def _with(self, **values: Any) -> System:
        """The same system with other values of some attributes."""
        changed = object.__new__(System)
        changed.__dict__.update(self.__dict__, **values)
        return changed

    def _map(self, change: Any, bulk: Bulk) -> System:
        changed = object.__new__(System)
        changed.__dict__.update({name: change(name) for name in _ARRAYS}, bulk=bulk)
        return changed

    @once
    def decomposed(self) -> tuple[Array, Array, Array]:
        r"""√(πₜ w_k) μ₁ₜ(k) by singular vectors of the types, (B, T, S), values (B, S), and how
        many of them a cell needs, (B,).

        The T × T matrices of theory §5c live on the span of μ₁ₜ(·), which has few dimensions; those
        below ``tolerance`` relative to the largest are left out.
        """
        if self.probabilities.shape[1] == 1:
            weights = self.weights[:, None]
            size = np.sqrt((self.linear**2 * weights).sum(axis=-1) * self.probabilities)
            return np.ones((self.cells, 1, 1)), size, np.ones(self.cells, dtype=int)
        types = np.sqrt(self.probabilities)[:, :, None]
        scaled = types * self.linear * np.sqrt(self.weights)[:, None]
        left, values, _ = np.linalg.svd(scaled, full_matrices=False)
        # A linear part that is rounding (an even activation) has one channel, not its noise.
        rest = (self.probabilities[:, None] @ self.residual @ self.weights[:, :, None])[:, 0]
        kept = values > self.tolerance[:, None] * np.maximum(values[:, :1], _NONE * np.sqrt(rest))
        return left, values, np.maximum(kept.sum(axis=1), 1)

    def channels(self) -> tuple[Array, Array]:
        r"""U (B, T, R) and C (B, R, K) with μ₁ₜ(k) = Σ_a U_ta C_a(k) and E_k[C_aC_b] = δ_ab.

        All cells must need the same number R of channels.
        """
        left, values, rank = self.decomposed
        if (rank != rank[0]).any():
            raise ValueError("cells of different rank in one stack")
        # One memory layout whatever the stack, so that every product has one order of sums.
        left = np.ascontiguousarray(left[:, :, : rank[0]])
        size = values[:, : rank[0], None]
        types = np.sqrt(self.probabilities)[:, :, None]
        right = np.ascontiguousarray(np.swapaxes(left * types, 1, 2)) @ self.linear
        # A linear part that is exactly none has any function of size one for its channel.
        unit = np.divide(right, size, out=np.ones_like(right), where=size > 0)
        return left / types * np.swapaxes(size, 1, 2), unit


#: Names of the arrays of a system.
_ARRAYS = tuple(f.name for f in fields(System) if f.name != "bulk")
