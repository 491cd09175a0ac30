"""Random legal problems: ``problem(seed)`` is the same on every machine.

Every seam of a problem is drawn, mostly around ordinary values and now and then at the ends of what
is allowed (no noise, no penalty, as many samples as neurons, a rate of zero).
"""

from __future__ import annotations

import random
from typing import Any

import giantsteps as gs

__all__ = ["SIZES", "draw", "problem"]

#: Input dimensions that theory is asked at, by seed.
SIZES = (100, 300, 1000)

ACTIVATIONS = (
    "abs", "arctan", "cube", "elu", "erf", "gelu", "hard_tanh", "he2", "he3", "he4", "identity",
    "leaky_relu", "mish", "relu", "relu_squared", "sigmoid", "silu", "sin", "softplus", "square",
    "tanh", "tanh_shrink", "step", "sign", "cos",
    "100*tanh(x)", "0.01*tanh(x)", "tanh(3*x)", "tanh(x)+0.3*he2(x)", "1e-3*x+he3(x)",
    "he2(x)+he3(x)", "exp(x/2)", "max(x,-0.5)", "sin(3*x)", "x+0.1*x**2", "clip(x,-0.2,3)",
)  # fmt: skip
TEACHERS = (
    "abs", "cos", "cube", "erf", "he2", "he3", "he4", "identity", "relu", "sign", "sin",
    "softplus", "square", "tanh", "step",
    "10*tanh(x)", "1e-3*x+he2(x)", "exp(x/3)", "he2(x)+x", "sin(2*x)", "tanh(2*x)",
)  # fmt: skip
SEVERAL = ("he2(x0)-he2(x1)", "relu(x0)+relu(x1)", "sin(x0)+0.1*x1", "x0*x1", "x0+x0*x1",
           "sign(x0*x1)", "x0+x1*x2")  # fmt: skip
VOCABULARIES = (
    ((-1.0, 1.0), (0.5, 0.5)),
    ((-1.0, 1.0), (0.9, 0.1)),
    ((0.0, 1.0), (0.5, 0.5)),
    ((1.0, 2.0), (0.9, 0.1)),
    ((-1.0, 0.0, 1.0), (0.9, 0.05, 0.05)),
    ((-3.0, -1.0, 1.0, 3.0), (0.25, 0.25, 0.25, 0.25)),
)
RULES = ("sign", "normalized", "muon", "adam")
LOSSES = ("logistic", "hinge", "huber")


def problem(seed: int) -> gs.Problem:
    """The problem of a seed; draws that `Problem` refuses are drawn again."""
    source = random.Random(f"giantsteps {seed}")
    for _ in range(100):
        try:
            return gs.Problem.from_data(draw(source))
        except gs.InvalidProblem:
            continue
    raise AssertionError(f"seed {seed} has no legal problem")


def draw(source: random.Random) -> dict[str, Any]:
    """One draw, as plain data."""
    steps = _steps(source)
    width = _ratio(source)
    samples = width if source.random() < 0.05 else _ratio(source)
    readout: dict[str, Any] = {"samples": samples, "penalty": _penalty(source)}
    if steps and source.random() < 0.05:
        readout |= {"samples": steps[-1]["samples"], "batch": "previous"}
    init: dict[str, Any] = {
        "weights": source.choice(("gaussian", "sphere")),
        "second_layer": _second_layer(source),
    }
    if source.random() < 0.15:
        init["output"] = "unscaled"
    data: dict[str, Any] = {
        "activation": _function(source, ACTIVATIONS),
        "teacher": _teacher(source),
        "width": width,
        "noise_variance": source.choice((0.0, 0.0, 0.01, 0.1, 1.0)),
        "steps": steps,
        "readout": readout,
        "init": init,
    }
    if source.random() < 0.2:
        data["inputs"] = _inputs(source)
    return data


def _digits(value: float) -> float:
    return float(f"{value:.3g}")


def _ratio(source: random.Random) -> float:
    return _digits(10 ** source.uniform(-1, 1))


def _penalty(source: random.Random) -> float:
    return 0.0 if source.random() < 0.07 else _digits(10 ** source.uniform(-5, 2))


def _function(source: random.Random, known: tuple[str, ...]) -> Any:
    text = source.choice(known)
    if source.random() < 0.5:
        return text
    key = "name" if text.isidentifier() else "expression"
    return {key: text, "centered": True}


def _teacher(source: random.Random) -> Any:
    if source.random() < 0.85:
        return _function(source, TEACHERS)
    text = source.choice(SEVERAL)
    rank = 3 if "x2" in text else 2
    return {"expression": text, "rank": rank, "centered": source.random() < 0.5}


def _steps(source: random.Random) -> list[dict[str, Any]]:
    count = source.choices((0, 1, 2, 3), (1, 5, 3, 1))[0]
    exponent = source.choices((0.0, 0.5, None), (4, 4, 2))[0]
    rule = "gradient" if source.random() < 0.75 else source.choice(RULES)
    loss = "squared" if source.random() < 0.8 else source.choice(LOSSES)
    steps: list[dict[str, Any]] = []
    for index in range(count):
        step: dict[str, Any] = {
            "samples": _ratio(source),
            "rate": 0.0 if source.random() < 0.03 else _digits(10 ** source.uniform(-2, 1)),
            "exponent": _digits(source.uniform(0.02, 0.48)) if exponent is None else exponent,
        }
        if index and source.random() < 0.2:
            step |= {"samples": steps[-1]["samples"], "batch": "previous"}
        if rule != "gradient":
            step["rule"] = rule
        if loss != "squared":
            step["loss"] = loss
        if source.random() < 0.1:
            step["decay"] = _digits(source.uniform(0.0, 0.9))
        if source.random() < 0.04:
            step["precondition"] = source.choice((0.5, 1.0))
        steps.append(step)
    return steps


def _second_layer(source: random.Random) -> Any:
    kind = source.random()
    if kind < 0.5:
        return "gaussian"
    if kind < 0.65:
        return "constant"
    if kind < 0.7:
        return {"law": "constant", "value": source.choice((0.0, 0.5, -2.0))}
    values, probabilities = source.choice(VOCABULARIES)
    return {"law": "vocabulary", "values": list(values), "probabilities": list(probabilities)}


def _inputs(source: random.Random) -> dict[str, Any]:
    kind = source.choice(("covariance", "power law", "spiked"))
    if kind == "power law":
        return {"law": "power_law", "exponent": _digits(source.uniform(0.05, 0.95))}
    if kind == "spiked":
        return {
            "law": "spiked",
            "strength": _digits(10 ** source.uniform(-1, 1)),
            "alignment": _digits(source.uniform(0, 1)),
        }
    count = source.choice((2, 3))
    law: dict[str, Any] = {
        "law": "covariance",
        "eigenvalues": [_digits(10 ** source.uniform(-1, 1)) for _ in range(count)],
        "weights": [1 / count] * count,
    }
    if source.random() < 0.5:
        law["teacher"] = [1.0, *[0.0] * (count - 1)]
    return law
