"""Inspect a trained network: its weights, what training changed, its gradients and features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import ProbeCurve
from giantsteps.errors import InvalidProblem
from giantsteps.practice._bulk import FALSE_ALARMS, top_vectors
from giantsteps.practice._gradient import FirstGradient, first_gradients
from giantsteps.practice._inspection import VECTOR, Change, Inspection
from giantsteps.practice._layer import Layer, layer_of_matrix
from giantsteps.practice._small_floats import ROUNDING
from giantsteps.practice._sources import Tensor, Weights, open_data, open_weights
from giantsteps.problem import integer
from giantsteps.theory import risk_of_features
from giantsteps.types import FloatArray

#: Leading vectors whose cosines are kept.
_VECTORS = 3


def inspect(
    source: Any,
    base: Any = None,
    data: Any = None,
    *,
    activation: str | None = None,
    loss: Callable[[Any, Any], Any] | None = None,
    false_alarms: float = FALSE_ALARMS,
    permutations: int = 40,
    probes: bool = True,
    seed: int = 0,
) -> Inspection:
    """Inspect the weights of a network: bulk, spikes, changes, first gradients, probe curves.

    Each weight matrix is compared with the law of a random matrix of its shape.
    With a ``base``, such as the initialisation or the model before fine-tuning, the difference is
    inspected too.
    With a batch of ``data`` and a module, the gradient of each layer is compared with that of
    permuted labels, and the test error of a linear probe on each layer's inputs is predicted.

    Parameters
    ----------
    source : module, mapping, array, list of arrays, or path
        An ``nn.Module``, a state dict, arrays, or a file: .safetensors (or a folder of them),
        .npz, .npy, and PyTorch checkpoints (.pt, .pth, .bin, .ckpt) that hold tensors only.
        No code from a file is executed: pickled objects are refused, not loaded.
    base : the same, optional
        Weights to compare with; tensors are matched by name.
    data : (inputs, labels), mapping, Data, DataLoader, or path; optional
        A batch, in a file under the names X and y.
        Of a data loader or data set of PyTorch, the first 4096 rows.
        Integer labels are classes, other labels are the wanted outputs.
    activation : str, optional
        For data with a state dict or a file instead of a module: the activation between the
        matrices, which must form an MLP.
    loss : callable, optional
        ``loss(outputs, labels)``; by default cross-entropy for classes and mean squares otherwise.
    false_alarms : float
        Probability that a random matrix is reported to have a spike.
    permutations : int
        Permuted labels that the gradients are compared with.
    probes : bool
        Whether to predict the probe curves.
    seed : int
        Of the random signs and permutations.

    Returns
    -------
    Inspection
        Tables, figures and a page: ``print(inspection)``, ``inspection.to_frame()``,
        ``inspection.plot()``, ``inspection.to_html("report.html")``.

    Notes
    -----
    Convolutions are unfolded to (outputs, inputs × kernel).
    Vectors, integers and scalars are skipped, and listed in ``skipped`` with the reason.
    Numbers in 8 bits (float8) are decoded, and multiplied by the factors stored with them as
    ``weight_scale`` or ``weight_scale_inv``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> before = {"fc.weight": rng.standard_normal((64, 100)) / 10}
    >>> step = 2 * np.outer(rng.standard_normal(64) / 8, rng.standard_normal(100) / 10)
    >>> after = {"fc.weight": before["fc.weight"] + step}
    >>> print(inspect(after, base=before))
    Inspection of state dict: 1 matrix
      fc.weight  64×100  random with spikes: a random bulk, and 1 direction above it
    Against the base
      fc.weight  change 0.25 of the norm, low rank: no bulk to compare with (rank 1 of at most 64)
    """
    if not isinstance(false_alarms, float) or not 1e-12 <= false_alarms <= 0.5:
        raise InvalidProblem("false_alarms", false_alarms, "a probability from 1e-12 to 0.5")
    integer(permutations, "permutations", "an integer of at least 2", lower=2)
    integer(seed, "seed", "a non-negative integer", lower=0)
    weights = open_weights(source)
    batch = None if data is None else open_data(data)
    module = weights.module
    if batch is not None and module is None:
        if activation is None:
            raise InvalidProblem(
                "data",
                f"given with {weights.title}",
                "given with an nn.Module, or with activation= if the weights form an MLP",
            )
        from giantsteps.practice._torch import mlp_of_weights

        module = mlp_of_weights(weights, activation)
    origin = None if base is None else open_weights(base, "base")
    layers, skipped = _layers(weights, false_alarms, seed)
    if not layers:
        seen = "; ".join(f"{name}: {why}" for name, why in skipped.items()) or "nothing"
        raise InvalidProblem(
            "source", weights.title, f"a matrix of floating-point numbers, or several (here {seen})"
        )
    changes: tuple[Change, ...] = ()
    if origin is not None:
        changes = _changes(weights, origin, false_alarms, seed, skipped)
    gradients: tuple[FirstGradient, ...] = ()
    curves: dict[str, ProbeCurve | str] = {}
    if batch is not None:
        from giantsteps.practice._torch import batch_for, hidden_features

        inputs, labels = batch_for(module, *batch)
        by_name = {layer.name: layer for layer in layers}
        gradients = first_gradients(
            module, inputs, labels, by_name, loss=loss, permutations=permutations, seed=seed
        )
        if probes:
            curves = _probes(hidden_features(module, inputs), batch[1])
    return Inspection(
        title=weights.title,
        layers=layers,
        changes=changes,
        gradients=gradients,
        probes=curves,
        skipped=skipped,
        false_alarms=false_alarms,
    )


def _layers(
    weights: Weights, false_alarms: float, seed: int
) -> tuple[tuple[Layer, ...], dict[str, str]]:
    """All matrices, and why the other tensors are left out."""
    layers: list[Layer] = []
    skipped: dict[str, str] = {}
    for tensor in weights:
        reason = _why_not(tensor)
        if reason:
            skipped[tensor.name] = reason
            continue
        layers.append(
            layer_of_matrix(
                tensor.name,
                tensor.shape,
                tensor.dtype,
                tensor.matrix(),
                false_alarms=false_alarms,
                seed=seed,
            )
        )
    return tuple(layers), skipped


def _why_not(tensor: Tensor) -> str:
    if len(tensor.shape) < 2:
        return VECTOR
    if 0 in tensor.shape:
        return "empty"
    if tensor.factors_of:
        return f"the factors of {tensor.factors_of}, which is read with them"
    if tensor.dtype not in ROUNDING:
        return f"numbers of type {tensor.dtype}"
    return ""


def _changes(
    weights: Weights, base: Weights, false_alarms: float, seed: int, skipped: dict[str, str]
) -> tuple[Change, ...]:
    """The difference of each matrix from that of the base of the same name."""
    found = []
    for tensor in weights:
        if _why_not(tensor):
            continue
        other = base.get(tensor.name)
        if other is None and len(weights.tensors) == len(base.tensors) == 1:
            other = base.tensors[0]
        if other is None or other.shape != tensor.shape or _why_not(other):
            shown = "missing" if other is None else f"of shape {other.shape} and {other.dtype}"
            skipped[f"base: {tensor.name}"] = f"{shown} in the base"
            continue
        now, then = tensor.matrix(), other.matrix()
        change = now - then
        coarse = max(tensor.dtype, other.dtype, key=lambda dtype: ROUNDING[dtype])
        typical = float(np.sqrt(np.mean(now**2))) if np.all(np.isfinite(now)) else 0.0
        layer = layer_of_matrix(
            tensor.name, tensor.shape, coarse, change,
            false_alarms=false_alarms, seed=seed, reference=typical,
        )  # fmt: skip
        norm = float(np.linalg.norm(then))
        cosines = {}
        if np.all(np.isfinite(change)) and np.any(change) and np.any(now) and np.any(then):
            cosines = _cosines(now, change, then)
        found.append(Change(layer, layer.norm / norm if norm > 0 else np.inf, cosines))
    if not found:
        here = base.tensors[0].name if base.tensors else "there is none"
        told = f"such as {weights.tensors[0].name} (here {here})"
        allowed = f"weights with the names and shapes of the source, {told}"
        raise InvalidProblem("base", base.title, allowed)
    return tuple(found)


def _cosines(
    now: FloatArray, change: FloatArray, then: FloatArray
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """|cosines| of the leading left and right vectors of each pair of matrices."""
    tops = {
        "weights": top_vectors(now, _VECTORS),
        "change": top_vectors(change, _VECTORS),
        "base": top_vectors(then, _VECTORS),
    }
    pairs = (("weights", "base"), ("change", "base"), ("change", "weights"))
    return {
        f"{a}-{b}": (np.abs(tops[a][0].T @ tops[b][0]), np.abs(tops[a][2].T @ tops[b][2]))
        for a, b in pairs
    }


def _probes(
    features: Mapping[str, FloatArray], labels: NDArray[Any]
) -> dict[str, ProbeCurve | str]:
    """Learning curves of a probe on what goes into each layer, or why there is none."""
    targets = labels
    if labels.ndim == 1 and labels.dtype.kind in "iub":
        classes, places = np.unique(labels, return_inverse=True)
        targets = 2.0 * places - 1 if len(classes) == 2 else np.eye(len(classes))[places]
    rows = len(targets)
    sizes = sorted({max(50, rows // 4), max(50, rows // 2), rows, 4 * rows})
    curves: dict[str, ProbeCurve | str] = {}
    for name, values in features.items():
        if len(values) != rows:
            curves[name] = f"{len(values)} rows of features for {rows} labels"
            continue
        try:
            curves[name] = risk_of_features(values, targets, samples=sizes, penalty="best")
        except InvalidProblem as error:
            curves[name] = str(error)
    return curves
