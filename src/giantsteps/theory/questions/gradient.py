"""``theory.gradient``: the first gradient, its rank-one part and what is left."""

from __future__ import annotations

from giantsteps.answers import Gradient
from giantsteps.problem import Grid, Problem
from giantsteps.theory.scope.dispatch import answer


def gradient(problem: Problem | Grid, d: int | None = None) -> Gradient:
    r"""The first gradient is nearly rank one.

    .. math::
        \sqrt N G &= μ_1 b a^\top + B,\qquad
        \|μ_1 b a^\top\| \to |μ_1|\,\|b\|\sqrt{E A^2}, \\
        \|B\|_F^2 &\to E A^2\Bigl(\frac{E y_0^2\,\operatorname{Var}σ'}{α_0}
                         + (2 c_2 c_0 E A)^2\Bigr),\qquad
        \|B\|_{op} = O(N^{-1/2})

    Column j of B has variance A_j²/(N d) times :math:`(2c_2 M)^2 + (\operatorname{Var}σ' - 4c_2^2)
    \mathbf S/α_0` along the directions of the batch; √N ‖B‖_op is the edge of that law.

    =======  ===============================  =============================================
    symbol   field of the problem             meaning
    =======  ===============================  =============================================
    μ₁, c_k  ``activation``                   its Hermite coefficients
    a, A     ``init.second_layer``            a_j = A_j/√N
    α₀       ``steps.0.samples``              n₀/d
    b                                         direction of the step, ‖b‖² = μ₁*² + E y₀²/α₀
    E y₀²    ``teacher``, ``noise_variance``  E(y − c₀ E A)²
    M, 𝐒                                      moments of the batch, theory §5b
    =======  ===============================  =============================================

    Parameters
    ----------
    problem : Problem or Grid
        With at least one step; its rate plays no part.
    d : int, optional
        Input dimension, for the operator norm of B; without it the limit, zero.

    Returns
    -------
    Gradient
        Norms of √N G's two parts, and the overlaps of its top singular vectors with the
        ``teacher`` β*, the ``direction`` b and the ``second_layer`` a, to leading order.

    Notes
    -----
    With an unbounded second layer or unbounded labels the bulk has no edge; it is then that of
    values up to the largest of N and n₀ draws, and networks scatter about it. Gaussian weights
    differ in norm, which adds 3c₃ b ((‖w_j‖² − 1) a_j)ᵀ to B; where that leaves the bulk, or where
    the batch has an outlier along β*, ‖B‖_op is the outlier.

    References
    ----------
    theory §2, §5b; ba2022, Proposition 2.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=2, rate=1)])
    >>> small, large = gradient(problem, d=1000), gradient(problem, d=4000)
    >>> round(small.ratio / large.ratio, 1)
    1.9
    """
    return answer("gradient", problem, d)
