"""The best split of a budget of samples against one batch that step and readout both use."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from giantsteps import campaign
from giantsteps.answers import Optimum
from giantsteps.campaign import Cells
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Problem, integer
from giantsteps.questions import question
from giantsteps.types import FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class OneBatch:
    """Test errors of networks with a split budget, and of the same with one batch used twice.

    Attributes
    ----------
    split, one_batch : Problem
        What was simulated; both have the same penalty.
    d : int
        Dimension of the inputs.
    split_errors, one_batch_errors : ndarray
        Test error of every seed; a seed has the same teacher and initial weights in both.
    """

    split: Problem
    one_batch: Problem
    d: int
    split_errors: FloatArray
    one_batch_errors: FloatArray

    @property
    def gain(self) -> float:
        """By which part one batch lowers the mean test error; negative where the split wins."""
        return float(1 - self.one_batch_errors.mean() / self.split_errors.mean())

    @property
    def standard_error(self) -> float:
        """Of the gain, over the seeds."""
        gaps = self.one_batch_errors - (1 - self.gain) * self.split_errors
        return float(gaps.std(ddof=1) / np.sqrt(len(gaps)) / self.split_errors.mean())

    @property
    def statement(self) -> str:
        """What was found, in words."""
        which = "below" if self.gain > 0 else "above"
        return (
            f"{len(self.split_errors)} networks at d = {self.d}: the best split has the test error "
            f"{self.split_errors.mean():.4g}, one batch of all samples used twice "
            f"{self.one_batch_errors.mean():.4g}, {abs(100 * self.gain):.2g} % {which} "
            f"(standard error {100 * self.standard_error:.2g} %)"
        )

    def to_columns(self) -> dict[str, list[float]]:
        """One row per seed."""
        return {"split": self.split_errors.tolist(), "one_batch": self.one_batch_errors.tolist()}

    def __repr__(self) -> str:
        return self.statement


def against_one_batch(
    optimum: Optimum,
    d: int | None = None,
    seeds: int = 20,
    *,
    store: str | os.PathLike[str] | None = None,
    workers: int | None = None,
) -> OneBatch:
    """Simulate the best split of a budget against one batch for step and readout.

    * ``optimum``: of ``theory.optimize`` with a budget and one step.
    * ``d``: dimension of the inputs; that of the optimum unless given.
    * ``seeds``: networks of each kind.
    * ``store``, ``workers``: as in ``compare``.

    Raises
    ------
    InvalidProblem
        If the optimum has no budget, or several steps, or is one over a grid.
    """
    rival = optimum.one_batch
    if rival is None:
        raise InvalidProblem(
            "optimum",
            "without a budget, over a grid, or of several steps",
            "that of optimize(problem, over=('steps.0.samples',), budget=...) with one step",
        )
    size = integer(optimum.d if d is None else d, "d", "a dimension of the inputs, such as 400")
    number = integer(seeds, "seeds", "an integer >= 2: one has no error bar", lower=2)
    pair = [
        Cells.of_networks(problem, question("risk"), [size], range(number), {})[0]
        for problem in (optimum.best, rival)
    ]
    with campaign.simulated(pair, store, workers or 1) as opened:
        errors = [campaign.read_table(cells, opened)["test"][1].reshape(-1) for cells in pair]
    return OneBatch(
        split=optimum.best,
        one_batch=rival,
        d=size,
        split_errors=errors[0],
        one_batch_errors=errors[1],
    )
