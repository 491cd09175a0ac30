"""``theory.risk``: test and train error of ridge on the learned features, and before the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from giantsteps.answers import Risk, Solution
from giantsteps.problem import Grid, Problem

from ._dispatch import Solver, answer
from ._regime import Rule
from ._small_step import risk_small_step

__all__ = ["risk"]


def risk(problem: Problem | Grid, d: int | None = None) -> Risk:
    r"""Error of ridge regression on the features after the steps.

    .. math:: R = E(\hat f - f^*)^2,\qquad
              \text{train} = n^{-1}\|\tilde y - \Phi\hat a\|^2,\qquad
              \hat a = \arg\min n^{-1}\|\tilde y - \Phi a\|^2 + (λ/N)\|a\|^2

    Parameters
    ----------
    problem : Problem or Grid
        With a readout. Over a grid every leaf of the answer is an array of its shape, and a cell's
        answer is, to the last bit, the one it has alone.
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
        Where no equation of the theory answers; it says what would be covered.

    Notes
    -----
    theory §0 has the table of which equation answers what; §4, §5c.

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
    return answer("risk", problem, d, _SOLVERS)


def _small_step(
    problems: Sequence[Problem], rules: Sequence[Rule], d: int | None, initial: bool = True
) -> list[Risk]:
    """No step, or a step at exponent zero, by Gaussian equivalence (theory §4)."""
    sized = problems if d is None else [problem.realised(d) for problem in problems]
    errors, by_degree = risk_small_step(sized)
    before = _initial(problems, rules, d) if initial else [None] * len(problems)
    return [
        Risk(
            problem=problem,
            d=d,
            source="limit" if d is None else "finite width",
            exact=not rule.violated(problem),
            assumptions=rule.assumptions,
            violated=rule.violated(problem),
            references=rule.references,
            solution=Solution(
                status="converged",
                residual=errors.residual[i],
                iterations=errors.iterations[i],
            ),
            test=errors.test[i],
            train=errors.train[i],
            by_degree=by_degree[i],
            initial=before[i],
        )
        for i, (problem, rule) in enumerate(zip(problems, rules, strict=True))
    ]


def _initial(problems: Sequence[Problem], rules: Sequence[Rule], d: int | None) -> list[Risk]:
    """The same readouts on random features.

    Their risk does not see the second layer, and the mean of σ only as a regressor that a centred
    teacher leaves at zero: theory §4 holds for every activation here.
    """
    return _small_step([problem.untrained() for problem in problems], rules, d, initial=False)


_SOLVERS: Mapping[str, Solver[Risk]] = {"small step": _small_step}
