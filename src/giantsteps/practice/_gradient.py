"""The first gradient of each layer: does it see the labels, and when would it leave the bulk?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from giantsteps.practice._bulk import largest_value, spike_strength
from giantsteps.practice._layer import Layer, layer_of_matrix
from giantsteps.practice._torch import (
    default_loss,
    evaluating,
    linear_layers,
    torch_library,
    unfolded,
)
from giantsteps.types import FloatArray

#: Relative accuracy of a critical rate.
_TOLERANCE = 0.01
#: Doublings of the rate after which no step gives a spike.
_DOUBLINGS = 12


@dataclass(frozen=True)
class FirstGradient:
    r"""The gradient of the loss in one layer's weights, at the weights given.

    One step W − ηU with the update U (the gradient, or its signs) adds the low-rank part ηθuvᵀ
    and noise to the bulk of W.
    For an update that is independent of W, a spike leaves the bulk of a large layer when η exceeds

    .. math:: η_c = \frac{σ_W (rc)^{1/4}}{\sqrt{θ^2 - σ_U^2 \sqrt{rc}}}.

    Gradients depend on the weights, and layers are finite.
    So, for weights that are random, the critical rates below are found on the matrices themselves:
    the η at which the largest singular value of W − ηU passes the margin for spikes.
    For weights that have spikes already, they are those of the formula.

    ========  =====================================================================
    symbol    meaning
    ========  =====================================================================
    r, c      rows and columns of the layer
    σ_W, σ_U  standard deviation of the bulk of the weights, and of the noise of U
    θ         strength of the largest spike of U, without the noise
    ========  =====================================================================

    Attributes
    ----------
    name : str
        Of the weight.
    norm : float
        Frobenius norm of the gradient.
    value : float
        Its largest singular value.
    share : float
        Part of ‖G‖² in the largest singular value: 1 for rank one.
    null_mean, null_deviation : float
        Of ``value`` for permuted labels.
    significance : float
        Twice the fraction of permutations, the true order included, whose value is at least as
        far out on the same side, at most 1.
    critical_rate : float
        Of a gradient step (SGD); infinite if no step gives a spike, NaN without a bulk.
    critical_rate_sign : float
        Of a step along the signs of the gradient, which is the first step of Adam.
    """

    name: str
    norm: float
    value: float
    share: float
    null_mean: float
    null_deviation: float
    significance: float
    critical_rate: float
    critical_rate_sign: float

    @property
    def sees_labels(self) -> bool:
        """Whether the value is far from those of permuted labels, at the level of 5 %."""
        return self.significance <= 0.05

    def sentence(self) -> str:
        """What the comparison with permuted labels says."""
        if not self.sees_labels:
            return f"no different from permuted labels (p = {self.significance:.2g})"
        ratio = f"{self.value / self.null_mean:.2g} times that of permuted labels"
        if self.value > self.null_mean:
            return f"sees the labels: {ratio}"
        return f"labels mostly fitted: {ratio}"

    def to_row(self) -> dict[str, Any]:
        return {
            "layer": self.name,
            "norm": self.norm,
            "largest": self.value,
            "share": self.share,
            "permuted": self.null_mean,
            "permuted_deviation": self.null_deviation,
            "significance": self.significance,
            "sees_labels": self.sees_labels,
            "critical_rate_sgd": self.critical_rate,
            "critical_rate_sign": self.critical_rate_sign,
        }


def first_gradients(
    module: Any,
    inputs: Any,
    labels: Any,
    layers: Mapping[str, Layer],
    *,
    loss: Callable[[Any, Any], Any] | None,
    permutations: int,
    seed: int,
) -> tuple[FirstGradient, ...]:
    """Gradients of every linear and convolution layer, against those of permuted labels."""
    torch = torch_library()
    parts = {name: part for name, part in linear_layers(module).items() if name in layers}
    trained = {name: part for name, part in parts.items() if part.weight.requires_grad}
    if not trained:
        return ()
    rng = np.random.default_rng(seed)
    with evaluating(module), torch.enable_grad():
        outputs = module(inputs)
        cost = default_loss(outputs, labels) if loss is None else loss
        weights = [part.weight for part in trained.values()]

        def gradients(target: Any) -> list[FloatArray]:
            found = torch.autograd.grad(
                cost(outputs, target), weights, retain_graph=True, allow_unused=True
            )
            return [
                unfolded(part, torch.zeros_like(part.weight) if grad is None else grad)
                for part, grad in zip(trained.values(), found)
            ]

        true = gradients(labels)
        null = np.empty((permutations, len(trained)))
        for i in range(permutations):
            order = torch.as_tensor(rng.permutation(len(labels)), device=labels.device)
            null[i] = [np.linalg.norm(matrix, 2) for matrix in gradients(labels[order])]
    results = []
    for place, (name, matrix) in enumerate(zip(trained, true)):
        value, size = float(np.linalg.norm(matrix, 2)), float(np.linalg.norm(matrix))
        weight = unfolded(parts[name], parts[name].weight)
        results.append(
            FirstGradient(
                name=name,
                norm=size,
                value=value,
                share=(value / size) ** 2 if size > 0 else np.nan,
                null_mean=float(null[:, place].mean()),
                null_deviation=float(null[:, place].std(ddof=1)),
                significance=_two_sided(value, null[:, place]),
                critical_rate=critical_rate(matrix, weight, layers[name]),
                critical_rate_sign=critical_rate(np.sign(matrix), weight, layers[name]),
            )
        )
    return tuple(results)


def _two_sided(value: float, null: FloatArray) -> float:
    further = min(int(np.sum(null >= value)), int(np.sum(null <= value)))
    return min(1.0, 2 * (1 + further) / (len(null) + 1))


def critical_rate(update: FloatArray, weights: FloatArray, layer: Layer) -> float:
    """Rate from which a step along an update gives a spike: see `FirstGradient`."""
    if not np.isfinite(layer.scale):
        return np.nan
    if not np.any(update):
        return np.inf
    strength, noise = _spike_and_noise(update)
    root = float(layer.rows * layer.columns) ** 0.5
    left = strength**2 - noise**2 * root
    asymptotic = layer.smallest_spike / float(np.sqrt(left)) if left > 0 else np.inf
    if layer.verdict != "random" or not np.isfinite(asymptotic):
        return asymptotic

    def above(rate: float) -> bool:
        spread = np.hypot(1.0, rate * noise / layer.scale)
        value = largest_value(weights - rate * update, tolerance=_TOLERANCE / 10)
        return bool(value > layer.margin * spread)

    low = high = asymptotic / 4.0
    for _ in range(_DOUBLINGS):
        low, high = high, 2.0 * high
        if above(high):
            break
    else:
        return np.inf
    while high / low > 1.0 + _TOLERANCE:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if above(middle) else (middle, high)
    return float(np.sqrt(low * high))


def _spike_and_noise(update: FloatArray) -> tuple[float, float]:
    """Strength of the leading direction of an update, and the standard deviation of its noise.

    An update of low rank has no bulk, and no noise; one without a spike has no direction.
    """
    layer = layer_of_matrix("update", update.shape, "float64", update)
    if not np.isfinite(layer.scale):
        return float(layer.values[0]), 0.0
    strength, _, _ = spike_strength(float(layer.values[0]), layer.scale, layer.rows, layer.columns)
    return (strength if layer.values[0] > layer.margin else 0.0), layer.scale
