"""Random streams: every number has an address (role, step, block).

A stream is ``SeedSequence(seed, spawn_key=(role, step, block))``: blocks of 1024 rows, each with
a generator of its own. Hence

- the first m rows are the same for every n ≥ m, so that curves in n are nested;
- any block can be drawn again, in any order and by any thread, so that nothing needs to be kept;
- a new role changes nothing that was drawn before;
- one seed gives the same data across rates, penalties, widths and noise levels.
"""

from __future__ import annotations

import numbers
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from giantsteps.errors import InvalidProblem
from giantsteps.simulation._arrays import Array, Arrays
from giantsteps.simulation._inputs import Law, draw_block

__all__ = ["BLOCK", "Role", "Streams", "as_seed"]

#: Rows of one block.
BLOCK = 1024


class Role(IntEnum):
    """What a stream is for. The numbers are part of the results: never change or reuse one."""

    WEIGHTS = 1
    SECOND_LAYER = 2
    TEACHER = 3
    STEP_INPUTS = 4
    STEP_NOISE = 5
    READOUT_INPUTS = 6
    READOUT_NOISE = 7
    TEST_INPUTS = 8
    CONDITIONAL_INPUTS = 9


def as_seed(seed: object) -> int:
    """``seed`` as an int; booleans, floats and negative numbers are refused."""
    whole = isinstance(seed, numbers.Integral) and not isinstance(seed, bool | np.bool_)
    if not whole or int(seed) < 0:  # type: ignore[call-overload]
        raise InvalidProblem("seed", seed, "a non-negative integer")
    return int(seed)  # type: ignore[call-overload]


@dataclass(frozen=True)
class Streams:
    """The random numbers of one run.

    Parameters
    ----------
    seed : int
        Of the whole run.
    arrays : Arrays
        What the numbers are returned as.
    rng : {"host", "device"}
        ``"host"``: drawn by NumPy in float64 and then cast, the same on every device and in
        every precision. ``"device"``: drawn by the device's own generator from the same
        addresses, fastest there, other numbers; the same as ``"host"`` where the device has none.
    """

    seed: int
    arrays: Arrays
    rng: str = "host"

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", as_seed(self.seed))
        if self.rng not in ("host", "device"):
            raise InvalidProblem("rng", self.rng, '"host" or "device"')

    def sequence(self, role: Role, step: int, block: int) -> np.random.SeedSequence:
        """The seed sequence at one address."""
        return np.random.SeedSequence(self.seed, spawn_key=(int(role), step, block))

    def generator(self, role: Role, step: int, block: int) -> np.random.Generator:
        """The host's generator at one address."""
        return np.random.Generator(np.random.SFC64(self.sequence(role, step, block)))

    def normal(self, role: Role, step: int, start: int, stop: int, width: int) -> Array:
        """Rows ``start`` … ``stop − 1`` of an endless matrix of N(0, 1), shape (rows, width)."""
        pieces = list(_pieces(start, stop))
        if self.rng == "device":
            drawn = [self._on_device(role, step, *piece, width) for piece in pieces]
            if all(part is not None for part in drawn):
                return drawn[0] if len(drawn) == 1 else self.arrays.xp.concat(drawn, axis=0)
        return self.arrays.asarray(self._on_host(role, step, pieces, width))

    def draw(self, law: Law, role: Role, step: int, start: int, stop: int, width: int) -> Array:
        """The same for rows of another law, drawn on the host by whole blocks."""
        blocks = [
            draw_block(law, self.generator(role, step, block), BLOCK, width)[lo:hi]
            for block, lo, hi in _pieces(start, stop)
        ]
        return self.arrays.asarray(np.concatenate(blocks))

    def _on_device(self, role: Role, step: int, block: int, lo: int, hi: int, width: int) -> Array:
        # Always a whole block: a device's generator may fill in an order that depends on the size.
        entropy = int(self.sequence(role, step, block).generate_state(1, np.uint64)[0] >> 1)
        rows = self.arrays.normal(entropy, BLOCK, width)
        return None if rows is None else rows[lo:hi, :]

    def _on_host(
        self, role: Role, step: int, pieces: list[tuple[int, int, int]], width: int
    ) -> np.ndarray:
        ends = np.cumsum([hi - lo for _, lo, hi in pieces])
        out = np.empty((int(ends[-1]), width), dtype=self.arrays.precision)

        def draw(piece: tuple[int, int, int], end: int) -> None:
            block, lo, hi = piece
            generator = self.generator(role, step, block)
            rows = out[end - (hi - lo) : end]
            if lo == 0 and rows.dtype == np.float64:
                generator.standard_normal(out=rows)
            else:
                rows[...] = generator.standard_normal((hi, width))[lo:]

        if self.arrays.threads == 1 or len(pieces) == 1:
            for piece, end in zip(pieces, ends):
                draw(piece, end)
        else:
            with ThreadPoolExecutor(self.arrays.threads) as pool:
                list(pool.map(draw, pieces, ends))
        return out


def _pieces(start: int, stop: int) -> list[tuple[int, int, int]]:
    """Triples (block, lo, hi) that cover the rows from ``start`` to ``stop``."""
    if not 0 <= start < stop:
        raise ValueError(f"rows {start} to {stop}: must be a non-empty range")
    return [
        (block, max(start - block * BLOCK, 0), min(stop - block * BLOCK, BLOCK))
        for block in range(start // BLOCK, -(-stop // BLOCK))
    ]
