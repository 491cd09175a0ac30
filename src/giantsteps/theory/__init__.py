"""Answers by theory: exact high-dimensional asymptotics, in the limit or at a given size."""

from ._risk import risk
from ._weights import weights

__all__ = ["risk", "weights"]
