"""``theory.equivalent``: the spiked random features that a trained network is equivalent to."""

from __future__ import annotations

from collections.abc import Sequence

from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid, Problem
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.scope.dispatch import resolve, within_range

_SIMPLIFICATIONS = ("isotropic bulk", "equal norms")


def equivalent(
    problem: Problem, d: int | None = None, *, simplify: str | Sequence[str] = ()
) -> SpikedFeatures:
    r"""The spiked random features that a trained network is equivalent to.

    After one step with η̃ = η/√N, neurons with second-layer value A_t see

    .. math:: S_t k + \sqrt{c_t}\, z,\qquad S_t = η̃ A_t μ_1 \|b\|,\qquad
              d\,\mathrm{Cov}_t = (I + κ_t M)^2 + η̃² A_t² \frac{\mathrm{Var}σ' - 4c_2²}{α_0}
              \mathbf S,\qquad γ = ρ.

    ======  ===============================  =============================================
    symbol  field of the problem             meaning
    ======  ===============================  =============================================
    η̃       ``steps.0.rate``, ``.exponent``  η/√N
    A_t     ``init.second_layer``            values of the types
    μ₁, c₂  ``activation``                   Hermite coefficients of degree 1 and 2
    α₀      ``steps.0.samples``              n₀/d
    b                                        direction of the step, ‖b‖² = μ₁*² + E y₀²/α₀
    ρ                                        μ₁*/‖b‖, cosine between step and teacher
    M, 𝐒                                     moments of the batch, theory §5b
    κ_t                                      what c₂ makes of them
    ======  ===============================  =============================================

    Parameters
    ----------
    problem : Problem
        With a readout if its errors are to be asked.
    d : int, optional
        Input dimension. Needed unless the exponents are 1/2, whose limit has p = N = ∞.
    simplify : {"equal norms", "isotropic bulk"} or both, optional
        What papers leave out, for comparison: ``"equal norms"`` gives all neurons of a type one
        norm; ``"isotropic bulk"`` replaces covariances by their traces besides (cui2024).

    Returns
    -------
    SpikedFeatures
        ``model.risk()``, ``.learned_function()``, ``.kernel()``, ``.features()``, ``.weights()``
        and ``.degrees_of_freedom()`` are the answers of ``theory``; with a readout of your own,
        ``model.risk(Ridge(...))``.

    References
    ----------
    theory §5a, §5b; cui2024, dandi2024. Several steps: theory §7; moniri2026.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=20, rate=3, exponent=0.5)],
    ...                      init=gs.Init(second_layer="constant"))
    >>> model = equivalent(problem, simplify="isotropic bulk")
    >>> [round(float(x), 6) for x in (model.bulk.totals[0], model.spikes[0, 0], model.overlap[0])]
    [1.018973, 1.134056, 0.971854]
    >>> readout = gs.Ridge(samples=2, penalty=0.05)
    >>> exact, equal = (equivalent(problem, simplify=names).risk(readout).test
    ...                 for names in ((), "equal norms"))
    >>> f"{exact / equal - 1:.1%}"
    '-4.8%'
    """
    if isinstance(problem, Grid):
        raise InvalidProblem("problem", problem, "a single Problem: a Grid has one model per cell")
    names = (simplify,) if isinstance(simplify, str) else tuple(simplify)
    for name in names:
        if name not in _SIMPLIFICATIONS:
            raise InvalidProblem("simplify", name, f"among {_SIMPLIFICATIONS}")
    rule = resolve("equivalent", problem, d)
    claim = rule.stated(problem, d)
    if names:
        claim = {**claim, "exact": False, "violated": tuple(f"simplified: {n}" for n in names)}
    with within_range("equivalent"):
        model: SpikedFeatures = rule.method(problem, claim, d, names)
    return model
