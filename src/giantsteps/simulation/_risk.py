"""The error of the readout, for many sample sizes and penalties at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from giantsteps.answers import Risk
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid, Problem, integer
from giantsteps.simulation._answers import SimulatedRisk, lazily
from giantsteps.simulation._cost import check_memory, fits_memory
from giantsteps.simulation._engine._arrays import Array
from giantsteps.simulation._networks import Networks
from giantsteps.simulation._readout._error import PointError, PointErrors
from giantsteps.simulation._readout._population import population_error
from giantsteps.simulation._readout._ridge import Fit, fit_kernel
from giantsteps.simulation._readout._tangent import tangent_kernel, tangent_products

Kind = Literal["conjugate", "tangent"]
#: Penalties for each sample size n.
Cells: TypeAlias = Mapping[int, Sequence[float]]
#: A sample size and a penalty.
Place: TypeAlias = tuple[int, float]
RunFor: TypeAlias = Callable[[Problem], Networks]


def as_kind(kind: object) -> Kind:
    if kind not in get_args(Kind):
        raise InvalidProblem("kind", kind, '"conjugate" or "tangent"')
    return kind  # type: ignore[return-value]


@dataclass(frozen=True)
class Errors:
    """Errors of the readouts of one first layer, on the device."""

    places: tuple[Place, ...]  # n and λ of each cell
    leaves: dict[str, Array]  # (…, cells): by the name that they have in a `Risk`

    def to_host(self, networks: Networks) -> dict[Place, dict[str, Any]]:
        """Leaves of a `Risk` for each cell, on the host; arrays over the networks of a batch."""
        axis = len(networks.lead)
        host = {name: networks.backend.to_host(leaf) for name, leaf in self.leaves.items()}
        return {
            place: {name: np.take(leaf, at, axis=axis) for name, leaf in host.items()}
            for at, place in enumerate(self.places)
        }


def errors_of(
    networks: Networks, stages: Sequence[Array], cells: Cells, degrees: int
) -> list[Errors]:
    """Errors of the readouts of several first layers, from one pass over readout and test points.

    * ``stages``: first layers: after the steps, and before them if that is asked for too.
    """
    networks.network.require(max(cells))
    if networks.test_samples == 0:
        allowed = "given with X_test and y_test for the test error"
        raise InvalidProblem("data", networks.data, allowed)
    check_memory(networks, cells, len(stages))
    held = networks.readout_bytes(cells, len(stages))
    fits = networks.readouts(stages, cells, held)
    backend = networks.backend
    xp = backend.xp
    stacked = [xp.stack([fit.coefficients for fit in each.values()], axis=-1) for each in fits]
    if networks.test_samples is None:
        return [
            _collect(networks, each, population_error(networks, weights, coefficients, degrees))
            for each, weights, coefficients in zip(fits, stages, stacked)
        ]
    scale = networks.sizes.neurons**-0.5
    scaled = [coefficients * scale for coefficients in stacked]

    def predict(inputs: Array, stage: int) -> Array:
        features = networks.activations(inputs, stages[stage])
        return backend.wide(features) @ scaled[stage]

    return _on_points(networks, fits, predict, held, degrees)


def _on_points(
    networks: Networks,
    fits: Sequence[Mapping[Place, Fit]],
    predict: Callable[[Array, int], Array],
    held: int,
    degrees: int,
    columns: int = 0,
) -> list[Errors]:
    """Errors on the test points; ``predict`` takes inputs and the number of the first layer."""
    sums = [PointErrors(networks.backend, degrees, networks.binary) for _ in fits]
    assert networks.test_samples
    chunks = networks.chunks(networks.test_samples, held, "the test error", columns)
    for start, stop in chunks:
        inputs, coordinates, target = networks.network.test_batch(start, stop)
        for stage, errors in enumerate(sums):
            errors.add(predict(inputs, stage), coordinates, target)
    return [_collect(networks, each, errors.finish()) for each, errors in zip(fits, sums)]


def _collect(networks: Networks, fits: Mapping[Place, Fit], errors: PointError) -> Errors:
    xp = networks.backend.xp
    leaves = {
        "test": errors.mean,
        "standard_error": errors.standard_error,
        "train": xp.stack([fit.train for fit in fits.values()], axis=-1),
        "by_degree": errors.by_degree,
        "classification_error": errors.misclassified,
    }
    known = {name: leaf for name, leaf in leaves.items() if leaf is not None}
    return Errors(tuple(fits), known)


# Answers --------------------------------------------------------------------------------------


def answer(
    asked: Problem | Grid,
    d: int,
    run_for: RunFor,
    kind: Kind,
    degrees: int,
    with_initial: bool,
    later: RunFor | None = None,
) -> Risk:
    """The risk; ``later`` gives the runs of ``initial`` where that is simulated when it is read."""
    found = fields(asked, d, run_for, kind, degrees, with_initial)
    if with_initial:
        return Risk(**found)
    before = partial(initial, asked, d, later or run_for, kind, degrees)
    return lazily(SimulatedRisk, found, initial=before)


def fields(
    asked: Problem | Grid, d: int, run_for: RunFor, kind: Kind, degrees: int, with_initial: bool
) -> dict[str, Any]:
    """The fields of a `Risk` for a problem or a grid; ``initial`` too if that is asked for.

    Cells that differ in their readout alone share a run: one pass over its samples answers all
    their sample sizes and penalties, and those before the steps with them.
    """
    as_kind(kind)
    integer(degrees, "degrees", "an integer >= 0", lower=0)
    members = groups(asked, without_readout)
    together = with_initial and len(members) == 1 and kind == "conjugate"
    found: dict[int, dict[str, Any]] = {}
    before: dict[int, dict[str, Any]] = {}
    facts: dict[str, Any] = {}
    for numbers in members:
        run, cells, places = of_group(asked, d, run_for, numbers)
        facts = run.facts()
        if together and fits_memory(run, cells, stages=2):
            stages = [run.trained.weights, run.network.weights()]
            after, start = (e.to_host(run) for e in errors_of(run, stages, cells, degrees))
            before = {number: start[places[number]] for number in numbers}
        else:
            after = _errors_of_run(run, cells, kind, degrees)
        found |= {number: after[places[number]] for number in numbers}
    fields = over_cells(asked, found, facts)
    if with_initial:
        first = over_cells(asked, before, facts)
        fields["initial"] = Risk(**first) if before else initial(asked, d, run_for, kind, degrees)
    return fields


def initial(asked: Problem | Grid, d: int, run_for: RunFor, kind: Kind, degrees: int) -> Risk:
    """The risk before the steps, as an answer to the same question.

    Cells that differ in their steps alone share a run, unless the readout has the batch of a step.
    """

    def before(problem: Problem) -> Problem:
        readout = problem.require_readout()
        kept = problem if readout.batch == "previous" else problem.untrained()
        return dataclasses.replace(kept, readout=None)

    found: dict[int, dict[str, Any]] = {}
    facts: dict[str, Any] = {}
    for numbers in groups(asked, before):
        run, cells, places = of_group(asked, d, run_for, numbers)
        facts = run.facts()
        start = _errors_of_run(run.shortened(0), cells, kind, degrees)
        found |= {number: start[places[number]] for number in numbers}
    return Risk(**over_cells(asked, found, facts))


def without_readout(problem: Problem) -> Problem:
    """What the cells of one run share."""
    return dataclasses.replace(problem, readout=None)


def _problems(asked: Problem | Grid) -> list[Problem]:
    return [asked] if isinstance(asked, Problem) else list(asked)


def groups(asked: Problem | Grid, key: Callable[[Problem], Problem]) -> list[list[int]]:
    """Numbers of the cells that share a run: the same key, and the same batch of the readout."""
    found: dict[Any, list[int]] = {}
    for number, problem in enumerate(_problems(asked)):
        batch = problem.require_readout().batch
        found.setdefault((key(problem), batch), []).append(number)
    return list(found.values())


def of_group(
    asked: Problem | Grid, d: int, run_for: RunFor, numbers: list[int]
) -> tuple[Networks, Cells, dict[int, Place]]:
    """The run of some cells, their sample sizes and penalties, and where each of them is."""
    problems = _problems(asked)
    places = {
        number: (_samples(problems[number], d), problems[number].require_readout().penalty)
        for number in numbers
    }
    largest = max(numbers, key=lambda number: places[number][0])
    return run_for(problems[largest]), _gather(places.values()), places


def over_cells(
    asked: Problem | Grid, found: Mapping[int, dict[str, Any]], facts: dict[str, Any]
) -> dict[str, Any]:
    """The fields of a `Risk` over the grid, from the leaves of its cells by their numbers."""
    shape = () if isinstance(asked, Problem) else asked.shape
    cells = [found[number] for number in sorted(found)]
    names = [name for name in cells[0] if all(name in cell for cell in cells)] if cells else []
    leaves = {
        name: np.reshape([cell[name] for cell in cells], shape + np.shape(cells[0][name]))
        for name in names
    }
    return facts | {"problem": asked} | leaves


def cells_of(asked: Problem | Grid, d: int) -> Cells:
    """Penalties for each sample size of a problem, or of a grid over its readout."""
    return _gather((_samples(each, d), each.require_readout().penalty) for each in _problems(asked))


def _gather(places: Iterable[Place]) -> dict[int, list[float]]:
    """Penalties by sample size, each pair once."""
    cells: dict[int, list[float]] = {}
    for samples, penalty in dict.fromkeys(places):
        cells.setdefault(samples, []).append(penalty)
    return cells


def _samples(problem: Problem, d: int) -> int:
    problem.require_readout()
    samples = problem.at(d).samples
    assert samples is not None
    return samples


def _errors_of_run(
    run: Networks, cells: Cells, kind: Kind, degrees: int
) -> dict[Place, dict[str, Any]]:
    """Leaves of a `Risk` for each (n, λ), from one network and one pass over its samples."""
    if kind == "tangent":
        found = _tangent_errors(run, cells, degrees)
    else:
        found = errors_of(run, [run.trained.weights], cells, degrees)[0]
    return found.to_host(run)


def _tangent_errors(run: Networks, cells: Cells, degrees: int) -> Errors:
    """Kernel ridge regression on the tangent kernel: α = (K + nλ/N)⁻¹ỹ."""
    if run.test_samples is None:
        raise InvalidProblem("test_samples", "exact", "a number for the tangent kernel")
    arrays, last = run.backend, max(cells)
    d, neurons = run.sizes.d, run.sizes.neurons
    held = run.weight_bytes + arrays.itemsize * last * (d + neurons)
    run.budget.rows(d, neurons + last, held + 4 * 8 * last**2, "the tangent kernel")
    inputs, labels = run.network.readout_batch(0, last)
    weights, slope = run.trained.weights, run.problem.activation.derivative
    kernel, slopes = tangent_kernel(arrays, inputs, weights, slope)
    fits: dict[Place, Fit] = {}
    for samples, penalties in cells.items():
        solved = fit_kernel(
            arrays, kernel[:samples, :samples], labels[:samples], neurons, penalties
        )
        for penalty, found in zip(penalties, solved):
            fits[samples, penalty] = found
    padded = [_padded(run, fit.coefficients, last) for fit in fits.values()]
    coefficients = arrays.xp.stack(padded, axis=1)

    def predict(points: Array, stage: int) -> Array:
        return tangent_products(arrays, points, inputs, slopes, weights, slope, coefficients)

    return _on_points(run, [fits], predict, held, degrees, last)[0]


def _padded(run: Networks, coefficients: Array, length: int) -> Array:
    """Coefficients of the first samples, zeros for the others."""
    missing = length - coefficients.shape[0]
    return (
        run.backend.xp.concat([coefficients, run.backend.zeros(missing)])
        if missing
        else coefficients
    )
