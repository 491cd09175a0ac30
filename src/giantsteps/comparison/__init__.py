"""Theory and simulation side by side, with error bars and a verdict."""

from __future__ import annotations

from giantsteps.comparison._compare import compare, comparison_cells
from giantsteps.comparison._comparison import Comparison as Comparison
from giantsteps.comparison._one_batch import OneBatch, against_one_batch
from giantsteps.comparison._quantities import (
    Quantity,  # shared with other packages
    resolution_limit,
)

__all__ = ["compare"]

#: Classes that functions return: documented, and never made by hand.
RETURNED = ["Comparison"]
