"""The first gradient: its rank-one part, and the law of what is left (theory §2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from giantsteps.answers import Gradient, Solution
from giantsteps.gaussian import hermite_coefficients, moments
from giantsteps.problem import Problem
from giantsteps.theory.model.resolved import ROUNDING, relative
from giantsteps.theory.model.weight_spectrum import WeightSpectrum
from giantsteps.theory.steps.first import by_chance, first_step
from giantsteps.theory.steps.one import neuron_law
from giantsteps.types import FloatArray

#: Gauss–Legendre nodes of the size of a continuous second layer, by resolution.
_SIZES = (16, 22)
#: What rounding leaves of closed forms.
_CLOSED = 1e-12


def gradient(problems: Sequence[Problem], claims: Sequence[Any], d: int | None) -> list[Gradient]:
    """Norms of √N G's two parts, and the overlaps of its top singular vectors."""
    return [_gradient(p, claim, d) for p, claim in zip(problems, claims, strict=True)]


def _gradient(problem: Problem, claim: Any, d: int | None) -> Gradient:
    sized = problem if d is None else problem.realised(d)
    first, law = first_step(sized), problem.init.second_layer
    sigma = moments(problem.activation)
    spread = sigma.derivative_variance * first.label_moment / sized.steps[0].samples
    tilt = 2 * sigma.quadratic * first.label_mean  # of W₀ itself, where residuals have a mean
    norm, error = (0.0, _CLOSED) if d is None else _norm(sized, problem.at(d).neurons, d)
    alignment = first.alignment + (0.0 if d is None else by_chance(sized, d))
    return Gradient(
        **claim,
        solution=Solution(status="closed form" if d is None else "converged", error=error),
        spike_norm=abs(sigma.linear) * math.sqrt(first.norm_squared * law.second_moment),
        residual_operator_norm=norm,
        residual_frobenius_norm=math.sqrt((spread + tilt**2) * law.second_moment),
        overlaps={"teacher": alignment, "direction": 1.0, "second_layer": 1.0},
    )


def _norm(problem: Problem, neurons: int, d: int) -> tuple[float, float]:
    """‖B‖_op, the largest singular value of B at N neurons, and an estimate of its error."""
    spectrum = _residual(problem, neurons, d, 0)
    if spectrum is None:
        return 0.0, _CLOSED
    edge, outliers = spectrum.law.edge, spectrum.outliers
    top = max((edge, *outliers))
    finer = _residual(problem, neurons, d, 1)
    assert finer is not None
    same = finer.outliers if top in outliers else ()
    again = min(same, key=lambda one: abs(one - top), default=finer.law.edge)
    error = relative(top, again) / 2
    return math.sqrt(top / neurons), max(error, ROUNDING)


def _residual(problem: Problem, neurons: int, d: int, more: int) -> WeightSpectrum | None:
    """The spectrum of √N B, so many resolutions finer than usual; None if there is no B.

    Column j of √N B has the covariance A_j²[(h₁M)² + v_h𝐒/α₀]: what a neuron that moves by s = A_j
    gains in covariance beyond the terms linear in s.
    """
    sizes, probabilities = _sizes(problem, neurons, _SIZES[more])
    law = neuron_law(problem, sizes, level=1 + more, tail=0.5 / (problem.steps[0].samples * d))
    whole = law.covariance()
    keep = np.ones(whole.coefficients.shape[1])
    keep[0] = 0.0  # I
    if len(keep) > 2:
        keep[1] = 0.0  # 2M
    coefficients = whole.coefficients * keep
    if not np.any(coefficients):
        return None
    return WeightSpectrum(
        width=problem.width,
        neurons=float(neurons),
        probabilities=probabilities,
        spikes=(_uneven(problem, neurons) * sizes)[:, None],
        bulk=replace(whole, coefficients=coefficients),
    )


def _uneven(problem: Problem, neurons: int) -> float:
    """3|c₃|‖b‖√(2/d): Gaussian weights differ in norm, σ' has the mean μ₁ + 3c₃(‖w‖² − 1)."""
    if problem.init.weights != "gaussian":
        return 0.0
    cubic = abs(float(hermite_coefficients(problem.activation, 3)[3]))
    return 3.0 * cubic * math.sqrt(2.0 * problem.width / neurons * first_step(problem).norm_squared)


def _sizes(problem: Problem, neurons: int, count: int) -> tuple[FloatArray, FloatArray]:
    """|A| and its probabilities; an unbounded law up to the largest of N draws."""
    law = problem.init.second_layer
    if math.isinf(law.distinct_nonzero):
        largest = float(-ndtri(0.5 / neurons))
        nodes, weights = np.polynomial.legendre.leggauss(count)
        sizes = largest * (1 + nodes) / 2
        probabilities = weights * np.exp(-sizes * sizes / 2) / math.sqrt(2 * math.pi)
        return sizes, probabilities / probabilities.sum()
    values, probabilities = law.types()
    return np.abs(values), probabilities
