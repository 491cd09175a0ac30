"""What answers over the steps of a problem share: one axis, "step"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers._answer import Answer
from giantsteps.types import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OverSteps(Answer):
    """An answer whose leaves have the axis "step" after those of the grid.

    Over a grid of problems with different numbers of steps, those that are missing are NaN.
    """

    #: The number of the first step on the axis.
    _first: ClassVar[int] = 0
    _row_dims: ClassVar[tuple[str, ...]] = ("step",)

    @property
    def step(self) -> FloatArray:
        """Numbers of the steps along the axis."""
        shown = next(
            values
            for name in self._leaves
            if (values := getattr(self, name)) is not None and self._leaves[name][:1] == ("step",)
        )
        count = np.shape(shown)[len(self.shape)]
        return np.arange(self._first, self._first + count, dtype=float)

    def _axes(self) -> dict[str, NDArray[Any]]:
        return {"step": self.step}

    @classmethod
    def _stack_fields(cls, shape: tuple[int, ...], cells: list[Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name in cls._leaves:
            leaves = [getattr(cell, name) for cell in cells]
            if all(leaf is not None for leaf in leaves):
                longest = max(len(leaf) for leaf in leaves)
                padded = [_padded(leaf, longest) for leaf in leaves]
                values[name] = np.reshape(padded, shape + np.shape(padded[0]))
        return values


def _padded(leaf: FloatArray, length: int) -> FloatArray:
    missing = np.full((length - len(leaf), *np.shape(leaf)[1:]), np.nan)
    return np.concatenate([leaf, missing])
