r"""The sign step (signSGD, Adam's first step): its equivalent model (theory §9).

Entry (i, j) of the gradient is A_j(μ₁b_i + h_ij), where h = h₁Mw + n₀⁻¹Σ rφ_h x is nearly Gaussian
from neuron to neuron, with the variance s²/d (symbols of `steps.neuron`). Over the
neurons its sign has the mean sign(A)ψ(ζ_i) and follows h with the slope φ(ζ_i), ζ = √d b̂ the
coordinates of b̂:

.. math:: ψ(ζ) = \operatorname{erf}(qζ/\sqrt2),\quad φ(ζ) = ψ'/s,\quad q = μ_1‖b‖/s,\quad
          s² = E r² \operatorname{Var}σ'/α_0 + (h_1E r)²,
.. math:: S = η̃\sqrt{Eψ²}\,\operatorname{sign}(A),\quad γ = \frac{ρ\,E[ζψ]}{\sqrt{Eψ²}},
.. math:: Σ = (ϱ + κDM)(ϱ + κMD) + ε D\mathbf SD + η̃²\bigl(1 - ψ² - φ²s²\bigr) + η̃²ω\,vv^⊤,
          \qquad D = \operatorname{diag} φ(ζ_i),

v = ψ''(ζ), and ω half the variance of the eigenvalues of the covariance of h over their squared
mean: neurons whose h is longer lean less. Only the sign of A is left: what a continuous second
layer gives, the first step of Adam takes away.

Given b, samples are generic but for their coordinates on b̂ and on the teacher's rest β⊥, which go
with their residuals: ⟨x, b⟩ = r/α₀ + E[ur]u + g√(E r²/α₀).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from giantsteps.errors import NotCovered
from giantsteps.problem import Problem
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.rules import graded_rule
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.steps.first import curvature
from giantsteps.theory.steps.one import movement, neuron_law, types_of
from giantsteps.theory.steps.sign_law import SignLaw
from giantsteps.theory.steps.sized import at_size
from giantsteps.types import FloatArray

#: Rules whose first step is by the sign.
SIGNS = ("sign", "adam")
#: Resolution of the coordinates ζ.
_COORDINATES = 2


def sign_step(
    problem: Problem,
    d: int | None = None,
    *,
    simplify: tuple[str, ...] = (),
    kept: float | None = None,
    **others: Any,
) -> SpikedFeatures:
    """The equivalent model after one sign step.

    ``kept`` is what is left of the weights before it, 1 − decay unless given: with −decay the model
    is that of their change.
    """
    sized, neurons, shared = at_size(problem, d, **others)
    rate, law = movement(sized, 0, neurons), neuron_law(sized, np.array([1.0]))
    linear, tilt = law.slope.hermite[:2]
    power, felt = sized.init.second_layer.second_moment, curvature(sized)
    unscaled = sized.init.output == "unscaled" and power > 0
    along = -linear * felt * math.sqrt(power) if unscaled else 0.0
    length = math.hypot(law.length, along)
    spread = (law.slope.noise + tilt**2) * law.labels.moment(2)
    noise = math.sqrt(spread + law.samples * (tilt * law.labels.moment(1)) ** 2)
    if not noise:
        raise NotCovered(
            "a sign step of a linear network",
            "its gradient is of rank one, without noise",
            "another activation, or simulation",
        )
    q = linear * length * math.sqrt(law.samples) / noise
    within = _signs(sized)
    probabilities = within[1].sum(axis=1)
    values = within[1] @ within[0] / probabilities
    rule = graded_rule(
        _COORDINATES, 4.25 if abs(q) < 2 else 2.0 ** math.floor(math.log2(4.0 / abs(q)))
    )
    signs = SignLaw(law, q, noise / math.sqrt(law.samples), rule.nodes, rule.weights, along)
    cosine = signs.mean(signs.psi * signs.zeta) / signs.size if signs.size else 0.0
    kept = 1.0 - sized.steps[0].decay if kept is None else kept
    moved = np.where(values != 0, rate, 0.0)
    lean, start = rate * signs.size, 0.0
    if unscaled:  # neurons lean along W₀a from the start
        start = kept * float(probabilities @ np.abs(values)) / math.sqrt(neurons * power)
    both = 2 * lean * start * along / length * cosine if start and length else 0.0
    whole = math.sqrt(lean**2 + both + start**2) if start else lean
    signs = replace(signs, parts=(lean / whole, start / whole)) if start else signs
    overlap, pull = signs.overlap * cosine * signs.parts[0], None
    if unscaled:
        pull = -(kept**2) * np.outer(values, values)[None] / power
    elif d is not None:
        pull = _pull(values, probabilities, rate * signs.gain * felt * linear**2)
    if "isotropic bulk" in simplify:
        bulk = NeuronCovariance.isotropic(kept**2 + moved**2 * signs.mean(1 - signs.psi**2), 1)
    else:
        bulk = signs.covariance(moved, np.sign(values), kept, overlap)
    return SpikedFeatures(
        spikes=(np.sign(values) * whole)[:, None],
        overlap=overlap,
        probabilities=probabilities,
        bulk=bulk,
        norms=None
        if simplify
        else signs.norms(moved, np.sign(values), kept, sized.init.weights == "gaussian"),
        pull=pull,
        second_layer=values,
        values_within=within,
        step_directions=_gradient(overlap, signs)[None],
        **shared,
    )


def _signs(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Values of A, and their joint probabilities with the types, which are the signs of A."""
    values, probabilities = types_of(problem.init.second_layer, 3, 0.0)
    signs = np.sign(values)
    return values, np.array([probabilities * (signs == sign) for sign in np.unique(signs)])


def _gradient(of_signs: float, signs: SignLaw) -> FloatArray:
    """b̂ on the spike and on what that leaves of the teacher; the rest of it is beside both."""
    cosine = signs.mean(signs.psi * signs.zeta) / signs.size if signs.size else 0.0
    cosine = signs.parts[0] * cosine + signs.parts[1] * signs.along / (signs.length or 1.0)
    left = math.sqrt(max(1.0 - of_signs**2, 0.0))
    beside = (signs.overlap - cosine * of_signs) / left if left else 0.0
    return np.array([cosine, beside])


def _pull(values: FloatArray, probabilities: FloatArray, size: float) -> FloatArray:
    """What the initial output does to the penalty of m: it turns signs against W₀A."""
    root = np.sqrt(probabilities)
    memory = np.eye(len(values)) - size * np.outer(root * np.sign(values), root * values)
    change = memory @ memory.T - np.eye(len(values))
    return np.asarray(change / np.outer(root, root))[None]
