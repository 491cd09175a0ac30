"""What a network has learned after each of its steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from giantsteps.answers._leaves import over
from giantsteps.answers._steps import OverSteps
from giantsteps.types import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Trajectory(OverSteps):
    """Errors of the readout and leading singular values of W after 0, 1, …, t steps.

    Attributes
    ----------
    test, train : ndarray or None
        Errors of the readout on the features after each number of steps, of the shape of the grid,
        then the step, from 0, before the steps, to t; None for a problem without a readout.
    value : ndarray
        Largest singular values of W, decreasing: shape of the grid, then step and top.
    overlap : ndarray or None
        Squared overlaps of their left vectors with the teacher's directions, likewise; None where
        the teacher is not known.

    References
    ----------
    theory §0, §2.
    """

    value: FloatArray = field(metadata=over("step", "top"))
    overlap: FloatArray | None = field(default=None, metadata=over("step", "top"))
    test: FloatArray | None = field(default=None, metadata=over("step"))
    train: FloatArray | None = field(default=None, metadata=over("step"))
