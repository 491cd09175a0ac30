"""The frame of an equivalent model: spikes, weak directions and the teacher (theory §5a)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from giantsteps.functions import Teacher
from giantsteps.theory.model.functions_of_spike import left_of
from giantsteps.types import FloatArray


class Frame:
    """The directions that a model knows by name, and how they lie to each other.

    The fields are those of `SpikedFeatures`.
    """

    if TYPE_CHECKING:
        teacher: Teacher
        width: float
        neurons: float
        spikes: FloatArray
        overlap: FloatArray
        probabilities: FloatArray
        second_layer: FloatArray | None
        values_within: tuple[FloatArray, FloatArray] | None
        step_directions: FloatArray | None
        weak: FloatArray | None
        weak_overlap: FloatArray | None

    @property
    def rank(self) -> int:
        """r, the number of spike directions."""
        return int(self.overlap.shape[-1])

    @property
    def weak_count(self) -> int:
        """J, the number of weak directions."""
        return 0 if self.weak is None else int(self.weak.shape[1])

    @property
    def leans(self) -> FloatArray:
        """Spikes and weak spikes, (T, r + J)."""
        if self.weak is None or not self.weak_count:
            return self.spikes
        return np.column_stack([self.spikes, self.weak])

    @cached_property
    def shares(self) -> tuple[FloatArray, FloatArray]:
        """The teacher's remainder on the weak directions, (R, J), and on what they leave of it."""
        if self.weak_overlap is None:
            return np.zeros((self.teacher.rank, 0)), np.eye(self.teacher.rank)
        along = left_of(self.cosines)[1] @ np.atleast_2d(self.weak_overlap)
        return along, left_of(along)[0]

    @property
    def dimension(self) -> float:
        """d = p/β."""
        return self.neurons / self.width

    @property
    def cosines(self) -> FloatArray:
        """Γ, cosines of the R directions of the teacher with the spikes, (R, r)."""
        return np.atleast_2d(self.overlap)

    @cached_property
    def beside(self) -> FloatArray:
        """(I − ΓΓᵀ)^{1/2}, what the spikes leave of the teacher's directions, (R, R)."""
        return left_of(self.cosines)[0]

    @property
    def remainder(self) -> float:
        """√(1−|γ|²), what the spikes leave of a teacher of one direction."""
        return float(self.beside[0, 0])

    def directions_of_overlap(self) -> dict[str, FloatArray]:
        """What a left singular vector of W is compared with, in the frame (spikes, remainder).

        Squared cosines with the directions of a teacher add up; each has a name too.
        """
        count = self.rank + self.weak_count
        steps = np.eye(1, count) if self.step_directions is None else self.step_directions
        parts = [self.cosines, *(self.beside @ share for share in self.shares)]
        teacher = np.concatenate(parts, axis=1)
        steps = np.pad(steps, ((0, 0), (0, teacher.shape[1] - steps.shape[1])))
        several = len(teacher) > 1
        named = {"teacher": teacher if several else teacher[0]}
        each = {f"x{number}": direction for number, direction in enumerate(teacher)}
        names = ["gradient", *(f"step {number}" for number in range(2, len(steps) + 1))]
        return named | dict(zip(names, steps)) | (each if several else {})

    @property
    def joint_values(self) -> tuple[FloatArray, FloatArray]:
        """Values of the second layer and their joint probabilities with the types, (T, V)."""
        assert self.second_layer is not None
        return self.values_within or (self.second_layer, np.diag(self.probabilities))
