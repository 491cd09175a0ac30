"""Theory for weights that are given, however they were trained."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from giantsteps.answers import Risk, Solution
from giantsteps.errors import InvalidProblem
from giantsteps.functions import Function, Teacher
from giantsteps.gaussian import hermite_coefficients, moments, smoothed
from giantsteps.problem import Problem
from giantsteps.theory.model.spiked_features import SpikedFeatures

__all__ = ["model_of_weights", "risk_of_weights"]

#: Second layers with more values than this are sorted into bins.
_TYPES = 16
#: Spikes are looked for along polynomials of the second layer with so many terms.
_POWERS = 4
#: A direction is a spike if its square exceeds that of noise by this factor; one is always kept.
_SIGNIFICANT = 1.5
#: Mean square component of a neuron along one direction above which Gaussian features fail.
_ALIGNED = 0.05
_GAUSSIAN = "the features act like Gaussian ones with the same second moments"
_SPREAD = "no neuron is aligned with a direction (else use SpikedFeatures.from_weights)"


def risk_of_weights(weights: Any, teacher_directions: Any, problem: Problem) -> Risk:
    r"""Errors of the readout of ``problem`` on features with given weights.

    Features φ_j = N^{-1/2}σ(⟨w_j, x⟩) act like Gaussian ones with the same second moments. With
    the Hermite coefficients c_k(j) of z ↦ σ(‖w_j‖z) and cos_ij the angles of the columns,

    .. math::
        NΣ_{ij} &= \sum_{k ≤ 2} k!\, c_k(i)c_k(j) \cos_{ij}^k + δ_{ij} \sum_{k>2} k!\, c_k(i)^2, \\
        \sqrt N c_j &= \sum_{k ≤ 2} k!\, c_k(j) c^*_k \cos(w_j, β^*)^k, \\
        κ(1 - df_1) &= λ,\qquad df_1 = n^{-1}\mathrm{tr}\,NΣ(NΣ+κ)^{-1},\qquad
        P(κ) = cᵀ(Σ + κ/N)^{-1}c, \\
        R + Δ &= \frac{E y² - P + κP'}{1 - df_2},\qquad \text{train} = (λ/κ)²(R + Δ).

    Exact while no single neuron is aligned with a direction that matters (η = Θ(1)); for large
    steps use :meth:`SpikedFeatures.from_weights`.

    ==============  ======================  ========================================
    symbol          argument                meaning
    ==============  ======================  ========================================
    w_j             ``weights``             columns
    β*              ``teacher_directions``  direction of the teacher
    σ, σ*, Δ, n, λ  ``problem``             activation, teacher, noise and readout
    κ, df₁, df₂                             effective penalty and degrees of freedom
    P                                       the part of E y² that is explained
    ==============  ======================  ========================================

    Parameters
    ----------
    weights : array of shape (d, N)
        NumPy or torch; columns of any norm.
    teacher_directions : array of shape (d,) or (d, 1)
        β*, of norm one.
    problem : Problem
        Gives activation, teacher, noise and readout; its steps are not used. A shape that is not
        the one of ``problem.at(d)`` is an error.

    References
    ----------
    theory §4; ba2022.

    Examples
    --------
    Random weights are those of a network before its steps:

    >>> import giantsteps as gs, numpy as np
    >>> from giantsteps import theory
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.5, noise_variance=0.05,
    ...                      readout=gs.Ridge(samples=2.0, penalty=0.1))
    >>> rng = np.random.default_rng(0)
    >>> W, beta = rng.standard_normal((400, 600)) / 20, np.eye(400)[0]
    >>> drawn, limit = risk_of_weights(W, beta, problem).test, theory.risk(problem).test
    >>> round(drawn, 3), round(limit, 3)
    (0.204, 0.21)
    """
    w = _matrix(weights, teacher_directions)
    d, neurons = w.shape
    beta = _direction(teacher_directions, d)
    readout = problem.require_readout()
    sizes = problem.at(d)
    if sizes.neurons != neurons:
        raise InvalidProblem(
            "weights", w.shape, f"of shape ({d}, {sizes.neurons}), the width of the problem at d"
        )
    assert sizes.samples is not None
    link: Function = problem.teacher.link  # type: ignore[attr-defined]
    norms = np.linalg.norm(w, axis=0)
    if not np.all(norms > 0):
        raise InvalidProblem("weights", "a column of zeros", "columns of positive norm")
    covariance, cross = _second_moments(problem.activation, link, w / norms, norms, beta)
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 0.0)
    weight = (vectors.T @ cross) ** 2
    penalty = readout.penalty

    def freedom(kappa: float) -> float:
        return float(np.sum(values / (values + kappa))) / sizes.samples  # type: ignore[operator]

    scale = float(values.mean())
    lowest = max(penalty, 1e-12 * scale)
    top = lowest + 2 * scale * neurons / sizes.samples
    kappa = brentq(lambda x: x * (1 - freedom(x)) - lowest, lowest, top, xtol=1e-14 * top)
    second = float(np.sum((values / (values + kappa)) ** 2)) / sizes.samples
    explained = float(np.sum(weight / (values + kappa)))
    slope = -float(np.sum(weight / (values + kappa) ** 2))
    labels = moments(link).second_moment + problem.noise_variance
    noisy = (labels - explained + kappa * slope) / (1 - second)
    aligned = np.linalg.norm(w, 2) ** 2 / neurons > _ALIGNED
    return Risk(
        problem=problem,
        d=d,
        source="finite width",
        exact=not aligned,
        assumptions=(_GAUSSIAN, _SPREAD),
        violated=(_SPREAD,) if aligned else (),
        references=("ba2022",),
        solution=Solution(status="converged"),
        test=noisy - problem.noise_variance,
        train=(1 - freedom(kappa)) ** 2 * noisy,
    )


def _second_moments(
    activation: Function, link: Function, units: NDArray, norms: NDArray, beta: NDArray
) -> tuple[NDArray, NDArray]:
    """N Σ and √N c."""
    felt = smoothed(activation, 0.0, norms)
    coefficients = np.stack([felt.mean, felt.linear, felt.quadratic])
    factorial = np.array([1.0, 1.0, 2.0])
    cosines, toward = units.T @ units, units.T @ beta
    wanted = hermite_coefficients(link, 2)
    covariance = np.zeros_like(cosines)
    cross = np.zeros(len(norms))
    power, power_toward = np.ones_like(cosines), np.ones(len(norms))
    for k in range(3):
        covariance += factorial[k] * np.outer(coefficients[k], coefficients[k]) * power
        cross += factorial[k] * wanted[k] * coefficients[k] * power_toward
        power, power_toward = power * cosines, power_toward * toward
    covariance[np.diag_indices_from(covariance)] = felt.second_moment
    return covariance, cross


def model_of_weights(
    weights: Any,
    second_layer: Any,
    teacher_directions: Any,
    *,
    activation: Function | str,
    teacher: Teacher | Function | str,
    noise_variance: float = 0.0,
) -> SpikedFeatures:
    """See :meth:`SpikedFeatures.from_weights`."""
    w = _matrix(weights, teacher_directions)
    d, neurons = w.shape
    beta = _direction(teacher_directions, d)
    values = _host(second_layer, "second_layer").ravel()
    if values.shape != (neurons,):
        raise InvalidProblem("second_layer", values.shape, f"of shape ({neurons},)")
    types, labels = _sort(values)
    counts = np.bincount(labels, minlength=len(types))
    functions = _polynomials(types, counts / neurons)
    # Y = θ b̂ vᵀ + noise, on functions of the second layer: a noisy direction of each spike.
    projected = w @ functions[labels] / np.sqrt(neurons)
    lengths = (w * w).sum(axis=0)
    noise = float(lengths.mean())
    left, seen, right = np.linalg.svd(projected, full_matrices=False)
    edge = noise * (1 + np.sqrt(functions.shape[1] / d)) ** 2
    rank = max(int((seen**2 > _SIGNIFICANT * edge).sum()), 1)
    strength = np.sqrt(np.maximum(seen[:rank] ** 2 - noise, 0.0))
    spikes = functions @ right[:rank].T * (strength / np.sqrt(neurons))
    cosine = strength / seen[:rank]  # of the direction seen with that of the spike
    overlap = np.divide(
        left[:, :rank].T @ beta, cosine, out=np.zeros(rank), where=seen[:rank] ** 2 > edge
    )
    variances = np.bincount(labels, weights=lengths) / counts - (spikes**2).sum(axis=1)
    return SpikedFeatures(
        activation=activation,
        teacher=teacher,
        noise_variance=noise_variance,
        width=neurons / d,
        neurons=float(neurons),
        probabilities=counts / neurons,
        spikes=spikes,
        overlap=overlap / max(1.0, float(np.linalg.norm(overlap))),
        bulk=variances,
        second_layer=types,
    )


def _polynomials(values: NDArray, weights: NDArray) -> NDArray:
    """Orthonormal polynomials of the types, shape (T, ≤ 4): Aᵏ, k = 0 … 3, orthogonalised."""
    scale = np.abs(values).max() or 1.0
    powers = (values[:, None] / scale) ** np.arange(min(len(values), _POWERS))
    root = np.sqrt(weights)[:, None]
    return np.linalg.qr(root * powers)[0] / root


def _sort(values: NDArray) -> tuple[NDArray, NDArray]:
    """Types of the second layer: its values if they are few, else bins of equal counts."""
    distinct, labels = np.unique(values, return_inverse=True)
    if len(distinct) > _TYPES:
        order = np.argsort(np.argsort(values, kind="stable"), kind="stable")
        labels = order * _TYPES // len(values)
        counts = np.bincount(labels)
        distinct = np.bincount(labels, weights=values) / counts
    return distinct, labels


def _host(array: Any, field: str) -> NDArray:
    """Any array as float64 NumPy."""
    if hasattr(array, "detach"):
        array = array.detach().cpu().numpy()
    try:
        values = np.asarray(array, dtype=float)
    except (TypeError, ValueError):
        raise InvalidProblem(field, array, "an array of numbers") from None
    if not np.all(np.isfinite(values)):
        raise InvalidProblem(field, "NaN or infinite", "finite")
    return values


def _matrix(weights: Any, teacher_directions: Any) -> NDArray:
    w = _host(weights, "weights")
    if w.ndim != 2 or not w.size:
        raise InvalidProblem("weights", w.shape, "of shape (d, N)")
    length = np.shape(_host(teacher_directions, "teacher_directions"))[:1]
    if length == w.shape[1:] != w.shape[:1]:
        raise InvalidProblem(
            "weights",
            w.shape,
            f"of shape (d, N) = {w.shape[::-1]}: pass the transpose (weight.T of an nn.Linear)",
        )
    return w


def _direction(teacher_directions: Any, d: int) -> NDArray:
    beta = _host(teacher_directions, "teacher_directions")
    if beta.shape == (d, 1):
        beta = beta[:, 0]
    if beta.shape != (d,):
        raise InvalidProblem("teacher_directions", beta.shape, f"a unit vector of shape ({d},)")
    norm = float(np.linalg.norm(beta))
    if not abs(norm**2 - 1) <= 1e-6:
        raise InvalidProblem("teacher_directions", f"a vector of norm {norm:g}", "of norm one")
    return beta
