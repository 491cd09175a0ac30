"""Theory for weights that are given, however they were trained (theory §4, §5a)."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import Risk, Solution
from giantsteps.errors import InvalidProblem
from giantsteps.functions import Function, Teacher
from giantsteps.problem import Problem
from giantsteps.theory.model.given_weights import GivenFeatures
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.threads import capped

#: From so many neurons on, the linear algebra uses as many threads as it may.
_LARGE = 1000
#: Second layers with more values than this are sorted into bins.
_TYPES = 16
#: Spikes are looked for along polynomials of the second layer with so many terms.
_POWERS = 4
#: Entries of weights are smaller, so that no product of them overflows.
_LARGEST = 1e50
#: A direction is a spike if its square exceeds that of noise by this factor; one is always kept.
_SIGNIFICANT = 1.5
_GIVEN = (
    "given their coordinates along the common directions of the neurons, at most two, the features "
    "act like Gaussian ones with the same second moments"
)


def risk_of_weights(weights: Any, teacher_directions: Any, problem: Problem) -> Risk:
    r"""Errors of the readout of ``problem`` on features with given weights, however trained.

    With u the directions that the neurons have in common (left singular vectors of W, two at most)
    and k the coordinates of the input along them, features have the mean μ(k) and the covariance

    .. math::
        Ω_{ij}(k) &= \sum_{l ≤ 2} b_{li}(k)\, b_{lj}(k) \cos(w_i, w_j)_⊥^l
                     + δ_{ij}\sum_{l>2} b_{lj}(k)^2, \qquad M = Ω + μμ^⊤, \\
        A &= (λ + E_k[ωM])^{-1},\qquad ω = (1 + n^{-1}\mathrm{tr}\,M A)^{-1},\qquad
        \bar a = A\,E_k[ω\,E(yφ|k)], \\
        err(k) &= E[(y - φ^⊤\bar a)^2|k]
                  + n^{-1}E_{k'}[ω^2\, err\; \mathrm{tr}\,M(k)A M(k')A], \\
        R + Δ &= E_k[err],\qquad \text{train} = E_k[ω^2\, err].

    Before a step and after small ones there is no common direction, and this is theory §4 with the
    covariance of the given weights: κ = λ/ω.

    ==============  ======================  ====================================================
    symbol          argument                meaning
    ==============  ======================  ====================================================
    w_j             ``weights``             columns; cosines of what is left beside u
    β*              ``teacher_directions``  direction of the teacher
    σ, σ*, Δ, n, λ  ``problem``             activation, teacher, noise and readout
    b_lj                                    Hermite coefficients of z ↦ σ(s_j·k + ‖w_⊥j‖z)
    ω                                       1 − leverage of a sample at k
    ==============  ======================  ====================================================

    Parameters
    ----------
    weights : array of shape (d, N)
        NumPy or torch; columns of any norm.
    teacher_directions : array of shape (d,) or (d, 1)
        β*, of norm one.
    problem : Problem
        Gives activation, teacher, noise and readout; its steps are not used. The shape of the
        weights must be that of ``problem.at(d)``.

    References
    ----------
    theory §4, §5c; ba2022, dandi2024.

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
    if not isinstance(problem, Problem):
        raise InvalidProblem("problem", problem, "a single Problem: the weights are those of one")
    w = _matrix(weights, teacher_directions)
    d, neurons = w.shape
    beta = _direction(teacher_directions, d)
    readout = problem.require_readout()
    sizes = problem.at(d)
    if sizes.neurons != neurons:
        raise InvalidProblem(
            "weights",
            w.shape,
            f"of shape ({d}, {sizes.neurons}): width = {problem.width:g} at d = {d}",
        )
    assert sizes.samples is not None
    link: Function = problem.teacher.link  # type: ignore[attr-defined]
    norms = np.linalg.norm(w, axis=0)
    if not np.all(norms > 0):
        raise InvalidProblem("weights", "a column of zeros", "columns of positive norm")
    features = GivenFeatures(problem.activation, link, w, beta, problem.noise_variance)
    with capped(1) if neurons < _LARGE else nullcontext():
        found = features.errors(sizes.samples, readout.penalty, problem.binary)
    return Risk(
        problem=problem,
        d=d,
        source="finite width",
        exact=True,
        assumptions=(_GIVEN,),
        evidence="derived (theory §4, §5c; checked against networks)",
        references=("ba2022", "dandi2024"),
        solution=Solution(status="converged", residual=found.residual, iterations=found.rounds),
        test=found.test,
        train=found.train,
        classification_error=found.wrong_sign if problem.binary else None,
    )


def model_of_weights(
    weights: Any,
    second_layer: Any,
    teacher_directions: Any,
    *,
    activation: Function | str,
    teacher: Teacher | Function | str,
    noise_variance: float = 0.0,
) -> SpikedFeatures:
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
        allowed = "an array of numbers (weight.T of an nn.Linear)"
        raise InvalidProblem(field, array, allowed) from None
    if not np.all(np.isfinite(values)):
        raise InvalidProblem(field, "NaN or infinite", "finite")
    if np.abs(values).max(initial=0.0) > _LARGEST:
        raise InvalidProblem(field, f"up to {np.abs(values).max():.1e}", f"below {_LARGEST:g}")
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
