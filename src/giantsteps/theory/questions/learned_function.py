"""``theory.learned_function``: what the network learned along the spike or along the teacher."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from giantsteps.answers import LearnedFunction, Solution
from giantsteps.errors import InvalidProblem
from giantsteps.gaussian import moments, smoothed
from giantsteps.laws import g1, g2
from giantsteps.problem import Grid, Problem

from giantsteps.theory.scope.dispatch import Solver, answer
from giantsteps.theory.equivalent.build import equivalent
from giantsteps.theory.steps.first import link_of
from giantsteps.theory.steps.several.small import summed
from giantsteps.theory.scope.table import Rule
from giantsteps.theory.steps.small import GaussianFeatures, effective_penalty, ridge_errors

__all__ = ["learned_function"]

Direction: TypeAlias = Literal["spike", "teacher"]
Array = NDArray[np.float64]


def learned_function(
    problem: Problem | Grid,
    d: int | None = None,
    along: Direction = "spike",
    x: ArrayLike | None = None,
) -> LearnedFunction:
    r"""Mean and spread of the prediction given one coordinate of the input.

    .. math:: m(x) = E[\hat f \mid ⟨u, ·⟩ = x],\qquad
              b(x)^2 = \operatorname{Var}[\hat f \mid ⟨u, ·⟩ = x]

    Along the spike of the equivalent model, m = C(k) and b² = Σμ₁ₜμ₁ₛQₜₛ + Σμ₂ₜ²q2ₜ (theory §5c).
    After a small step everything is linear: with κ, s, K of theory §4,

    .. math::
        m(x) &= μ_1^*(1 - sK(s))\,x \ \text{(teacher)},\qquad
        m(x) = μ_1^*ρ\Bigl(1 - \frac{s g_1}{1 + sθ_1^2 g_1 g_2}\Bigr) x \ \text{(spike)}, \\
        b^2 &= R + 2P - Eσ^{*2} - m(1)^2 .

    ============  =================  ==================================================
    symbol        argument or field  meaning
    ============  =================  ==================================================
    u             ``along``          b/‖b‖ or β*
    x             ``x``              coordinate of the input along u
    μ₁*           ``teacher``        E zσ*(z)
    R, P                             test error, and the part of E y² that is explained
    s, K, g₁, g₂                     those of theory §4
    θ₁                               η|μ₁|‖b‖(E A²)^½, strength of the spike
    ρ                                μ₁*/‖b‖, cosine between step and teacher
    ============  =================  ==================================================

    Parameters
    ----------
    problem : Problem or Grid
        With a readout.
    d : int, optional
        Input dimension, as in `risk`.
    along : {"spike", "teacher"}
        u: the direction that the step added to the weights (b/‖b‖; after several steps their
        leading direction), turned towards the teacher, or β*.
    x : array_like, optional
        Where; 61 points from −3 to 3 by default.

    Returns
    -------
    LearnedFunction
        With the teacher along the same direction as ``target``.

    Notes
    -----
    The top singular vector of the weights is another direction unless the spike is large:
    ``theory.weights(...).spikes[0].overlaps["gradient"]`` is their squared cosine.

    References
    ----------
    theory §4, §5c; cui2024.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=20, rate=3, exponent=0.5)],
    ...                      readout=gs.Ridge(samples=3, penalty=0.03),
    ...                      init=gs.Init(second_layer="constant"))
    >>> learned_function(problem, along="teacher", x=[1.0]).mean.round(3)
    array([0.716])
    """
    if along not in ("spike", "teacher"):
        raise InvalidProblem("along", along, '"spike" or "teacher"')
    points = np.linspace(-3.0, 3.0, 61) if x is None else np.atleast_1d(np.asarray(x, dtype=float))
    if points.ndim != 1 or not np.all(np.isfinite(points)):
        raise InvalidProblem("x", x, "a one-dimensional array of finite numbers")
    model = partial(_each, partial(_of_model, points, along))
    small = partial(_each, partial(_after_small_step, points, along))
    solvers: Mapping[str, Solver[LearnedFunction]] = {
        "small step": small,
        "summed": small,
        "equivalent": model,
        "two steps": model,
    }
    return answer("learned_function", problem, d, solvers)


def _each(
    method: partial[LearnedFunction],
    problems: Sequence[Problem],
    rules: Sequence[Rule],
    d: int | None,
) -> list[LearnedFunction]:
    return [method(problem, rule, d) for problem, rule in zip(problems, rules, strict=True)]


def _of_model(
    points: Array, along: Direction, problem: Problem, rule: Rule, d: int | None
) -> LearnedFunction:
    readout = problem.require_readout()
    if d is not None:
        samples = problem.at(d).samples
        assert samples is not None
        readout = dataclasses.replace(readout, samples=samples / d)
    model = equivalent(dataclasses.replace(problem, readout=None), d)
    turned = -1.0 if along == "spike" and model.overlap[0] < 0 else 1.0
    found = model.learned_function(readout, turned * points, along)
    return dataclasses.replace(
        found,
        **rule.stated(problem, d),
        x=points,
    )


def _after_small_step(
    points: Array, along: Direction, problem: Problem, rule: Rule, d: int | None
) -> LearnedFunction:
    if along == "spike" and not problem.steps:
        raise InvalidProblem("along", along, '"teacher": without a step there is no spike')
    sized = problem if d is None else problem.realised(d)
    alone = summed(sized) if len(sized.steps) > 1 else sized
    features, link = GaussianFeatures.of([alone]), link_of(problem)
    errors, teacher = ridge_errors(features), moments(link)
    learned = 1.0 - errors.unlearned[0]  # 1 − sK
    overlap, slope = 1.0, teacher.linear * learned
    if along == "spike":
        overlap = math.sqrt(features.alignment[0])
        slope = teacher.linear * overlap * _along_spike(features)
    power = errors.test[0] + 2.0 * teacher.linear**2 * learned - teacher.second_moment  # E f̂²
    rest = math.sqrt(max(1.0 - overlap**2, 0.0))
    return LearnedFunction(
        **rule.stated(problem, d),
        solution=Solution(
            status="converged", residual=errors.residual[0], iterations=errors.iterations[0]
        ),
        x=points,
        mean=slope * points,
        band=np.full(points.shape, math.sqrt(max(power - slope**2, 0.0))),
        along=along,
        target=smoothed(link, overlap * points, np.full(points.shape, rest)).mean,
    )


def _along_spike(features: GaussianFeatures) -> float:
    """1 − s g₁/(1 + sθ₁²g₁g₂): the part of the linear component along b̂ that is learned."""
    kappa, _, _ = effective_penalty(features)
    s = (features.residual + kappa) / features.linear
    a, b = g1(s, features.width), g2(s, features.width)
    return float((1.0 - s * a / (1.0 + s * features.strength**2 * a * b))[0])
