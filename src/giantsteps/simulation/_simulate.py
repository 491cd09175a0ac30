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
    """Singular values of the weights after the steps: ``run(...).weights(top)``."""
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
    """Eigenvalues of the kernel of the readout's samples: ``run(...).kernel(top, kind=kind)``."""
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
    """Singular values of the features after the steps: ``run(...).features(top)``."""
    return _spectra(problem, d, seed, "features", top, bulk, options)


def gradient(
    problem: Problem | Grid, d: int | None = None, seed: int = 0, **options: Any
) -> Gradient:
    """The first gradient, its rank-one part and what is left: ``run(...).gradient()``."""
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
    """The function learned along ``"spike"`` or ``"teacher"``: ``run(...).learned_function()``."""
    if not isinstance(problem, Grid):
        return Run(problem, d, seed, **options).learned_function(along)
    cells = [Run(cell, d, seed, **options).learned_function(along) for cell in problem]
    return LearnedFunction.stack(problem, cells)


def degrees_of_freedom(
    problem: Problem | Grid, d: int | None = None, seed: int = 0, **options: Any
) -> DegreesOfFreedom:
    """Effective penalty and degrees of freedom: ``run(...).degrees_of_freedom()``."""
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
