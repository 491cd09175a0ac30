"""What `Run` says of each of its steps, for a problem or for every cell of a grid."""

from __future__ import annotations

from typing import Unpack

from giantsteps.answers import Movement, Trajectory
from giantsteps.problem import Grid, Problem
from giantsteps.simulation._answers import of_cells
from giantsteps.simulation._options import RunOptions, question
from giantsteps.simulation._run import Run


@question
def movement(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    **options: Unpack[RunOptions],
) -> Movement:
    """How far each step moves weights, pre-activations, features and output.

    Parameters
    ----------
    problem : Problem or Grid
        With at least one step; the readout, if any, plays no part.
    d, seed, device, dtype, test_samples, memory, inputs, data
        Of the run: see `Run`.

    Returns
    -------
    Movement
        Over the axis "step", 1 … t.

    References
    ----------
    theory §0.

    Examples
    --------
    With the rule "sign" a neuron moves by rate · N^(exponent − 1/2), whatever the gradient:

    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      init=gs.Init(weights="sphere"),
    ...                      steps=[gs.Step(samples=4, rate=0.5, exponent=0.5, rule="sign")])
    >>> movement(problem, d=100, seed=0).weights.round(6).tolist()
    [0.5]
    """
    return of_cells(Movement, problem, lambda cell: Run(cell, d, seed, **options).movement())


@question
def trajectory(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    *,
    top: int = 1,
    **options: Unpack[RunOptions],
) -> Trajectory:
    """Errors of the readout and leading singular values of W after 0, 1, …, t steps, from one run.

    Parameters
    ----------
    problem : Problem or Grid
        With or without a readout.
    top : int
        Number of singular values.
    d, seed, device, dtype, test_samples, memory, inputs, data
        Of the run: see `Run`.

    Returns
    -------
    Trajectory
        Over the axis "step", 0 … t.

    References
    ----------
    theory §0, §2.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=4, rate=1, exponent=0.5)] * 3)
    >>> path = trajectory(problem, d=200, seed=0)
    >>> path.test is None, path.overlap.shape
    (True, (4, 1))
    >>> bool(path.overlap[0, 0] < 0.1), bool(path.overlap[3, 0] > 0.5)
    (True, True)
    """
    return of_cells(Trajectory, problem, lambda cell: Run(cell, d, seed, **options).trajectory(top))
