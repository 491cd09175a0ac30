"""Floating-point numbers that NumPy has no type for: 16 and 8 bits, decoded exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from giantsteps.types import FloatArray

#: Bits of the mantissa and bias of the exponent of each type with 8 bits.
_FLOAT8 = {
    "float8_e4m3fn": (3, 7),
    "float8_e4m3fnuz": (3, 8),
    "float8_e5m2": (2, 15),
    "float8_e5m2fnuz": (2, 16),
}
#: Powers of two, the factors of blocks; no weights.
_EXPONENTS = "float8_e8m0fnu"
FLOAT8 = (*_FLOAT8, _EXPONENTS)
#: Half of the last place of one, the relative rounding error, by the name of a type.
ROUNDING = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
} | {name: 2.0 ** -(mantissa + 1) for name, (mantissa, _) in _FLOAT8.items()}


def item_size(dtype: str) -> int:
    """Bytes of one number."""
    if dtype in FLOAT8:
        return 1
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


def decode(raw: bytes, dtype: str) -> NDArray[Any]:
    """The numbers in little-endian bytes, as NumPy's type or as float32.

    Examples
    --------
    >>> decode(bytes([0x38, 0xC0, 0x7E, 0x01]), "float8_e4m3fn").tolist()
    [1.0, -2.0, 448.0, 0.001953125]
    >>> decode(bytes([0x80, 0x3F]), "bfloat16").tolist()
    [1.0]
    """
    if dtype in FLOAT8:
        return _float8_values(dtype)[np.frombuffer(raw, np.uint8)]
    if dtype == "bfloat16":  # the upper halves of 32-bit floats
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(raw, np.dtype(dtype).newbyteorder("<"))


def spread(factors: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """One factor per entry, from one per tensor, per row, or per block.

    The side of a block is a power of two, whose last block may be cut, or divides the matrix;
    anything else is a ValueError.

    Examples
    --------
    >>> spread(np.array([[1.0, 2.0]]), (2, 4)).tolist()
    [[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]
    """
    factors = factors.reshape(factors.shape + (1,) * (len(shape) - factors.ndim))
    if factors.ndim != len(shape):
        raise ValueError
    for axis, side in enumerate(shape):
        count: int = factors.shape[axis]
        sizes = (1 << power for power in range(side.bit_length() + 1))
        size = next((size for size in sizes if -(-side // size) == count), None)
        if size is None and (count == 0 or side % count):
            raise ValueError
        places = np.arange(side) // (size or side // count)
        factors = factors.take(places, axis=axis)
    return factors


def _float8_values(dtype: str) -> NDArray[np.float32]:
    """What each of the 256 bytes means."""
    bits = np.arange(256)
    if dtype == _EXPONENTS:
        return np.where(bits < 255, np.ldexp(1.0, bits - 127), np.nan).astype(np.float32)
    mantissa, bias = _FLOAT8[dtype]
    exponent, fraction = (bits & 127) >> mantissa, bits & ((1 << mantissa) - 1)
    hidden = np.where(exponent > 0, 1 << mantissa, 0)
    scale = np.maximum(exponent, 1) - bias - mantissa
    values = np.ldexp((hidden + fraction).astype(float), scale)
    if dtype == "float8_e4m3fn":
        values[127] = values[255] = np.nan
    elif dtype == "float8_e5m2":
        top = exponent == 31
        values[top] = np.where(fraction[top] == 0, np.inf, np.nan)
    values[128:] *= -1
    if dtype.endswith("fnuz"):
        values[128] = np.nan
    return values.astype(np.float32)
