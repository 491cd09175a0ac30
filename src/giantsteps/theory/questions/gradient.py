"""``theory.gradient``: the first gradient, its rank-one part and what is left."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from giantsteps.answers import Gradient
from giantsteps.gaussian import hermite_coefficients, moments
from giantsteps.problem import Grid, Problem

from ._directions import Directions
from giantsteps.theory.scope.dispatch import answer
from giantsteps.theory.steps.first import first_step
from ._one_step import bulk_directions
from giantsteps.theory.scope.table import Rule
from giantsteps.theory.equivalent.weight_spectrum import WeightSpectrum

__all__ = ["gradient"]


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
    With an unbounded law of A the edge is that of the values up to the largest of N draws, and
    unbounded labels have none: ‖B‖_op is then within about 10 % at d = 600. Gaussian weights
    differ in length, which adds 3c₃ b ((‖w_j‖² − 1) a_j)ᵀ to B; where that leaves the bulk, ‖B‖_op
    is the outlier. Where 𝐒 has one along β*, ‖B‖_op exceeds it by about 1 %.

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
    return answer("gradient", problem, d, {"gradient": _gradients})


def _gradients(problems: Sequence[Problem], rules: Sequence[Rule], d: int | None) -> list[Gradient]:
    return [_gradient(problem, rule, d) for problem, rule in zip(problems, rules, strict=True)]


def _gradient(problem: Problem, rule: Rule, d: int | None) -> Gradient:
    sized = problem if d is None else problem.realised(d)
    first, law = first_step(sized), problem.init.second_layer
    sigma = moments(problem.activation)
    spread = sigma.derivative_variance * first.label_moment / sized.steps[0].samples
    tilt = 2 * sigma.quadratic * sigma.mean * law.mean  # of W₀ itself, where f₀ has a mean
    return Gradient(
        **rule.stated(problem, d),
        spike_norm=abs(sigma.linear) * math.sqrt(first.norm_squared * law.second_moment),
        residual_operator_norm=0.0 if d is None else _edge(sized, problem.at(d).neurons),
        residual_frobenius_norm=math.sqrt((spread + tilt**2) * law.second_moment),
        overlaps={"teacher": first.alignment, "direction": 1.0, "second_layer": 1.0},
    )


def _edge(problem: Problem, neurons: int) -> float:
    """‖B‖_op: the upper edge of the singular values of B at N neurons."""
    sizes, probabilities = _sizes(problem, neurons)
    sigma = moments(problem.activation)
    if sigma.derivative_variance <= 1e-20 * sigma.second_moment or not sizes.max() > 0:
        return 0.0
    # Neurons that move by ±scale·A: the mean of both signs, less the initial one, is B's part.
    scale = math.sqrt(problem.steps[0].samples / sigma.derivative_variance) / sizes.max()
    moved = scale * np.concatenate([sizes, -sizes])
    bulk = bulk_directions(problem, sigma, moved, isotropic=False)

    def residual(variances: NDArray) -> NDArray:
        return np.maximum(variances.reshape(2, len(sizes), -1).mean(axis=0) - 1.0, 0.0)

    spectrum = WeightSpectrum(
        width=problem.width,
        neurons=float(neurons),
        probabilities=probabilities,
        spikes=(scale * _uneven(problem, neurons) * sizes)[:, None],
        bulk=Directions(
            bulk.weights,
            residual(bulk.variances),
            bulk.special,
            residual(bulk.special_variances),
        ),
    )
    top = spectrum.outliers if spectrum.spikes.any() else ()
    return math.sqrt(max((spectrum.law.edge, *top)) / neurons) / scale


def _uneven(problem: Problem, neurons: int) -> float:
    """3|c₃|‖b‖√(2/d): Gaussian weights differ in length, σ' has the mean μ₁ + 3c₃(‖w‖² − 1)."""
    if problem.init.weights != "gaussian":
        return 0.0
    cubic = abs(float(hermite_coefficients(problem.activation, 3)[3]))
    return 3.0 * cubic * math.sqrt(2.0 * problem.width / neurons * first_step(problem).norm_squared)


def _sizes(problem: Problem, neurons: int) -> tuple[NDArray, NDArray]:
    """|A| and its probabilities; an unbounded law up to the largest of N draws."""
    law = problem.init.second_layer
    if math.isinf(law.distinct_nonzero):
        largest = float(norm.isf(0.5 / neurons))
        nodes, weights = np.polynomial.legendre.leggauss(16)
        sizes = largest * (1 + nodes) / 2
        probabilities = weights * norm.pdf(sizes)
        return sizes, probabilities / probabilities.sum()
    values, probabilities = law.types()
    return np.abs(values), probabilities
