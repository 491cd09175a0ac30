"""From the name of a device to the arrays that live there."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import array_api_compat
import numpy as np

from giantsteps.errors import InvalidProblem
from giantsteps.simulation._engine import _machine
from giantsteps.simulation._engine._arrays import Arrays
from giantsteps.simulation._engine._numpy_arrays import NumpyArrays

_DEVICES = (
    '"cpu" (NumPy, the default), "torch" (PyTorch on the CPU), "cuda" or "cuda:0" (PyTorch on a '
    'GPU), "cupy", or an array namespace'
)
_INSTALL = {"torch": "giantsteps[torch]", "cupy": "cupy-cuda13x"}
_NEEDED = ("astype", "concat", "float64", "linalg", "matrix_transpose", "vecdot")


def resolve(device: object = None, dtype: object = "float64") -> Arrays:
    """The arrays for a device and a precision.

    * ``device``: ``"cpu"`` or None: NumPy; ``"torch"``: PyTorch on the CPU; ``"cuda"``,
      ``"cuda:1"``: PyTorch on a GPU; ``"cupy"``: CuPy on its current GPU; or a module that follows
      the array API, has its linear algebra and has arrays that can be written to. JAX is refused:
      its arrays cannot.
    * ``dtype``: "float64", "float32". Precision of weights, inputs and features.
    """
    precision = getattr(dtype, "__name__", None) or str(dtype).removeprefix("torch.")
    if precision not in ("float64", "float32"):
        raise InvalidProblem("dtype", dtype, '"float64" or "float32"')
    if isinstance(device, ModuleType):
        return _of_namespace(device, precision)
    if device is None or device == "cpu":
        return NumpyArrays(np, None, precision, _machine.threads())
    name = str(device)
    if name == "cupy":
        return _cupy(precision, device)
    if name in ("torch", "cpu") or name.partition(":")[0] == "cuda":
        return _torch("cpu" if name == "torch" else name, precision, device)
    raise InvalidProblem("device", device, _DEVICES)


def _of_namespace(xp: Any, precision: str) -> Arrays:
    if array_api_compat.is_numpy_namespace(xp):
        return resolve("cpu", precision)
    if array_api_compat.is_torch_namespace(xp):
        return _torch("cpu", precision, xp)
    if array_api_compat.is_cupy_namespace(xp):
        return _cupy(precision, xp)
    missing = [name for name in _NEEDED if not hasattr(xp, name)]
    if missing:
        allowed = f"a module of the array API: {xp.__name__} has no {', '.join(missing)}"
        raise InvalidProblem("device", xp, allowed)
    try:
        xp.zeros(1)[0] = 1.0
    except TypeError:
        allowed = f"one whose arrays can be written to: those of {xp.__name__} cannot"
        raise InvalidProblem("device", xp, allowed) from None
    return Arrays(xp, None, precision)


def _torch(name: str, precision: str, device: object) -> Arrays:
    xp = _optional("array_api_compat.torch", "torch", device)
    import torch

    from giantsteps.simulation._engine._torch_arrays import TorchArrays

    if name != "cpu":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        index = name.partition(":")[2] or "0"
        if not index.isdigit() or int(index) >= count:
            raise InvalidProblem("device", device, f"a GPU that PyTorch sees: it sees {count}")
    return TorchArrays(xp, torch.device(name), precision, _machine.threads())


def _cupy(precision: str, device: object) -> Arrays:
    xp = _optional("array_api_compat.cupy", "cupy", device)

    from giantsteps.simulation._engine._cupy_arrays import CupyArrays

    return CupyArrays(xp, None, precision, _machine.threads())


def _optional(module: str, package: str, device: object) -> ModuleType:
    try:
        return import_module(module)
    except ImportError:
        raise InvalidProblem(
            "device",
            device,
            f'"cpu", or install {package} first: pip install "{_INSTALL[package]}"',
        ) from None
