"""``theory.risk``: test and train error of ridge on the learned features, and before the steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from giantsteps.answers import Risk
from giantsteps.errors import NotConverged, NotCovered
from giantsteps.problem import Grid, Problem
from giantsteps.theory.model.errors import Effort
from giantsteps.theory.scope.dispatch import answer, resolve, said
from giantsteps.theory.scope.rule import Rule
from giantsteps.theory.steps import build
from giantsteps.threads import capped


def risk(problem: Problem | Grid, d: int | None = None) -> Risk:
    r"""Error of ridge regression on the features after the steps.

    .. math:: R = E(\hat f - f^*)^2,\qquad
              \text{train} = n^{-1}\|\tilde y - \Phi\hat a\|^2,\qquad
              \hat a = \arg\min n^{-1}\|\tilde y - \Phi a\|^2 + (λ/N)\|a\|^2

    ======  ==============================  ============================================
    symbol  field of the problem            meaning
    ======  ==============================  ============================================
    σ, σ*   ``activation``, ``teacher``     activation and link function
    f*      ``teacher``                     σ*(⟨x, β*⟩)
    Φ       ``activation``, ``steps``       N^{-1/2}σ(X̃W), the features after the steps
    n, N    ``readout.samples``, ``width``  times d
    λ       ``readout.penalty``             ridge penalty
    ======  ==============================  ============================================

    Parameters
    ----------
    problem : Problem or Grid
        With a readout. Over a grid every number of the answer is an array of its shape, and the
        answer of a cell is, to the last bit, the one it has on its own.
    d : int, optional
        Input dimension: sizes are rounded as the simulation rounds them and the terms that vanish
        in the limit are kept. Without it, the limit.

    Returns
    -------
    Risk
        With ``initial``, the same readout on the untrained features.

    Raises
    ------
    NotCovered
        Where no equation of the theory applies; the error says what would be covered.

    Notes
    -----
    The table in theory §0 says which equation answers what.

    References
    ----------
    theory §4, §5c, §6, §7; ba2022, cui2024, moniri2023, moniri2026.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="tanh", noise_variance=0.1, width=1.25,
    ...                      steps=[gs.Step(samples=3, rate=3)],
    ...                      readout=gs.Ridge(samples=3, penalty=0.05))
    >>> answer = risk(problem)
    >>> round(answer.test, 6), round(answer.initial.test, 6)
    (0.121787, 0.158417)
    """
    return answer("risk", problem, d)


def attempts(
    problems: Sequence[Problem],
    d: int | None = None,
    effort: Effort = "answer",
    initial: bool = True,
    known: build.Models | None = None,
) -> list[Risk | NotCovered | NotConverged]:
    """Test and train error of each problem, solved in one batch, or why there are none.

    ``effort`` is less for scans and searches, as in `refine`. Without
    ``initial`` those before the steps may be missing. ``known`` keeps models for the next call.
    """
    found: dict[int, Risk | NotCovered | NotConverged] = {}
    groups: dict[Callable[..., Any], list[tuple[int, Rule]]] = {}
    for i, problem in enumerate(problems):
        try:
            rule = resolve("risk", problem, d)
        except NotCovered as refusal:
            found[i] = refusal
        else:
            groups.setdefault(rule.method, []).append((i, rule))
    for method, members in groups.items():
        some = [problems[i] for i, _ in members]
        claims = [rule.stated(problems[i], d) for i, rule in members]
        answered: Sequence[Risk | Exception]
        try:
            with capped(1), np.errstate(over="raise"):
                if method is build.risk:
                    answered = build.attempts(some, claims, d, effort, initial, known)
                else:
                    answered = method(some, claims, d)
        except build.NO_ANSWER as error:
            answered = [error]
            if len(some) > 1:  # one of them: each is asked again
                answered = [attempts([one], d, effort, initial, known)[0] for one in some]
        for (i, _), one in zip(members, answered, strict=True):
            found[i] = said("risk", one) if isinstance(one, Exception) else one
    return [found[i] for i in range(len(problems))]


def staircase_risk(problem: Problem | Grid, *, lengthening: bool = True) -> Risk:
    """Limit of the errors at 0 < exponent < 1/2, with or without the lengthening of the neurons.

    The regressors of theory §6 are p_k(z) = E(z + √κ₀ ε)^k. ``risk`` uses κ₀; the papers' form
    p_k(z) = z^k is ``lengthening=False``.

    Parameters
    ----------
    problem : Problem or Grid
        With a readout and one step.
    lengthening : bool
        Whether the noise of the gradient enters the regressors.

    Returns
    -------
    Risk

    References
    ----------
    theory §6; moniri2023.

    Examples
    --------
    Where the second spike carries He₂, the lengthening of the neurons makes it harder to use:

    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation=gs.centered("relu"), teacher="x + 0.5*he2(x)", width=1.0,
    ...                      steps=[gs.Step(samples=2.0, rate=1.0, exponent=0.3)],
    ...                      readout=gs.Ridge(samples=2.0, penalty=0.1))
    >>> [round(staircase_risk(problem, lengthening=long).test, 4) for long in (True, False)]
    [0.7883, 0.7549]
    """
    return answer("staircase_risk", problem, None, lengthening=lengthening)
