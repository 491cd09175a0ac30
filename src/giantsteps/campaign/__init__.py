"""Campaigns: the one way to run many networks, keep them, and judge them against theory.

``compare``, sweeps, figures and certificates state which cells they need; `run` computes what is
missing, on any workers, into a store.
"""

from __future__ import annotations

# The machinery is shared by other packages; what is in ``__all__`` is for everyone.
from giantsteps.campaign._cells import Cell, Cells, integers, is_below
from giantsteps.campaign._cost import forecast, in_words
from giantsteps.campaign._dask import DaskWorkers, dask_workers, slurm_script
from giantsteps.campaign._jobs import operations
from giantsteps.campaign._progress import Progress, progress_bar, shown
from giantsteps.campaign._provenance import provenance
from giantsteps.campaign._results import Table, read_answers, read_table
from giantsteps.campaign._run import crew, each, executor_for, run, simulated
from giantsteps.campaign._statistics import (
    LEVEL,
    VERDICTS,
    Agreement,
    Estimate,
    Verdict,
    decide,
    estimate,
    holm,
    mean_and_error,
    measure,
    seeds_to_resolve,
)
from giantsteps.campaign._status import Status, html_table, read_status
from giantsteps.campaign._store import Store, check_store
from giantsteps.campaign._values import Outcome, read_answer
from giantsteps.campaign._workers import (
    TimeLimit,
    WorkerLost,
    Workers,
    WorkersGone,
    as_workers,
    gpus,
)
from giantsteps.threads import capped, processors

__all__ = ["dask_workers"]
