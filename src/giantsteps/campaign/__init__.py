"""Campaigns: the one way to run many networks, keep them, and judge them against theory.

``compare``, sweeps, figures and certificates state which cells they need; `run` computes what is
missing, on any workers, into a store.
"""

from __future__ import annotations

# The machinery is shared by other packages; what is in ``__all__`` is for everyone.
from giantsteps.campaign._cells import Cell as Cell
from giantsteps.campaign._cells import Cells as Cells
from giantsteps.campaign._cells import integers as integers
from giantsteps.campaign._cells import is_below as is_below
from giantsteps.campaign._cost import forecast as forecast
from giantsteps.campaign._cost import in_words as in_words
from giantsteps.campaign._dask import DaskWorkers as DaskWorkers
from giantsteps.campaign._dask import dask_workers
from giantsteps.campaign._dask import slurm_script as slurm_script
from giantsteps.campaign._each import each as each
from giantsteps.campaign._jobs import operations as operations
from giantsteps.campaign._progress import Progress as Progress
from giantsteps.campaign._progress import progress_bar as progress_bar
from giantsteps.campaign._progress import shown as shown
from giantsteps.campaign._provenance import provenance as provenance
from giantsteps.campaign._results import Table as Table
from giantsteps.campaign._results import read_answers as read_answers
from giantsteps.campaign._results import read_table as read_table
from giantsteps.campaign._run import crew as crew
from giantsteps.campaign._run import executor_for as executor_for
from giantsteps.campaign._run import run as run
from giantsteps.campaign._run import simulated as simulated
from giantsteps.campaign._statistics import LEVEL as LEVEL
from giantsteps.campaign._statistics import VERDICTS as VERDICTS
from giantsteps.campaign._statistics import Agreement as Agreement
from giantsteps.campaign._statistics import Estimate as Estimate
from giantsteps.campaign._statistics import Verdict as Verdict
from giantsteps.campaign._statistics import decide as decide
from giantsteps.campaign._statistics import estimate as estimate
from giantsteps.campaign._statistics import holm as holm
from giantsteps.campaign._statistics import mean_and_error as mean_and_error
from giantsteps.campaign._statistics import measure as measure
from giantsteps.campaign._statistics import seeds_to_resolve as seeds_to_resolve
from giantsteps.campaign._status import Status as Status
from giantsteps.campaign._status import html_table as html_table
from giantsteps.campaign._status import read_status as read_status
from giantsteps.campaign._store import Store as Store
from giantsteps.campaign._values import Outcome as Outcome
from giantsteps.campaign._values import read_answer as read_answer
from giantsteps.campaign._workers import TimeLimit as TimeLimit
from giantsteps.campaign._workers import WorkerLost as WorkerLost
from giantsteps.campaign._workers import Workers as Workers
from giantsteps.campaign._workers import WorkersGone as WorkersGone
from giantsteps.campaign._workers import as_workers as as_workers
from giantsteps.campaign._workers import gpus as gpus
from giantsteps.threads import capped as capped
from giantsteps.threads import processors as processors

__all__ = ["dask_workers"]
