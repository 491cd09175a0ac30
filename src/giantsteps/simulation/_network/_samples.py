"""The samples of a run: drawn from a law and labelled by the teacher, or given."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from giantsteps.errors import InvalidProblem
from giantsteps.problem import integer
from giantsteps.simulation._engine._arrays import Array, Arrays
from giantsteps.simulation._network._data import Data
from giantsteps.simulation._network._laws import Law
from giantsteps.simulation._network._streams import Role, Streams

if TYPE_CHECKING:
    from giantsteps.problem import Problem, Sizes


#: Test points where the caller does not say how many.
TEST_SAMPLES = 10_000


class Samples(Protocol):
    """Rows of inputs in the run's precision, and of labels in float64, by their numbers."""

    @property
    def teacher(self) -> Array | None:
        """β*, (…, d, rank); None if nothing is known of it."""

    def require(self, samples: int) -> None:
        """Raise unless there are so many samples for the readout."""

    def step(self, step: int, start: int, stop: int) -> tuple[Array, Array]:
        """X, y of a step with a fresh batch."""

    def readout(self, start: int, stop: int) -> tuple[Array, Array]:
        """X̃, ỹ of a readout with fresh samples."""

    def test(self, start: int, stop: int) -> tuple[Array, Array | None, Array]:
        """Test points, the teacher's coordinates of them (rows, rank), and what f̂ should be."""


@dataclass(frozen=True)
class DrawnSamples:
    """Inputs x = Σ^{1/2}z and labels y = σ*(⟨x, β*⟩) + ε, from their streams."""

    #: The setting.
    problem: Problem
    sizes: Sizes
    streams: Streams  # where the numbers come from
    law: Law = None  # of z; None: Gaussian
    known: Array | None = None  # (…, d, rank): β*, where it is not to be drawn

    @cached_property
    def teacher(self) -> Array:
        """β*, (…, d, rank): columns with ⟨β*_j, Σβ*_k⟩ = δ_jk, as `Problem.inputs` draws them."""
        if self.known is not None:
            return self.known
        arrays, rank, d = self.streams.arrays, self.problem.teacher.rank, self.sizes.d
        xp, law = arrays.xp, self.problem.inputs
        drawn = arrays.wide(self.streams.normal(Role.TEACHER, 0, 0, rank, d))
        columns: list[Array] = []
        for number in range(rank):
            variances, runs = law.teacher_variances(d, number)
            deviations = arrays.asarray(np.sqrt(variances), wide=True)
            column = drawn[..., number, :] * deviations
            if len(runs) == d:
                column = xp.sign(column) * deviations
            else:
                column = _with_norms(xp, column, variances, runs)
            for other in columns:
                column = column - xp.vecdot(column, other)[..., None] * other
            columns.append(column / xp.linalg.vector_norm(column, axis=-1, keepdims=True))
        whitened = xp.stack(columns, axis=-1)
        if self._deviations is None:
            return arrays.narrow(whitened)
        return arrays.narrow(whitened / arrays.wide(self._deviations)[:, None])

    @cached_property
    def _deviations(self) -> Array | None:
        """Standard deviations of the coordinates; None if all are one."""
        if self.problem.inputs.isotropic:
            return None
        return self.streams.arrays.asarray(np.sqrt(self.problem.inputs.variances(self.sizes.d)))

    def require(self, samples: int) -> None:
        """Streams are endless."""

    def step(self, step: int, start: int, stop: int) -> tuple[Array, Array]:
        return self._labelled(Role.STEP_INPUTS, Role.STEP_NOISE, step, start, stop)

    def readout(self, start: int, stop: int) -> tuple[Array, Array]:
        return self._labelled(Role.READOUT_INPUTS, Role.READOUT_NOISE, 0, start, stop)

    def test(self, start: int, stop: int) -> tuple[Array, Array | None, Array]:
        inputs = self._inputs(Role.TEST_INPUTS, 0, start, stop)
        coordinates = self.streams.arrays.wide(inputs @ self.teacher)
        return inputs, coordinates, self._values(coordinates)

    def _inputs(self, role: Role, step: int, start: int, stop: int) -> Array:
        if self.law is None:
            rows = self.streams.normal(role, step, start, stop, self.sizes.d)
        else:
            rows = self.streams.draw(self.law, role, step, start, stop, self.sizes.d)
        if self._deviations is not None:
            rows *= self._deviations
        return rows

    def _values(self, coordinates: Array) -> Array:
        """The teacher at its coordinates (…, rows, rank); callables of users see two axes."""
        xp, shape = self.streams.arrays.xp, coordinates.shape
        if len(shape) == 2:
            return self.problem.teacher(coordinates)
        flat = self.problem.teacher(xp.reshape(coordinates, (-1, shape[-1])))
        return xp.reshape(flat, shape[:-1])

    def _labelled(
        self, inputs: Role, noise: Role, step: int, start: int, stop: int
    ) -> tuple[Array, Array]:
        arrays = self.streams.arrays
        x = self._inputs(inputs, step, start, stop)
        labels = self._values(arrays.wide(x @ self.teacher))
        if self.problem.noise_variance > 0:
            draws = self.streams.normal(noise, step, start, stop, 1)[..., 0]
            labels = labels + math.sqrt(self.problem.noise_variance) * arrays.wide(draws)
        return x, labels


def _with_norms(xp: Any, column: Array, variances: np.ndarray, runs: tuple[int, ...]) -> Array:
    """A column, runs of whose coordinates are rescaled to the sums of their variances."""
    parts, start = [], 0
    for length in runs:
        part = column[..., start : start + length]
        norm = xp.linalg.vector_norm(part, axis=-1, keepdims=True)
        share = math.sqrt(float(np.sum(variances[start : start + length])))
        parts.append(part * (share / norm) if share else part)
        start += length
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=-1)


@dataclass(frozen=True)
class GivenSamples:
    """Rows of `Data`: steps take them from the first on, the readout from the last one back."""

    data: Data  # the samples
    #: The first row of each step; None for a step that reuses a batch.
    starts: tuple[int | None, ...]
    taken: int  # rows that the steps use
    arrays: Arrays  # what the samples are returned as

    @classmethod
    def of(cls, data: Data, problem: Problem, sizes: Sizes, arrays: Arrays) -> GivenSamples:
        starts: list[int | None] = []
        taken = 0
        for step, size in zip(problem.steps, sizes.step_samples):
            fresh = step.batch == "fresh"
            starts.append(taken if fresh else None)
            taken += size if fresh else 0
        return cls(data, tuple(starts), taken, arrays)

    @property
    def teacher(self) -> None:
        """Whatever made the labels is not known."""
        return None

    def require(self, samples: int) -> None:
        needed = self.taken + samples
        if needed > self.data.rows:
            raise InvalidProblem(
                "data",
                self.data,
                f"of at least {needed} rows at d = {self.data.d}: {self.taken} for the steps, "
                f"{samples} for the readout",
            )

    def step(self, step: int, start: int, stop: int) -> tuple[Array, Array]:
        first = self.starts[step]
        assert first is not None
        return self._rows(slice(first + start, first + stop))

    def readout(self, start: int, stop: int) -> tuple[Array, Array]:
        return self._rows(slice(-start - 1, -stop - 1, -1))

    def test(self, start: int, stop: int) -> tuple[Array, Array | None, Array]:
        assert self.data.X_test is not None
        assert self.data.y_test is not None
        rows = slice(start, stop)
        labels = self.arrays.asarray(self.data.y_test[rows], wide=True)
        return self.arrays.asarray(self.data.X_test[rows]), None, labels

    def _rows(self, rows: slice) -> tuple[Array, Array]:
        labels = self.arrays.asarray(self.data.y[rows], wide=True)
        return self.arrays.asarray(self.data.X[rows]), labels


def as_test_samples(given: object, data: Data | None) -> int | None:
    """Number of test points, None for the exact expectation, 0 where there are no points."""
    if data is not None and not data.test_rows:
        return 0
    if given is None:
        return TEST_SAMPLES if data is None else data.test_rows
    if data is not None and isinstance(given, str):
        raise InvalidProblem("test_samples", given, "a number: the law of the data is not known")
    if isinstance(given, str) and given == "exact":
        return None
    count = integer(given, "test_samples", 'an integer >= 2, "exact", or None (10,000)', lower=2)
    if data is not None and count > data.test_rows:
        raise InvalidProblem("test_samples", given, f"at most {data.test_rows}, the rows of X_test")
    return count
