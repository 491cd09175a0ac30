"""What ridge regression on the equivalent model gives: errors and the learned function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from giantsteps.answers import LearnedFunction, Risk, Solution
from giantsteps.errors import InvalidProblem, NotConverged, NotCovered
from giantsteps.gaussian import coordinate_rule, hermite_coefficients, hermite_functions
from giantsteps.problem import Ridge
from giantsteps.theory._readout import Readout, regress
from giantsteps.theory._ridge_batch import DEGREES, RidgeBatch
from giantsteps.theory._spiked_features import SpikedFeatures

__all__ = ["learned_function_of_model", "ridge_batch", "risk_of_model"]

#: Share of E_k[ω] from |k| > 6 (1e-9 without features) beyond which there is no answer.
_FAR_SHARE = 1e-4
#: Nodes of one spike coordinate given that of the teacher.
_AROUND = 24


def risk_of_model(model: SpikedFeatures, readout: Ridge) -> Risk:
    """Errors of one readout."""
    batch = ridge_batch([(model, [readout])])
    return Risk(
        **model.stated(),
        solution=_solution(batch.residual, batch.iterations),
        test=batch.test[0],
        train=batch.train[0],
        by_degree=batch.by_degree[0] if model.teacher.rank == 1 else None,
    )


def _solution(residual: NDArray, iterations: NDArray) -> Solution:
    return Solution(status="converged", residual=residual[0], iterations=iterations[0])


def ridge_batch(models: Sequence[tuple[SpikedFeatures, Sequence[Ridge]]]) -> RidgeBatch:
    """Errors of every readout of every model, in this order; cells are solved together.

    Raises
    ------
    NotConverged
        Naming the first setting that did not converge and what to try.
    """
    solved = regress([model.system(readouts) for model, readouts in models])
    for (model, readouts), readout in zip(models, solved):
        _check(model, readouts, readout)
    noise = [np.full(len(r), model.noise_variance) for model, r in models]
    return RidgeBatch(
        test=np.concatenate([r.error for r in solved]) - np.concatenate(noise),
        train=np.concatenate([r.train for r in solved]),
        by_degree=np.concatenate([by_degree(m, r) for (m, _), r in zip(models, solved)]),
        residual=np.concatenate([r.residual for r in solved]),
        iterations=np.concatenate([r.iterations for r in solved]),
    )


def _check(model: SpikedFeatures, readouts: Sequence[Ridge], solved: Readout) -> None:
    if np.any(solved.far > _FAR_SHARE):
        worst = int(np.argmax(solved.far))
        raise NotCovered(
            f"{readouts[worst]} on {model.describe()}",
            "σ saturates, so samples far along the spike have no feature variance and λ → 0 has "
            "no limit",
            "a larger penalty",
        )
    if solved.converged.all():
        return
    worst = int(np.argmin(solved.converged))
    raise NotConverged(
        f"the equivalent model of {model.describe()} with {readouts[worst]}",
        float(solved.residual[worst]),
        int(solved.iterations[worst]),
        "a larger penalty, or samples further from the width (without penalty the error diverges "
        "at n = N)",
    )


def by_degree(model: SpikedFeatures, readout: Readout, degree: int = DEGREES - 1) -> NDArray:
    r"""The part of E(f̂ − f*)² on He_j(⟨x, β*⟩), j = 0 … degree, shape (B, degree + 1).

    Given k, the prediction is C(k) + (Σμ₁ₜψₜ) z with z the teacher's coordinate orthogonal to
    the spikes, and E_z He_j(γ·k + √(1−|γ|²) z) = |γ|^j He_j(γ̂·k).
    """
    if model.teacher.rank > 1:
        return np.full((len(readout.error), degree + 1), np.nan)
    rule = model.coordinates
    length = math.sqrt(float(model.overlap @ model.overlap))
    along = rule.nodes @ (model.overlap / length) if length > 0 else rule.nodes[:, 0]
    basis = hermite_functions(along, degree)
    fit, slope = readout.fit[:, None, : len(along)], readout.slope[:, None, : len(along)]
    powers = length ** np.arange(degree + 1)
    learned = (fit * basis * rule.weights).sum(axis=-1) * powers
    # √j! cancels: j He_{j−1}/√j! = √j h_{j−1}.
    root = np.sqrt(np.arange(1, degree + 1))
    tilted = (slope * basis[:-1] * rule.weights).sum(axis=-1) * powers[:-1] * root
    learned[:, 1:] += model.remainder * tilted
    factorial = np.exp(gammaln(np.arange(1, degree + 2)) / 2)
    return (learned - hermite_coefficients(model.link, degree) * factorial) ** 2


def learned_function_of_model(
    model: SpikedFeatures,
    readout: Ridge,
    x: ArrayLike | None = None,
    along: Literal["spike", "teacher"] = "spike",
) -> LearnedFunction:
    r"""Mean and spread of the prediction given one coordinate of the input.

    Along the spike, k₁ = x. Along the teacher, ⟨x, β*⟩ = u: k ~ N(γu, I − γγᵀ), and with z the
    teacher's coordinate orthogonal to the spikes

    .. math:: E[\hat f | u] = E[C(k) + z Σμ_{1t}ψ_t | u].

    References: theory §5c; cui2024.
    """
    points = np.linspace(-3.0, 3.0, 61) if x is None else np.atleast_1d(np.asarray(x, dtype=float))
    if points.ndim != 1 or not np.all(np.isfinite(points)):
        raise InvalidProblem("x", x, "a one-dimensional array of finite numbers")
    if along not in ("spike", "teacher"):
        raise InvalidProblem("along", along, "'spike' or 'teacher'")
    direction = model.overlap if along == "teacher" else np.eye(model.rank)[0]
    # k given the coordinate, as a quadrature around direction · x: functions of k are smooth.
    rule = coordinate_rule(1, nodes=_AROUND) if model.rank == 1 else model.coordinates
    around = rule.nodes @ _root(np.eye(model.rank) - np.outer(direction, direction))
    weights = rule.weights
    if along == "spike" and model.rank == 1:
        around, weights = np.zeros((1, 1)), np.ones(1)
    k = (points[:, None, None] * direction + around).reshape(-1, model.rank)
    (solved,) = regress([model.system([readout], k)])
    _check(model, [readout], solved)
    shape = (len(points), len(weights))
    fit, slope, variance = (
        values[0, len(model.coordinates.weights) :].reshape(shape)
        for values in (solved.fit, solved.slope, solved.variance)
    )
    target = model.coefficients(k).target.reshape(shape)
    if along == "teacher":
        rest = points[:, None] - (k @ model.overlap).reshape(shape)
        z = rest / model.remainder if model.remainder > 0 else np.zeros(shape)
        fit, variance = fit + slope * z, variance - slope**2
        target = np.repeat(np.asarray(model.link(points), dtype=float)[:, None], shape[1], axis=1)
    mean = fit @ weights
    band = (variance + (fit - mean[:, None]) ** 2) @ weights
    return LearnedFunction(
        **model.stated(),
        solution=_solution(solved.residual, solved.iterations),
        x=points,
        mean=mean,
        band=np.sqrt(np.maximum(band, 0.0)),
        along=along,
        target=target @ weights,
    )


def _root(matrix: NDArray) -> NDArray:
    """The symmetric square root of a positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
