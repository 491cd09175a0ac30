from __future__ import annotations

import numpy as np
import pytest

from giantsteps.errors import InvalidProblem
from giantsteps.simulation._arrays import Arrays
from giantsteps.simulation._devices import resolve
from giantsteps.simulation._numpy_arrays import NumpyArrays
from giantsteps.simulation._streams import BLOCK, Role, Streams, as_seed


def make(seed: int = 3, rng: str = "host", **kwargs: str) -> Streams:
    return Streams(seed, resolve(**kwargs), rng)


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
    assert BLOCK == 1024


def test_a_block_is_what_its_address_says() -> None:
    rows = make(7).normal(Role.TEST_INPUTS, 2, BLOCK, BLOCK + 5, 3)
    sequence = np.random.SeedSequence(7, spawn_key=(8, 2, 1))
    expected = np.random.Generator(np.random.SFC64(sequence)).standard_normal((5, 3))
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("rng", ["host", "device"])
@pytest.mark.parametrize("device", ["cpu", "torch"])
@pytest.mark.parametrize("count", [1, 5, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 7])
def test_prefix(rng: str, device: str, count: int) -> None:
    streams = make(rng=rng, device=device)
    longest = streams.arrays.to_host(streams.normal(Role.STEP_INPUTS, 0, 0, 3 * BLOCK, 4))
    shorter = streams.arrays.to_host(streams.normal(Role.STEP_INPUTS, 0, 0, count, 4))
    np.testing.assert_array_equal(shorter, longest[:count])


@pytest.mark.parametrize("rng", ["host", "device"])
@pytest.mark.parametrize("device", ["cpu", "torch"])
def test_any_rows_in_any_order(rng: str, device: str) -> None:
    streams = make(rng=rng, device=device)

    def rows(start: int, stop: int) -> np.ndarray:
        return streams.arrays.to_host(streams.normal(Role.READOUT_INPUTS, 0, start, stop, 3))

    whole = rows(0, 4000)
    for start, stop in [(3000, 4000), (1024, 2048), (0, 1), (1000, 1050), (2047, 3073)]:
        np.testing.assert_array_equal(rows(start, stop), whole[start:stop])


def test_threads_do_not_matter() -> None:
    drawn = [
        Streams(1, NumpyArrays(np, None, "float64", threads), "host").normal(
            Role.WEIGHTS, 0, 100, 5000, 3
        )
        for threads in (1, 2, 7)
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[0], drawn[2])


def test_host_draws_are_the_same_everywhere(any_arrays: Arrays) -> None:
    reference = make().normal(Role.STEP_INPUTS, 1, 500, 1500, 5)
    found = Streams(3, any_arrays, "host").normal(Role.STEP_INPUTS, 1, 500, 1500, 5)
    assert found.dtype == any_arrays.dtype
    np.testing.assert_array_equal(any_arrays.to_host(found), reference.astype(any_arrays.precision))


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


def test_refused_rng() -> None:
    with pytest.raises(InvalidProblem, match=r'rng = .*"host" or "device"'):
        make(rng="gpu")


def test_no_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="non-empty range"):
        make().normal(Role.WEIGHTS, 0, 5, 5, 1)
