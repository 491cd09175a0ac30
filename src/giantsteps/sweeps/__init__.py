"""Sweeps: thousands of cells in one file, computed anywhere, resumed after any interruption."""

from __future__ import annotations

from giantsteps.sweeps._sweep import Sweep

__all__ = ["Sweep"]
