"""The test error without test points: the expectation over all Gaussian inputs.

Given its weights, a network's error is a sum over pairs of neurons that a Hermite expansion
gives to any accuracy. It costs one product WᵀW instead of one with every test point, and leaves
no Monte-Carlo error; only the network and its training samples are random then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial import chebyshev

from giantsteps.errors import InvalidProblem, NotConverged
from giantsteps.gaussian import gauss_rule, hermite_functions
from giantsteps.simulation._engine._arrays import Array, Arrays
from giantsteps.simulation._readout._error import PointError

if TYPE_CHECKING:
    from giantsteps.functions import Function
    from giantsteps.simulation._networks import Networks

_HIGHEST = 200  # degree of the expansion
_TOLERANCE = 1e-10  # of the terms left out, relative to E f*², before the exact bound
_ACCEPTED = 1e-4  # largest bound of the error relative to the risk
_SLAB = 128  # rows of the pairs of neurons at a time


@dataclass(frozen=True)
class _Scaled:
    """z ↦ f(scale · z), with the kinks of f where they then are."""

    function: Function
    scale: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.function(self.scale * x)

    def breakpoints(self, lower: float, upper: float) -> np.ndarray:
        return self.function.breakpoints(self.scale * lower, self.scale * upper) / self.scale


def scaled_coefficients(
    function: Function, scales: np.ndarray, degree: int
) -> tuple[np.ndarray, np.ndarray]:
    """C_k(s) = E[f(sz) h_k(z)], k = 0..degree, and E f(sz)², for many scales s.

    Both are analytic in s > 0: Chebyshev interpolation, refined until it is right to 1e-11.

    Returns
    -------
    coefficients : ndarray (degree + 1, scales)
    squares : ndarray (scales,)
    """
    # Rounded ends, so that the rules are found again for the next network.
    lower = max(math.floor(10 * float(scales.min())) / 10, float(scales.min()) / 2)
    upper = math.ceil(10 * float(scales.max()) + 1e-9) / 10

    def exact(s: float) -> np.ndarray:
        reach = math.ceil(math.sqrt(4 * degree + 2) + 6)
        rule = gauss_rule(_Scaled(function, s), reach=max(14.0, reach))
        values = function(s * rule.nodes)
        coefficients = rule.mean(hermite_functions(rule.nodes, degree) * values)
        return np.append(coefficients, rule.mean(values**2))

    def unit(s: np.ndarray) -> np.ndarray:
        return (2 * s - lower - upper) / (upper - lower)

    probes = np.linspace(lower, upper, 4)[1:3]
    expected = np.stack([exact(float(s)) for s in probes])
    error = np.inf
    for count in (8, 16, 32, 64):
        nodes = (lower + upper + (upper - lower) * chebyshev.chebpts1(count)) / 2
        values = np.stack([exact(float(s)) for s in nodes])
        series = chebyshev.chebfit(unit(nodes), values, count - 1)
        error = float(np.max(np.abs(chebyshev.chebval(unit(probes), series).T - expected)))
        if error <= 1e-11 * max(1.0, float(np.max(np.abs(expected)))):
            found = chebyshev.chebval(unit(scales), series)
            return found[:-1], found[-1]
    raise NotConverged(
        f"Hermite coefficients of {function!r} for weights of norm {lower:g} to {upper:g}",
        error,
        64,
        "test_samples=10_000",
    )


def population_error(
    run: Networks, weights: Array, coefficients: Array, degrees: int
) -> PointError:
    r"""R = E(f̂ − f*)² over x ~ N(0, Σ) for readouts â, given the weights.

    .. math::
        E \hat f^2 = \frac1N \sum_{ij} \hat a_i \hat a_j \sum_k C_k(s_i) C_k(s_j) ρ_{ij}^k,
        \qquad
        E \hat f f^* = \frac1{\sqrt N} \sum_{ik} \hat a_i C_k(s_i) c^*_k t_i^k

    ======  ==========================================================================
    symbol  meaning
    ======  ==========================================================================
    s_i     ‖Σ^{1/2}w_i‖; ρ_ij the cosine of w_i and w_j in that metric, t_i that of w_i and β*
    C_k(s)  E[σ(sz) h_k(z)], c*_k = E[σ*(z) h_k(z)], h_k = He_k/√k!
    ======  ==========================================================================

    The diagonal is exact. What is left out beyond degree K is at most
    Σ_i â_i²τ_i²/N · (Σ_{i≠j} ρ_ij^{2K+2})^{1/2} with τ_i² = E σ(s_i z)² − Σ_{k ≤ K} C_k(s_i)²
    for the square, and 2 Σ_i |â_i τ_i| τ* |t_i|^{K+1}/√N for the product; the sum of both is
    returned as ``standard_error``.

    * ``weights``: W.
    * ``coefficients``: â.
    * ``degrees``: highest degree of ``by_degree``.

    Raises
    ------
    NotConverged
        If the bound exceeds 1e-4 of the risk: neurons of large norm that are almost parallel.
    """
    teacher = run.problem.teacher
    if teacher.rank != 1:
        raise InvalidProblem(
            "test_samples", "exact", "a number: the teacher has several directions"
        )
    beta = run.network.teacher
    assert beta is not None
    arrays = run.backend
    xp, neurons = arrays.xp, run.sizes.neurons
    weights, beta = run.whitened(weights), run.whitened(beta)
    coefficients = arrays.to_host(coefficients)
    norms = xp.linalg.vector_norm(weights, axis=0)
    unit = weights / norms
    cosines = arrays.mirror(arrays.add_gram(arrays.zeros(neurons, neurons), unit))
    along = arrays.to_host(xp.matrix_transpose(unit) @ beta[:, 0])
    closest = float(np.max(np.abs(along)))
    for rows in _slabs(neurons):
        closest = max(closest, float(xp.max(xp.abs(_off_diagonal(arrays, cosines[rows, :], rows)))))
    degree = _degree(closest, neurons, degrees)

    ours, squares = scaled_coefficients(run.problem.activation, arrays.to_host(norms), degree)
    theirs, (their_square,) = scaled_coefficients(teacher.link, np.ones(1), degree)  # type: ignore[attr-defined]
    left = np.maximum(squares - np.sum(ours**2, axis=0), 0.0)
    their_left = max(float(their_square - np.sum(theirs**2)), 0.0)

    negligible = 1e-14 * math.sqrt(squares.max())
    used = [k for k in range(degree + 1) if np.max(np.abs(ours[k])) > negligible]
    crossed, rest = _pair_sum(run, cosines, ours, coefficients, used, degree)
    own = np.sum(coefficients**2 * squares[:, None], axis=0)
    powers = along ** np.arange(degree + 1)[:, None]
    projections = (ours * powers) @ coefficients / math.sqrt(neurons)
    theirs = theirs[:, 0]
    risk = (own + crossed) / neurons - 2 * theirs @ projections + their_square

    bound = np.sum(coefficients**2 * left[:, None], axis=0) / neurons * rest
    far = np.abs(along) ** (degree + 1) * np.sqrt(left * their_left)
    bound += 2 * np.abs(coefficients).T @ far / math.sqrt(neurons)
    worst = int(np.argmax(bound / np.maximum(risk, 1e-300)))
    if not bound[worst] <= _ACCEPTED * risk[worst] + 1e-12 * their_square:
        raise NotConverged(
            "the exact test error", float(bound[worst]), degree, "test_samples=10_000"
        )
    parts = (projections[: degrees + 1] - theirs[: degrees + 1, None]) ** 2
    return PointError(risk, bound, parts.T)


def _degree(closest: float, neurons: int, least: int) -> int:
    """The degree at which closest^(K+1) N is negligible, within limits."""
    if closest >= 1:
        return _HIGHEST
    needed = math.log(_TOLERANCE / neurons) / math.log(max(closest, 1e-12))
    return int(min(max(math.ceil(needed), least, 4), _HIGHEST))


def _slabs(neurons: int) -> list[slice]:
    """Rows of the pairs of neurons, a few at a time."""
    return [slice(i, min(i + _SLAB, neurons)) for i in range(0, neurons, _SLAB)]


def _off_diagonal(arrays: Arrays, matrix: Array, rows: slice) -> Array:
    """``rows`` of a matrix with ones on its diagonal, with zeros there instead."""
    xp = arrays.xp
    return matrix - xp.eye(*matrix.shape, k=rows.start, dtype=xp.float64, device=arrays.device)


def _pair_sum(
    run: Networks,
    cosines: Array,
    ours: np.ndarray,
    coefficients: np.ndarray,
    used: list[int],
    degree: int,
) -> tuple[np.ndarray, float]:
    """Σ_{i≠j} â_i â_j Σ_k C_k(s_i)C_k(s_j)ρ_ij^k for each cell, and (Σ_{i≠j} ρ_ij^{2K+2})^½."""
    arrays = run.backend
    xp = arrays.xp
    columns, factors = (arrays.asarray(each, wide=True) for each in (coefficients, ours))
    total, rest = np.zeros(coefficients.shape[1]), 0.0
    for rows in _slabs(cosines.shape[0]):
        cosine = _off_diagonal(arrays, cosines[rows, :], rows)
        power, reached = _off_diagonal(arrays, xp.ones_like(cosine), rows), 0
        inner = arrays.zeros(cosine.shape[0], columns.shape[1])
        for k in used:
            for _ in range(k - reached):
                power = power * cosine
            reached = k
            inner = inner + factors[k, rows][:, None] * (power @ (factors[k, :][:, None] * columns))
        total += arrays.to_host(xp.sum(columns[rows, :] * inner, axis=0))
        rest += float(xp.sum((power**2) * (cosine**2) ** (degree + 1 - reached)))
    return total, math.sqrt(rest)
