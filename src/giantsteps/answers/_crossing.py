"""Where a quantity crosses a level."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import _export
from giantsteps.answers._answer import Answer
from giantsteps.answers._leaves import Leaf, over
from giantsteps.types import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Crossing(Answer):
    r"""Every point of one field where a quantity takes a given value.

    .. math:: q(x_i) = \ell, \qquad x_1 < x_2 < …

    ======  ============  ===========================================================
    symbol  attribute     meaning
    ======  ============  ===========================================================
    x_i     ``values``    last axis, increasing; over a grid NaN after a cell's last
    q       ``quantity``  what crosses
    ℓ       ``level``     the value
    x       ``along``     path of the field that varies
    ======  ============  ===========================================================

    Attributes
    ----------
    start : float or ndarray
        q − ℓ at the lower bound: its sign says on which side the quantity starts.
    bounds : tuple of float
        The interval that was searched.

    References
    ----------
    theory §4.
    """

    values: FloatArray = field(metadata=over("crossing"))
    level: Leaf
    start: Leaf
    along: str
    quantity: str
    bounds: tuple[float, float]

    _row_dims: ClassVar[tuple[str, ...]] = ("crossing",)

    @property
    def value(self) -> Leaf:
        """The first crossing, NaN where there is none."""
        if self.values.shape[-1] == 0:
            return np.full(self.shape, np.nan) if self.shape else np.nan
        first = self.values[..., 0]
        return first if self.shape else float(first)

    @property
    def count(self) -> int | NDArray[np.int64]:
        """Number of crossings, over a grid in each cell."""
        counted = np.sum(~np.isnan(self.values), axis=-1)
        return counted if self.shape else int(counted)

    @property
    def statement(self) -> str:
        """What was found, in words."""
        lower, upper = self.bounds
        interval = f"{self.along} in [{lower:g}, {upper:g}]"
        if self.shape:
            found = np.asarray(self.count) > 0
            cells = f"{int(found.sum())} of {found.size} cells"
            return f"{self.quantity} crosses its level in {cells}, {interval}"
        if self.count == 0:
            side = "above" if self.start > 0 else "below"
            return f"{self.quantity} stays {side} {self.level:.6g} for {interval}"
        places = ", ".join(f"{x:.6g}" for x in self.values[~np.isnan(self.values)])
        return f"{self.quantity} = {self.level:.6g} at {self.along} = {places}"

    def to_columns(self) -> dict[str, list[Any]]:
        """The tidy table as columns, one row per crossing."""
        return _export.present(super().to_columns(), "values")

    def _summary(self) -> list[tuple[str, str]]:
        return [("found", self.statement), *super()._summary()]
