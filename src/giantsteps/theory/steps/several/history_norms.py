r"""How the squared norms of neurons vary after steps on batches that are used again (theory §7).

Beside its mean a neuron sees a sample of a batch as X + n/α, X linear in its own fields and n
uncorrelated with them, and without the sample's own part by G. The sample moves the squared norm by
n_b⁻¹F, of which f is not Gaussian,

.. math:: F = α(h^2 - G^2),\qquad f = 2nX + n^2/α = α(h^2 - X^2) ,

so that, with N₂ = c − E n²/α, ξ_j the independent parts of the fields and aξ₀ what G has of the
initial weights,

.. math::
    d\,\mathrm{Cov}(w, \|w\|^2) &= Σ_b n_b^{-1}Σ_i E[hF]_i\,x_i ,\\
    d\,\mathrm{Var}\|w\|^2 &= 2τ(Σ_A^2) - 2N_2^2
        + Σ_b\Bigl\{2\,\mathrm{Cov}(X^2 - a^2ξ_0^2, f)
        + \frac1α E\bigl[f^2 - 4E_ξ[n^2]E_ξ[X^2] - 3(E_ξn^2)^2/α^2\bigr]\Bigr\}
        + Σ_j|E[xE_ξ[ξ_jf]]|^2 .
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from giantsteps.theory.steps.several.history_view import View, factor
from giantsteps.types import FloatArray


@dataclass(frozen=True, eq=False)
class HistoryNorms:
    """The fluctuation of the squared norms of each type.

    ======  ==========  =============  ====================================================
    symbol  attribute   shape          meaning
    ======  ==========  =============  ====================================================
    \\       rest        (T,)           d Var‖w‖² without 2τ(Σ_A²)
    \\       loads       (T, Y) each    E[hF], of each batch
    g       growth      (T,)           of the squared norm by that of the initial weights
    e       stretch     (T, V)         of the lean
    ======  ==========  =============  ====================================================
    """

    rest: FloatArray
    loads: list[FloatArray]
    growth: FloatArray
    stretch: FloatArray


@dataclass(eq=False)
class _Moments:
    """Means over the fields of a neuron's own at the samples of a batch, (T, Y) or (j, T, Y)."""

    load: FloatArray  # E[h³ − hG²]
    rest: FloatArray  # E n²/α²
    total: FloatArray  # E X² without the last field
    mixed: FloatArray  # Cov(X², h² − X²)
    power: FloatArray  # E(h² − X²)²
    tilt: FloatArray  # E[ξ_j(h² − X²)]
    first: FloatArray  # E[(ξ₀² − 1)(h² − X²)]


def _moments(view: View) -> tuple[_Moments, FloatArray]:
    types, size = view.fields[0].shape
    fields = len(view.uses)
    roots = view.course.memory([*view.uses, len(view.course.rates)]).roots[:, -1]
    load, rest, total, mixed, power, first = np.zeros((6, types, size))
    found = _Moments(load, rest, total, mixed, power, np.zeros((fields, types, size)), first)

    def visit(t: int, some: slice, h: FloatArray, xi: FloatArray, weights: FloatArray) -> None:
        h = h - (h @ weights)[:, None]
        along = (h * weights) @ xi.T
        x = along @ xi
        field = roots[t, :-1] @ xi
        n, beyond = h - x, h * h - x * x
        found.load[t, some] = (h**3 - h * field**2) @ weights
        found.rest[t, some] = n**2 @ weights
        found.total[t, some] = x**2 @ weights
        mean = beyond @ weights
        found.mixed[t, some] = (x**2 * beyond) @ weights - found.total[t, some] * mean
        found.power[t, some] = beyond**2 @ weights
        found.first[t, some] = ((xi[0] ** 2 - 1) * beyond) @ weights
        found.tilt[:, t, some] = ((beyond * weights) @ xi.T).T

    view.visited(visit)
    return found, roots[:, -1] ** 2


def norms_of_course(views: list[View], growth: FloatArray, stretch: FloatArray) -> HistoryNorms:
    """The fluctuation after all steps; ``growth`` and ``stretch`` as they are."""
    course = views[0].course
    time, types = len(course.rates), len(course.neurons.values)
    basis = factor(course.covariance)  # fields of all times in independent ones
    raw = views[0].samples.raw
    linear = np.zeros((types, len(raw), time + 1))
    own, loads, (rest, first) = course.covariance[:, -1, -1].copy(), [], np.zeros((2, types))
    for view in views:
        alpha = view.memory.samples
        seen, last = _moments(view)
        loads.append(alpha * seen.load)
        own -= alpha * view.mean(seen.rest)
        plain = 4 * last[:, None] * seen.rest - 4 * seen.rest * (seen.total + last[:, None])
        fourth = seen.power + plain - 3 * seen.rest**2
        rest += 2 * alpha * view.mean(seen.mixed) + alpha * view.mean(fourth)
        first += alpha * view.mean(seen.first)
        turned = _turned(view.memory.roots, basis[:, view.uses])
        along = np.einsum("jty,vy->tvj", alpha * seen.tilt, view.samples.raw * view.samples.weights)
        linear += along @ turned
    rest += (linear**2).sum(axis=(1, 2)) - 2 * own**2 - 2 * course.covariance[:, -1, 0] ** 2 * first
    return HistoryNorms(rest, loads, growth, stretch)


def _turned(roots: FloatArray, fields: FloatArray) -> FloatArray:
    """The independent fields ξ_j of a batch in those of all times, (T, j, t + 1)."""
    found = np.zeros_like(fields)
    for j in range(fields.shape[1]):
        rest = fields[:, j] - np.einsum("tk,tkl->tl", roots[:, j, :j], found[:, :j])
        some = roots[:, j, j] > 0
        found[some, j] = rest[some] / roots[some, j, j][:, None]
    return found
