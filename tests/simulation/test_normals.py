"""The generator: known answers, the ziggurat against the normal law, one word after the other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from giantsteps.simulation._engine._normals import (
    TAIL,
    Words,
    _fill,
    fill_normal,
    generator_at,
    tables,
)

KEY = np.array([1, 2], dtype=np.uint64)
MASK = 2**64 - 1


def words(key: Words, stream: tuple[int, int, int], start: int, count: int) -> Words:
    return generator_at(key, stream, start).random_raw(count)


def normal_of_words(given: Words) -> np.ndarray:
    """The variate of each word, drawn as `fill_normal` draws them, slab by slab."""
    out, left = np.empty(given.size), iter(given.tolist())
    _fill(out, lambda count: np.array([next(left) for _ in range(count)], dtype=np.uint64))
    return out


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox4x64-10 with Python's integers."""
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        first, second = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
        c = [(second >> 64) ^ c[1] ^ k0, second & MASK, (first >> 64) ^ c[3] ^ k1, first & MASK]
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & MASK, (k1 + 0xBB67AE8584CAA73B) & MASK
    return c


def variate(word: int) -> float:
    """The ziggurat of one word with Python's numbers."""
    outer, ratio, density = tables()
    state, tail = word & ~0xE00, False

    def split_mix() -> int:
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def open_unit() -> float:
        return ((split_mix() >> 11) + 0.5) * 2.0**-53

    first_time = True
    while True:
        index, layer, unit = word & 0x1FF, word & 0xFF, (word >> 12) / 2**52
        x = unit * outer[index]
        if unit < ratio[index] and not tail:
            return float(x)
        word = word & ~0xE00 if first_time else word
        first_time = False
        tail = tail or layer == 255
        first, second = open_unit(), open_unit()
        if tail:
            beyond = -math.log(first) / TAIL
            if -2 * math.log(second) > beyond**2:
                return math.copysign(TAIL + beyond, outer[index])
        else:
            height = density[layer + 1] + first * (density[layer] - density[layer + 1])
            if height < math.exp(-(x**2) / 2):
                return float(x)
        fresh = split_mix()
        word = word if tail else fresh


def test_known_answers_of_philox() -> None:
    """The values that Random123 publishes for Philox4x64-10."""
    pi = [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89]
    key = [0x452821E638D01377, 0xBE5466CF34E90C6C]
    expected = [0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6]
    assert philox(pi, key) == expected
    assert philox([0] * 4, [0] * 2)[0] == 0x16554D9ECA36314C


def test_words_are_those_of_philox() -> None:
    key = np.array([5, 2**63 + 1], dtype=np.uint64)
    found = words(key, (3, 1, 0), 0, 12)
    expected = [w for block in (1, 2, 3) for w in philox([block, 3, 1, 0], [5, 2**63 + 1])]
    assert found.tolist() == expected
    np.testing.assert_array_equal(words(key, (3, 1, 0), 5, 4), found[5:9])


def test_a_variate_is_a_function_of_its_word() -> None:
    """Every path of the ziggurat, against one written out word by word."""
    given = words(KEY, (1, 0, 0), 0, 60_000)
    low = given & np.uint64(0x1FF)
    tail = (given & ~np.uint64(0xFF)) | np.uint64(0xFF)  # the base layer
    far = tail | np.uint64(0xFFF0000000000000)  # and beyond its inner edge
    for chosen in (given, tail[:3000], far[:3000], low[:3000]):
        found = normal_of_words(chosen)
        expected = np.array([variate(int(word)) for word in chosen])
        np.testing.assert_allclose(found, expected, rtol=4e-16, atol=0)
    assert np.abs(normal_of_words(far)).min() >= TAIL


@pytest.mark.parametrize(("start", "count"), [(0, 100_000), (3, 70_001), (65_537, 40_000)])
def test_filling_is_word_by_word(start: int, count: int) -> None:
    out = np.empty(count)
    fill_normal(out, KEY, (4, 1, 0), start)
    np.testing.assert_array_equal(out, normal_of_words(words(KEY, (4, 1, 0), start, count)))


def test_the_law_is_normal() -> None:
    out = np.empty(2**21)
    fill_normal(out, KEY, (1, 0, 0), 0)
    assert stats.kstest(out, "norm").pvalue > 1e-3
    tail = np.array([TAIL, 3.8, 4.0, 4.3])
    edges = np.sort(np.concatenate([np.linspace(-3.5, 3.5, 301), tail, -tail, [-np.inf, np.inf]]))
    counts, _ = np.histogram(out, edges)
    expected = np.diff(stats.norm.cdf(edges)) * out.size
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    # Neighbours, neighbours of one counter, and signs are independent.
    for lag in (1, 2, 3, 4, 5):
        for moment in (lambda x: x, np.abs, np.sign):
            a, b = moment(out[:-lag]), moment(out[lag:])
            assert abs(np.corrcoef(a, b)[0, 1]) < 4.5 / math.sqrt(out.size)
    # Beyond the inner edges too, where a second generator decides.
    ratio = tables()[1]
    given = words(KEY, (1, 0, 0), 0, 2**21)
    unit = (given >> np.uint64(12)).astype(float) / 2**52
    rejected = unit >= ratio[(given & np.uint64(0x1FF)).astype(int)]
    assert rejected.mean() == pytest.approx(1 - ratio[:256].mean(), rel=0.02)
    assert np.isfinite(out[rejected]).all()
