"""How the norms of neurons vary after a step on a fresh batch (theory §7)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from giantsteps.gaussian import coordinate_rule, moments
from giantsteps.theory.steps.several.conditional import Conditional
from giantsteps.theory.steps.several.excess import Push
from giantsteps.theory.steps.several.moves import Pace, moved_neurons, on_frame
from giantsteps.theory.steps.several.trained import (
    Fluctuation,
    Trained,
    few_functions,
)
from giantsteps.theory.steps.several.view import View
from giantsteps.types import FloatArray

#: Variance of the norms, relative to their squares, that is rounding.
_NO_SPREAD = 1e-26
#: Functions of a batch that the norms of its types go with, relative to the largest.
LOADS = 1e-2
#: Relative step of derivatives in c and S, nodes of moments of σ' beyond the second, and weights of
#: these that are nothing.
_STEP, _GAUSSIAN, _NO_WEIGHT = 1e-3, 40, 1e-17


def with_fluctuations(
    view: View,
    trained: Trained,
    after: Trained,
    basis: FloatArray,
    step: Pace,
    gain: FloatArray,
    push: Push | None,
    new: Fluctuation,
) -> Trained:
    """The fluctuations of the neurons after the step: those before, and a new one of the norms.

    The new one goes with the weights along λ, and so with those before: ϖ = ϖ' + Σ_c ρ_cϖ_c with
    ρ_c = ⟨λ, ℓ_c⟩/v_c, and ϖ' independent of them. ``push`` knows ℓ_c on the frame of the samples;
    without one they are what the vectors have there.
    """
    count = new.loadings.shape[1] - len(trained.others)
    linear = _along(view, step, gain)  # λ_A, (T, E)
    found = []
    for old in trained.fluctuations:
        size = _STEP * float(trained.totals.min())
        size /= max(float(np.abs(old.growth).max()), float(np.abs(old.stretch).max()), 1e-12)
        ends = []
        for sign in (1.0, -1.0):
            spikes = trained.spikes + sign * size * old.stretch
            totals = trained.totals + sign * size * old.growth
            ends.append(moved_neurons(view, view.slopes(spikes, totals), spikes, totals, step))
        before = old.along @ trained.onto if push else _loaded(old, trained, step)
        both = (before * linear).sum(axis=1)
        share = np.where(old.spread > 0, both / np.where(old.spread > 0, old.spread, 1.0), 0.0)
        loadings = np.zeros_like(new.loadings)
        loadings[:, : old.loadings.shape[1]] = gain[:, None] * old.loadings
        along = (before[:, :, None] * push.pushed).sum(axis=1) if push else new.along
        new = replace(
            new,
            spread=np.maximum(new.spread - share * both, 0.0),
            loadings=new.loadings - share[:, None] * loadings,
            along=new.along - share[:, None] * along if push else new.along,
        )
        found.append(
            Fluctuation(
                spread=old.spread,
                growth=(ends[0].totals - ends[1].totals) / (2 * size) + share,
                stretch=(ends[0].lean - ends[1].lean) @ basis / (2 * size),
                loadings=loadings,
                along=along,
            )
        )
    others = (*trained.others, *(0,) * count)
    return replace(after, fluctuations=(*found, new), others=others)


def loads_of_norms(
    view: View, law: Conditional, step: Pace, gain: FloatArray, norms: bool
) -> tuple[FloatArray, FloatArray]:
    """λ_A as combinations (T, L) of sums n⁻¹Σ a x over the batch with few functions a."""
    if not norms:
        return np.zeros((len(gain), 0)), np.zeros((0, *law.weights.shape))
    bend = 2 * view.slope.quadratic[:, :, None]
    functions = 2 * (step.moved * gain)[:, None, None] * law.nodes * bend
    weights = (view.weights[:, None] * law.weights).ravel()
    mixing, few = few_functions(functions.reshape(len(functions), -1), weights, LOADS)
    return mixing, few.reshape(-1, *law.weights.shape)


def new_fluctuation(
    view: View, trained: Trained, rank: int, step: Pace, gain: FloatArray, mixing: FloatArray
) -> Fluctuation:
    """What the step itself adds to the norms."""
    types = len(trained.values)
    square = _square(step)
    spread = square * spread_of_norms(view, trained, step, gain)
    spread = np.where(spread > _NO_SPREAD * trained.totals**2, spread, 0.0)  # linear activations
    size = np.where(spread > 0, square * trained.totals * gain, 0.0)
    loadings = np.pad(size[:, None] * mixing, ((0, 0), (len(trained.others), 0)))
    return Fluctuation(
        spread=spread,
        growth=np.ones(types),
        stretch=np.zeros((types, rank)),
        loadings=loadings,
    )


def _along(view: View, step: Pace, gain: FloatArray) -> FloatArray:
    """λ_A, the part of ‖w‖² that is linear in w, on the spikes and the teacher's remainder."""
    return on_frame(view, 2 * (2 * view.slope.quadratic) * (step.moved * gain)[:, None])


def _loaded(one: Fluctuation, trained: Trained, step: Pace) -> FloatArray:
    """d times its covariance with the weights on the frame, as its vectors have it, (T, E)."""
    weights = step.reach / step.spectrum.values
    gram = np.einsum("vim,eim,i->ve", trained.vectors, trained.seen, weights)
    return np.asarray(_square(step) * one.loadings @ gram[: one.loadings.shape[1]])


def _square(step: Pace) -> float:
    """d⁻¹tr Σ² without explicit directions."""
    return float(step.spectrum.shares @ step.spectrum.start**2)


def spread_of_norms(view: View, trained: Trained, step: Pace, gain: FloatArray) -> FloatArray:
    r"""v of the norms' new fluctuation: old weights times new ones, the new ones, and (I + sK)².

    With φ = σ' − ζ − ξh, the terms of theory §5b for one step, in an isotropic bulk.
    """
    rule = coordinate_rule(1, nodes=_GAUSSIAN)
    some = rule.weights > _NO_WEIGHT
    z, mean = rule.nodes[some, 0], rule.weights[some]
    c, s, alpha, w = trained.totals, step.moved, step.samples, view.weights
    slope, r2 = view.slope, view.square
    # With an odd or even activation φ² at −k is that at k.
    parity, points = moments(view.task.activation), view.points
    half = -(-len(points) // 2)
    mirrored = (parity.is_odd or parity.is_even) and bool((points == -points[::-1]).all())
    kept = slice(half if mirrored else None)
    h = (trained.spikes @ points[kept].T)[:, :, None] + np.sqrt(c)[:, None, None] * z
    phi = np.array(view.task.activation.derivative(h), dtype=float)
    phi -= slope.mean[:, kept, None]
    phi -= np.multiply(slope.linear[:, kept, None], z, out=h)
    phi *= phi  # powers of large arrays are slow
    second, product = np.moveaxis(phi @ np.stack([mean, mean * z * z], axis=1), -1, 0)
    phi *= phi
    fourth = phi @ mean
    if mirrored:
        second, product, fourth = (
            np.concatenate([part, part[:, len(points) - half - 1 :: -1]], axis=1)
            for part in (second, product, fourth)
        )
    tilt = slope.linear / np.sqrt(c)[:, None]  # ξ
    bent = tilt * tilt
    powers = [np.ones_like(c), s * (tilt @ (w * view.residual))]
    powers.append(s**2 * (bent @ (w * r2)))
    # Third and fourth moments of r only matter beside large curvatures: those of a Gaussian.
    cubes = 3 * r2 * view.residual - 2 * view.residual**3
    powers.append(s**3 * ((bent * tilt) @ (w * cubes)))
    powers.append(s**4 * ((bent * bent) @ (w * 3 * r2**2)))
    k1, k2, k3, k4 = step.kept + powers[1], *(powers[j] / alpha ** (j - 1) for j in (2, 3, 4))
    n2 = k2 + k1**2
    n4 = k4 + 4 * k1 * k3 + 2 * k2**2 + 6 * k1**2 * k2 + k1**4
    new = second @ (w * r2)  # E[r² φ²]
    seen = _along(view, step, gain)
    total = 2 * c**2 * (n4 - n2**2) + c * (seen**2).sum(axis=1)
    total = total + 4 * c * s**2 / alpha * (gain**2 * (product @ (w * r2)) + k2 * new)
    total = total + s**4 / alpha**3 * ((fourth - second**2) @ (w * 3 * r2**2))
    return np.asarray(np.maximum(total + 2 * s**4 / alpha**2 * new**2, 0.0))
