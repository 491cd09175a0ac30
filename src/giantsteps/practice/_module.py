"""A two-layer network of one's own as a problem of the theory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.functions import Function, as_function, names
from giantsteps.practice._sources import open_data
from giantsteps.practice._teacher import fit_teacher
from giantsteps.practice._torch import evaluating, linear_layers, torch_library
from giantsteps.problem import OUTPUTS, Problem, Ridge, Step, Vocabulary, choice, number
from giantsteps.types import FloatArray

#: Relative spread of the neurons' norms, and size of the biases, that the theory can ignore.
_SPREAD, _BIAS = 0.25, 0.2
#: Values of the second layer that stand for its law.
_TYPES = 8
#: Largest mean of a second layer of mean zero, in standard errors.
_DRAWN = 4.0
_SHAPE = "Linear(d, N), an activation, Linear(N, 1)"


@dataclass(frozen=True, eq=False)
class TwoLayer:
    r"""A two-layer module in the theory's convention, f(x) = N⁻¹ Σ_j A_j σ(⟨w_j, x⟩).

    ==========  =================  ==============================================================
    symbol      attribute          meaning
    ==========  =================  ==============================================================
    w_j         ``weights``        columns; the module's rows divided by ``scale``
    A_j         ``second_layer``   N times the module's output weights
    σ           ``activation``     z ↦ τ(scale · z) for the module's activation τ
    ==========  =================  ==============================================================
    """

    weights: FloatArray  # (d, N): of root mean square norm one
    second_layer: FloatArray  # (N,): of root mean square ``output_scale``
    activation: Function  # for weights of norm one
    scale: float  # root mean square norm of the module's neurons
    output_scale: float  # root mean square of A
    biases: FloatArray  # (N,): of the first layer, in units of ``scale``; the theory has none
    output_bias: float  # of the output

    def rate(
        self, learning_rate: float, loss_factor: float = 2.0, *, output: str = "scaled"
    ) -> float:
        r"""η of the theory for a learning rate of SGD.

        η = f · lr · √N⁻¹ · rms(A)/scale², with f = 2 for ``mse_loss``, whose gradient is twice
        that of the theory's half squares; η = f · lr/scale² for ``output="unscaled"``, whose second
        layer keeps its size.
        ``Step(rate=η / N**e, exponent=e)`` is such a step.
        """
        choice(output, "output", OUTPUTS)
        for name, value in (("learning_rate", learning_rate), ("loss_factor", loss_factor)):
            number(value, name, "a finite number >= 0", lower=0.0)
        size = self.size if output == "scaled" else 1.0
        return float(loss_factor * learning_rate * size / self.scale**2)

    @property
    def size(self) -> float:
        """The output weights over those of size N^{-1/2}: N^{-1/2} rms(A)."""
        return float(self.output_scale / np.sqrt(self.weights.shape[1]))


def two_layer(module: Any, *, activation: Any = None) -> TwoLayer:
    """Read weights, second layer and activation off a module, and check them on inputs.

    * ``module``: Linear(d, N), an activation, Linear(N, 1), in this order of parameters.
    * ``activation``: the activation; found among ours unless given.

    Raises
    ------
    InvalidProblem
        If the module computes something else.
    """
    torch = torch_library()
    layers = list(linear_layers(module).values())
    shapes = [tuple(layer.weight.shape) for layer in layers]
    if (
        len(shapes) != 2
        or any(len(shape) != 2 for shape in shapes)
        or shapes[1] != (1, shapes[0][0])
    ):
        raise InvalidProblem("module", shapes, _SHAPE)
    first, last = (layer.weight.detach().double().cpu().numpy() for layer in layers)
    biases, output_bias = (
        np.zeros(len(layer.weight))
        if layer.bias is None
        else layer.bias.detach().double().cpu().numpy()
        for layer in layers
    )
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, first.shape[1])) / max(float(np.linalg.norm(first[0])), 1e-12)
    parameter = layers[0].weight
    with evaluating(module), torch.no_grad():
        given = torch.as_tensor(x, dtype=parameter.dtype, device=parameter.device)
        outputs = module(given).double().cpu().numpy().reshape(-1)
    before = x @ first.T + biases
    found = _activation(activation, before, outputs - output_bias[0], last[0])
    norms = np.linalg.norm(first, axis=1)
    scale = float(np.sqrt(np.mean(norms**2)))
    neurons = len(first)
    second = neurons * last[0]
    return TwoLayer(
        first.T / scale,
        second,
        _rescaled(found, scale),
        scale,
        float(np.sqrt(np.mean(second**2))),
        biases / scale,
        float(output_bias[0]),
    )


def _activation(
    wanted: Any,
    before: FloatArray,
    outputs: FloatArray,
    last: FloatArray,
) -> Function:
    """The function that turns pre-activations into the module's outputs."""
    size = float(np.sqrt(np.mean(outputs**2))) + 1e-12

    def explains(function: Function) -> bool:
        with np.errstate(all="ignore"):
            return bool(np.max(np.abs(function(before) @ last - outputs)) < 1e-3 * size)

    if wanted is not None:
        function = as_function(wanted)
        if not explains(function):
            raise InvalidProblem(
                "activation", wanted, f"that of the module: {_SHAPE}, and nothing else"
            )
        return function
    for name in names():
        function = as_function(name)
        if explains(function):
            return function
    raise InvalidProblem(
        "module",
        "an activation that is none of ours, or more than two layers",
        f"{_SHAPE}; pass activation= for one of your own",
    )


def _rescaled(function: Function, scale: float) -> Function:
    """z ↦ function(scale · z), as an expression if it is one."""
    if function.name in names():
        return as_function(f"{function.name}({scale!r}*x)")
    try:
        return as_function(re.sub(r"\bx\b", f"({scale!r}*x)", function.canonical))
    except InvalidProblem:  # a callable of the user's own has no expression
        return Function(lambda x: function(scale * x))


def problem_of_module(
    module: Any,
    data: Any,
    *,
    activation: Any = None,
    steps: Sequence[Step] = (),
    readout: Ridge | None = None,
    output: str = "scaled",
) -> Problem:
    """The problem that a module and its data pose: see :meth:`giantsteps.Problem.from_module`."""
    network = two_layer(module, activation=activation)
    x, y = open_data(data)
    d, neurons = network.weights.shape
    if x.ndim != 2 or x.shape[1] != d:
        raise InvalidProblem("data", x.shape, f"inputs of shape (rows, {d}), as the module takes")
    norms = np.linalg.norm(network.weights, axis=0)
    spread = float(norms.std() / norms.mean())
    bias = float(np.sqrt(np.mean(network.biases**2)))
    if spread > _SPREAD or bias > _BIAS:
        raise NotCovered(
            "a module as a problem",
            f"its neurons have norms that vary by {spread:.2f} and biases of {bias:.2f} norms",
            f"norms that vary by at most {_SPREAD} and biases of at most {_BIAS}: a module at its "
            "initialisation; for a trained one, theory.risk_of_features on its features",
        )
    fit = fit_teacher(x, y)
    if steps and output == "scaled":
        start = network.activation(x @ network.weights) @ network.second_layer / neurons
        power = float(np.mean(start**2))
        if power > 0.05 * float(np.var(y)):
            raise NotCovered(
                "steps of this module",
                f"its output at the start has {power / float(np.var(y)):.2f} of the variance of "
                "the labels",
                'output="unscaled", or a network whose output is small at the start: divide its '
                "last layer by √N",
            )
    values, counts = _law(network.second_layer / network.output_scale)
    if choice(output, "output", OUTPUTS) == "unscaled":
        values = [network.size * value for value in _centered(values, counts, neurons)]
    return Problem(
        activation=network.activation,
        teacher=fit.teacher,
        noise_variance=fit.noise_variance,
        width=neurons / d,
        steps=tuple(steps),
        readout=readout,
        init={"second_layer": Vocabulary(values, counts), "output": output},
    )


def _law(values: FloatArray) -> tuple[list[float], list[float]]:
    """The values of the second layer and their probabilities; bins of equal counts if many."""
    distinct, counts = np.unique(values.round(12), return_counts=True)
    if len(distinct) <= _TYPES:
        return distinct.tolist(), (counts / counts.sum()).tolist()
    bins = np.array_split(np.sort(values), _TYPES)
    means = np.array([part.mean() for part in bins])
    weights = np.array([len(part) for part in bins]) / len(values)
    # Bins lose the spread inside them: keep the second moment, which sets the size of a step.
    means *= np.sqrt(np.mean(values**2) / (weights @ means**2))
    return means.tolist(), weights.tolist()


def _centered(values: list[float], weights: list[float], neurons: int) -> list[float]:
    """Values of mean zero, if their mean is that of N draws: it is part of the random output at
    the start."""
    mean = float(np.dot(values, weights))
    return [value - mean for value in values] if abs(mean) < _DRAWN / np.sqrt(neurons) else values
