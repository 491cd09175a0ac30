"""From the name of a device to the arrays that live there."""

from __future__ import annotations

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
    "GPU), or an array namespace"
)
_NEEDED = ("astype", "concat", "float64", "linalg", "matrix_transpose", "vecdot")


def resolve(device: object = None, dtype: object = "float64") -> Arrays:
    """The arrays for a device and a precision.

    * ``device``: ``"cpu"`` or None: NumPy; ``"torch"``: PyTorch on the CPU; ``"cuda"``,
      ``"cuda:1"``: PyTorch on a GPU; or a module that follows the array API, has its linear
      algebra and has arrays on the host that can be written to: neither JAX nor CuPy.
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
    if name in ("torch", "cpu") or name.partition(":")[0] == "cuda":
        return _torch("cpu" if name == "torch" else name, precision, device)
    raise InvalidProblem("device", device, _DEVICES)


def _of_namespace(xp: Any, precision: str) -> Arrays:
    if array_api_compat.is_numpy_namespace(xp):
        return resolve("cpu", precision)
    if array_api_compat.is_torch_namespace(xp):
        return _torch("cpu", precision, xp)
    missing = [name for name in _NEEDED if not hasattr(xp, name)]
    if missing:
        allowed = f"a module of the array API: {xp.__name__} has no {', '.join(missing)}"
        raise InvalidProblem("device", xp, allowed)
    try:
        one = xp.zeros(1)
        one[0] = 1.0
        np.asarray(one)
    except TypeError:
        allowed = (
            f"arrays that NumPy reads and that can be written to: those of {xp.__name__} cannot"
        )
        raise InvalidProblem("device", xp, allowed) from None
    return Arrays(xp, None, precision)


def _torch(name: str, precision: str, device: object) -> Arrays:
    try:
        import array_api_compat.torch as xp
        import torch
    except ImportError:
        allowed = '"cpu", or install torch first: pip install "giantsteps[torch]"'
        raise InvalidProblem("device", device, allowed) from None
    from giantsteps.simulation._engine._torch_arrays import TorchArrays

    if name != "cpu":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        index = name.partition(":")[2] or "0"
        if not index.isdigit() or int(index) >= count:
            seen = (
                f"it sees {count}, from cuda:0" if count else 'it sees none; "cpu" is the default'
            )
            raise InvalidProblem("device", device, f"a GPU that PyTorch sees: {seen}")
    return TorchArrays(xp, torch.device(name), precision, _machine.threads())
