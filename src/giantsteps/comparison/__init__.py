"""Theory and simulation side by side, with error bars and a verdict."""

from __future__ import annotations

from giantsteps.comparison._compare import compare
from giantsteps.comparison._compare import comparison_cells as comparison_cells
from giantsteps.comparison._comparison import Comparison as Comparison
from giantsteps.comparison._one_batch import OneBatch as OneBatch
from giantsteps.comparison._one_batch import against_one_batch as against_one_batch
from giantsteps.comparison._quantities import Quantity as Quantity  # shared with other packages
from giantsteps.comparison._quantities import resolution_limit as resolution_limit

__all__ = ["compare"]

#: Classes that functions return: documented, and never made by hand.
RETURNED = ["Comparison"]
