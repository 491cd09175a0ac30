"""Bias and variance of the prediction over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from giantsteps.answers import BiasVariance
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid, Problem
from giantsteps.simulation._options import RunOptions, refuse_unknown
from giantsteps.simulation._run import Run
from giantsteps.types import FloatArray


@refuse_unknown
def bias_variance(
    problem: Problem | Grid,
    d: int,
    seeds: int | Sequence[int] = 20,
    **options: Unpack[RunOptions],
) -> BiasVariance:
    r"""The test error split into bias and variance over everything drawn except the teacher.

    .. math:: R = \underbrace{E_x(E\hat f - f^*)^2}_{\text{bias}}
                + \underbrace{E_x \operatorname{Var}\hat f}_{\text{variance}}

    All networks have the teacher and the test points of the first seed. With errors e_s = f̂_s − f*
    there, the bias is the mean of E_x[e_s e_t] over pairs of different seeds, which is unbiased,
    and bias + variance is exactly the mean test error.

    ======  ================  ===============================================
    symbol  argument          meaning
    ======  ================  ===============================================
    f̂_s     ``seeds``         network of seed s, trained for the common teacher
    e_s                       f̂_s − f*
    E_x     ``test_samples``  mean over common points
    ======  ================  ===============================================

    Parameters
    ----------
    problem : Problem or Grid
        With a readout.
    d : int
        Dimension of the inputs.
    seeds : int or sequence of int
        Number of seeds (0, 1, …), or a list of them; at least three.
    device, dtype, test_samples, memory, inputs, data
        As of `Run`; ``test_samples`` is a number, 10,000 by default, and ``data`` are refused.

    Returns
    -------
    BiasVariance
        With standard errors over the seeds by the jackknife.

    References
    ----------
    theory §0.

    Examples
    --------
    With too few samples, most of the error is variance:

    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      readout=gs.Ridge(samples=1, penalty=0.01))
    >>> found = bias_variance(problem, d=60, seeds=5, test_samples=1000)
    >>> bool(found.variance > found.bias), found.seeds
    (True, 5)
    """
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if isinstance(seeds, bool) or len(set(numbers)) < max(3, len(numbers)):
        raise InvalidProblem("seeds", seeds, "at least three different seeds")
    if options.get("data") is not None:
        raise InvalidProblem("data", options["data"], "left out: each seed draws its own")
    if isinstance(problem, Grid):
        cells = [bias_variance(cell, d, numbers, **options) for cell in problem]
        return BiasVariance.stack(problem, cells)
    problem.require_readout()
    first = Run(problem, d, numbers[0], **options)
    if not first.test_samples:
        raise InvalidProblem("test_samples", options["test_samples"], "a number of points")
    runs = (Run(problem, d, seed, **options).taught_by(first) for seed in numbers)
    return BiasVariance(
        **first.facts(),
        seeds=len(numbers),
        **_decompose(np.stack([_errors(first, run) for run in runs])),
    )


def _errors(first: Run, run: Run) -> FloatArray:
    """f̂ − f* of a run at the test points of the first."""
    readout, size = run.problem.require_readout(), run.sizes.samples
    assert size is not None
    assert first.test_samples
    cells = {size: (readout.penalty,)}
    held = run.readout_bytes(cells)
    (fit,) = run.fit(cells, held).values()
    coefficients = run.backend.narrow(fit.coefficients)
    found = []
    for start, stop in run.chunks(first.test_samples, held, "the test points"):
        inputs, _, target = first.network.test_batch(start, stop)
        predicted = run.embed(inputs) @ coefficients
        found.append(run.backend.to_host(run.backend.wide(predicted) - target))
    return np.concatenate(found)


def _decompose(errors: FloatArray) -> dict[str, Any]:
    """Bias and variance from errors (seeds, points), with jackknife standard errors."""
    count, points = errors.shape
    gram = errors @ errors.T / points
    kept = [np.delete(np.arange(count), out) for out in range(count)]
    parts = np.array([_parts(gram[np.ix_(keep, keep)]) for keep in kept])
    spread = np.sqrt((count - 1) / count * np.sum((parts - parts.mean(axis=0)) ** 2, axis=0))
    names = ("test", "bias", "variance")
    values: dict[str, Any] = dict(zip(names, _parts(gram)))
    return values | {f"{name}_error": float(error) for name, error in zip(names, spread)}


def _parts(gram: FloatArray) -> tuple[float, float, float]:
    count = len(gram)
    test = float(np.trace(gram)) / count
    bias = (math.fsum(gram.ravel()) - count * test) / (count * (count - 1))
    return test, bias, test - bias
