"""The gradient of the first layer over a whole batch, in chunks of samples (theory §0, §2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from giantsteps.simulation._engine._arrays import Array, Arrays

__all__ = ["Descent", "gradient"]


@dataclass(frozen=True)
class Descent:
    """One gradient of the first layer.

    Attributes
    ----------
    update : array (…, d, N)
        √N G, float64: the gradient step is W ← W + η · update.
    direction : array (…, d)
        b = Xᵀr/n with the residuals r, float64.
    """

    update: Array
    direction: Array


def gradient(
    arrays: Arrays,
    batches: Iterable[tuple[Array, Array]],
    samples: int,
    weights: Array,
    second_layer: Array,
    activation: Callable[[Any], Any],
    derivative: Callable[[Any], Any],
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
    σ, σ'   activation, derivative
    r       residual       of outputs and labels: y − f for the squared loss
    s       scale          N^{-1/2}, or 1 for the unscaled network
    ======  =============  ===========================================================

    Two matrix products for each chunk; besides W only the sum (d, N) and one chunk are held.

    References
    ----------
    theory §0; ba2022.
    """
    xp = arrays.xp
    update = arrays.zeros(*weights.shape)
    direction = arrays.zeros(*weights.shape[:-1], 1)
    column = second_layer[..., None]
    for x, y in batches:
        z = x @ weights
        residuals = xp.empty_like(y)

        def task(rows: slice, z: Array = z, y: Array = y, residuals: Array = residuals) -> None:
            here = z[..., rows, :]
            output = scale * arrays.wide((activation(here) @ column)[..., 0])
            found = residual(output, y[..., rows])
            residuals[..., rows] = found
            z[..., rows, :] = derivative(here) * arrays.narrow(found)[..., None]

        arrays.by_rows(task, *z.shape[-2:])
        update = arrays.add_product(update, x, z)
        summed = xp.matrix_transpose(x) @ arrays.narrow(residuals)[..., None]
        direction += arrays.wide(summed)
    update *= arrays.wide(second_layer)[..., None, :] / samples
    return Descent(update, direction[..., 0] / samples)
