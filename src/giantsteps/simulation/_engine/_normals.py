r"""Normal variates as a function of an address: the same numbers on every device.

A word is 64 bits of Philox4x64-10, a generator without a state: key and counter in, four words
out. NumPy has it, and a CUDA kernel of a few lines draws the same words on a GPU (`cuda`). One word
becomes one N(0, 1) by the ziggurat of Marsaglia and Tsang with 256 layers:

======  =====================================================================================
bits    meaning
======  =====================================================================================
0–7     the layer i, with the outer edge w_i and the inner edge k_i w_i
8       the sign
12–63   u ∈ [0, 1): x = u w_i, accepted if u < k_i, as 99 of 100 are
======  =====================================================================================

What the other one in a hundred needs comes from SplitMix64 with the word as its seed. So a variate
is a function of its word alone, and takes one product; only those rare ones take exp and log, which
may differ in the last bit between libraries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from giantsteps.types import FloatArray

Words = NDArray[np.uint64]

#: Where the tail begins, and the area of each layer.
TAIL, _AREA = 3.6541528853610088, 0.00492867323399
_SLAB = 2**14  # variates at a time: what is made on the way stays in the cache
_LAYER_AND_SIGN = np.uint64(0x1FF)
_EXPONENT_OF_ONE = np.uint64(0x3FF0000000000000)
_GOLDEN = np.array(0x9E3779B97F4A7C15, dtype=np.uint64)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@cache
def tables() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Outer edges w, ratios of inner to outer edge k, and the density at the edges f, f[0] = 1.

    The first two have 512 entries: the second half is for negative variates, with −w.
    """
    edges = np.zeros(257)
    edges[256], edges[255] = _AREA / math.exp(-(TAIL**2) / 2), TAIL
    for layer in range(254, 0, -1):
        above = edges[layer + 1]
        edges[layer] = math.sqrt(-2 * math.log(_AREA / above + math.exp(-(above**2) / 2)))
    outer, ratio = edges[1:], edges[:-1] / edges[1:]
    density = np.array([math.exp(-(edge**2) / 2) for edge in edges])
    return np.concatenate([outer, -outer]), np.concatenate([ratio, ratio]), density


@cache
def _edges() -> NDArray[np.complex128]:
    """w + ik: what a variate needs of its layer lies side by side, and is fetched at once."""
    outer, ratio, _ = tables()
    return outer + 1j * ratio


def generator_at(key: Words, stream: Sequence[int], start: int) -> np.random.Philox:
    """NumPy's generator at a word; it counts up before it draws, so that counters start at one.

    * ``key``: of the generator.
    * ``stream``: the upper words of the counter; each counter gives four words.
    """
    generator = np.random.Philox(key=key, counter=np.array([start // 4, *stream], dtype=np.uint64))
    if start % 4:
        generator.random_raw(start % 4)
    return generator


def fill_normal(out: FloatArray, key: Words, stream: Sequence[int], start: int) -> None:
    """Fill a one-dimensional array with the variates of consecutive words, from ``start`` on."""
    _fill(out, generator_at(key, stream, start).random_raw)


def _fill(out: FloatArray, draw: Callable[[int], Words]) -> None:
    table, size = _edges(), min(_SLAB, out.size)
    indices, edges = np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.complex128)
    places, left = [], []
    for begin in range(0, out.size, _SLAB):
        part = out[begin : begin + _SLAB]
        word, edge = draw(part.size), edges[: part.size]
        index = np.bitwise_and(word, _LAYER_AND_SIGN, out=indices[: part.size]).view(np.int64)
        unit = _unit(word)
        table.take(index, out=edge, mode="clip")
        rejected = np.flatnonzero(unit >= edge.imag)
        np.multiply(unit, edge.real, out=part)
        # Their words are put together again, but for the three bits between.
        high = (unit[rejected] + 1.0).view(np.uint64) << np.uint64(12)
        places.append(rejected + begin)
        left.append(high | index[rejected].view(np.uint64))
    if places:
        word = np.concatenate(left)
        out[np.concatenate(places)] = _resolve(word, word)


def _unit(word: Words) -> FloatArray:
    """u from bits 12–63, in the memory of the words."""
    word >>= np.uint64(12)
    word |= _EXPONENT_OF_ONE
    unit = word.view(np.float64)
    unit -= 1.0
    return unit


def _resolve(word: Words, state: Words) -> FloatArray:
    """Variates of words whose first point is not accepted, with the states of SplitMix64."""
    outer, _, density = tables()
    index = (word & _LAYER_AND_SIGN).view(np.int64)
    layer = index & 0xFF
    found = _unit(word.copy()) * outer[index]
    bottom = density[layer + 1]
    height = bottom + _open_unit(state, 1) * (density[layer] - bottom)
    again = np.flatnonzero(height >= np.exp(-(found**2) / 2))
    tail = np.flatnonzero(layer == 255)
    found[tail] = np.copysign(_beyond(state[tail]), outer[index[tail]])
    again = again[layer[again] != 255]
    if again.size:
        found[again] = _redraw(state[again])
    return found


def _redraw(state: Words) -> FloatArray:
    """Variates of the next words, which may be accepted or not."""
    outer, ratio, _ = tables()
    word, state = _split_mix(state, 3), state + _GOLDEN * np.uint64(3)
    index = (word & _LAYER_AND_SIGN).view(np.int64)
    unit = _unit(word.copy())
    found = unit * outer[index]
    again = np.flatnonzero(unit >= ratio[index])
    if again.size:
        found[again] = _resolve(word[again], state[again])
    return found


def _beyond(state: Words) -> FloatArray:
    """Absolute values beyond `TAIL`."""
    found, left = np.empty(state.size), np.arange(state.size)
    while left.size:
        beyond = -np.log(_open_unit(state, 1)) / TAIL
        done = -2 * np.log(_open_unit(state, 2)) > beyond**2
        found[left[done]] = TAIL + beyond[done]
        left, state = left[~done], state[~done] + _GOLDEN * np.uint64(3)
    return found


def _split_mix(state: Words, number: int) -> Words:
    """A word of SplitMix64: the first, second, … after a state."""
    state = state + _GOLDEN * np.uint64(number)
    mixed = (state ^ (state >> np.uint64(30))) * _MIX_1
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX_2
    return mixed ^ (mixed >> np.uint64(31))


def _open_unit(state: Words, number: int) -> FloatArray:
    """The same as a number in (0, 1)."""
    word = _split_mix(state, number)
    return ((word >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
