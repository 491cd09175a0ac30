"""A simulated number with its error, over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from giantsteps.campaign import mean_and_error
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from giantsteps.figures._simulations import Pending


class Measured:
    """Mean and standard error over seeds, of the shape of what was simulated.

    * ``read``: returns the samples, whose last axis is the seed; called when they are first needed.
    """

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    @classmethod
    def of(cls, samples: Any) -> Measured:
        """From samples whose last axis is the seed."""
        return cls(lambda: samples)

    @classmethod
    def of_networks(cls, networks: Pending[list[dict[str, FloatArray]]], name: str) -> Measured:
        """From one of the numbers that a figure computes of each network."""
        return cls(lambda: np.stack([network[name] for network in networks.value], axis=-1))

    @classmethod
    def stack(cls, parts: Sequence[Measured]) -> Measured:
        """Parts of equal shape along a new first axis."""
        return cls(lambda: np.stack([part.samples for part in parts]))

    def map(self, function: Callable[[FloatArray], Any]) -> Measured:
        """Of what ``function`` makes of the samples; their last axis stays the seed."""
        return Measured(lambda: function(self.samples))

    def __getitem__(self, index: Any) -> Measured:
        return self.map(lambda samples: samples[index])

    @cached_property
    def samples(self) -> FloatArray:
        """Every seed along the last axis."""
        return np.asarray(self._read(), dtype=float)

    @cached_property
    def mean(self) -> FloatArray:
        """Over seeds."""
        return mean_and_error(self.samples, axis=-1)[0]

    @cached_property
    def standard_error(self) -> FloatArray:
        """Of the mean; 0 for a single seed."""
        _, error, count = mean_and_error(self.samples, axis=-1)
        return np.where(count == 1, 0.0, error)
