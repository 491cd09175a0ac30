"""What a network has learned after each of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from giantsteps.answers._steps import OverSteps
from giantsteps.types import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Trajectory(OverSteps):
    """Errors of the readout and leading singular values of W after 0, 1, …, t steps.

    ============  =========================================================================
    attribute     meaning; the axis "step" runs from 0, before the steps, to t
    ============  =========================================================================
    ``test``      test error of the readout on the features after each number of steps
    ``train``     its training error
    ``value``     largest singular values of W, then the axis "top", decreasing
    ``overlap``   squared overlaps of their left vectors with the teacher's directions
    ============  =========================================================================

    Attributes
    ----------
    test, train : ndarray or None
        Shape of the grid, then the step; None for a problem without a readout.
    value : ndarray
        Shape of the grid, then step and top.
    overlap : ndarray or None
        Likewise; None where the teacher is not known.

    References
    ----------
    theory §0, §2.
    """

    test: FloatArray | None = None
    train: FloatArray | None = None
    value: FloatArray
    overlap: FloatArray | None = None

    _leaves: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "value": ("step", "top"),
        "overlap": ("step", "top"),
        "test": ("step",),
        "train": ("step",),
    }
