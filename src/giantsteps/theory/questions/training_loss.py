"""``theory.training_loss``: the minimum of the readout's objective, its penalty included."""

from __future__ import annotations

from giantsteps.answers import TrainingLoss
from giantsteps.problem import Grid, Problem
from giantsteps.theory.scope.dispatch import answer


def training_loss(problem: Problem | Grid, *, lengthening: bool = True) -> TrainingLoss:
    r"""Limit of the readout's objective at its minimum, before and after the step.

    .. math::
        L &= \min_a\; n^{-1}\|\tilde y - Φa\|^2 + (λ/N)\|a\|^2 \;\to\; \frac{λ}{κ}\, J(κ), \\
        J &= \min_ν \|g_{≥2}\|^2 + w\|g_1\|^2 + w_0\|g_0\|^2,\qquad g = y - \sum_k ν_k p_k

    ======  ====================  =====================================================
    symbol  field of the problem  meaning
    ======  ====================  =====================================================
    λ       ``readout.penalty``   ridge penalty
    Φ, n    ``readout.samples``   features of n samples
    κ                             effective penalty, theory §4
    g       ``teacher``           residual: its parts of degree 0, 1 and above
    w, w₀                         prices of a linear and of a constant residual
    ν, p_k                        coefficients and polynomials of the spikes, theory §6
    ======  ====================  =====================================================

    Parameters
    ----------
    problem : Problem or Grid
        With a readout and at most one step, of exponent below 1/2.
    lengthening : bool
        With the lengthening κ₀ of the neurons; False for p_k(z) = z^k, the form of moniri2023.

    Returns
    -------
    TrainingLoss
        ``drop`` is the difference of moniri2023.

    Notes
    -----
    The training error alone, without penalty, is ``theory.risk``'s ``train`` = L − λ dL/dλ.

    References
    ----------
    theory §4, §6; moniri2023.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=2.0, rate=1.0, exponent=0.1)],
    ...                      readout=gs.Ridge(samples=2.0, penalty=0.1))
    >>> round(training_loss(problem).drop, 6)
    0.079424
    """
    return answer("training_loss", problem, None, lengthening=lengthening)
