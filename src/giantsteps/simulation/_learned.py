"""The function that a run learned along one direction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from giantsteps.answers import LearnedFunction, direction_of
from giantsteps.errors import InvalidProblem
from giantsteps.problem import integer
from giantsteps.simulation._engine._arrays import Array
from giantsteps.simulation._engine._largest import largest_of
from giantsteps.simulation._network._streams import Role

if TYPE_CHECKING:
    from giantsteps.simulation._networks import Networks


def learned_function(
    run: Networks, along: str = "spike", x: Sequence[float] | None = None, draws: int = 1024
) -> list[LearnedFunction]:
    r"""Mean and spread of f̂ given ⟨u, x⟩, for each network.

    .. math:: m(k) = E[\hat f(Σ^{1/2}(k u + (I − uu^\top) g))], \qquad g ∼ N(0, I_d)

    With u the unit vector along Σ^{1/2}β* or Σ^{1/2} times the spike, so that k is a standard
    Gaussian. Whatever law the training inputs have, g is Gaussian.
    """
    readout = run.problem.require_readout()
    direction_of(along, run.problem.teacher.rank)
    integer(draws, "draws", "an integer >= 2", lower=2)
    beta = run.network.teacher
    if beta is None:
        raise InvalidProblem("data", run.data, "none for this question: it has no known teacher")
    points = np.linspace(-3, 3, 61) if x is None else np.asarray(x, dtype=float)
    xp, arrays, size = run.backend.xp, run.backend, run.sizes.samples
    assert size is not None
    cells = {size: (readout.penalty,)}
    (fit,) = run.fit(cells, run.readout_bytes(cells)).values()
    scaled = arrays.narrow(fit.coefficients / math.sqrt(run.sizes.neurons))[..., None]
    weights, beta = (arrays.narrow(run.whitened(x)) for x in (run.trained.weights, beta))
    u = _direction(run, along, beta)[..., None]
    noise = run.network.streams.normal(Role.CONDITIONAL_INPUTS, 0, 0, int(draws), run.d)
    across = xp.matrix_transpose(u)
    noise = noise - (noise @ u) * across
    inner, slopes = noise @ weights, across @ weights
    teacher, share = noise @ beta, across @ beta
    mean, band, target = np.empty((3, *run.lead, points.size))
    for number, k in enumerate(points.tolist()):
        moved = arrays.transform(run.problem.activation, inner + k * slopes)
        values = arrays.to_host(arrays.wide((moved @ scaled)[..., 0]))
        mean[..., number], band[..., number] = values.mean(axis=-1), values.std(axis=-1, ddof=1)
        exact = run.problem.teacher(arrays.wide(teacher + k * share))
        target[..., number] = arrays.to_host(xp.mean(exact, axis=-1))
    return [
        LearnedFunction(
            **run.facts(),
            x=points,
            mean=middle,
            band=spread,
            along=along,
            target=exact,
            standard_error=spread / math.sqrt(draws),
        )
        for middle, spread, exact in zip(
            *(part.reshape(run.count, -1) for part in (mean, band, target))
        )
    ]


def _direction(run: Networks, along: str, teacher: Array) -> Array:
    """One of Σ^{1/2}β*, or Σ^{1/2} times what the steps added to the weights, turned towards the
    first; of norm one.

    One step adds Σ^{-p}b, but for the rules that act on coordinates; Muon hides it among as many
    directions of the same size. After several it is the top left singular vector of what was added:
    that of W itself is another one, unless the spike is large.
    """
    number = direction_of(along, run.problem.teacher.rank)
    if number is not None:
        return teacher[..., number]
    xp, steps = run.backend.xp, run.problem.steps
    if not steps:
        raise InvalidProblem("along", along, '"teacher": without a step there is no spike')
    if len(steps) == 1:
        added = run.trained.spike
        assert added is not None
    else:
        kept = math.prod(1 - step.decay for step in steps)
        moved = run.trained.weights - kept * run.network.weights()
        values, left, _ = largest_of(run.backend, moved, 1)
        added = left[..., 0] + run.backend.asarray(0 * values, wide=True)  # NaN where it is unknown
    spike = run.whitened(added[..., None])[..., 0]
    spike = spike / xp.linalg.vector_norm(spike, axis=-1, keepdims=True)
    turned = xp.vecdot(spike, run.backend.wide(teacher[..., 0]))[..., None]
    return run.backend.narrow(xp.where(turned >= 0, spike, -spike))
