"""The gradient of the first layer over a whole batch, in chunks of samples (theory §0, §2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from giantsteps.functions import Function
from giantsteps.gaussian import moments
from giantsteps.simulation._engine._arrays import Array, Arrays


@dataclass(frozen=True)
class Descent:
    """One gradient of the first layer."""

    update: Array  # (…, d, N): √N G, float64: the gradient step is W ← W + η · update
    direction: Array  # (…, d): b = Xᵀr/n with the residuals r, float64
    expected: Array  # (…, d): the same with the mean of f at the start, its limit, in place of f


def gradient(
    arrays: Arrays,
    batches: Iterable[tuple[Array, Array]],
    samples: int,
    weights: Array,
    second_layer: Array,
    activation: Function,
    residual: Callable[[Any, Any], Any],
    scale: float,
) -> Descent:
    r"""The exact negative gradient of the empirical loss over all samples.

    .. math:: \sqrt N G = n^{-1} X^\top [r a^\top ⊙ σ'(XW)], \qquad r = −∂_f ℓ(f(X); y),
              \qquad f(X) = s\, σ(XW) a

    ======  =============  ===========================================================
    symbol  argument       meaning
    ======  =============  ===========================================================
    X, y    batches        chunks of rows (…, rows, d) and their labels (…, rows)
    n       samples        of all chunks together
    W       weights        (…, d, N)
    a       second_layer   (…, N), the factor N^{-1/2} of A_j/√N included
    σ       activation     and σ', its derivative
    r       residual       of outputs and labels: y − f for the squared loss
    s       scale          N^{-1/2}, or 1 for the unscaled network
    ======  =============  ===========================================================

    The output of the scaled network at the start is s μ₀ Σ_j a_j and a random part that vanishes in
    the limit, but is correlated with W and a; ``expected`` leaves it out.

    Two matrix products for each chunk; besides W only the sum (d, N) and one chunk are held.
    """
    xp = arrays.xp
    total = arrays.wide(xp.sum(second_layer, axis=-1))[..., None]
    start = scale * moments(activation).mean * total
    update = arrays.zeros(*weights.shape)
    directions = arrays.zeros(*weights.shape[:-1], 2)
    column = second_layer[..., None]

    def backward(z: Array, y: Array) -> tuple[Array, Array]:
        """r σ'(z) and r for rows of pre-activations and labels."""
        values, slopes = activation.with_derivative(z)
        residuals = residual(scale * arrays.wide((values @ column)[..., 0]), y)
        slopes *= arrays.narrow(residuals)[..., None]
        return slopes, residuals

    for x, y in batches:
        back, residuals = arrays.map_rows(backward, x @ weights, y)
        update = arrays.add_product(update, x, back)
        expected = residuals if scale == 1 else residual(0 * y + start, y)
        both = xp.stack([arrays.narrow(residuals), arrays.narrow(expected)], axis=-1)
        directions += arrays.wide(xp.matrix_transpose(x) @ both)
    update *= arrays.wide(second_layer)[..., None, :] / samples
    directions /= samples
    return Descent(update, directions[..., 0], directions[..., 1])
