"""The tangent kernel of the first layer, n × n, never n × Nd (theory §4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from giantsteps.simulation._engine._arrays import Array, Arrays


def tangent_kernel(
    arrays: Arrays, inputs: Array, weights: Array, derivative: Callable[[Any], Any]
) -> tuple[Array, Array]:
    r"""K = (X̃X̃ᵀ/d) ⊙ (N⁻¹ σ'(X̃W) σ'(X̃W)ᵀ), and σ'(X̃W).

    It is the Gram matrix of the features (Nd)^{-1/2} vec(x σ'(Wᵀx)ᵀ): the gradient of the network
    in W where every second-layer weight counts the same.

    Returns
    -------
    kernel : array (n, n)
        Symmetric, lower triangle, float64.
    slopes : array (n, N)
        σ'(X̃W).
    """
    xp = arrays.xp
    (samples, d), neurons = inputs.shape, weights.shape[1]
    slopes = arrays.transform(derivative, inputs @ weights)
    kernel = arrays.add_gram(arrays.zeros(samples, samples), xp.matrix_transpose(inputs))
    kernel *= arrays.add_gram(arrays.zeros(samples, samples), xp.matrix_transpose(slopes))
    kernel /= d * neurons
    return kernel, slopes


def tangent_products(
    arrays: Arrays,
    points: Array,
    inputs: Array,
    slopes: Array,
    weights: Array,
    derivative: Callable[[Any], Any],
    coefficients: Array,
) -> Array:
    """K(points, X̃) @ coefficients, float64, shape (points, cells)."""
    xp = arrays.xp
    d, neurons = weights.shape
    there = arrays.transform(derivative, points @ weights)
    cross = (points @ xp.matrix_transpose(inputs)) * (there @ xp.matrix_transpose(slopes))
    return arrays.wide(cross) @ coefficients / (d * neurons)
