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
from giantsteps.theory.steps.several.covariance import covariance_of_state, weights_of_state
from giantsteps.theory.steps.several.model import RESOLVED
from giantsteps.theory.steps.several.opening import after_first
from giantsteps.theory.steps.several.spectrum import Spectrum, spectrum_of
from giantsteps.theory.steps.several.trained import Trained
from giantsteps.types import FloatArray

#: Gauss–Legendre nodes of the size of a continuous second layer, by resolution.
_SIZES = (16, 22)
#: One value of the second layer.
_ONE = np.ones(1), np.ones(1)
#: What rounding leaves of closed forms.
_CLOSED = 1e-12


def gradient(problems: Sequence[Problem], claims: Sequence[Any], d: int | None) -> list[Gradient]:
    """Norms of √N G's two parts, and the overlaps of its top singular vectors."""
    return [_gradient(p, claim, d) for p, claim in zip(problems, claims, strict=True)]


def _gradient(problem: Problem, claim: Any, d: int | None) -> Gradient:
    sized = _plain(problem if d is None else problem.realised(d))
    first, law, spectrum = first_step(sized, d=d), problem.init.second_layer, spectrum_of(sized, d)
    sigma = moments(problem.activation)
    square = sigma.derivative_variance * first.label_moment / sized.steps[0].samples
    tilt = 2 * sigma.quadratic * first.label_mean  # of ΣW₀ itself, where residuals have a mean
    square += tilt**2 * spectrum.mean(2)
    norm, error, alignment = 0.0, _CLOSED, first.alignment
    if d is not None:
        direction = _gained(sized, spectrum, _ONE, 1).gradients[0]
        square += _uneven(sized, direction, spectrum)[1]
        norm, error = _norm(sized, problem.at(d).neurons, d)
        alignment += by_chance(sized, d)
    return Gradient(
        **claim,
        solution=Solution(status="closed form" if d is None else "converged", error=error),
        spike_norm=abs(sigma.linear) * math.sqrt(first.norm_squared * law.second_moment),
        residual_operator_norm=norm,
        residual_frobenius_norm=math.sqrt(square * law.second_moment),
        overlaps={"teacher": alignment, "direction": 1.0, "second_layer": 1.0},
    )


def _plain(problem: Problem) -> Problem:
    """The same first batch with a step of √N G itself."""
    plain: dict[str, Any] = {
        "rule": "gradient",
        "rate": 1.0,
        "exponent": 0.5,
        "decay": 0.0,
        "precondition": 0.0,
    }
    step = replace(problem.steps[0], **plain)
    return problem.unchecked(steps=(step,))


def _norm(problem: Problem, neurons: int, d: int) -> tuple[float, float]:
    """‖B‖_op, the largest singular value of B at N neurons, and an estimate of its error."""
    spectrum = _residual(problem, neurons, d, 0)
    if spectrum is None:
        return 0.0, _CLOSED
    edge, outliers = _edge(spectrum, problem, d), spectrum.outliers
    top = max((edge, *outliers))
    finer = _residual(problem, neurons, d, 1)
    assert finer is not None
    same = finer.outliers if top in outliers else ()
    again = min(same, key=lambda one: abs(one - top), default=_edge(finer, problem, d))
    error = relative(top, again) / 2
    return math.sqrt(top / neurons), max(error, ROUNDING)


def _edge(spectrum: WeightSpectrum, problem: Problem, d: int) -> float:
    """Where the law ends; an interval that one eigenvalue of Σ makes is one value in its middle."""
    law = spectrum.law
    if problem.inputs.isotropic:
        return law.edge
    left, right, mass = law.last()
    return (left + right) / 2 if d * mass < 1.5 else right


def _residual(problem: Problem, neurons: int, d: int, more: int) -> WeightSpectrum | None:
    """The spectrum of √N B, so many resolutions finer than usual; None if there is no B.

    Column j of √N B is what a neuron with the value A_j gains by the step beside its lean.
    """
    spectrum, level = spectrum_of(problem, d), 1 + more
    types = _sizes(problem, neurons, _SIZES[more])
    gained = _gained(problem, spectrum, types, level)
    if not np.any(gained.along):
        return None
    if spectrum.flat:
        bulk = covariance_of_state(gained, spectrum, RESOLVED[level])
    else:
        bulk = weights_of_state(gained, spectrum, RESOLVED[level]).bulk
    uneven, _ = _uneven(problem, gained.gradients[0], spectrum)
    return WeightSpectrum(
        width=problem.width,
        neurons=float(neurons),
        probabilities=types[1],
        spikes=(math.sqrt(uneven) * types[0])[:, None],
        bulk=bulk,
    )


def _gained(
    problem: Problem, spectrum: Spectrum, types: tuple[FloatArray, FloatArray], level: int
) -> Trained:
    """What neurons with these values of the second layer gain."""
    d = 1.0 / spectrum.inverse
    tails = 0.5 / (problem.steps[0].samples * d), 0.0
    law = problem, spectrum, problem.width * d, level, False, tails
    return after_first(*law, change=True, types=types)


def _uneven(problem: Problem, direction: FloatArray, spectrum: Spectrum) -> tuple[float, float]:
    r"""The largest variance of a column of B along one vector and the sum over all, for A = 1, as
    the mean of σ' makes it.

    Given a sample it has the second order 3c₃((w·x)² − 1), so that B contains 3c₃ times
    (w^⊤Σw − 1)b + 2⟨w, b⟩Σw, whose variance along u is 18c₃²/d² times u^⊤Ku,

    .. math:: K = bb^⊤\operatorname{tr}Σ² + 2(bb^⊤Σ² + Σ²bb^⊤) + 2Σbb^⊤Σ + 2\|b\|²Σ² ;

    on the sphere without what goes with ‖w‖. Of isotropic inputs the first term alone counts, and
    nothing in the sum: the others are smaller by 1/d.
    """
    cubic = float(hermite_coefficients(problem.activation, 3)[3])
    d, sphere = 1.0 / spectrum.inverse, float(problem.init.weights != "gaussian")
    unit = direction / np.sqrt(spectrum.values)[:, None]
    unit = unit / np.linalg.norm(unit)
    size = 18.0 * cubic**2 * first_step(problem, d=round(d)).norm_squared / d**2

    def form(values: FloatArray, square: float) -> tuple[float, float]:
        at, along = np.repeat(values, unit.shape[1]), unit.ravel()
        mixed = 2 * np.add.outer(at**2, at**2) + 2 * np.outer(at, at)
        mixed += d * (square - sphere) - 2 * sphere * np.add.outer(at, at)
        whole = np.outer(along, along) * mixed
        total = float(np.trace(whole)) + 2 * d * square
        return float(np.linalg.eigvalsh(whole + 2 * np.diag(at**2))[-1]), total

    largest, total = form(spectrum.values, spectrum.mean(2))
    least, rest = form(np.ones_like(spectrum.values), 1.0)
    return size * (d * (1 - sphere) + max(largest - least, 0.0)), size * (total - rest)


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
