"""``theory.degrees_of_freedom``: how many parameters the readout uses, and its true penalty."""

from __future__ import annotations

from giantsteps.answers import DegreesOfFreedom
from giantsteps.problem import Grid, Problem
from giantsteps.theory.scope.dispatch import answer


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

    At a size, n df₁ and n df₂ are those of networks up to terms of order one, which are left out:
    up to 0.6 in most settings, 3 in the worst seen (theory §4).

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
    return answer("degrees_of_freedom", problem, d)
