"""The questions of `Run` for a problem, or for every cell of a grid."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

from giantsteps.answers import DegreesOfFreedom, Gradient, LearnedFunction, Risk, Spectrum
from giantsteps.problem import Grid, Problem
from giantsteps.simulation import _risk, _spectrum
from giantsteps.simulation._answers import SimulatedRisk, SimulatedSpectrum, lazily
from giantsteps.simulation._data import as_dimension
from giantsteps.simulation._risk import Kind
from giantsteps.simulation._run import Run

__all__ = [
    "degrees_of_freedom",
    "features",
    "gradient",
    "kernel",
    "learned_function",
    "risk",
    "run",
    "weights",
]


def run(problem: Problem, d: int | None = None, seed: int = 0, **options: Any) -> Run:
    """One network of dimension ``d`` drawn with ``seed``: see `Run`, which takes the options.

    Parameters
    ----------
    problem : Problem
        The setting.
    d : int
        Dimension of the inputs; that of ``data`` if they are given.
    seed : int
        Of all random numbers.
    **options
        Of `Run`.

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


def risk(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    *,
    kind: Kind = "conjugate",
    degrees: int = 4,
    **options: Any,
) -> Risk:
    """Test and train error of the readout: ``run(problem, d, seed, **options).risk()``.

    Over a grid, cells that differ in ``readout.samples`` and ``readout.penalty`` alone share one
    run, and a cell's answer is the one it has alone, to rounding: samples are nested.
    ``initial`` is simulated when it is first read.

    Parameters
    ----------
    problem : Problem or Grid
        With a readout.
    d : int
        Dimension of the inputs; that of ``data`` if they are given.
    seed : int
        Of all random numbers.
    kind : {"conjugate", "tangent"}
        Features Φ, or those of the tangent kernel.
    degrees : int
        Highest degree of ``by_degree``.
    **options
        Of the run: ``device``, ``dtype``, ``test_samples``, ``data``, … (see `Run`).

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
    >>> mean = sum(risk(problem, d=200, seed=seed).test for seed in range(5)) / 5
    >>> round(mean / theory.risk(problem, d=200).test, 1)
    1.0
    """
    if not isinstance(problem, Grid):
        return Run(problem, d, seed, **options).risk(kind=kind, degrees=degrees)
    dimension = as_dimension(d, options.get("data"))

    def run_for(cell: Problem) -> Run:
        return Run(cell, d, seed, **options)

    return lazily(
        SimulatedRisk,
        _risk.fields(problem, dimension, run_for, kind, degrees),
        initial=partial(_risk.initial, problem, dimension, run_for, kind, degrees),
    )


def weights(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    *,
    top: int = 4,
    bulk: bool = True,
    **options: Any,
) -> Spectrum:
    """Singular values of the weights after the steps: ``run(...).weights(top)``.

    Parameters
    ----------
    problem : Problem or Grid
        The readout, if any, plays no part.
    d : int
        Dimension of the inputs; that of ``data`` if they are given.
    seed : int
        Of all random numbers.
    top : int
        How many of the largest values come with their overlaps.
    bulk : bool
        Whether the law of all values can be read.
    **options
        Of the run: ``device``, ``dtype``, ``test_samples``, ``data``, … (see `Run`).

    Returns
    -------
    Spectrum
        The min(d, N) singular values; the largest with their overlaps.

    References
    ----------
    theory §2; ba2022.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import theory
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=3)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> predicted, = theory.weights(problem, d=300).spikes
    >>> measured = weights(problem, d=300, seed=0, top=2).spikes[0]
    >>> round(predicted.value, 2), round(measured.value, 2)
    (2.25, 2.25)
    """
    return _spectra(problem, d, seed, "weights", top, bulk, options)


def kernel(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    *,
    top: int = 4,
    kind: Kind = "conjugate",
    bulk: bool = True,
    **options: Any,
) -> Spectrum:
    """Eigenvalues of the kernel of the readout's samples: ``run(...).kernel(top, kind=kind)``.

    Parameters
    ----------
    problem : Problem or Grid
        With a readout, whose samples are the rows.
    d : int
        Dimension of the inputs; that of ``data`` if they are given.
    seed : int
        Of all random numbers.
    top : int
        How many of the largest values come with their overlaps.
    kind : {"conjugate", "tangent"}
        Of the features, or of the gradient in W.
    bulk : bool
        Whether the law of all values can be read.
    **options
        Of the run: ``device``, ``dtype``, ``test_samples``, ``data``, … (see `Run`).

    Returns
    -------
    Spectrum
        The n eigenvalues, and the overlaps of the largest with the labels.

    References
    ----------
    theory §3, §4; ba2022.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import theory
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=10)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> predicted, = theory.kernel(problem, d=300).spikes
    >>> measured = kernel(problem, d=300, seed=0, top=2).spikes[0]
    >>> round(predicted.value, 1), round(measured.value, 1)
    (10.5, 10.6)
    """
    matrix = "kernel" if _risk.as_kind(kind) == "conjugate" else "tangent"
    return _spectra(problem, d, seed, matrix, top, bulk, options)


def features(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    *,
    top: int = 4,
    bulk: bool = True,
    **options: Any,
) -> Spectrum:
    """Singular values of the features after the steps: ``run(...).features(top)``.

    Parameters
    ----------
    problem : Problem or Grid
        With a readout, whose samples are the rows.
    d : int
        Dimension of the inputs; that of ``data`` if they are given.
    seed : int
        Of all random numbers.
    top : int
        How many of the largest values come with their overlaps.
    bulk : bool
        Whether the law of all values can be read.
    **options
        Of the run: ``device``, ``dtype``, ``test_samples``, ``data``, … (see `Run`).

    Returns
    -------
    Spectrum
        The min(n, N) singular values; the largest with the monomial that they are closest to.

    References
    ----------
    theory §5d, §6; moniri2023.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import simulation
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=10)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> spike = features(problem, d=200, seed=0, top=2).spikes[0]
    >>> spike.degree, round(spike.overlap, 1)
    (1, 0.9)
    >>> eigenvalue = simulation.kernel(problem, d=200, seed=0, top=2).spikes[0].value
    >>> round(spike.value**2 / eigenvalue, 9)
    1.0
    """
    return _spectra(problem, d, seed, "features", top, bulk, options)


def gradient(
    problem: Problem | Grid, d: int | None = None, seed: int = 0, **options: Any
) -> Gradient:
    """The first gradient, its rank-one part and what is left: ``run(...).gradient()``.

    Parameters
    ----------
    problem : Problem or Grid
        With at least one step; its rate plays no part.
    d : int
        Dimension of the inputs; that of ``data`` if they are given.
    seed : int
        Of all random numbers.
    **options
        Of the run: ``device``, ``dtype``, ``test_samples``, ``data``, … (see `Run`).

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
    (0.44, 0.42)
    >>> round(measured.ratio, 3), round(predicted.ratio, 3)
    (0.043, 0.045)
    """
    if not isinstance(problem, Grid):
        return Run(problem, d, seed, **options).gradient()
    cells = [Run(cell, d, seed, **options).gradient() for cell in problem]
    return Gradient.stack(problem, cells)


def learned_function(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    *,
    along: str = "spike",
    **options: Any,
) -> LearnedFunction:
    """The function learned along ``"spike"`` or ``"teacher"``: ``run(...).learned_function()``.

    Parameters
    ----------
    problem : Problem or Grid
        With a readout.
    d : int
        Dimension of the inputs; that of ``data`` if they are given.
    seed : int
        Of all random numbers.
    along : {"spike", "teacher"}
        The direction.
    **options
        Of the run: ``device``, ``dtype``, ``test_samples``, ``data``, … (see `Run`).

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
    if not isinstance(problem, Grid):
        return Run(problem, d, seed, **options).learned_function(along)
    cells = [Run(cell, d, seed, **options).learned_function(along) for cell in problem]
    return LearnedFunction.stack(problem, cells)


def degrees_of_freedom(
    problem: Problem | Grid, d: int | None = None, seed: int = 0, **options: Any
) -> DegreesOfFreedom:
    """Effective penalty and degrees of freedom: ``run(...).degrees_of_freedom()``.

    Parameters
    ----------
    problem : Problem or Grid
        With a readout.
    d : int
        Dimension of the inputs; that of ``data`` if they are given.
    seed : int
        Of all random numbers.
    **options
        Of the run: ``device``, ``dtype``, ``test_samples``, ``data``, … (see `Run`).

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
    if not isinstance(problem, Grid):
        return Run(problem, d, seed, **options).degrees_of_freedom()
    cells = [Run(cell, d, seed, **options).degrees_of_freedom() for cell in problem]
    return DegreesOfFreedom.stack(problem, cells)


def _spectra(
    problem: Problem | Grid,
    d: int | None,
    seed: int,
    matrix: str,
    top: int,
    bulk: bool,
    options: dict[str, Any],
) -> Spectrum:
    if not isinstance(problem, Grid):
        return Run(problem, d, seed, **options).spectrum(matrix, top, bulk)

    def stacked(untrained: bool) -> Spectrum:
        cells = [
            _spectrum.complete(
                Run(cell.untrained() if untrained else cell, d, seed, **options), matrix, top, bulk
            )
            for cell in problem
        ]
        return Spectrum.stack(problem, cells)

    after = stacked(untrained=False)
    known = {field.name: getattr(after, field.name) for field in dataclasses.fields(after)}
    del known["initial"]
    return lazily(SimulatedSpectrum, known, initial=partial(stacked, untrained=True))
