"""What the package needs of PyTorch: batches through a module, gradients, hidden features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import require
from giantsteps.errors import InvalidProblem, suggest
from giantsteps.practice._sources import Weights
from giantsteps.types import FloatArray

#: Name → class of torch.nn.
ACTIVATIONS = {
    "relu": "ReLU",
    "tanh": "Tanh",
    "gelu": "GELU",
    "sigmoid": "Sigmoid",
    "silu": "SiLU",
    "elu": "ELU",
    "leaky_relu": "LeakyReLU",
    "softplus": "Softplus",
    "identity": "Identity",
}


def torch_library() -> Any:
    """PyTorch, or which extra brings it."""
    return require("torch", "a network that is run on data", "torch")


def linear_layers(module: Any) -> dict[str, Any]:
    """Name of the weight → linear or convolution layer, in the order of the module."""
    nn = torch_library().nn
    if not isinstance(module, nn.Module):
        raise InvalidProblem("module", module, "an nn.Module of PyTorch")
    kinds = (nn.Linear, nn.modules.conv._ConvNd)
    return {
        f"{name}.weight" if name else "weight": part
        for name, part in module.named_modules()
        if isinstance(part, kinds)
    }


def unfolded(part: Any, tensor: Any) -> FloatArray:
    """A weight or gradient of a layer as a new matrix (outputs, inputs × kernel)."""
    values = tensor.detach().double().cpu().numpy()
    if getattr(part, "transposed", False):
        values = values.swapaxes(0, 1)
    return np.array(values.reshape(values.shape[0], -1))


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """The module without dropout and with fixed batch statistics, and as it was afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def batch_for(module: Any, x: NDArray[Any], y: NDArray[Any]) -> tuple[Any, Any]:
    """Inputs and labels as tensors of the module's type, on its device."""
    torch = torch_library()
    parameter = next(module.parameters(), None)
    if parameter is None:
        raise InvalidProblem("source", type(module).__name__, "a module with parameters")
    if y.dtype.kind in "iu" and y.ndim == 1:
        labels = torch.as_tensor(y.astype(np.int64), device=parameter.device)
    else:
        labels = torch.as_tensor(y.astype(np.float64), dtype=parameter.dtype)
        labels = labels.to(parameter.device)
    why: Exception | None = None
    x = np.require(x, requirements="W")  # PyTorch warns of others, such as those of pandas
    for kind in (parameter.dtype,) if x.dtype.kind == "f" else (None, parameter.dtype):
        inputs = torch.as_tensor(x, dtype=kind, device=parameter.device)  # tokens, or pixels
        try:
            with evaluating(module), torch.no_grad():
                module(inputs[:2])
            return inputs, labels
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            why = error
    raise InvalidProblem("data", tuple(x.shape), f"inputs that the module takes: {why}")


def default_loss(outputs: Any, labels: Any) -> Callable[[Any, Any], Any]:
    """Cross-entropy for integer classes and several outputs, squares otherwise."""
    functional = torch_library().nn.functional
    if not hasattr(outputs, "ndim"):
        raise InvalidProblem(
            "source", type(outputs).__name__, "a module that returns one tensor, or pass loss="
        )
    if labels.ndim == 1 and not labels.is_floating_point() and outputs.ndim == 2:
        if outputs.shape[1] > 1:
            classes = int(labels.max()) + 1
            if int(labels.min()) < 0 or classes > outputs.shape[1]:
                raise InvalidProblem(
                    "data",
                    f"classes {int(labels.min())} to {classes - 1}",
                    f"classes from 0 to {outputs.shape[1] - 1}, one per output",
                )
            return lambda out, target: functional.cross_entropy(out, target)
        labels = labels.to(outputs.dtype)
    if labels.reshape(len(labels), -1).shape != outputs.reshape(len(outputs), -1).shape:
        raise InvalidProblem(
            "data",
            tuple(labels.shape),
            f"labels of the shape of the outputs, {tuple(outputs.shape)}, integer classes, or "
            "pass loss=",
        )

    def squares(out: Any, target: Any) -> Any:
        return functional.mse_loss(
            out.reshape(len(out), -1), target.reshape(len(target), -1).to(out.dtype)
        )

    return squares


def hidden_features(module: Any, inputs: Any) -> dict[str, FloatArray]:
    """What goes into each linear or convolution layer: (rows, features), averaged over places.

    Inputs of a convolution (rows, channels, places…) are averaged over the places, those of a
    linear layer (rows, …, features) over the axes between.
    """
    torch = torch_library()
    found: dict[str, FloatArray] = {}
    handles = []
    convolution = torch.nn.modules.conv._ConvNd

    def keep(name: str, part: Any) -> Callable[[Any, tuple[Any, ...]], None]:
        def hook(_: Any, given: tuple[Any, ...]) -> None:
            value = given[0].detach().double()
            if value.ndim > 2 and isinstance(part, convolution):
                value = value.flatten(2).mean(dim=2)
            elif value.ndim > 2:
                value = value.flatten(1, -2).mean(dim=1)
            found.setdefault(name, value.cpu().numpy())

        return hook

    for name, part in linear_layers(module).items():
        handles.append(part.register_forward_pre_hook(keep(name, part)))
    try:
        with evaluating(module), torch.no_grad():
            module(inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found


def mlp_of_weights(weights: Weights, activation: str) -> Any:
    """The network of a state dict whose matrices form a chain, with one activation between."""
    torch = torch_library()
    if activation not in ACTIVATIONS:
        raise InvalidProblem("activation", activation, suggest(activation, ACTIVATIONS))
    matrices = [tensor for tensor in weights if len(tensor.shape) == 2]
    if not matrices:
        raise InvalidProblem("source", weights.title, "weights with at least one matrix")
    for before, after in pairwise(matrices):
        if after.shape[1] != before.shape[0]:
            raise InvalidProblem(
                "source",
                f"{after.name} {after.shape} after {before.name} {before.shape}",
                "matrices that form a chain (outputs, inputs); pass the nn.Module instead",
            )
    module = torch.nn.Module()
    parts = []
    for place, tensor in enumerate(matrices):
        bias = weights.get(tensor.name.removesuffix("weight") + "bias")
        linear = torch.nn.Linear(tensor.shape[1], tensor.shape[0], bias=bias is not None)
        linear.weight.data = torch.as_tensor(np.array(tensor.read(), dtype=np.float32))
        if bias is not None:
            linear.bias.data = torch.as_tensor(np.array(bias.read(), dtype=np.float32))
        parts.append(linear)
        _attach(module, tensor.name.removesuffix(".weight"), linear)
        if place < len(matrices) - 1:
            parts.append(getattr(torch.nn, ACTIVATIONS[activation])())
    chain = torch.nn.Sequential(*parts)
    module.forward = lambda x: chain(x.flatten(1))
    return module


def _attach(root: Any, path: str, part: Any) -> None:
    """Give a layer its name of the state dict."""
    *owners, last = path.split(".")
    for owner in owners:
        if not hasattr(root, owner):
            root.add_module(owner, torch_library().nn.Module())
        root = getattr(root, owner)
    root.add_module(last, part)
