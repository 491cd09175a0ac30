"""Full-batch gradient steps on the first layer, in chunks of samples (theory §0, §2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from giantsteps.simulation._arrays import Array, Arrays

__all__ = ["Descent", "Trained", "gradient"]


@dataclass(frozen=True)
class Descent:
    """One gradient of the first layer.

    Attributes
    ----------
    update : array (d, N)
        √N G, float64: the step is W ← W + η · update.
    direction : array (d,)
        b = Xᵀ(y − f(X))/n, float64.
    """

    update: Array
    direction: Array


@dataclass(frozen=True)
class Trained:
    """The first layer after the steps.

    Attributes
    ----------
    weights : array (d, N)
        W.
    direction : array (d,) or None
        b of the first step, float64; None without steps.
    """

    weights: Array
    direction: Array | None


def gradient(
    arrays: Arrays,
    batches: Iterable[tuple[Array, Array]],
    samples: int,
    weights: Array,
    second_layer: Array,
    activation: Callable[[Any], Any],
    derivative: Callable[[Any], Any],
) -> Descent:
    r"""The exact gradient of the empirical squared error over all samples.

    .. math:: \sqrt N G = n^{-1} X^\top [(y − f(X)) a^\top ⊙ σ'(XW)],
              \qquad f(X) = N^{-1/2} σ(XW) a

    ======  =============  =======================================================
    symbol  argument       meaning
    ======  =============  =======================================================
    X, y    batches        chunks of rows and their labels
    n       samples        of all chunks together
    W       weights        (d, N)
    a       second_layer   (N,), the factor N^{-1/2} of A_j/√N included
    σ, σ'   activation, derivative
    ======  =============  =======================================================

    Two matrix products a chunk; besides W only the sum (d, N) and one chunk are held.

    References
    ----------
    theory §0; ba2022.
    """
    xp = arrays.xp
    d, neurons = weights.shape
    update = arrays.zeros(d, neurons)
    direction = arrays.zeros(d)
    for x, y in batches:
        z = x @ weights
        residual = xp.astype(y, xp.float64, copy=True)

        def task(rows: slice, z: Array = z, residual: Array = residual) -> None:
            here = z[rows, :]
            output = xp.vecdot(activation(here), second_layer)
            residual[rows] -= arrays.wide(output) / math.sqrt(neurons)
            z[rows, :] = derivative(here) * arrays.narrow(residual[rows])[:, None]

        arrays.by_rows(task, *z.shape)
        update = arrays.add_product(update, x, z)
        direction += arrays.wide(xp.matrix_transpose(x) @ arrays.narrow(residual))
    update *= arrays.wide(second_layer) / samples
    direction /= samples
    return Descent(update, direction)
