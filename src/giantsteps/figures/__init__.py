"""The published figures, by paper; each function that draws one registers it by name.

>>> from giantsteps.figures import FIGURES
>>> FIGURES["ba2022-weights"].title
'The spike in the weights after one step'
"""

from __future__ import annotations

from importlib import import_module

from giantsteps.figures._figure import FIGURES, Figure, Made, Size

__all__ = ["FIGURES"]

for _name in (
    *("ba2022", "ba2022_networks", "cui2024", "moniri2023", "moniri2026"),
    *("own", "own_practice", "own_steps"),
):
    import_module(f"giantsteps.figures._{_name}")
