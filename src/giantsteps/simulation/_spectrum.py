"""Spectra of a run: its weights, the kernel and the features of its readout, its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from giantsteps.answers import Gradient, Spectrum, Spike
from giantsteps.errors import InvalidProblem
from giantsteps.gaussian import hermite_coefficients, moments
from giantsteps.laws import EmpiricalLaw
from giantsteps.problem import integer
from giantsteps.simulation._engine._arrays import Array, Arrays
from giantsteps.simulation._engine._largest import largest, largest_of, singular_values
from giantsteps.simulation._readout._tangent import tangent_kernel
from giantsteps.simulation._readout._targets import DEGREES

if TYPE_CHECKING:
    from giantsteps.simulation._networks import Networks
    from giantsteps.simulation._run import Run


def fields(networks: Networks, matrix: str, top: int) -> list[dict[str, Any]]:
    """The fields of a `Spectrum` without its bulk, for each network."""
    top = integer(top, "top", "an integer >= 0", lower=0)
    spikes = {
        "weights": _weight_spikes,
        "kernel": _kernel_spikes,
        "features": _feature_spikes,
        "tangent": _tangent_spikes,
    }[matrix]
    name = "tangent kernel" if matrix == "tangent" else matrix
    facts = networks.facts() | {"matrix": name}
    if not top:
        return [facts | {"spikes": ()} for _ in range(networks.count)]
    return [facts | {"spikes": found} for found in spikes(networks, top)]


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
    (found,) = fields(run, matrix, top)
    return Spectrum(**found, bulk=law)


def _eigenvalues(arrays: Arrays, symmetric: Array) -> np.ndarray:
    return np.maximum(arrays.to_host(arrays.eigvalsh(symmetric)), 0.0)


def _weight_spikes(networks: Networks, top: int) -> list[tuple[Spike, ...]]:
    trained, teacher = networks.trained, networks.network.teacher
    values, left, right = largest_of(networks.backend, trained.weights, top)
    parts = (values, left, right, teacher, trained.direction, networks.network.second_layer)
    found = []
    for ell, u, v, beta, b, a in zip(*map(networks.each, parts)):
        overlaps = {} if beta is None else {"teacher": teacher_overlaps(beta, u)}
        if b is not None:
            overlaps["gradient"] = _cosines(b, u)
        overlaps["second_layer"] = _cosines(a, v)
        found.append(_spikes(ell, overlaps))
    return found


def teacher_overlaps(beta: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Squared components of unit columns in the span of β*."""
    basis = np.linalg.qr(beta)[0]
    found: np.ndarray = np.sum((basis.T @ vectors) ** 2, axis=0)
    return found


def _kernel_spikes(networks: Networks, top: int) -> list[tuple[Spike, ...]]:
    values, inner, _ = _gram_pairs(networks, top)
    parts = (values, inner, networks.gram.squares)
    return [
        _spikes(ell, {"labels": products[0] ** 2 / squares[0, 0]})
        for ell, products, squares in zip(*map(networks.each, parts))
    ]


def _feature_spikes(networks: Networks, top: int) -> list[tuple[Spike, ...]]:
    values, inner, right = _gram_pairs(networks, top)
    degrees = _present_degrees(networks)
    parts = (values, inner, right, networks.gram.squares, networks.network.second_layer)
    return [_monomials(degrees, *each) for each in zip(*map(networks.each, parts))]


def _monomials(
    degrees: list[int],
    values: np.ndarray,
    inner: np.ndarray,
    right: np.ndarray,
    squares: np.ndarray,
    second_layer: np.ndarray,
) -> tuple[Spike, ...]:
    """Spikes of the features of one network, each with the monomial that it is closest to."""
    if not degrees:
        return _spikes(np.sqrt(values), {})
    columns = [1 + degree for degree in degrees]
    left = _orthogonal_overlaps(squares[np.ix_(columns, columns)], inner[columns])
    powers = second_layer[:, None] ** np.array(degrees)
    powers = powers / np.linalg.norm(powers, axis=0)
    across = _orthogonal_overlaps(powers.T @ powers, powers.T @ right)
    best, spike = np.argmax(left, axis=0), np.arange(values.size)
    overlaps = {"monomial": left[best, spike], "second_layer_power": across[best, spike]}
    return _spikes(np.sqrt(values), overlaps, [degrees[number] for number in best])


def _present_degrees(networks: Networks) -> list[int]:
    """Degrees k ≤ 4 with c_k ≠ 0 whose monomial exists: without a step there is only k = 0."""
    highest = DEGREES if networks.trained.direction is not None else 0
    activation = networks.problem.activation
    sizes = np.abs(hermite_coefficients(activation, highest))
    return [int(k) for k in np.flatnonzero(sizes > 1e-10 * moments(activation).norm)]


def _gram_pairs(networks: Networks, top: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Top eigenvalues of ΦΦᵀ, ⟨u, targets⟩ (…, columns, top), and right vectors (…, N, top)."""
    arrays, gram = networks.backend, networks.gram
    xp, full = arrays.xp, arrays.mirror(gram.matrix)
    values, vectors = largest(arrays, lambda v: full @ v, full.shape[-1], top, networks.lead)
    roots = np.sqrt(np.maximum(values, np.finfo(float).tiny))[..., None, :]
    inner = arrays.to_host(xp.matrix_transpose(gram.targets) @ vectors)
    if gram.features is None:
        return values, inner / roots, arrays.to_host(vectors)
    right = xp.matrix_transpose(arrays.wide(gram.features)) @ vectors
    return values, inner, arrays.to_host(right) / roots


def tangent(run: Networks) -> tuple[Array, Array]:
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


def _tangent_spikes(run: Networks, top: int) -> list[tuple[Spike, ...]]:
    kernel, labels = tangent(run)
    full = run.backend.mirror(kernel)
    values, vectors = largest(run.backend, lambda v: full @ v, full.shape[0], top)
    (y,), (u,) = run.each(labels), run.each(vectors)
    return [_spikes(values, {"labels": _cosines(y, u)})]


def first_gradient(networks: Networks) -> list[Gradient]:
    r"""√N G of the first step, its rank-one part μ₁ b aᵀ and what is left, for each network."""
    if not networks.problem.steps:
        raise InvalidProblem("steps", (), "at least one step for this question")
    arrays = networks.backend
    xp = arrays.xp
    descent = networks.descent(networks.start(), 0)
    residual, b = descent.update, descent.direction
    a = arrays.wide(networks.network.second_layer)
    _, left, right = largest_of(arrays, residual, 1)
    slope = moments(networks.problem.activation).linear
    residual -= slope * b[..., :, None] * a[..., None, :]
    operator = largest_of(arrays, residual, 1)[0][..., 0]
    frobenius = xp.sqrt(xp.sum(residual**2, axis=(-2, -1)))
    parts = (operator, frobenius, left, right, networks.network.teacher, b, a)
    found = []
    for norm, rest, u, v, beta, direction, second in zip(*map(networks.each, parts)):
        overlaps = {} if beta is None else {"teacher": teacher_overlaps(beta, u)}
        overlaps["direction"] = _cosines(direction, u)
        overlaps["second_layer"] = _cosines(second, v)
        spike = abs(slope) * np.linalg.norm(direction) * np.linalg.norm(second)
        found.append(
            Gradient(
                **networks.facts(),
                spike_norm=float(spike),
                residual_operator_norm=float(norm),
                residual_frobenius_norm=float(rest),
                overlaps={name: float(each[0]) for name, each in overlaps.items()},
            )
        )
    return found


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
