r"""The nonlinear equations where every unknown is a number (theory §5c).

One type of neurons whose covariance is linear in the samples of one batch (odd σ, a constant second
layer): the unknowns are V₁, y = πτ and g = 𝔤. With p = βy, h(i) the sum of what the operators have
of a sample and d₀ of the others,

.. math::
    V = V_1 C² + y μ_2²,\quad x^{-1} = ΓE[ωC²],\quad
    D = x/λ + p\,(d_0 + κe),\quad e = E\Bigl[\frac{h}{1 + pgh/α}\Bigr],
.. math::
    gD = νκ,\qquad f = νd_0/D + ge,\qquad V_1 = yfx,\qquad π/y = λ_s + ΓE[ωμ_2²] + f .

Newton's method takes a fraction of the time that it takes with stacks of 1 × 1 matrices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from giantsteps.types import Array

if TYPE_CHECKING:
    from giantsteps.theory.solver.state import Equations

_ROUNDS = 12
#: Relative steps after which the next one is rounding.
_LAST = 1e-8
#: What a Newton step may leave of an unknown.
_SMALLER = 0.1


def are_numbers(equations: Equations) -> bool:
    """Whether every unknown is a number."""
    system, bulk = equations.system, equations.system.bulk
    single = system.probabilities.shape[1] == bulk.shares.shape[1] == len(bulk.batches) == 1
    return single and not bulk.batches[0].factors.shape[1]


def solve_numbers(
    equations: Equations, penalty: Array, v1: Array, tau: Array
) -> tuple[Array, Array]:
    """(V₁, τ, 𝔤) of shape (3, B) from a start, NaN where it leads nowhere, and the rounds (B,).

    Each cell is frozen when it has converged, so no cell sees its neighbours.
    """
    system, bulk = equations.system, equations.system.bulk
    (batch,), pi, beta = bulk.batches, system.probabilities[:, 0], system.width
    share, inverse, scale = bulk.shares[:, 0], bulk.inverse[:, 0], bulk.scales[:, 0]
    parts, count = bulk.coefficients[:, 0] * equations.mixing_pairs[:, 0], bulk.diagonal.shape[1]
    d0 = (parts[:, :count] * bulk.diagonal[:, :, 0]).sum(axis=1)
    h = (parts[:, count:, None] * batch.linear).sum(axis=1)
    weights, unit, two = system.ratio[:, None] * system.weights, system.unit, equations.features
    squares = np.concatenate([two[:, :1] * two, two[:, 1:] * two[:, 1:]], axis=1)
    point = np.array([v1[:, 0], tau[:, 0] * pi, np.ones(len(pi))])
    rounds, moving = np.full(len(pi), _ROUNDS), np.ones(len(pi), dtype=bool)
    for number in range(_ROUNDS):
        v, y, g = point
        omega = 1.0 / (unit[:, None] + v[:, None] * two[:, 0] + y[:, None] * two[:, 1])
        measure = weights * omega
        c, v2 = (two * measure[:, None]).sum(axis=2).T
        c11, c12, c22 = (squares * (measure * omega)[:, None]).sum(axis=2).T
        x, p = 1.0 / c, beta * y
        if not number:
            point[2] = share * scale / (x * inverse + p * d0)
        seen = h / (1.0 + (p * g / batch.samples)[:, None] * h)
        weighted = batch.weights * seen
        e, bend = weighted.sum(axis=1), (weighted * seen).sum(axis=1) / batch.samples
        core, bent = d0 + scale * e, g * p * bend  # −g ∂e/∂g
        size = x * inverse + p * core
        held = share * d0 / size
        force = held + g * e
        # What changes of x and y make of g and f.
        missing, pull = share * scale - g * size, size - scale * p * bent
        g_x, g_y = -g * inverse / pull, -g * beta * (core - scale * bent) / pull
        f_g = held / g + e - bent
        f_0 = (f_g / pull - held / (size * g)) * missing
        f_y = f_g * g_y - g * g * bend * beta
        x_v, x_y = x * x * c11, x * x * c12
        f_v, f_y = f_g * g_x * x_v, f_y + f_g * g_x * x_y
        needed = penalty + v2 + force
        steep = needed * needed / pi  # the image of y is concave, and from above we stay above
        m11, m12 = 1.0 - y * (x * f_v + force * x_v), -x * force - y * (x * f_y + force * x_y)
        m21, m22 = f_v - c12, steep + f_y - c22
        r1, r2 = y * x * (force + f_0) - v, needed - steep * y - f_0
        det = m11 * m22 - m12 * m21
        dv, dy = (r1 * m22 - r2 * m12) / det, (r2 * m11 - r1 * m21) / det
        dg = missing / pull + g_x * (x_v * dv + x_y * dy) + g_y * dy
        moved = point + np.array([dv, dy, dg])
        if not (moved > _SMALLER * point).all():  # out of the cone, or nearly: a plain step instead
            plain = np.array([y * x * force, pi / needed, share * scale / size])
            moved = np.where((moved > _SMALLER * point).all(axis=0), moved, plain)
        there = (np.abs(moved - point) <= _LAST * point).all(axis=0)
        point = np.where(moving, moved, point)
        rounds[moving & there] = number + 1
        moving &= ~there
        if not moving.any():
            break
    point[:, moving] = np.nan
    point[1] /= pi
    return point, rounds
