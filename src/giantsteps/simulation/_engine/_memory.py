"""The memory budget: how many rows a chunk may have, and an early error if nothing fits."""

from __future__ import annotations

import numbers
import re
from dataclasses import dataclass
from functools import cached_property

from giantsteps.errors import InvalidProblem
from giantsteps.simulation._engine._arrays import Arrays

_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_ALLOWED = 'a size such as "2GB", "512MiB" or a number of bytes, or None'

#: Samples pass in chunks of a multiple of so many rows.
BLOCK = 1024
#: Rows of a chunk where memory allows: enough for full speed of the matrix products.
ROWS_ON_HOST, ROWS_ON_GPU = 2 * BLOCK, 8 * BLOCK
#: What the linear algebra itself holds.
OVERHEAD = 2**26


def as_bytes(memory: object) -> int | None:
    """A memory size in bytes: None, a number, or text such as ``"2GB"`` and ``"512MiB"``."""
    if memory is None:
        return None
    if isinstance(memory, numbers.Real) and not isinstance(memory, bool) and float(memory) > 0:
        return int(float(memory))
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([kmgt]i?)?b?\s*", str(memory).lower())
    if isinstance(memory, str) and match and float(match[1]) > 0:
        return int(float(match[1]) * {**_UNITS, **_BINARY}[match[2] or ""])
    raise InvalidProblem("memory", memory, _ALLOWED)


def in_words(size: float) -> str:
    """A number of bytes for reading, such as ``"1.5 GB"``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.3g} {unit}"


@dataclass(frozen=True)
class Budget:
    """How much may be held at once."""

    limit: int | None  # bytes that were granted; None: what the device has
    arrays: Arrays  # the arrays in use
    networks: int = 1  # how many networks share it

    @cached_property
    def available(self) -> int | None:
        """Bytes for each network; None if unknown."""
        limit = self.limit if self.limit is not None else self.arrays.free_memory()
        return None if limit is None else (limit - OVERHEAD) // self.networks

    def row_bytes(self, d: int, neurons: int) -> int:
        """Bytes of a chunk for each row: inputs, features, and what is made on the way to them.

        For one network.
        """
        numbers_held = (d + 2 * neurons) if self.arrays.in_place else (2 * d + 4 * neurons)
        # In single precision, inputs are drawn and features summed in float64.
        return self.arrays.itemsize * numbers_held + 8 * (d + neurons) * (self.arrays.itemsize < 8)

    def fits(self, d: int, neurons: int, fixed: int) -> bool:
        """Whether `rows` would find room."""
        available = self.available
        return available is None or available >= fixed + BLOCK * self.row_bytes(d, neurons)

    def rows(self, d: int, neurons: int, fixed: int, question: str) -> int:
        """Rows of a chunk beside ``fixed`` bytes for each network, a multiple of `BLOCK`.

        Raises
        ------
        InvalidProblem
            If not even one block fits.
        """
        each = self.row_bytes(d, neurons)
        most = ROWS_ON_GPU if self.arrays.on_gpu and self.networks == 1 else ROWS_ON_HOST
        available = self.available
        if available is None:
            return most
        blocks = (available - fixed) // (each * BLOCK)
        if blocks < 1:
            needed = in_words(fixed + OVERHEAD + each * BLOCK)
            has = in_words(available * self.networks + OVERHEAD)
            raise InvalidProblem(
                "memory",
                has if self.limit is None else self.limit,
                f"at least {needed} for {question} at d = {d}, N = {neurons:.7g} "
                f"({'the device has' if self.limit is None else 'the budget is'} {has}); "
                "try a smaller d or width, fewer samples"
                + (' or dtype="float32"' if self.arrays.itemsize == 8 else ""),
            )
        return int(min(most, blocks * BLOCK))
