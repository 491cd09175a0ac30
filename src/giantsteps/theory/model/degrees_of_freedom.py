"""Degrees of freedom of a readout on an equivalent model (theory §5c)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from giantsteps.answers import DegreesOfFreedom, Solution
from giantsteps.errors import NotConverged
from giantsteps.problem import Ridge
from giantsteps.theory.model.errors import BAD, GOOD, kind_of
from giantsteps.theory.model.spiked_features import USUAL, SpikedFeatures
from giantsteps.theory.solver.newton import solve_state
from giantsteps.theory.solver.packing import product, solve
from giantsteps.theory.solver.state import Equations

#: What an answer at a size says of itself.
_OF_ORDER_ONE = (
    "n df₁ and n df₂ without terms of order one, such as the one parameter of each outlier "
    "(theory §4)"
)


def counted(claim: Mapping[str, Any]) -> dict[str, Any]:
    """The claim of degrees of freedom: at a size something of order 1/n is left out."""
    more = () if claim["d"] is None else (_OF_ORDER_ONE,)
    return {**claim, "assumptions": (*claim["assumptions"], *more)}


def degrees_of_freedom_of_model(model: SpikedFeatures, readout: Ridge) -> DegreesOfFreedom:
    r"""κ, df₁ and df₂ from ω(k), without cancellation.

    Labels of pure noise have the training error E[ω²(1 + s)], s(k) ≥ 0 the spread that the fit of
    noise adds at new points, which is (E ω)² dκ/dλ. So

    .. math:: df_1 = E_k[ωV],\qquad κ = \frac{λ}{E_k[ω]},\qquad
              df_2 = 1 - \frac{dλ}{dκ} = \frac{\mathrm{Var}_k[ω] + E_k[ω²s]}{E_k[ω²(1 + s)]} .
    """
    kind = kind_of(model)
    level, found = USUAL, _at(model, readout, USUAL)
    change = _change(_at(model, readout, USUAL - 1), found)
    while not change <= GOOD[kind] and level < model.levels[1]:
        level, before, found = level + 1, found, _at(model, readout, level + 1)
        change = _change(before, found)
    if not change <= BAD[kind]:
        raise NotConverged(
            f"the degrees of freedom of {model.describe()} with {readout}",
            change,
            level,
            "a smaller rate, a larger penalty, or smoother functions",
        )
    kappa, df1, df2, residual, iterations = found
    return DegreesOfFreedom(
        **counted(model.stated),
        solution=Solution(
            status="converged", residual=residual, iterations=iterations, error=change
        ),
        kappa=kappa,
        df1=df1,
        df2=df2,
    )


def _change(old: tuple[float, ...], new: tuple[float, ...]) -> float:
    """Largest relative change of κ, df₁ and df₂."""
    return max(abs(a - b) / max(abs(a), 1e-12) for a, b in zip(new[:3], old[:3], strict=True))


def _at(
    model: SpikedFeatures, readout: Ridge, level: int
) -> tuple[float, float, float, float, int]:
    system = model.at_level(level).system([readout], level)
    ratio = float(system.ratio[0])
    equations = Equations(system)
    solved = solve_state(equations, system.penalty)
    residual, iterations = float(solved.residual[0]), int(solved.iterations[0])
    if not solved.converged[0]:
        raise NotConverged(
            f"the equivalent model of {model.describe()} with {readout}",
            residual,
            iterations,
            "a larger penalty, or samples further from the width",
        )
    state = solved.state
    omega, weights = state.omega[0], system.weights[0]
    share = float(omega @ weights)
    matrix, (outer, inner) = state.jacobian
    hats = product(equations.features, (state.measure * state.omega)[:, :, None])
    packed = hats[:, : len(equations.packing)]
    right = np.concatenate(
        [product(outer, packed), product(inner, packed) + hats[:, packed.shape[1] :]], axis=1
    )
    spread = product(
        (solve(matrix, right[:, :, 0]) * equations.counted)[:, None], equations.features
    )
    excess = float((omega**2 * spread[0, 0]) @ weights)
    varied = float(((omega - share) ** 2) @ weights)
    df2 = (varied + excess) / (varied + share * share + excess)
    # Without penalty and n < N, ω is that of λ_s = 1 in equations without the one: E ω → 0.
    used = float((omega * state.variance[0]) @ weights)
    kappa = float(system.penalty[0]) / (ratio * share)
    return kappa, used, df2, residual, iterations
