"""The error of the readout, for many sample sizes and penalties at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from giantsteps.answers import Risk
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid, Problem
from giantsteps.simulation._arrays import Array
from giantsteps.simulation._cost import check_memory, readout_bytes
from giantsteps.simulation._error import PointError, error_on_points
from giantsteps.simulation._population import population_error
from giantsteps.simulation._ridge import Fit, fit_kernel
from giantsteps.simulation._tangent import tangent_kernel, tangent_products

if TYPE_CHECKING:
    from giantsteps.simulation._run import Run

__all__ = ["Cells", "Kind", "as_kind", "cells_of", "fields", "initial"]

Kind = Literal["conjugate", "tangent"]
#: Penalties for each sample size n.
Cells: TypeAlias = Mapping[int, Sequence[float]]


def as_kind(kind: object) -> Kind:
    """``kind`` if it is one."""
    if kind not in get_args(Kind):
        raise InvalidProblem("kind", kind, '"conjugate" or "tangent"')
    return kind  # type: ignore[return-value]


def initial(
    asked: Problem | Grid,
    d: int,
    run_for: Callable[[Problem], Run],
    kind: Kind,
    degrees: int,
) -> Risk:
    """The risk before the steps, as an answer to the same question."""
    return Risk(**fields(asked, d, run_for, kind, degrees, untrained=True))


def fields(
    asked: Problem | Grid,
    d: int,
    run_for: Callable[[Problem], Run],
    kind: Kind,
    degrees: int,
    untrained: bool = False,
) -> dict[str, Any]:
    """The fields of a `Risk` for a problem, or for a grid.

    Cells that differ in their readout alone share a run: one pass over its samples answers all
    their sample sizes and penalties.
    """
    if not isinstance(degrees, int | np.integer) or isinstance(degrees, bool) or degrees < 0:
        raise InvalidProblem("degrees", degrees, "an integer >= 0")
    problems = [asked] if isinstance(asked, Problem) else list(asked)
    if untrained:
        problems = [problem.untrained() for problem in problems]
    places = [(_samples(problem, d), problem.require_readout().penalty) for problem in problems]
    groups: dict[Problem, list[int]] = {}
    for number, problem in enumerate(problems):
        groups.setdefault(dataclasses.replace(problem, readout=None), []).append(number)
    found: list[dict[str, Any]] = [{} for _ in problems]
    for members in groups.values():
        largest = max(members, key=lambda number: places[number][0])
        cells = _gather(places[number] for number in members)
        answers = _risk_of_cells(run_for(problems[largest]), cells, as_kind(kind), degrees)
        for number in members:
            found[number] = answers[places[number]]
    shape = () if isinstance(asked, Problem) else asked.shape
    names = [name for name, value in found[0].items() if value is not None]
    leaves = {
        name: np.reshape([cell[name] for cell in found], shape + np.shape(found[0][name]))
        for name in names
    }
    return {"problem": asked, "d": d, "source": "simulation", "exact": True} | leaves


def cells_of(asked: Problem | Grid, d: int) -> Cells:
    """Penalties for each sample size of a problem, or of a grid over its readout."""
    problems = [asked] if isinstance(asked, Problem) else list(asked)
    return _gather((_samples(each, d), each.require_readout().penalty) for each in problems)


def _gather(places: Iterable[tuple[int, float]]) -> dict[int, list[float]]:
    """Penalties by sample size, each pair once."""
    cells: dict[int, list[float]] = {}
    for samples, penalty in dict.fromkeys(places):
        cells.setdefault(samples, []).append(penalty)
    return cells


def _samples(problem: Problem, d: int) -> int:
    """n."""
    problem.require_readout()
    samples = problem.at(d).samples
    assert samples is not None
    return samples


def _risk_of_cells(
    run: Run, cells: Cells, kind: Kind, degrees: int
) -> dict[tuple[int, float], dict[str, Any]]:
    """Leaves of a `Risk` for each (n, λ), from one network and one pass over its samples."""
    run.network.samples.require(max(cells))
    if run.test_samples == 0:
        raise InvalidProblem("data", run.data, "given with X_test and y_test for the test error")
    if kind == "tangent":
        if run.test_samples is None:
            raise InvalidProblem("test_samples", "exact", "a number for the tangent kernel")
        fits, predict, held = _fit_tangent(run, cells)
        columns = max(cells)
    else:
        check_memory(run, cells)
        held, columns = readout_bytes(run, cells), 0
        fits = run.fit(cells, held)
        predict = _conjugate_predictor(run, fits)
    if run.test_samples is None:
        coefficients = np.stack(
            [run.backend.to_host(fit.coefficients) for fit in fits.values()], axis=1
        )
        errors = population_error(run, coefficients, degrees)
    else:
        batches = (
            run.network.test_batch(start, stop)
            for start, stop in run.chunks(run.test_samples, held, "the test error", columns)
        )
        errors = error_on_points(run.backend, batches, predict, degrees)
    return {place: _leaves(fit, errors, at) for at, (place, fit) in enumerate(fits.items())}


def _leaves(fit: Fit, errors: PointError, at: int) -> dict[str, Any]:
    return {
        "test": float(errors.mean[at]),
        "standard_error": float(errors.standard_error[at]),
        "train": fit.train,
        "by_degree": None if errors.by_degree is None else errors.by_degree[at],
    }


def _conjugate_predictor(run: Run, fits: Mapping[Any, Fit]) -> Callable[[Array], Array]:
    coefficients = run.backend.xp.stack([fit.coefficients for fit in fits.values()], axis=1)
    return lambda inputs: run.backend.wide(run.embed(inputs)) @ coefficients


def _fit_tangent(
    run: Run, cells: Cells
) -> tuple[dict[tuple[int, float], Fit], Callable[[Array], Array], int]:
    """Kernel ridge regression on the tangent kernel: α = (K + nλ/N)⁻¹ỹ."""
    arrays, last = run.backend, max(cells)
    d, neurons = run.sizes.d, run.sizes.neurons
    held = run.weight_bytes + arrays.itemsize * last * (d + neurons)
    run.budget.rows(d, neurons + last, held + 4 * 8 * last**2, "the tangent kernel")
    inputs, labels = run.network.readout_batch(0, last)
    weights, slope = run.trained.weights, run.problem.activation.derivative
    kernel, slopes = tangent_kernel(arrays, inputs, weights, slope)
    fits: dict[tuple[int, float], Fit] = {}
    for samples, penalties in cells.items():
        solved = fit_kernel(
            arrays, kernel[:samples, :samples], labels[:samples], neurons, penalties
        )
        for penalty, found in zip(penalties, solved):
            fits[samples, penalty] = found
    padded = [_padded(run, fit.coefficients, last) for fit in fits.values()]
    coefficients = arrays.xp.stack(padded, axis=1)

    def predict(points: Array) -> Array:
        return tangent_products(arrays, points, inputs, slopes, weights, slope, coefficients)

    return fits, predict, held


def _padded(run: Run, coefficients: Array, length: int) -> Array:
    """Coefficients of the first samples, zeros for the others."""
    missing = length - coefficients.shape[0]
    return (
        run.backend.xp.concat([coefficients, run.backend.zeros(missing)])
        if missing
        else coefficients
    )
