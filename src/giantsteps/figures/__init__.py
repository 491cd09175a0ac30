"""The published figures, one module a paper; each function that draws one registers it by name."""

from __future__ import annotations

from giantsteps.figures import _ba2022, _cui2024, _moniri2023, _moniri2026, _own
from giantsteps.figures._figure import FIGURES, Figure, Made, Size, published

__all__ = ["FIGURES", "Figure", "Made", "Size", "published"]

_MODULES = (_ba2022, _cui2024, _moniri2023, _moniri2026, _own)
