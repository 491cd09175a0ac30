"""Problem → equivalent model → errors, for one problem or a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from giantsteps.errors import NotCovered
from giantsteps.problem import Problem, Ridge
from giantsteps.theory.steps.several.small import many_small_steps
from giantsteps.theory.equivalent.model_risk import ridge_batch
from giantsteps.theory._one_step import one_step
from giantsteps.theory.scope.table import resolve
from giantsteps.theory.steps.ridge_batch import RidgeBatch
from giantsteps.theory.equivalent.multi_index import several_directions
from giantsteps.theory.equivalent.model import SpikedFeatures
from giantsteps.theory.steps.several.two import two_steps

__all__ = ["equivalent", "risk_batch"]


def equivalent(
    problem: Problem, d: int | None = None, *, bulk: str = "exact", lengths: str = "equal"
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
        Up to two steps, or any number with exponent 0; its readout is not used.
    d : int, optional
        Input dimension. Needed unless the exponents are 1/2, whose limit has p = N = ∞.
    bulk : {"exact", "isotropic"}
        ``"exact"``: the law of 𝐒 if c₂ = 0, else a good approximation along the law of M;
        ``"isotropic"``: their traces alone (cui2024). Several steps always have this one.
    lengths : {"equal", "drawn"}
        Whether neurons of a type have one length, as in the papers, or lengths that vary and go
        with the spike, as in networks. The errors change by up to 5 % for a constant second layer
        and large η̃, for continuous ones hardly. Drawn for one step of an odd activation; for
        errors and learned functions.

    Returns
    -------
    SpikedFeatures
        Everything but the readout: ``model.risk(Ridge(...))``, ``.learned_function``,
        ``.kernel``, ``.features``, ``.weights``.

    References
    ----------
    theory §5a, §5b, §5e; cui2024, dandi2024. Several steps: theory §7; moniri2026.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=20, rate=3, exponent=0.5)],
    ...                      init=gs.Init(second_layer="constant"))
    >>> model = equivalent(problem, bulk="isotropic")
    >>> [round(float(x), 6) for x in (model.bulk.totals[0], model.spikes[0, 0], model.overlap[0])]
    [1.018973, 1.134056, 0.971854]
    >>> readout = gs.Ridge(samples=2, penalty=0.05)
    >>> equal, drawn = (equivalent(problem, lengths=lengths).risk(readout).test
    ...                 for lengths in ("equal", "drawn"))
    >>> f"{drawn / equal - 1:.1%}"
    '-4.8%'
    """
    if lengths != "equal" and (problem.teacher.rank > 1 or len(problem.steps) != 1):
        raise NotCovered(
            f"the equivalent model with lengths={lengths!r}",
            "the equations of theory §5e are those of one step and one direction",
            'one step and a rank-one teacher, or lengths="equal"',
        )
    if problem.teacher.rank > 1:
        resolve("equivalent", problem, d)
        return several_directions(problem, d)
    if len(problem.steps) < 2:
        return one_step(problem, d, bulk=bulk, lengths=lengths)
    resolve("equivalent", problem, d)
    if len(problem.steps) == 2:
        return two_steps(problem, d)
    assert d is not None
    return many_small_steps(problem, d)


def risk_batch(
    problems: Sequence[Problem], d: int | None = None, *, bulk: str = "exact"
) -> RidgeBatch:
    """Errors of many problems (theory §5c); none sees its neighbours, to the last bit.

    Raises
    ------
    NotConverged
        Naming the first setting that did not converge and what to try.
    """
    models: dict[Problem, int] = {}
    grouped: list[tuple[SpikedFeatures, list[Ridge]]] = []
    place: list[tuple[int, int]] = []
    for problem in problems:
        readout = problem.require_readout()
        if d is not None:
            samples = problem.at(d).samples
            assert samples is not None
            readout = replace(readout, samples=samples / d)
        key = replace(problem, readout=None)
        if key not in models:
            models[key] = len(grouped)
            grouped.append((equivalent(key, d, bulk=bulk), []))
        group = models[key]
        place.append((group, len(grouped[group][1])))
        grouped[group][1].append(readout)
    solved = ridge_batch(grouped)
    starts = np.concatenate([[0], np.cumsum([len(readouts) for _, readouts in grouped])])
    return solved.take(np.array([starts[group] + i for group, i in place], dtype=int))
