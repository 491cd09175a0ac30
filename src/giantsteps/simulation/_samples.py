"""The samples of a run: drawn from a law and labelled by the teacher, or given."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from giantsteps.errors import InvalidProblem
from giantsteps.simulation._arrays import Array, Arrays
from giantsteps.simulation._data import Data
from giantsteps.simulation._inputs import Law
from giantsteps.simulation._streams import Role, Streams

if TYPE_CHECKING:
    from giantsteps.problem import Problem, Sizes

__all__ = ["DrawnSamples", "GivenSamples", "Samples", "as_test_samples"]


#: Test points where the caller does not say how many.
TEST_SAMPLES = 10_000


class Samples(Protocol):
    """Rows of inputs in the run's precision, and of labels in float64, by their numbers."""

    @property
    def teacher(self) -> Array | None:
        """β*, shape (d, rank); None if nothing is known of it."""

    def require(self, samples: int) -> None:
        """Raise unless there are so many samples for the readout."""

    def step(self, step: int, start: int, stop: int) -> tuple[Array, Array]:
        """X, y of a step with a fresh batch."""

    def readout(self, start: int, stop: int) -> tuple[Array, Array]:
        """X̃, ỹ."""

    def test(self, start: int, stop: int) -> tuple[Array, Array | None, Array]:
        """Test points, the teacher's coordinates of them (rows, rank), and what f̂ should be."""


@dataclass(frozen=True)
class DrawnSamples:
    """Inputs of a law and labels y = σ*(⟨x, β*⟩) + ε, from their streams.

    Attributes
    ----------
    problem, sizes
        The setting.
    streams : Streams
        Where the numbers come from.
    law : callable or None
        Of the inputs; None: Gaussian.
    """

    problem: Problem
    sizes: Sizes
    streams: Streams
    law: Law = None

    @cached_property
    def teacher(self) -> Array:
        """β*, one column for each direction of the teacher, uniform and orthonormal."""
        arrays, rank = self.streams.arrays, self.problem.teacher.rank
        xp = arrays.xp
        drawn = arrays.wide(self.streams.normal(Role.TEACHER, 0, 0, rank, self.sizes.d))
        columns = xp.linalg.qr(xp.matrix_transpose(drawn)).Q
        # QR leaves the sign of each column open; that of the drawn row decides.
        signs = xp.sign(xp.vecdot(xp.matrix_transpose(columns), drawn))
        return arrays.narrow(columns * signs)

    def require(self, samples: int) -> None:
        """Streams are endless."""

    def step(self, step: int, start: int, stop: int) -> tuple[Array, Array]:
        return self._labelled(Role.STEP_INPUTS, Role.STEP_NOISE, step, start, stop)

    def readout(self, start: int, stop: int) -> tuple[Array, Array]:
        return self._labelled(Role.READOUT_INPUTS, Role.READOUT_NOISE, 0, start, stop)

    def test(self, start: int, stop: int) -> tuple[Array, Array | None, Array]:
        inputs = self._inputs(Role.TEST_INPUTS, 0, start, stop)
        coordinates = self.streams.arrays.wide(inputs @ self.teacher)
        return inputs, coordinates, self.problem.teacher(coordinates)

    def _inputs(self, role: Role, step: int, start: int, stop: int) -> Array:
        if self.law is None:
            return self.streams.normal(role, step, start, stop, self.sizes.d)
        return self.streams.draw(self.law, role, step, start, stop, self.sizes.d)

    def _labelled(
        self, inputs: Role, noise: Role, step: int, start: int, stop: int
    ) -> tuple[Array, Array]:
        arrays = self.streams.arrays
        x = self._inputs(inputs, step, start, stop)
        labels = self.problem.teacher(arrays.wide(x @ self.teacher))
        if self.problem.noise_variance > 0:
            draws = self.streams.normal(noise, step, start, stop, 1)[:, 0]
            labels = labels + math.sqrt(self.problem.noise_variance) * arrays.wide(draws)
        return x, labels


@dataclass(frozen=True)
class GivenSamples:
    """Rows of `Data`: steps take them from the first on, the readout from the last one back.

    Attributes
    ----------
    data : Data
        The samples.
    starts : tuple of (int or None)
        The first row of each step; None for a step that reuses a batch.
    taken : int
        Rows that the steps use.
    arrays : Arrays
        What the samples are returned as.
    """

    data: Data
    starts: tuple[int | None, ...]
    taken: int
    arrays: Arrays

    @classmethod
    def of(cls, data: Data, problem: Problem, sizes: Sizes, arrays: Arrays) -> GivenSamples:
        """The samples for a problem; an error if they are too few."""
        starts: list[int | None] = []
        taken = 0
        for step, size in zip(problem.steps, sizes.step_samples):
            fresh = step.batch == "fresh"
            starts.append(taken if fresh else None)
            taken += size if fresh else 0
        found = cls(data, tuple(starts), taken, arrays)
        found.require(sizes.samples or 0)
        return found

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
    whole = isinstance(given, numbers.Integral) and not isinstance(given, bool)
    if not whole or int(given) < 2:  # type: ignore[call-overload]
        raise InvalidProblem("test_samples", given, 'an integer >= 2, "exact", or None (10,000)')
    if data is not None and int(given) > data.test_rows:  # type: ignore[call-overload]
        raise InvalidProblem("test_samples", given, f"at most {data.test_rows}, the rows of X_test")
    return int(given)  # type: ignore[call-overload]
