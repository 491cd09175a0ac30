"""Random streams: every number has an address (seed, role, step, position).

The numbers of a role and a step are an endless matrix, read row by row: entry (i, j) of a matrix
with ``width`` columns is the variate of word i · width + j of a Philox stream, whose key comes from
the seed and whose counter holds role and step (`engine.normals`). Hence

- the first m rows are the same for every n ≥ m, so that curves in n are nested;
- any rows can be drawn again, in any order, by any thread and on any device, so that nothing needs
  to be kept or copied;
- a new role changes nothing that was drawn before;
- one seed gives the same data across rates, penalties, widths and noise levels.

Laws other than the normal are drawn by NumPy on the host, in blocks of 1024 rows, each with a
generator of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np

from giantsteps.problem import integer
from giantsteps.simulation._engine._arrays import Array, Arrays
from giantsteps.simulation._engine._memory import BLOCK
from giantsteps.simulation._engine._normals import Words
from giantsteps.simulation._network._laws import Law, draw_block


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
    return integer(seed, "seed", "a non-negative integer", lower=0)


@dataclass(frozen=True)
class Streams:
    """The random numbers of one network, or of several."""

    #: One: matrices have two axes. Several: one more in front, over the seeds.
    seeds: int | Sequence[int]
    arrays: Arrays  # what the numbers are returned as

    def __post_init__(self) -> None:
        several = isinstance(self.seeds, Sequence)
        seeds = tuple(map(as_seed, self.seeds)) if several else as_seed(self.seeds)  # type: ignore[arg-type]
        object.__setattr__(self, "seeds", seeds)

    @property
    def lead(self) -> tuple[int, ...]:
        """The axes in front of every matrix: one over several seeds, none for one seed."""
        return (len(self.seeds),) if isinstance(self.seeds, tuple) else ()

    @cached_property
    def keys(self) -> Words:
        """Keys of the generators, (networks, 2)."""
        seeds = self.seeds if isinstance(self.seeds, tuple) else (self.seeds,)
        return np.stack([_key(seed) for seed in seeds])

    def normal(self, role: Role, step: int, start: int, stop: int, width: int) -> Array:
        """Rows ``start`` … ``stop − 1`` of an endless matrix of N(0, 1), (…, rows, width)."""
        if not 0 <= start < stop:
            raise ValueError(f"rows {start} to {stop}: must be a non-empty range")
        count = (stop - start) * width
        drawn = self.arrays.normal(self.keys, (int(role), step), start * width, count)
        return self.arrays.xp.reshape(drawn, (*self.lead, stop - start, width))

    def draw(self, law: Law, role: Role, step: int, start: int, stop: int, width: int) -> Array:
        """The same for rows of another law, drawn on the host by whole blocks."""
        first, last = start // BLOCK, -(-stop // BLOCK)
        rows = slice(start - first * BLOCK, stop - first * BLOCK)
        networks = [
            np.concatenate(
                [
                    draw_block(law, self._generator(key, role, step, block), BLOCK, width)
                    for block in range(first, last)
                ]
            )[rows]
            for key in self.keys
        ]
        return self.arrays.asarray(np.reshape(networks, (*self.lead, stop - start, width)))

    def _generator(self, key: Words, role: Role, step: int, block: int) -> np.random.Generator:
        # Counters of normal variates end in zero: none of them is used here.
        counter = np.array([0, int(role), step, block + 1], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=counter))


def _key(seed: int) -> Words:
    return np.asarray(np.random.SeedSequence(seed).generate_state(2, np.uint64), dtype=np.uint64)
