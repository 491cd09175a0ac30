"""The bulk of the weights as the solver sees it: operators, samples and special vectors (§5b)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from giantsteps.theory.solver.once import once
from giantsteps.theory.solver.packing import product, transposed
from giantsteps.types import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    r"""The samples of one step as a quadrature; cells are on the first axis.

    A node stands for all samples whose weights in the operators are the same; κ are the
    coordinates of a sample on the external directions.

    ======  =========  ============  ==================================================
    symbol  attribute  shape         meaning
    ======  =========  ============  ==================================================
    α₀      samples    (B,)          n₀/d
    \       weights    (B, Y)        E f = Σ weights f; they sum to one
    \       first      (B, E, Y)     E[κ_a f]
    \       second     (B, E, E, Y)  E[κ_aκ_b f]
    ψ_a     linear     (B, L, Y)     operators n₀⁻¹Σ_i ψ_a(i) x_ix_iᵀ
    φ_c     factors    (B, C, Y)     sums M_c = n₀⁻¹Σ_i φ_c(i) x_ix_iᵀ: their products
                                     M_cM_c' + M_c'M_c (or M_c²), c ≤ c', are operators
    \       crossed                  whether M_c + M_cᵀ are operators too, before the products
    ϱ       kept       (B,)          covariances of the types are multiplied, G_tΣ_tG_t +
                                     n₀⁻¹Σ_i ψ_t(i) x_ix_iᵀ, G_t = ϱ + M_t: there is one ψ and one
                                     φ for each type (or no φ at all, G = ϱ); None: batches add up,
                                     and products are operators
    \       links      (B, 2, T, L)  functions of the types, and their duals, that keep what φ makes
                                     of vectors; None: the types themselves
    y       given      (B, Y)        Σ_i y(i) x_i is zero beside the external directions; None:
                                     samples are independent
    ======  =========  ============  ==================================================
    """

    samples: Array
    weights: Array
    first: Array
    second: Array
    linear: Array
    factors: Array
    crossed: bool = False
    given: Array | None = None
    kept: Array | None = None
    links: Array | None = None

    @once
    def weighted(self) -> Array:
        """The weights of E[ψ_a f], (B, L, Y)."""
        return np.asarray(self.weights[:, None] * self.linear)

    @once
    def counted(self) -> Array:
        """The same times α₀."""
        return np.asarray(self.weighted * self.samples[:, None, None])

    @once
    def shared(self) -> Array:
        """The weights of E f/α₀, (B, Y)."""
        return np.asarray(self.weights / self.samples[:, None])

    def square(self, plain: Array, along: Array, function: Array | None = None) -> Array:
        """E[(v + Σκ_e v_e)(v + Σκ_e v_e)ᵀ ψ] for vectors v (B, Y, n) and v_e (B, Y, E, n)."""
        function = np.ones_like(self.weights) if function is None else function

        def moment(left: Array, right: Array, weights: Array) -> Array:
            return product(transposed(left * (weights * function)[:, :, None]), right)

        total = moment(plain, plain, self.weights)
        for e in range(along.shape[2]):
            cross = moment(plain, along[:, :, e], self.first[:, e])
            total = total + cross + transposed(cross)
            for f in range(along.shape[2]):
                total = total + moment(along[:, :, e], along[:, :, f], self.second[:, e, f])
        return total

    @property
    def made(self) -> int:
        """Rows of what it makes of vectors, where batches are multiplied."""
        rows = self.factors.shape[1] if self.links is None else self.links.shape[3]
        return int(rows) if self.factors.shape[1] else 0

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs c ≤ c' of factors, an operator each."""
        count = self.factors.shape[1]
        return tuple((a, b) for a in range(count) for b in range(a, count))


@dataclass(frozen=True, kw_only=True, eq=False)
class Stage:
    r"""The vectors after a batch, made of those before it and of sums over its samples.

    .. math:: v = Σ_w c_{vw} w + n_0^{-1}Σ_i a_v(i)\, x_i

    ======  =========  =========  =========================================================
    symbol  attribute  shape      meaning
    ======  =========  =========  =========================================================
    F       frame      (B, E, m)  directions that the coordinates κ of its samples belong
                                  to, as combinations of the m vectors before
    c       carry      (B, k, m)  of the vectors before in the k vectors after
    a       sums       (B, k, Y)
    \       place      (k,)       0 for v, 1 + c for M_c v (factors of all batches; where they are
                                  multiplied, for v under the G of the type from batch b on)
    \       within     (B, E, m)  F as the sums M_c see it on their left; None: as frame
    ======  =========  =========  =========================================================
    """

    frame: Array
    carry: Array
    sums: Array
    place: tuple[int, ...]
    within: Array | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Bulk:
    r"""Covariances Σ_t = Σ_c m_tc Ω_c of the types, and the vectors that are not generic in them.

    The operators Ω_c come in the order: those that are diagonal in the directions ι; then for each
    batch the linear ones and the products. Where batches are multiplied they are the identity and
    what the batches make of it for each type.

    ======  ============  ============  ====================================================
    symbol  attribute     shape         meaning
    ======  ============  ============  ====================================================
    ν_ι     shares        (B, I)        of the directions
    1/λ_ι   inverse       (B, I)        what multiplies X, λ the variance of the inputs along them
    \       scales        (B, I)        variance along them of what a step takes for its samples
    \       within        (B, I)        the same on the left of the sums M_c; None: as scales
    ω_c(ι)  diagonal      (B, D, I)     operators that are diagonal in the directions
    m_tc    coefficients  (B, T, m)
    \       batches                     one for each step …
    \       stages                      … and the vectors after it
    \       external      (B, k, I, E)  the vectors before all batches: components along ι
    f_a     special       (B, F, k)     spikes, teacher's remainder, and what norms go with, as
                                        combinations of the last vectors
    ======  ============  ============  ====================================================
    """

    shares: Array
    inverse: Array
    scales: Array
    diagonal: Array
    coefficients: Array
    batches: tuple[Batch, ...]
    stages: tuple[Stage, ...]
    external: Array
    special: Array
    within: Array | None = None

    @once
    def corners(self) -> Array:
        """1/λ_ι of X and the operators that are diagonal, (B, 1 + D, I)."""
        return np.concatenate([self.inverse[:, None], self.diagonal], axis=1)

    @once
    def along(self) -> Array:
        """The same times the shares ν_ι."""
        return np.asarray(self.shares[:, None] * self.corners)

    @once
    def twice_along(self) -> Array:
        """Products of two of them times the shares, (B, (1 + D)², I)."""
        pairs = self.along[:, :, None] * self.corners[:, None]
        return pairs.reshape(len(pairs), -1, pairs.shape[-1])

    @once
    def totals(self) -> Array:
        """c_t, the traces of Σ_t with the covariance of the inputs, for a first guess, (B, T)."""
        weights = self.shares / self.inverse  # of the trace with the covariance of the inputs
        means = [(weights[:, None] * self.diagonal).sum(axis=-1)]
        if self.chained:
            means.append(self._multiplied)
        for batch in self.batches[: len(self.batches) * (not self.chained)]:
            scale = (weights * self.scales).sum(axis=1)[:, None]
            square = (weights * self.scales**2).sum(axis=1)
            means.append((batch.weights[:, None] * batch.linear).sum(axis=-1) * scale)
            if batch.crossed:
                factors = (batch.weights[:, None] * batch.factors).sum(axis=-1)
                means.append(2.0 * factors * scale)
            for a, b in batch.pairs:
                twice = (1.0 if a == b else 2.0) * square
                pair = batch.factors[:, a], batch.factors[:, b]
                first, second = ((batch.weights * f).sum(axis=-1) for f in pair)
                both = (batch.weights * pair[0] * pair[1]).sum(axis=-1)
                means.append((twice * (first * second + both / batch.samples))[:, None])
        return product(self.coefficients, np.concatenate(means, axis=1)[:, :, None])[:, :, 0]

    @property
    def chained(self) -> bool:
        """Whether batches are multiplied."""
        return bool(self.batches) and self.batches[0].kept is not None

    @property
    def _multiplied(self) -> Array:
        """Traces of the types where batches are multiplied, (B, T)."""
        found: Array = np.ones_like(self.batches[0].linear[:, :, 0])
        for batch in self.batches:
            assert batch.kept is not None
            mean, square = batch.kept[:, None], 0.0
            if batch.factors.shape[1]:
                mean = mean + (batch.weights[:, None] * batch.factors).sum(axis=-1)
                square = (batch.shared[:, None] * batch.factors**2).sum(axis=-1)
            found = (mean**2 + square) * found + batch.weighted.sum(axis=-1)
        return found

    @once
    def layouts(self) -> dict[int, Any]:
        """By their rank, once they are known (`layout_of`)."""
        return {}

    @property
    def shape(self) -> tuple[Any, ...]:
        """Cells of one shape can be stacked."""
        sizes = [
            (
                batch.linear.shape[1:],
                batch.factors.shape[1],
                batch.crossed,
                batch.given is None,
                batch.kept is None,
                None if batch.links is None else batch.links.shape[1:],
                stage.carry.shape[1:],
                stage.place,
            )
            for batch, stage in zip(self.batches, self.stages, strict=True)
        ]
        arrays = (self.diagonal, self.coefficients, self.external, self.special)
        return (*(array.shape[1:] for array in arrays), *sizes)

    def take(self, cells: Array) -> Bulk:
        """The bulk of some of the cells."""
        return _each([self], lambda parts: parts[0][cells])

    def repeated(self, cells: int) -> Bulk:
        """One cell so many times, without copies."""
        if cells == 1:
            return self
        return _each([self], lambda parts: np.broadcast_to(parts[0], (cells, *parts[0].shape[1:])))

    def padded(self, other: Bulk) -> Bulk:
        """The same bulk with as many nodes of its samples as another, the new ones without
        weight.
        """
        sizes = [batch.weights.shape[1] for batch in other.batches]
        if sizes == [batch.weights.shape[1] for batch in self.batches]:
            return self
        wider = _wider if len(self.shares) == 1 else _wider.__wrapped__
        pairs = map(wider, self.batches, self.stages, sizes)
        batches, stages = zip(*pairs, strict=True)
        return replace(self, batches=batches, stages=stages)

    @classmethod
    def stack(cls, parts: Sequence[Bulk]) -> Bulk:
        """One bulk from several of one shape."""
        return _each(parts, np.concatenate)


@lru_cache(maxsize=32)
def _wider(batch: Batch, stage: Stage, size: int) -> tuple[Batch, Stage]:
    """With so many nodes; models of one batch share it."""
    count = batch.weights.shape[1]
    place = np.minimum(np.arange(size), count - 1)
    names = ("weights", "first", "second", "linear", "factors")
    wider = {name: getattr(batch, name)[..., place] for name in names}
    for name in ("weights", "first", "second"):
        wider[name][..., count:] = 0.0
    if batch.given is not None:
        wider["given"] = batch.given[..., place]
    return replace(batch, **wider), replace(stage, sums=stage.sums[..., place])


@lru_cache(maxsize=32)
def _two(*parts: Any) -> Any:
    """Batches or stages of two cells: one model's at two resolutions; all of one batch share it."""
    return _each(parts, np.concatenate)


def _each(parts: Sequence[Any], join: Callable[[Any], Array]) -> Any:
    """Parts of one type joined, array by array."""
    joined: dict[str, Any] = {}
    for field in fields(parts[0]):
        values = [getattr(part, field.name) for part in parts]
        if isinstance(values[0], np.ndarray):
            joined[field.name] = join(values)
        elif field.name in ("place", "crossed") or values[0] is None:
            joined[field.name] = values[0]
        else:
            two = join is np.concatenate and len(parts) == 2 == sum(len(p.shares) for p in parts)
            joined[field.name] = tuple(
                _two(*row) if two else _each(row, join) for row in zip(*values, strict=True)
            )
    return type(parts[0])(**joined)
