"""Elementary functions that the array API standard lacks, and numerically stable forms.

Each takes the array namespace ``xp`` and an array, keeps its type, dtype and device, and does no
more passes over the data than it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
import scipy.special
from array_api_compat import is_numpy_namespace, is_torch_namespace

from ..errors import NotCovered


def erf(xp: Any, x: Any) -> Any:
    """2/√π ∫₀ˣ exp(−t²) dt."""
    if is_numpy_namespace(xp):
        return scipy.special.erf(x)
    if is_torch_namespace(xp):
        return xp.special.erf(x)
    if hasattr(xp, "erf"):
        return xp.erf(x)
    return _on_host(scipy.special.erf, xp, x)


def normal_cdf(xp: Any, x: Any) -> Any:
    """Φ(x), with full relative accuracy in the left tail where the library offers it."""
    if is_numpy_namespace(xp):
        return scipy.special.ndtr(x)
    if is_torch_namespace(xp):
        return xp.special.ndtr(x)
    return 0.5 + 0.5 * erf(xp, x * sqrt(0.5))


def step(xp: Any, x: Any) -> Any:
    """0 below zero, 1 above, and 1/2 at zero."""
    return 0.5 * xp.sign(x) + 0.5


def sigmoid(xp: Any, x: Any) -> Any:
    """1/(1 + exp(−x)); where exp overflows the value is 0, as it should be."""
    return 1.0 / (1.0 + xp.exp(-x))


def softplus(xp: Any, x: Any) -> Any:
    """log(1 + exp(x)) without overflow."""
    return xp.maximum(x, 0.0) + xp.log1p(xp.exp(-xp.abs(x)))


def square(xp: Any, x: Any) -> Any:
    """x²."""
    return x * x


def log_cosh(xp: Any, x: Any) -> Any:
    """log cosh(x) without overflow."""
    size = xp.abs(x)
    return size + xp.log1p(xp.exp(-2.0 * size)) - log(2.0)


def sech(xp: Any, x: Any) -> Any:
    """1/cosh(x) without overflow."""
    decay = xp.exp(-xp.abs(x))
    return 2.0 * decay / (1.0 + decay * decay)


@dataclass(frozen=True)
class Hermite:
    """He_k, the probabilists' Hermite polynomial: He_{k+1} = x He_k − k He_{k−1}."""

    degree: int

    def __call__(self, xp: Any, x: Any) -> Any:
        previous: Any = 1.0
        current = x
        for k in range(1, self.degree):
            previous, current = current, x * current - k * previous
        return current


@dataclass(frozen=True)
class Standard:
    """A function of the array API standard, by its name there, with the last arguments fixed."""

    name: str
    fixed: tuple[float, ...] = ()

    def __call__(self, xp: Any, *args: Any) -> Any:
        return getattr(xp, self.name)(*args, *self.fixed)


def _on_host(function: Any, xp: Any, x: Any) -> Any:
    """Evaluate by SciPy and send the result back, for libraries without the function."""
    try:
        values = function(np.from_dlpack(x))
    except (BufferError, RuntimeError, TypeError) as error:
        raise NotCovered(
            f"erf of arrays of {xp.__name__} on {x.device}",
            "that library has no erf, and its memory cannot be read by NumPy",
            "NumPy, PyTorch on every device, and libraries on the CPU",
        ) from error
    return xp.asarray(values, dtype=x.dtype, device=x.device)
