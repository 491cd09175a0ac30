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

#: Rounds, the first of them plain ones, which take a third of the time.
_ROUNDS, _PLAIN = 24, 4
#: The least penalty of a start with n > N, where the solution hardly changes below it.
_FLOOR = 1e-3
#: Relative steps after which the next one is rounding: each is about the square of the one before.
_LAST = 1e-6
#: The largest relative fall of an unknown in a Newton step.
_FALL = -0.9


def are_numbers(equations: Equations) -> bool:
    """Whether every unknown is a number."""
    system, bulk = equations.system, equations.system.bulk
    single = system.probabilities.shape[1] == bulk.shares.shape[1] == len(bulk.batches) == 1
    return single and not bulk.batches[0].factors.shape[1]


def solve_numbers(equations: Equations, penalty: Array) -> tuple[Array, Array]:
    """(V₁, τ, 𝔤) of shape (3, B), NaN where no solution was found, and the rounds (B,).

    They begin without data, above the solution: from below, Newton's method creeps or leaves the
    cone at small penalties. Each cell is frozen when it has converged, so no cell sees its
    neighbours.
    """
    system, bulk = equations.system, equations.system.bulk
    (batch,), pi, beta = bulk.batches, system.probabilities[:, 0], system.width
    share, inverse, scale = bulk.shares[:, 0], bulk.inverse[:, 0], bulk.scales[:, 0]
    parts, count = bulk.coefficients[:, 0] * equations.mixing_pairs[:, 0], bulk.diagonal.shape[1]
    d0 = (parts[:, :count] * bulk.diagonal[:, :, 0]).sum(axis=1)
    h = (parts[:, count:, None] * batch.linear).sum(axis=1)
    weights, unit, two = system.ratio[:, None] * system.weights, system.unit, equations.features
    first, last, unit = two[:, 0], two[:, 1], unit[:, None]
    squares = np.concatenate([two[:, :1] * two, two[:, 1:] * two[:, 1:]], axis=1)
    floor = np.where(system.ratio > 1, _FLOOR, 0.0)
    v1, tau = equations.without_data(np.maximum(penalty, floor))
    point = np.array([v1[:, 0], tau[:, 0] * pi, np.ones(len(pi))])
    rounds, moving = np.zeros(len(pi), dtype=int), np.ones(len(pi), dtype=bool)
    whole = share * scale
    for number in range(_ROUNDS):
        v, y, g = point
        omega = 1.0 / (unit + v[:, None] * first + y[:, None] * last)
        measure = weights * omega
        c, v2 = np.add.reduce(two * measure[:, None], 2).T
        x, p = 1.0 / c, beta * y
        if not number:
            g = point[2] = whole / (x * inverse + p * d0)
        pg = p * g / batch.samples
        seen = h / (1.0 + pg[:, None] * h)
        weighted = batch.weights * seen
        e = np.add.reduce(weighted, 1)
        core = d0 + scale * e
        size = x * inverse + p * core
        held = share * d0 / size
        force = held + g * e
        needed = penalty + v2 + force
        plain = np.array([y * x * force, pi / needed, whole / size])
        if number < _PLAIN:
            point, rounds = plain, rounds + 1
            continue
        c11, c12, c22 = np.add.reduce(squares * (measure * omega)[:, None], 2).T
        bent, held = pg * np.add.reduce(weighted * seen, 1), held / g  # bent: −g ∂e/∂g
        # What changes of x and y make of g and f.
        missing, pull = whole - g * size, size - scale * p * bent
        g_p = -g / pull
        g_x, g_y = g_p * inverse, g_p * beta * (core - scale * bent)
        f_g = held + e - bent
        f_0 = (f_g / pull - held / size) * missing
        f_x, f_y = f_g * g_x, f_g * g_y - g * bent / y
        xx = x * x
        x_v, x_y = xx * c11, xx * c12
        f_v, f_y = f_x * x_v, f_y + f_x * x_y
        steep = needed * needed / pi  # the image of y is concave, and from above we stay above
        m11, m12 = 1.0 - y * (x * f_v + force * x_v), -x * force - y * (x * f_y + force * x_y)
        m21, m22 = f_v - c12, steep + f_y - c22
        r1, r2 = y * x * (force + f_0) - v, needed - steep * y - f_0
        det = m11 * m22 - m12 * m21
        dv, dy = (r1 * m22 - r2 * m12) / det, (r2 * m11 - r1 * m21) / det
        dg = missing / pull + g_x * (x_v * dv + x_y * dy) + g_y * dy
        change = np.array([dv, dy, dg]) / point
        if not (change > _FALL).all():  # out of the cone, or nearly: a plain step instead
            change = np.where((change > _FALL).all(axis=0), change, plain / point - 1.0)
        point = np.where(moving, point + change * point, point)
        rounds += moving
        moving &= (np.abs(change) > _LAST).any(axis=0)
        if not moving.any():
            break
    point[:, moving] = np.nan
    point[1] /= pi
    return point, rounds
