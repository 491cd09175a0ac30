"""What of an answer is compared: paths such as ``"initial.test"`` or ``"spikes.0.overlap"``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import Answer, Risk
from giantsteps.errors import InvalidProblem

__all__ = ["OVERLAP_RESOLUTION", "RESOLUTION", "Quantity"]

#: A number is resolved when three standard errors are within this part of it …
RESOLUTION = 0.02
#: … and an overlap within this one.
OVERLAP_RESOLUTION = 0.05


@dataclass(frozen=True)
class Quantity:
    """A number of an answer, named by the path of attributes that leads to it."""

    path: str

    @property
    def limit(self) -> float:
        """Largest resolution that counts as resolved."""
        return OVERLAP_RESOLUTION if "overlap" in self.path else RESOLUTION

    def read(self, answer: Answer) -> NDArray[np.float64]:
        """The number, or the array over the grid."""
        value: Any = answer
        for part in self.path.split("."):
            try:
                if isinstance(value, tuple):
                    value = value[int(part)]
                else:
                    value = value[part] if isinstance(value, Mapping) else getattr(value, part)
            except (AttributeError, KeyError, IndexError, ValueError):
                value = None
            if value is None:
                kind = f"{type(answer).__name__} ({answer.source})"
                raise InvalidProblem("quantities", self.path, f"a number that {kind} has")
        try:
            return np.broadcast_to(np.asarray(value, dtype=float), answer.shape)
        except (TypeError, ValueError):
            raise InvalidProblem("quantities", self.path, "the path of one number") from None

    def scale(self, answer: Answer) -> NDArray[np.float64]:
        """What a resolution is relative to: the number itself.

        A gain that vanishes is resolved relative to the error before the steps.
        """
        value = np.abs(self.read(answer))
        if self.path == "gain" and isinstance(answer, Risk) and answer.initial is not None:
            whole = np.abs(np.asarray(answer.initial.test))
            return np.where(value > 1e-9 * whole, value, whole)
        return value
