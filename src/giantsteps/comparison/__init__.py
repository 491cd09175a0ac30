"""Theory and simulation side by side, with error bars and a verdict."""

from __future__ import annotations

from giantsteps.comparison._compare import compare
from giantsteps.comparison._comparison import Comparison
from giantsteps.comparison._stats import Agreement, Estimate, Verdict

__all__ = ["Agreement", "Comparison", "Estimate", "Verdict", "compare"]
