"""``theory.degrees_of_freedom``: how many parameters the readout uses, and its true penalty."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from giantsteps.answers import DegreesOfFreedom, Solution
from giantsteps.errors import NotConverged
from giantsteps.problem import Grid, Problem, Ridge

from giantsteps.theory.scope.dispatch import answer
from giantsteps.theory.equivalent.build import equivalent
from giantsteps.theory.scope.table import Rule
from ._resolvent import Equations, solve_stacked
from giantsteps.theory.steps.small import GaussianFeatures, effective_penalty
from giantsteps.theory.steps.small import degrees_of_freedom as of_gaussian
from ._solve import solve
from giantsteps.theory.equivalent.model import SpikedFeatures

__all__ = ["degrees_of_freedom"]

#: λ = 0 is the limit λ → 0⁺, taken here.
_SMALLEST = 1e-10


def degrees_of_freedom(problem: Problem | Grid, d: int | None = None) -> DegreesOfFreedom:
    r"""Effective penalty κ and degrees of freedom df₁, df₂ of the readout.

    .. math:: κ(1 - df_1) = λ,\qquad df_1 = n^{-1}\operatorname{tr} Σ(Σ+κ)^{-1},\qquad
              df_2 = n^{-1}\operatorname{tr} Σ^2(Σ+κ)^{-2}

    under Gaussian equivalence, which no step below exponent 1/2 changes in the limit. In the
    equivalent model, with ω(k) of theory §5c,

    .. math:: df_1 = 1 - E_k[ω],\qquad κ = \frac{λ}{E_k[ω]},\qquad
              \frac{1}{1 - df_2} = \frac{dκ}{dλ} .

    ======  =========================  ===============================
    symbol  field of the problem       meaning
    ======  =========================  ===============================
    λ       ``readout.penalty``        ridge penalty
    n       ``readout.samples``        times d
    Σ       ``activation``, ``width``  covariance of the features √N Φ
    κ                                  effective penalty
    ======  =========================  ===============================

    Parameters
    ----------
    problem : Problem or Grid
        With a readout.
    d : int, optional
        Input dimension, as in `risk`.

    References
    ----------
    theory §4, §5c, §5d; ba2022.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="tanh", width=1.25,
    ...                      readout=gs.Ridge(samples=3, penalty=0.05))
    >>> found = degrees_of_freedom(problem)
    >>> round(found.kappa * (1 - found.df1), 12)
    0.05
    """
    solvers = {"small step": _gaussian, "equivalent": _of_models, "two steps": _of_models}
    return answer("degrees_of_freedom", problem, d, solvers)


def _gaussian(
    problems: Sequence[Problem], rules: Sequence[Rule], d: int | None
) -> list[DegreesOfFreedom]:
    """Theory §4: the bulk alone, whatever the steps."""
    untrained = [problem.untrained() for problem in problems]
    sized = untrained if d is None else [problem.realised(d) for problem in untrained]
    features = GaussianFeatures.of(sized)
    kappa, residual, iterations = effective_penalty(features)
    df1, df2 = of_gaussian(features, kappa)
    found = zip(kappa, df1, df2, residual, iterations)
    return [_stated(p, rule, d, *row) for p, rule, row in zip(problems, rules, found, strict=True)]


def _of_models(
    problems: Sequence[Problem], rules: Sequence[Rule], d: int | None
) -> list[DegreesOfFreedom]:
    """Theory §5c, one problem after the other."""
    answers = []
    for problem, rule in zip(problems, rules, strict=True):
        readout = (problem if d is None else problem.realised(d)).require_readout()
        model = equivalent(dataclasses.replace(problem, readout=None), d)
        answers.append(_stated(problem, rule, d, *_of_model(model, readout)))
    return answers


def _of_model(model: SpikedFeatures, readout: Ridge) -> tuple[float, float, float, float, int]:
    """κ, df₁, df₂, residual and rounds: E_k[ω] and its derivative in λ_s by Newton's matrix."""
    system = model.system([dataclasses.replace(readout, penalty=max(readout.penalty, _SMALLEST))])
    equations = Equations(system)
    solved = solve(equations, system.penalty)
    residual, iterations = float(solved.residual[0]), int(solved.iterations[0])
    if not solved.converged[0]:
        raise NotConverged(
            f"the equivalent model of {model.describe()} with {readout}",
            residual,
            iterations,
            "a larger penalty, or samples further from the width",
        )
    point = equations.at(solved.v1, solved.tau, system.penalty)
    # 1/τ = λ_s + …: a change of λ_s enters the linearised equations as −1 in each row of τ.
    right = np.zeros_like(point.unknowns)
    right[:, len(equations.multiplicity) :] = -1.0
    moved = solve_stacked(point.jacobian[0], right) * equations.counted
    slope = -(point.omega**2) * (moved[:, None] @ equations.features)[:, 0]
    share, change = ((each * system.weights).sum() for each in (point.omega, slope))
    growth = 1.0 / share - float(system.penalty[0]) * change / share**2  # dκ/dλ
    kappa = float(system.penalty[0] / system.ratio[0]) / share
    return kappa, 1.0 - share, 1.0 - 1.0 / growth, residual, iterations


def _stated(
    problem: Problem,
    rule: Rule,
    d: int | None,
    kappa: float,
    df1: float,
    df2: float,
    residual: float,
    iterations: float,
) -> DegreesOfFreedom:
    return DegreesOfFreedom(
        **rule.stated(problem, d),
        solution=Solution(status="converged", residual=residual, iterations=iterations),
        kappa=kappa,
        df1=df1,
        df2=df2,
    )
