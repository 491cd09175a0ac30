"""The gradient of the first layer over a whole batch, in chunks of samples (theory §0, §2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from giantsteps.functions import Function
from giantsteps.simulation._engine._arrays import Array, Arrays


@dataclass(frozen=True)
class Descent:
    """One gradient of the first layer."""

    update: Array  # (…, d, N): √N G, float64: the gradient step is W ← W + η · update
    direction: Array  # (…, d): b = Xᵀr/n with the residuals r, float64


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

    Two matrix products for each chunk; besides W only the sum (d, N) and one chunk are held.
    """
    xp = arrays.xp
    update = arrays.zeros(*weights.shape)
    direction = arrays.zeros(*weights.shape[:-1], 1)
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
        summed = xp.matrix_transpose(x) @ arrays.narrow(residuals)[..., None]
        direction += arrays.wide(summed)
    update *= arrays.wide(second_layer)[..., None, :] / samples
    return Descent(update, direction[..., 0] / samples)
