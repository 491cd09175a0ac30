"""The published figures, by paper; each function that draws one registers it by name."""

from __future__ import annotations

from giantsteps.figures import (
    _ba2022,
    _ba2022_networks,
    _cui2024,
    _moniri2023,
    _moniri2026,
    _own,
    _own_practice,
    _own_steps,
)
from giantsteps.figures._figure import FIGURES, published
from giantsteps.figures._figure import Figure as Figure
from giantsteps.figures._figure import Made as Made
from giantsteps.figures._figure import Size as Size

__all__ = ["FIGURES", "published"]

_MODULES = (
    _ba2022,
    _ba2022_networks,
    _cui2024,
    _moniri2023,
    _moniri2026,
    _own,
    _own_steps,
    _own_practice,
)
