"""What `Run` says of each of its steps, for a problem or for every cell of a grid."""

from __future__ import annotations

from giantsteps.answers import Movement, Trajectory
from giantsteps.problem import Grid, Problem
from giantsteps.simulation._network._data import Data
from giantsteps.simulation._options import refuse_unknown, run_options
from giantsteps.simulation._run import Run

__all__ = ["movement", "trajectory"]


@refuse_unknown
def movement(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    *,
    device: object = None,
    dtype: str = "float64",
    test_samples: int | str | None = None,
    memory: str | int | None = None,
    inputs: object = "gaussian",
    data: Data | None = None,
) -> Movement:
    """How far each step moves weights, pre-activations, features and output.

    Parameters
    ----------
    problem : Problem or Grid
        With at least one step; the readout, if any, plays no part.
    d : int
        Dimension of the inputs; that of ``data`` if they are given.
    seed : int
        Of all random numbers.
    device, dtype, test_samples, memory, inputs, data
        How the network is drawn and computed: see `Run`.

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
    options = run_options(locals())
    if not isinstance(problem, Grid):
        return Run(problem, d, seed, **options).movement()
    cells = [Run(cell, d, seed, **options).movement() for cell in problem]
    return Movement.stack(problem, cells)


@refuse_unknown
def trajectory(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    *,
    top: int = 1,
    device: object = None,
    dtype: str = "float64",
    test_samples: int | str | None = None,
    memory: str | int | None = None,
    inputs: object = "gaussian",
    data: Data | None = None,
) -> Trajectory:
    """Errors of the readout and leading singular values of W after 0, 1, …, t steps, from one run.

    Parameters
    ----------
    problem : Problem or Grid
        With or without a readout.
    d : int
        Dimension of the inputs; that of ``data`` if they are given.
    seed : int
        Of all random numbers.
    top : int
        How many singular values.
    device, dtype, test_samples, memory, inputs, data
        How the network is drawn and computed: see `Run`.

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
    options = run_options(locals())
    if not isinstance(problem, Grid):
        return Run(problem, d, seed, **options).trajectory(top)
    cells = [Run(cell, d, seed, **options).trajectory(top) for cell in problem]
    return Trajectory.stack(problem, cells)
