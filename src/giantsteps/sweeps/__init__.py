"""Sweeps: thousands of cells, run anywhere, resumed after anything, collected into one data set."""

from __future__ import annotations

from giantsteps.sweeps._dask import DaskCrew, dask_crew, slurm_script
from giantsteps.sweeps._executors import Crew
from giantsteps.sweeps._run import WorkerLost
from giantsteps.sweeps._status import LayerStatus, Status
from giantsteps.sweeps._store import Store
from giantsteps.sweeps._sweep import Sweep

__all__ = [
    "Crew",
    "DaskCrew",
    "LayerStatus",
    "Status",
    "Store",
    "Sweep",
    "WorkerLost",
    "dask_crew",
    "slurm_script",
]
