"""From a problem with one step (or none) to its equivalent model (theory §5b)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.gaussian import Moments, moments
from giantsteps.problem import Problem
from giantsteps.theory._bulk import label_law
from giantsteps.theory._directions import Directions
from giantsteps.theory._first_step import first_step, link_of
from giantsteps.theory._lengths import lengths_after_step
from giantsteps.theory._spiked_features import SpikedFeatures

__all__ = ["one_step"]

#: c₂ smaller than this, relative to the norm of σ, is zero.
_ZERO = 1e-10
#: Nodes on either side of zero that stand for a continuous second layer: errors, spectra.
_FINE, _COARSE = 20, 8
#: Spike of A = 1 from which the types of a continuous second layer resolve the closure.
_RESOLVED = 0.1
_BULKS = ("exact", "isotropic")
_LENGTHS = ("equal", "drawn")


def one_step(
    problem: Problem, d: int | None = None, *, bulk: str = "exact", lengths: str = "equal"
) -> SpikedFeatures:
    r"""The equivalent model after one gradient step.

    One spike direction b̂ with overlap γ = ρ; types A_t of the second layer with
    S_t = η̃ A_t μ₁‖b‖, η̃ = η/√N. Given the batch, rows of type t have

    .. math:: d\,\mathrm{Cov} = (I + κ_t M)^2 + η̃²A_t²\frac{\mathrm{Var}σ' - 4c_2²}{α_0} \mathbf S,
              \qquad κ_t = 2c_2η̃A_t.

    Parameters
    ----------
    problem : Problem
        No step, or one.
    d : int, optional
        Input dimension; without it the step must have exponent 1/2 (then η̃ = rate, N = ∞).
    bulk : {"exact", "isotropic"}
        ``"exact"`` uses the law of 𝐒 for c₂ = 0, and along the law of M the mean of 𝐒 for c₂ ≠ 0
        (a good approximation); ``"isotropic"`` replaces both by their traces (cui2024).
    lengths : {"equal", "drawn"}
        Whether the lengths of the neurons vary within a type (theory §5e).

    References: theory §5a, §5b, §5e; cui2024, dandi2024.
    """
    for name, value, allowed in (("bulk", bulk, _BULKS), ("lengths", lengths, _LENGTHS)):
        if value not in allowed:
            raise InvalidProblem(name, value, f"one of {', '.join(map(repr, allowed))}")
    neurons = math.inf
    if d is not None:
        neurons = float(problem.at(d).neurons)
        problem = problem.realised(d)
    shared: dict[str, Any] = {
        "activation": problem.activation,
        "teacher": problem.teacher,
        "noise_variance": problem.noise_variance,
        "width": problem.width,
        "neurons": neurons,
    }
    if not problem.steps:
        return SpikedFeatures(spikes=0.0, overlap=0.0, bulk=1.0, **shared)
    step = problem.steps[0]
    if len(problem.steps) > 1:
        raise NotCovered("the equivalent model", "the problem has several steps", "one step")
    if d is None and step.rate > 0 and abs(step.exponent - 0.5) > 1e-9:
        raise NotCovered(
            f"the equivalent model at exponent {step.exponent:g} in the limit",
            "spikes and bulk live on different scales there",
            "exponent 1/2, or any exponent with d given",
        )
    rate = step.rate * (1.0 if math.isinf(neurons) else neurons ** (step.exponent - 0.5))
    sigma, first = moments(problem.activation), first_step(problem)
    length = math.sqrt(first.norm_squared)
    unit = sigma.linear * length
    law = problem.init.second_layer

    def model(rate: float, nodes: int, isotropic: bool, **others: Any) -> SpikedFeatures:
        values, probabilities = law.types(nodes)
        directions = bulk_directions(problem, sigma, rate * values, isotropic)
        drawn = lengths == "drawn"
        return SpikedFeatures(
            spikes=(rate * unit * values)[:, None],
            overlap=moments(link_of(problem)).linear / length,
            probabilities=probabilities,
            bulk=directions,
            lengths=lengths_after_step(problem, rate * values, directions) if drawn else None,
            second_layer=values,
            **others,
            **shared,
        )

    if not math.isinf(law.distinct_nonzero):
        return model(rate, _FINE, bulk == "isotropic")
    # All A ∈ R have the same span at every rate: take one that resolves it.
    closure = math.isinf(neurons) and 0 < rate * abs(unit) < _RESOLVED
    span = model(1.0 / abs(unit), _FINE, True) if closure else None
    coarse = model(rate, _COARSE, bulk == "isotropic")
    return model(rate, _FINE, bulk == "isotropic", coarse=coarse, span=span)


def bulk_directions(
    problem: Problem, sigma: Moments, moved: NDArray, isotropic: bool
) -> Directions:
    """Variances of the types with η̃A_t = ``moved`` along the directions of 𝐒 or M."""
    samples = problem.steps[0].samples
    shift = sigma.mean * problem.init.second_layer.mean
    quadratic = sigma.quadratic if abs(sigma.quadratic) > _ZERO * sigma.norm else 0.0
    tilt = 2.0 * quadratic * moved
    growth = moved**2 * sigma.derivative_variance / samples
    if isotropic or not np.any(moved):
        return Directions.isotropic(
            (1.0 - tilt * shift) ** 2 + growth * first_step(problem).label_moment, rank=1
        )
    # The law is kept for all rates whose poles it resolves.
    reach = 16.0 ** math.ceil(math.log(max(float(growth.max()), 1.0), 16.0))
    law = label_law(
        link_of(problem),
        problem.noise_variance,
        shift,
        samples,
        1.0 if quadratic else reach,
        bool(quadratic),
    )
    rest = growth - tilt**2 / samples

    def variances(nodes: NDArray, square: NDArray) -> NDArray:
        return (1.0 + np.multiply.outer(tilt, nodes)) ** 2 + np.multiply.outer(rest, square)

    if not quadratic:
        return Directions(
            law.weights,
            1.0 + np.multiply.outer(growth, law.nodes),
            law.special,
            1.0 + np.multiply.outer(growth, law.special_nodes),
        )
    return Directions(
        law.weights,
        variances(law.nodes, law.square),
        law.special,
        variances(law.special_nodes, law.special_square),
    )
