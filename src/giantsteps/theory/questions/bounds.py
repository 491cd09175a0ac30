"""``theory.bounds``: floors and ceilings of the test error."""

from __future__ import annotations

from giantsteps.answers import Bounds
from giantsteps.problem import Grid, Problem
from giantsteps.theory.scope.dispatch import answer


def bounds(problem: Problem | Grid) -> Bounds:
    r"""Floors and ceilings of the test error R, without label noise.

    .. math::
        \text{linear} &= \operatorname{Var} σ^* - μ_1^{*2} \\
        τ^* &= \inf_κ E\bigl(σ^*(ξ_1) - E_{ξ_2} σ(κξ_1 + ξ_2)\bigr)^2

    and, after one large step with a constant second layer, for the best penalty λ,

    .. math::
        \text{infinite penalty} &= \inf_ν E(h - νμ_0)^2 + E\operatorname{Var}[f^*|k] \;\ge\; R \\
        \text{optimal penalty} &= \inf_{ν_1,ν_2} E(h - ν_1μ_0 - ν_2 kμ_1)^2
            + E\operatorname{Var}[f^*|k] - \frac{(E h_1 μ_1)^2}{E μ_1^2} \;\le\; R

    with μ₀(k), μ₁(k), h(k), h₁(k) of theory §5c at p = ∞, isotropic bulk.

    ======  ===========================  ===========================================
    symbol  field of the problem         meaning
    ======  ===========================  ===========================================
    σ, σ*   ``activation``, ``teacher``  activation and link function
    μ₁*     ``teacher``                  E zσ*(z)
    ξ₁, ξ₂                               independent, N(0, 1)
    k                                    coordinate of the input along the spike
    h, h₁   ``teacher``                  E[f*|k] and its linear response, theory §5c
    μ₀, μ₁  ``activation``               those of a neuron given k
    ======  ===========================  ===========================================

    Parameters
    ----------
    problem : Problem or Grid
        With a rank-one teacher; the readout plays no part.

    Returns
    -------
    Bounds
        ``floors["linear"]``: no random features, tangent or rotation-invariant kernel goes below
        it. ``terms["tau"]`` with its optimiser ``arguments["tau"]``: the error of one direction,
        which bounds R by a multiple of itself at large η and many samples. ``floors["optimal
        penalty"]`` and ``ceilings["infinite penalty"]`` after a large step.

    References
    ----------
    theory §4; ba2022, cui2024.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0)
    >>> found = bounds(problem)
    >>> round(found["linear"], 6), round(found["tau"], 6), round(found.arguments["tau"], 4)
    (0.064453, 0.009044, 1.7847)
    """
    return answer("bounds", problem, None)
