"""``theory.outlier_count``: how many outliers two steps bring, from their exponents (theory §7)."""

from __future__ import annotations

import math

import numpy as np

from giantsteps.answers import OutlierCount
from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.functions import Function
from giantsteps.gaussian import hermite_coefficients, moments
from giantsteps.problem import Grid, Problem, SecondLayer
from giantsteps.theory.scope.dispatch import resolve
from giantsteps.theory.steps.kinds import BOUNDARY_WIDTH
from giantsteps.theory.steps.several.reuse import echoes

#: Highest power of A whose coefficient is looked at, and how many sizes are listed.
_HIGHEST, _LISTED = 100, 10
#: Coefficients below this, relative to the norm of σ, are zero.
_ZERO = 1e-10
#: Highest derivative of σ that is formed for a reused batch.
_DERIVATIVES = 7


def outlier_count(problem: Problem | Grid) -> OutlierCount:
    r"""The number of outliers of the weights that the exponents of two steps allow.

    With η_i = rate_i N^{e_i}, the second step moves the neurons by

    .. math:: η̃_2 A\,D(A) = \sum_{k ≥ 0} (\text{a direction})_k\, A^{k+1},\qquad
              \text{of size } N^{e_2 + k e_1 - k/2},

    whose term k needs c_{k+1} ≠ 0. Term k = 0 shares its right vector A with the first step, of
    size N^{e₁}; so besides the first outlier there is one for every
    k = 1, …, ⌊e₂/(1/2 − e₁)⌋ with c_{k+1} ≠ 0. The boundary lines e₂ = k(1/2 − e₁) are exact to
    1e-9; a term on its line has size one (``marginal``).

    ======  =====================  =======================================
    symbol  field of the problem   meaning
    ======  =====================  =======================================
    e₁, e₂  ``steps.i.exponent``   exponents of the rates
    A       ``init.second_layer``  its values
    c_k     ``activation``         Hermite coefficients
    D(A)                           direction of the second step, theory §7
    ======  =====================  =======================================

    Parameters
    ----------
    problem : Problem or Grid
        At most two steps.

    Returns
    -------
    OutlierCount
        At most the number of distinct values of A other than zero (powers of A that depend on lower
        ones add nothing new).

    Notes
    -----
    On a reused batch the labels enter the slope, and the condition is weaker: one of
    E[σ^{(k+1)}(g) σ'(g)^i], i = 0 … k, is not zero (i = 0 is c_{k+1}). For an activation with kinks
    c_{k+1} ≠ 0 is used; there a reused batch also brings terms A^k|A|, which are weaker than all
    others in practice and not counted.

    The count is of the limit N → ∞. At finite width weak outliers hide in the bulk, and labels
    with heavy tails bring outliers of their own: `weights` with d has the strengths.

    References
    ----------
    theory §7; moniri2026.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation=gs.centered("tanh(x) + 0.5*tanh(x)**2"), teacher="sin",
    ...                      width=1, steps=[gs.Step(samples=4, rate=2, exponent=0.35),
    ...                                      gs.Step(samples=4, rate=2, exponent=0.45)])
    >>> answer = outlier_count(problem)
    >>> int(answer), {power: round(size, 2) for power, size in answer.sizes.items()}
    (4, {'A': 0.45, 'A^2': 0.3, 'A^3': 0.15, 'A^4': 0.0})
    """
    if isinstance(problem, Grid):
        return OutlierCount.stack(problem, [_count(cell) for cell in problem.problems().ravel()])
    if not isinstance(problem, Problem):
        raise InvalidProblem("problem", problem, "a Problem or a Grid")
    return _count(problem)


def _count(problem: Problem) -> OutlierCount:
    claim = resolve("outlier_count", problem, None).stated(problem, None)
    steps = [step for step in problem.steps if step.rate > 0]
    law, activation = problem.init.second_layer, problem.activation
    powers: list[int] = []
    sizes: list[float] = []
    if steps and moments(activation).linear and law.distinct_nonzero:
        powers, sizes = [1], [max(step.exponent for step in steps)]
    endless = False
    if len(steps) == 2:
        first, second = (step.exponent for step in steps)
        endless = first > 0.5 - BOUNDARY_WIDTH
        reused = problem.steps[1].batch == "previous"
        for power in range(2, min(_terms(first, second), _HIGHEST) + 1):
            if _takes_part(activation, power, reused):
                powers.append(power)
                sizes.append(second + (power - 1) * (first - 0.5))
    new = _independent(law, powers)
    sizes = [0.0 if abs(size) < BOUNDARY_WIDTH else size for size, kept in zip(sizes, new) if kept]
    powers = [power for power, kept in zip(powers, new) if kept]
    # A series that has not ended at the highest power never does.
    infinite = endless and math.isinf(law.distinct_nonzero) and max(powers, default=0) > 60
    marginal = sum(size == 0.0 for size in sizes)
    return OutlierCount(
        **claim,
        count=math.inf if infinite else len(powers),
        marginal=math.inf if infinite and marginal > 1 else marginal,
        sizes={
            "A" if power == 1 else f"A^{power}": size
            for power, size in list(zip(powers, sizes))[:_LISTED]
        },
    )


def _terms(first: float, second: float) -> int:
    """The highest power that does not vanish: 1 + ⌊e₂/(1/2 − e₁)⌋, lines included."""
    room = 0.5 - first
    if room < BOUNDARY_WIDTH:
        return _HIGHEST
    # On the line k of the (e₁, e₂) plane e₂ = k·room; the tolerance is in e₂.
    highest = 1 + math.floor((second + BOUNDARY_WIDTH) / room)
    if highest > _HIGHEST:
        raise NotCovered(
            f"theory.outlier_count at the exponents {first:g} and {second:g}",
            f"more than {_HIGHEST} powers of A take part",
            "first exponents up to 0.495, and 1/2",
        )
    return highest


def _takes_part(activation: Function, power: int, reused: bool) -> bool:
    """Whether the term A^power is there: c_power ≠ 0, or on a reused batch one of its echoes."""
    sigma = moments(activation)
    size = math.exp(math.lgamma(power + 1) / 2)
    coefficient = abs(hermite_coefficients(activation, _HIGHEST)[power]) * size
    if coefficient > _ZERO * sigma.norm:
        return True
    if not reused or sigma.is_odd or activation.derivative.breakpoints(-8.5, 8.5).size:
        return False
    return power > _DERIVATIVES or any(echoes(activation, power, i) for i in range(1, power))


def _independent(law: SecondLayer, powers: list[int]) -> list[bool]:
    """Whether each A^p is linearly independent of those before it, under the law of A."""
    if math.isinf(law.distinct_nonzero):
        return [True] * len(powers)
    values = law.types()[0]
    values = values / max(float(np.abs(values).max(initial=0.0)), 1e-300)
    ranks = [
        np.linalg.matrix_rank(values[:, None] ** np.array(powers[:count]))
        for count in range(1, len(powers) + 1)
    ]
    return [bool(rank > before) for rank, before in zip(ranks, [0, *ranks])]
