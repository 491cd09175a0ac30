"""The questions of `Run` for a problem, or for every cell of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from giantsteps.answers import (
    DegreesOfFreedom,
    Gradient,
    LearnedFunction,
    Movement,
    Risk,
    Trajectory,
)
from giantsteps.problem import Grid, Problem
from giantsteps.simulation import _risk
from giantsteps.simulation._answers import of_cells
from giantsteps.simulation._network._data import as_dimension
from giantsteps.simulation._options import RunOptions, question, refuse_unknown
from giantsteps.simulation._risk import Kind
from giantsteps.simulation._run import Run


@refuse_unknown
def run(
    problem: Problem,
    d: int | None = None,
    seed: int = 0,
    **options: Unpack[RunOptions],
) -> Run:
    """One network of dimension ``d`` drawn with ``seed``: see `Run`.

    Parameters
    ----------
    problem : Problem
        The setting.
    d, seed, device, dtype, test_samples, memory, inputs, data
        Of the run: see `Run`.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=2.0, rate=2.0)])
    >>> run(problem, 200, seed=0)
    Run(d=200, neurons=200, step_samples=(400,), samples=None, seed=0)
    """
    return Run(problem, d, seed, **options)


@question
def risk(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    *,
    kind: Kind = "conjugate",
    degrees: int = 4,
    initial: bool = False,
    **options: Unpack[RunOptions],
) -> Risk:
    """Test and train error of the readout: ``run(problem, d, seed).risk()``.

    Over a grid, cells that differ only in ``readout.samples`` and ``readout.penalty`` share one
    run, and the answer of a cell is the one it has on its own, up to rounding: samples are nested.

    Parameters
    ----------
    problem : Problem or Grid
        With a readout.
    kind : {"conjugate", "tangent"}
        Features Φ = N^{-1/2}σ(X̃W), or those of the tangent kernel K of theory §4,
        (Nd)^{-1/2} vec(x σ'(Wᵀx)ᵀ), with the same penalty (λ/N)‖a‖²: (K + nλ/N) α = ỹ.
    degrees : int
        Highest degree of ``by_degree``.
    initial : bool
        Whether ``initial``, the risk before the steps on the same samples and test points, is
        simulated together with the rest, from one draw of them. Otherwise it is simulated when it
        is first read, which draws them again.
    d, seed, device, dtype, test_samples, memory, inputs, data
        Of the run: see `Run`.

    Returns
    -------
    Risk
        With ``standard_error`` of the test error over the test points.

    References
    ----------
    theory §0, §4, §5c; ba2022, cui2024.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import theory
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=3)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> mean = sum(risk(problem, d=200, seed=seed).test for seed in range(10)) / 10
    >>> round(mean / theory.risk(problem, d=200).test, 1)
    1.0
    """
    if not isinstance(problem, Grid):
        return Run(problem, d, seed, **options).risk(kind=kind, degrees=degrees, initial=initial)
    dimension = as_dimension(d, options.get("data"))

    def run_for(cell: Problem) -> Run:
        return Run(cell, d, seed, **options)

    return _risk.answer(problem, dimension, run_for, kind, degrees, initial)


@question
def gradient(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    **options: Unpack[RunOptions],
) -> Gradient:
    """The first gradient, its rank-one part and the rest: ``run(...).gradient()``.

    Parameters
    ----------
    problem : Problem or Grid
        With at least one step; its rate, rule and preconditioner play no part.
    d, seed, device, dtype, test_samples, memory, inputs, data
        Of the run: see `Run`.

    Returns
    -------
    Gradient
        Norms of √N G's two parts, and overlaps of its top singular vectors.

    References
    ----------
    theory §2; ba2022, Proposition 2.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import theory
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=3)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> measured, predicted = gradient(problem, d=300, seed=0), theory.gradient(problem, d=300)
    >>> round(measured.spike_norm, 2), round(predicted.spike_norm, 2)
    (0.42, 0.42)
    >>> round(measured.ratio, 3), round(predicted.ratio, 3)
    (0.05, 0.045)
    """
    return of_cells(Gradient, problem, lambda cell: Run(cell, d, seed, **options).gradient())


@question
def learned_function(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    *,
    along: str = "spike",
    x: Sequence[float] | None = None,
    **options: Unpack[RunOptions],
) -> LearnedFunction:
    """The function learned along ``"spike"`` or ``"teacher"``: ``run(...).learned_function()``.

    Parameters
    ----------
    problem : Problem or Grid
        With a readout.
    along : {"spike", "teacher", "x0", "x1", ...}
        The direction; of a teacher of several directions one by its name.
    x : sequence of float, optional
        Coordinates; by default 61 points from −3 to 3.
    d, seed, device, dtype, test_samples, memory, inputs, data
        Of the run: see `Run`.

    Returns
    -------
    LearnedFunction
        Conditional mean and spread of the network over the bins of the test points.

    References
    ----------
    theory §5c; cui2024.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import simulation
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=3)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> found = learned_function(problem, d=100, seed=0, along="teacher")
    >>> bool(found.mean[-1] > found.mean[0]), found.standard_error.shape == found.x.shape
    (True, True)
    """
    return of_cells(
        LearnedFunction,
        problem,
        lambda cell: Run(cell, d, seed, **options).learned_function(along=along, x=x),
    )


@question
def degrees_of_freedom(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    **options: Unpack[RunOptions],
) -> DegreesOfFreedom:
    """Effective penalty and degrees of freedom: ``run(...).degrees_of_freedom()``.

    Parameters
    ----------
    problem : Problem or Grid
        With a readout.
    d, seed, device, dtype, test_samples, memory, inputs, data
        Of the run: see `Run`.

    Returns
    -------
    DegreesOfFreedom
        From the eigenvalues of the drawn features.

    References
    ----------
    theory §4; ba2022.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import theory
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=3)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> measured = degrees_of_freedom(problem, d=300, seed=0)
    >>> predicted = theory.degrees_of_freedom(problem, d=300)
    >>> round(measured.df1, 2), round(predicted.df1, 2)
    (0.38, 0.38)
    """
    return of_cells(
        DegreesOfFreedom, problem, lambda cell: Run(cell, d, seed, **options).degrees_of_freedom()
    )


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
