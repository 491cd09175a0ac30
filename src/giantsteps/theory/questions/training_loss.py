"""``theory.training_loss``: the minimum of the readout's objective, its penalty included."""

from __future__ import annotations

from giantsteps.answers import TrainingLoss
from giantsteps.errors import InvalidProblem
from giantsteps.gaussian import hermite_coefficients
from giantsteps.problem import Grid, Problem
from giantsteps.theory.scope.dispatch import answer, resolve
from giantsteps.theory.steps.first import first_step, link_of
from giantsteps.theory.steps.staircase.degrees import spike_degrees
from giantsteps.theory.steps.staircase.loss import prices_of
from giantsteps.theory.steps.staircase.risk import lengthening_of


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
        ``drop`` is the difference of moniri2023; `linear_loss_drop` and `quadratic_loss_drop` are
        its two closed forms.

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
    >>> abs(training_loss(problem).drop - linear_loss_drop(problem)) < 1e-12
    True
    """
    return answer("training_loss", problem, None, lengthening=lengthening)


def linear_loss_drop(problem: Problem) -> float:
    r"""What the first spike takes from the training loss (ℓ = 1, moniri2023).

    .. math:: \frac{λ}{κ}\, w\, μ_1^{*2}\, ρ^2,\qquad w = s\,g_1(s)

    The exponent of the problem plays no part; zero if the step grows no spike of degree one.

    ======  ====================  =========================================
    symbol  field of the problem  meaning
    ======  ====================  =========================================
    λ/κ     ``readout.penalty``   penalty over effective penalty, theory §4
    s, g₁                         those of theory §4
    μ₁*     ``teacher``           E zσ*(z)
    ρ                             μ₁*/‖b‖, cosine between step and teacher
    ======  ====================  =========================================

    Parameters
    ----------
    problem : Problem
        With a readout and one step.

    References
    ----------
    theory §6; moniri2023.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=2.0, rate=1.0, exponent=0.1)],
    ...                      readout=gs.Ridge(samples=2.0, penalty=0.1))
    >>> round(linear_loss_drop(problem), 6), round(training_loss(problem).drop, 6)
    (0.079424, 0.079424)
    """
    _check("linear_loss_drop", problem)
    if spike_degrees(problem, 1)[1] is not None:
        return 0.0
    shrinkage, price, _ = prices_of(problem)
    teacher = float(hermite_coefficients(link_of(problem), 1)[1])
    return shrinkage * price * teacher**2 * first_step(problem).alignment


def quadratic_loss_drop(problem: Problem, *, lengthening: bool = True) -> float:
    r"""What the second spike takes from the training loss besides (ℓ = 2, moniri2023).

    .. math:: \frac{λ}{κ}\, \frac{4 c_2^{*2} ρ^4}{2 + w_0 (1+κ_0)^2}

    Weights on the sphere have w₀ = 1, and with κ₀ = 0 (``lengthening=False``) the fraction is
    4c*₂²ρ⁴/3 of moniri2023. An activation with a mean has the constant as a regressor of its own,
    w₀ = 0. The exponent of the problem plays no part; zero if there is no spike of degree two.

    ======  ===================================  =========================================
    symbol  field of the problem                 meaning
    ======  ===================================  =========================================
    λ/κ     ``readout.penalty``                  penalty over effective penalty, theory §4
    c*₂     ``teacher``                          its Hermite coefficient of degree 2
    ρ                                            μ₁*/‖b‖, cosine between step and teacher
    w₀      ``init.weights``                     price of a constant, theory §6
    κ₀      ``activation``, ``steps.0.samples``  lengthening of the neurons
    ======  ===================================  =========================================

    Parameters
    ----------
    problem : Problem
        With a readout and one step.
    lengthening : bool
        With κ₀; False for the form of moniri2023.

    References
    ----------
    theory §6; moniri2023.

    Examples
    --------
    Between exponents 1/4 and 1/3 the training loss drops by both terms:

    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation=gs.centered("relu"), teacher="x + 0.5*he2(x)", width=1.0,
    ...                      steps=[gs.Step(samples=2.0, rate=1.0, exponent=0.3)],
    ...                      readout=gs.Ridge(samples=2.0, penalty=0.1))
    >>> both = linear_loss_drop(problem) + quadratic_loss_drop(problem)
    >>> round(both, 6), round(training_loss(problem).drop, 6)
    (0.299705, 0.299705)
    """
    _check("quadratic_loss_drop", problem)
    degrees = spike_degrees(problem, 2)
    if degrees[2] is not None:
        return 0.0
    shrinkage, _, constant = prices_of(problem)
    if degrees[0] is None:
        constant = 0.0
    longer = 1 + (lengthening_of(problem) if lengthening else 0.0)
    teacher = float(hermite_coefficients(link_of(problem), 2)[2])
    reach = 4 * teacher**2 * first_step(problem).alignment ** 2
    return shrinkage * reach / (2 + constant * longer**2)


def _check(question: str, problem: Problem) -> None:
    """Refuse what the table does not cover, whatever the exponent."""
    if not isinstance(problem, Problem):
        raise InvalidProblem("problem", problem, "a Problem")
    problem.require_readout()
    if not problem.steps:
        raise InvalidProblem("steps", (), "one step, whose spikes lower the training loss")
    resolve(question, problem, None)
