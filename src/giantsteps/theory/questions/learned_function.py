"""``theory.learned_function``: what the network learned along the spike or along the teacher."""

from __future__ import annotations

from numpy.typing import ArrayLike

from giantsteps.answers import LearnedFunction, direction_of
from giantsteps.problem import Grid, Problem
from giantsteps.theory.model.learned import points_of
from giantsteps.theory.scope.dispatch import answer


def learned_function(
    problem: Problem | Grid,
    d: int | None = None,
    *,
    along: str = "spike",
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
    along : {"spike", "teacher", "x0", "x1", ...}
        u: the direction that the step added to the weights (b/‖b‖; after several steps their
        leading direction), turned towards the teacher, or β*; of a teacher of several directions
        one of them by its name, "teacher" being the first.
    x : array_like, optional
        Coordinates; by default 61 points from −3 to 3.

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
    array([0.727])
    """
    stated = problem.problem if isinstance(problem, Grid) else problem
    direction_of(along, stated.teacher.rank)
    points = points_of(x)
    return answer("learned_function", problem, d, along=along, x=points)
