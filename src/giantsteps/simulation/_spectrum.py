"""Spectra of a run: its weights, the kernel and the features of its readout, its gradient."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from giantsteps.answers import Gradient, Spectrum, Spike
from giantsteps.errors import InvalidProblem
from giantsteps.gaussian import hermite_coefficients, moments
from giantsteps.laws import EmpiricalLaw
from giantsteps.simulation._engine._arrays import Array, Arrays
from giantsteps.simulation._engine._largest import largest, largest_of, singular_values
from giantsteps.simulation._readout._tangent import tangent_kernel

if TYPE_CHECKING:
    from giantsteps.simulation._run import Run

__all__ = [
    "as_top",
    "bulk",
    "complete",
    "fields",
    "first_gradient",
    "tangent",
    "targets",
    "teacher_overlaps",
]

#: Highest monomial of the features' spikes.
DEGREES = 4


def as_top(top: object, least: int) -> int:
    """How many values, as an int; at least so many."""
    if not isinstance(top, int | np.integer) or isinstance(top, bool) or top < least:
        raise InvalidProblem("top", top, f"an integer >= {least}")
    return int(top)


def fields(run: Run, matrix: str, top: int) -> dict[str, Any]:
    """The fields of a `Spectrum` without its bulk."""
    top = as_top(top, 0)
    spikes = {
        "weights": _weight_spikes,
        "kernel": _kernel_spikes,
        "features": _feature_spikes,
        "tangent": _tangent_spikes,
    }[matrix]
    return run.facts() | {
        "matrix": "tangent kernel" if matrix == "tangent" else matrix,
        "spikes": spikes(run, top) if top else (),
    }


def bulk(run: Run, matrix: str) -> EmpiricalLaw:
    """The law of all values of the spectrum."""
    if matrix == "weights":
        d, neurons = run.sizes.d, run.sizes.neurons
        copied = 8 * d * neurons if run.backend.itemsize < 8 else 0
        held = run.weight_bytes + copied + 3 * 8 * min(d, neurons) ** 2
        run.budget.rows(d, neurons, held, "the singular values of the weights")
        return EmpiricalLaw(singular_values(run.backend, run.trained.weights))
    if matrix == "tangent":
        kernel, _ = tangent(run)
        return EmpiricalLaw(_eigenvalues(run.backend, kernel))
    values = _eigenvalues(run.backend, run.gram.matrix)
    if matrix == "features":
        return EmpiricalLaw(np.sqrt(values))
    zeros = np.zeros(max(run.gram.samples - run.gram.neurons, 0))
    return EmpiricalLaw(np.concatenate([zeros, values]))


def complete(run: Run, matrix: str, top: int, with_bulk: bool) -> Spectrum:
    """The whole answer at once."""
    law = bulk(run, matrix) if with_bulk else None
    return Spectrum(**fields(run, matrix, top), bulk=law)


def targets(arrays: Arrays, inputs: Array, labels: Array, direction: Array | None) -> Array:
    """What the features are compared with: columns y, 1, z, z², … with z = ⟨x, b⟩/‖b‖."""
    xp = arrays.xp
    columns = [labels, xp.ones_like(labels)]
    if direction is not None:
        norm = xp.linalg.vector_norm(direction)
        z = arrays.wide(inputs @ arrays.narrow(direction / norm))
        columns += [z**degree for degree in range(1, DEGREES + 1)]
    return xp.stack(columns, axis=1)


def _eigenvalues(arrays: Arrays, symmetric: Array) -> np.ndarray:
    return np.maximum(arrays.to_host(arrays.eigvalsh(symmetric)), 0.0)


def _weight_spikes(run: Run, top: int) -> tuple[Spike, ...]:
    arrays, trained = run.backend, run.trained
    values, left, right = largest_of(arrays, trained.weights, top)
    u, v = arrays.to_host(left), arrays.to_host(right)
    along = teacher_overlaps(run, u)
    overlaps = {} if along is None else {"teacher": along}
    if trained.direction is not None:
        overlaps["gradient"] = _cosines(_host(run, trained.direction), u)
    overlaps["second_layer"] = _cosines(_host(run, run.network.second_layer), v)
    return _spikes(values, overlaps)


def teacher_overlaps(run: Run, vectors: np.ndarray) -> np.ndarray | None:
    """Squared components of unit columns in the span of β*; None if it is not known."""
    beta = run.network.teacher
    if beta is None:
        return None
    basis = np.linalg.qr(_host(run, beta))[0]
    found: np.ndarray = np.sum((basis.T @ vectors) ** 2, axis=0)
    return found


def _kernel_spikes(run: Run, top: int) -> tuple[Spike, ...]:
    values, inner, _ = _gram_pairs(run, top)
    squares = run.backend.to_host(run.gram.squares)
    return _spikes(values, {"labels": inner[0] ** 2 / squares[0, 0]})


def _feature_spikes(run: Run, top: int) -> tuple[Spike, ...]:
    values, inner, right = _gram_pairs(run, top)
    degrees = _present_degrees(run)
    if not degrees:
        return _spikes(np.sqrt(values), {})
    columns = [1 + degree for degree in degrees]
    squares = run.backend.to_host(run.gram.squares)
    left = _orthogonal_overlaps(squares[np.ix_(columns, columns)], inner[columns])
    powers = _host(run, run.network.second_layer)[:, None] ** np.array(degrees)
    powers = powers / np.linalg.norm(powers, axis=0)
    across = _orthogonal_overlaps(powers.T @ powers, powers.T @ right)
    best, spike = np.argmax(left, axis=0), np.arange(values.size)
    overlaps = {"monomial": left[best, spike], "second_layer_power": across[best, spike]}
    return _spikes(np.sqrt(values), overlaps, [degrees[number] for number in best])


def _present_degrees(run: Run) -> list[int]:
    """Degrees k ≤ 4 with c_k ≠ 0 whose monomial exists: without a step there is only k = 0."""
    highest = DEGREES if run.trained.direction is not None else 0
    activation = run.problem.activation
    sizes = np.abs(hermite_coefficients(activation, highest))
    return [int(k) for k in np.flatnonzero(sizes > 1e-10 * moments(activation).norm)]


def _gram_pairs(run: Run, top: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Top eigenvalues of ΦΦᵀ, ⟨u, targets⟩ (columns, top), and right vectors (N, top)."""
    arrays, gram = run.backend, run.gram
    xp, full = arrays.xp, arrays.mirror(gram.matrix)
    size = full.shape[0]
    values, vectors = largest(arrays, lambda v: full @ v, size, top)
    roots = np.sqrt(np.maximum(values, np.finfo(float).tiny))
    inner = arrays.to_host(xp.matrix_transpose(gram.targets) @ vectors)
    if gram.features is None:
        return values, inner / roots, arrays.to_host(vectors)
    right = xp.matrix_transpose(arrays.wide(gram.features)) @ vectors
    return values, inner, arrays.to_host(right) / roots


def tangent(run: Run) -> tuple[Array, Array]:
    """The tangent kernel of the readout's samples, and their labels."""
    run.problem.require_readout()
    samples = run.sizes.samples
    assert samples is not None
    d, neurons = run.sizes.d, run.sizes.neurons
    held = (
        run.weight_bytes + run.backend.itemsize * samples * (d + 2 * neurons) + 3 * 8 * samples**2
    )
    run.budget.rows(d, neurons, held, "the tangent kernel")
    inputs, labels = run.network.readout_batch(0, samples)
    slope = run.problem.activation.derivative
    kernel, _ = tangent_kernel(run.backend, inputs, run.trained.weights, slope)
    return kernel, labels


def _tangent_spikes(run: Run, top: int) -> tuple[Spike, ...]:
    kernel, labels = tangent(run)
    full = run.backend.mirror(kernel)
    values, vectors = largest(run.backend, lambda v: full @ v, full.shape[0], top)
    return _spikes(values, {"labels": _cosines(_host(run, labels), run.backend.to_host(vectors))})


def first_gradient(run: Run) -> Gradient:
    r"""√N G of the first step, its rank-one part μ₁ b aᵀ and what is left."""
    if not run.problem.steps:
        raise InvalidProblem("steps", (), "at least one step for this question")
    arrays = run.backend
    xp = arrays.xp
    descent = run.descent(run.start(), 0)
    residual, b = descent.update, descent.direction
    a = arrays.wide(run.network.second_layer)
    _, left, right = largest_of(arrays, residual, 1)
    u, v = arrays.to_host(left), arrays.to_host(right)
    along = teacher_overlaps(run, u)
    overlaps = {} if along is None else {"teacher": along}
    overlaps["direction"] = _cosines(_host(run, b), u)
    overlaps["second_layer"] = _cosines(_host(run, a), v)
    slope = moments(run.problem.activation).linear
    norms = [float(xp.linalg.vector_norm(vector)) for vector in (a, b)]
    residual -= slope * b[:, None] * a[None, :]
    return Gradient(
        **run.facts(),
        spike_norm=abs(slope) * math.prod(norms),
        residual_operator_norm=float(largest_of(arrays, residual, 1)[0][0]),
        residual_frobenius_norm=math.sqrt(float(xp.sum(residual**2))),
        overlaps={name: float(found[0]) for name, found in overlaps.items()},
    )


def _host(run: Run, x: Array) -> np.ndarray:
    return np.asarray(run.backend.to_host(x), dtype=float)


def _cosines(direction: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Squared cosines of unit columns with a direction; 0 if it is zero."""
    norm = np.linalg.norm(direction)
    return (direction @ vectors) ** 2 / (norm**2 if norm > 0 else 1.0)


def _orthogonal_overlaps(gram: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """Squared components of unit vectors on Gram–Schmidt directions.

    ``gram`` (k, k) are the products of the given directions, ``inner`` (k, vectors) those with
    the vectors. A direction in the span of those before it has component zero.
    """
    scale = np.sqrt(np.diag(gram))
    gram, inner = gram / np.outer(scale, scale), inner / scale[:, None]
    found = np.zeros_like(inner)
    for number in range(len(gram)):
        pivot = gram[number, number]
        if pivot < 1e-10:
            continue
        found[number] = inner[number] ** 2 / pivot
        column = gram[:, number] / pivot
        inner = inner - np.outer(column, inner[number])
        gram = gram - np.outer(column, gram[number])
    return found


def _spikes(
    values: np.ndarray, overlaps: dict[str, np.ndarray], degrees: list[int] | None = None
) -> tuple[Spike, ...]:
    return tuple(
        Spike(
            value=float(value),
            overlaps={name: float(found[number]) for name, found in overlaps.items()},
            degree=None if degrees is None else degrees[number],
        )
        for number, value in enumerate(values)
    )
