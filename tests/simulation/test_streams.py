from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from giantsteps.errors import InvalidProblem
from giantsteps.simulation._engine._arrays import Arrays
from giantsteps.simulation._engine._devices import resolve
from giantsteps.simulation._engine._memory import BLOCK
from giantsteps.simulation._engine._normals import _fill
from giantsteps.simulation._engine._numpy_arrays import NumpyArrays
from giantsteps.simulation._network._laws import rademacher
from giantsteps.simulation._network._streams import Role, Streams, as_seed


def make(seed: int = 3) -> Streams:
    return Streams(seed, resolve())


def test_roles_are_fixed() -> None:
    # The numbers are part of every result: adding a role must not change those that exist.
    assert {role.name: int(role) for role in Role} == {
        "WEIGHTS": 1,
        "SECOND_LAYER": 2,
        "TEACHER": 3,
        "STEP_INPUTS": 4,
        "STEP_NOISE": 5,
        "READOUT_INPUTS": 6,
        "READOUT_NOISE": 7,
        "TEST_INPUTS": 8,
        "CONDITIONAL_INPUTS": 9,
    }
    assert BLOCK == 1024  # of laws other than the normal


def test_a_number_is_what_its_address_says() -> None:
    rows = make(7).normal(Role.TEST_INPUTS, 2, 5, 10, 3)
    key = np.random.SeedSequence(7).generate_state(2, np.uint64)
    generator = np.random.Philox(key=key, counter=np.array([0, 8, 2, 0], dtype=np.uint64))
    words, expected = generator.random_raw(30)[15:], np.empty(15)
    _fill(expected, lambda count: words.copy())
    np.testing.assert_array_equal(rows.ravel(), expected)


@pytest.mark.parametrize("count", [1, 5, 1023, 1024, 1025, 2055])
def test_prefix(count: int) -> None:
    streams = make()
    longest = streams.normal(Role.STEP_INPUTS, 0, 0, 3072, 4)
    np.testing.assert_array_equal(streams.normal(Role.STEP_INPUTS, 0, 0, count, 4), longest[:count])


def test_any_rows_in_any_order() -> None:
    streams = make()
    for width in (3, 8):
        whole = streams.normal(Role.READOUT_INPUTS, 0, 0, 4000, width)
        for start, stop in [(3000, 4000), (1024, 2048), (0, 1), (1001, 1050), (2047, 3073)]:
            rows = streams.normal(Role.READOUT_INPUTS, 0, start, stop, width)
            np.testing.assert_array_equal(rows, whole[start:stop])


def test_threads_do_not_matter() -> None:
    drawn = [
        Streams(1, NumpyArrays(np, None, "float64", threads)).normal(
            Role.WEIGHTS, 0, 100, 3000, 301
        )
        for threads in (1, 2, 7)
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[0], drawn[2])


def test_draws_are_the_same_everywhere(any_arrays: Arrays) -> None:
    reference = make().normal(Role.STEP_INPUTS, 1, 500, 1500, 5)
    found = Streams(3, any_arrays).normal(Role.STEP_INPUTS, 1, 500, 1500, 5)
    assert found.dtype == any_arrays.dtype
    np.testing.assert_array_equal(any_arrays.to_host(found), reference.astype(any_arrays.precision))


def test_several_seeds_are_those_seeds_alone(any_arrays: Arrays) -> None:
    together = Streams((3, 5), any_arrays)
    draws: list[Callable[[Streams], Any]] = [
        lambda streams: streams.normal(Role.STEP_NOISE, 1, 10, 20, 3),
        lambda streams: streams.draw(rademacher, Role.STEP_INPUTS, 1, 1000, 1100, 3),
    ]
    for draw in draws:
        found = any_arrays.to_host(draw(together))
        assert found.shape[0] == 2
        for number, seed in enumerate((3, 5)):
            alone = any_arrays.to_host(draw(Streams(seed, any_arrays)))
            np.testing.assert_array_equal(found[number], alone)


def test_addresses_are_independent() -> None:
    streams = make(0)
    columns = [
        streams.normal(role, step, block * BLOCK, (block + 1) * BLOCK, 8).ravel()
        for role in Role
        for step in (0, 1)
        for block in (0, 1)
    ]
    columns += [make(1).normal(Role.WEIGHTS, 0, 0, BLOCK, 8).ravel()]
    correlations = np.corrcoef(columns) - np.eye(len(columns))
    # 666 pairs of 8192 numbers: beyond 4.5/√8192 by chance once in 200 seeds.
    assert np.max(np.abs(correlations)) < 4.5 / np.sqrt(columns[0].size)


def test_draws_are_standard_normal() -> None:
    draws = make(0).normal(Role.TEST_INPUTS, 0, 0, 4 * BLOCK, 50).ravel()
    scale = 1 / np.sqrt(draws.size)
    assert abs(draws.mean()) < 4 * scale
    assert abs((draws**2).mean() - 1) < 4 * np.sqrt(2) * scale
    assert abs((draws**4).mean() - 3) < 4 * np.sqrt(96) * scale


@pytest.mark.parametrize("seed", [0, 5, 2**70, np.int64(4), np.uint8(3)])
def test_seeds(seed: int) -> None:
    assert as_seed(seed) == int(seed)
    assert type(as_seed(seed)) is int


@pytest.mark.parametrize("seed", [True, np.True_, -1, 1.0, "1", None, [1]])
def test_refused_seeds(seed: object) -> None:
    with pytest.raises(InvalidProblem, match=r"seed = .*non-negative integer"):
        as_seed(seed)


def test_no_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="non-empty range"):
        make().normal(Role.WEIGHTS, 0, 5, 5, 1)
