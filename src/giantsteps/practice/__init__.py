"""In practice: inspect trained networks, predict the curves of their probes, record training."""

from __future__ import annotations

from giantsteps.practice._measure import measure_probe

__all__ = ["measure_probe"]
