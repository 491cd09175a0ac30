r"""Traces of products of sums over one batch, K_a = n⁻¹Σ_i a(i) x_ix_iᵀ (theory §5b).

.. math:: τ(K_aK_b…) = Σ_{\text{non-crossing}} Π_{\text{blocks}} E[\text{product}]/α^{size - 1}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from giantsteps.types import FloatArray

Partition = tuple[tuple[int, ...], ...]


@lru_cache(maxsize=8)
def _noncrossing(count: int) -> tuple[Partition, ...]:
    """The non-crossing partitions of 0, …, count − 1."""

    def found(letters: tuple[int, ...]) -> Iterator[Partition]:
        if not letters:
            yield ()
            return
        for size in range(1 << (len(letters) - 1)):
            block = [letters[0], *(x for i, x in enumerate(letters[1:]) if size >> i & 1)]
            gaps = [
                tuple(x for x in letters if low < x < high and x not in block)
                for low, high in zip(block, [*block[1:], letters[-1] + 1])
            ]
            for parts in _all(gaps):
                yield (tuple(block), *parts)

    def _all(gaps: Sequence[tuple[int, ...]]) -> Iterator[Partition]:
        if not gaps:
            yield ()
            return
        for head in found(gaps[0]):
            for tail in _all(gaps[1:]):
                yield (*head, *tail)

    return tuple(found(tuple(range(count))))


def trace_of_product(word: Sequence[FloatArray], weights: FloatArray, alpha: float) -> float:
    """τ(K_aK_b…) of the functions in ``word``, given at nodes with these weights."""
    total = 0.0
    for partition in _noncrossing(len(word)):
        term = 1.0
        for block in partition:
            values = weights
            for letter in block:
                values = values * word[letter]
            term *= float(values.sum()) / alpha ** (len(block) - 1)
        total += term
    return total


def gram_of_batch(
    linear: FloatArray, factors: FloatArray, weights: FloatArray, alpha: float
) -> FloatArray:
    """d⁻¹tr Ω_cΩ_c' of the identity, of K_a and of K_cK_c' + K_c'K_c (or K_c²), c ≤ c'."""
    count = len(factors)
    operators: list[list[list[FloatArray]]] = [[[]], *([[a]] for a in linear)]
    for a in range(count):
        operators.append([[factors[a], factors[a]]])
        for b in range(a + 1, count):
            pair = [factors[a], factors[b]]
            operators.append([pair, pair[::-1]])
    gram = np.empty((len(operators), len(operators)))
    for i, one in enumerate(operators):
        for j, other in enumerate(operators[: i + 1]):
            gram[i, j] = gram[j, i] = sum(
                trace_of_product([*left, *right], weights, alpha) for left in one for right in other
            )
    return gram
