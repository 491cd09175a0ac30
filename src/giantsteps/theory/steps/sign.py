r"""The sign step (signSGD, Adam's first step): its equivalent model (theory §9).

Entry (i, j) of the gradient is A_j(μ₁b_i + noise), with noise of variance E r² Var σ'/n₀ that is
independent from neuron to neuron. Over the neurons its sign has the mean sign(A)ψ(ζ_i), ζ = √d b̂
the coordinates of b̂:

.. math:: ψ(ζ) = \operatorname{erf}(qζ/\sqrt2),\qquad q = \frac{μ_1‖b‖\sqrt{α_0}}{\sqrt{E r²
\operatorname{Var}σ'}},
.. math:: S = η̃\sqrt{Eψ²}\,\operatorname{sign}(A),\qquad γ = \frac{ρ\,E[ζψ]}{\sqrt{Eψ²}},\qquad
          Σ = ϱ² + η̃²(1 - ψ²(ζ)) .

The bulk is diagonal in the coordinates. Where σ' goes with the initial weights (c₂ ≠ 0), so does
the sign, like a gradient step of the size η̃ĝ, ĝ = √(2/π)/√((1+q²)E r² Var σ'/α₀): then Σ has the
operators of that step in place of as much of its trace. Only the sign of A is left: what a
continuous second layer gives, the first step of Adam takes away.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import erf

from giantsteps.problem import Problem
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.norms import Norms
from giantsteps.theory.model.rules import graded_rule
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.solver.bulk import Stage
from giantsteps.theory.steps.first import link_of
from giantsteps.theory.steps.neuron import NeuronLaw
from giantsteps.theory.steps.one import movement, neuron_law, types_of
from giantsteps.types import FloatArray

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
    neurons = math.inf if d is None else float(problem.at(d).neurons)
    sized = problem if d is None else problem.realised(d)
    rate, law = movement(sized, 0, neurons), neuron_law(sized, np.array([1.0]))
    linear, tilt = law.slope.hermite[:2]
    noise = math.sqrt((law.slope.noise + tilt**2) * law.labels.moment(2))
    q = linear * law.length * math.sqrt(law.samples) / noise
    gain = math.sqrt(2 / math.pi / (1 + q * q)) * math.sqrt(law.samples) / noise  # ĝ
    values, probabilities = _signs(sized)
    rule = graded_rule(
        _COORDINATES, 4.25 if abs(q) < 2 else 2.0 ** math.floor(math.log2(4.0 / abs(q)))
    )
    zeta, shares = rule.nodes, rule.weights
    psi = np.asarray(erf(q * zeta / math.sqrt(2)))
    size = math.sqrt(float(shares @ psi**2))
    overlap = law.overlap * float(shares @ (psi * zeta)) / size if size else 0.0
    kept = 1.0 - sized.steps[0].decay if kept is None else kept
    moved = np.where(values != 0, rate, 0.0)
    bulk = _covariance(moved, kept, shares, zeta, psi, size, law.overlap, overlap, simplify)
    if "isotropic bulk" not in simplify:
        bulk = _with_tilt(bulk, law, moved * np.sign(values), gain, kept)
    return SpikedFeatures(
        activation=sized.activation,
        teacher=link_of(sized),
        noise_variance=sized.noise_variance,
        width=sized.width,
        neurons=neurons,
        problem=problem,
        spikes=(np.sign(values) * rate * size)[:, None],
        overlap=overlap,
        probabilities=probabilities,
        bulk=bulk,
        norms=None
        if simplify
        else _norms(sized, law, values, moved, kept, q, gain, rule, psi, size),
        pull=None if d is None else _pull(values, probabilities, rate * gain * linear**2),
        second_layer=values,
        **others,
    )


def _signs(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Types: the sign of A, with the mean of A as its value."""
    values, probabilities = types_of(problem.init.second_layer, 3, 0.0)
    found = []
    for sign in (-1.0, 0.0, 1.0):
        here = np.sign(values) == sign
        share = float(probabilities[here].sum())
        if share > 0:
            found.append((float(probabilities[here] @ values[here]) / share, share))
    return np.array([value for value, _ in found]), np.array([share for _, share in found])


def _covariance(
    moved: FloatArray,
    kept: float,
    shares: FloatArray,
    zeta: FloatArray,
    psi: FloatArray,
    size: float,
    along: float,
    overlap: float,
    simplify: tuple[str, ...],
) -> NeuronCovariance:
    """Σ along the coordinates, and what of spike, teacher and the norms' direction lies there."""
    noise = 1.0 - psi**2
    if "isotropic bulk" in simplify:
        return NeuronCovariance.isotropic(kept**2 + moved**2 * float(shares @ noise), 1)
    root = np.sqrt(shares)
    rest = math.sqrt(max(1.0 - overlap**2, 0.0))
    beside = math.sqrt(max(1.0 - along**2, 0.0))
    # Components of a vector at coordinates with one ζ: along b̂, and along the rest of the teacher.
    spike = np.stack([root * psi / size, 0.0 * root], axis=1)
    teacher = np.stack([root * along * zeta, root * beside], axis=1)
    remainder = (teacher - overlap * spike) / rest if rest > 1e-12 else 0.0 * teacher
    bent = np.stack([root * psi * noise, 0.0 * root], axis=1)
    mean, square = float(shares @ noise), float(shares @ noise**2)
    return NeuronCovariance(
        shares=shares,
        diagonal=np.stack([np.ones_like(shares), noise]),
        coefficients=np.stack([np.full_like(moved, kept**2), moved**2], axis=1),
        external=np.stack([spike, remainder, bent, np.stack([root * zeta, 0.0 * root], axis=1)]),
        gram=np.array([[1.0, mean], [mean, square]]),
    )


def _with_tilt(
    found: NeuronCovariance, law: NeuronLaw, moved: FloatArray, gain: float, kept: float
) -> NeuronCovariance:
    """Σ with the operators of a gradient step of the size η̃ĝ in place of as much of its trace.

    Spikes and teacher are generic in them.
    """
    like = replace(law, moved=moved * gain, kept=kept)
    step = like.covariance()
    batch, own = step.batches[0], step.coefficients[:, 1:]
    coefficients = np.concatenate([found.coefficients, own], axis=1)
    coefficients[:, 0] -= step.totals - kept**2
    means = np.concatenate([found.gram[0], step.gram[0, 1:]])
    gram = np.outer(means, means)
    gram[:2, :2], gram[2:, 2:] = found.gram, step.gram[1:, 1:]
    count = len(found.external)
    nothing = np.zeros((count, len(batch.weights)))
    return replace(
        found,
        coefficients=coefficients,
        gram=gram,
        special=np.eye(count),
        batches=(replace(batch, first=nothing[:1], second=batch.weights[None, None]),),
        stages=(
            Stage(frame=np.eye(1, count), carry=np.eye(count), sums=nothing, place=(0,) * count),
        ),
    )


def _norms(
    problem: Problem,
    law: NeuronLaw,
    values: FloatArray,
    moved: FloatArray,
    kept: float,
    q: float,
    gain: float,
    rule: Any,
    psi: FloatArray,
    size: float,
) -> Norms:
    r"""Norms vary by old weights times signs, 2ϱη̃⟨w₀, s − ψ⟩/√d, and by the signs' overlap with
    their mean.

    Gaussian weights have norms of their own; a longer neuron has another mean slope and another q.
    """
    shares, zeta, hermite = rule.weights, rule.nodes, law.slope.hermite
    noise = 1.0 - psi**2
    mean = float(shares @ noise)
    spread = 4 * kept**2 * moved**2 * mean + 4 * moved**4 * float(shares @ (psi**2 * noise))
    loadings = np.zeros((len(values), 4))
    loadings[:, 2] = -2 * moved**3 * np.sign(values)  # on the direction ψ(1 − ψ²)
    # On b̂, as after a gradient step of the size η̃ĝ.
    bent = 4 * kept * gain * moved * np.sign(values) * hermite[2]
    loadings[:, 3] = kept * bent * law.length
    spread = spread + (bent * law.labels.teacher(1)) ** 2
    if problem.init.weights != "gaussian":
        return Norms(spread, loadings)
    change = q * hermite[2] / hermite[0] if hermite[0] else 0.0  # ∂q/∂‖w₀‖², of the mean slope
    slope = math.sqrt(2 / math.pi) * zeta * np.exp(-((q * zeta) ** 2) / 2) * change
    longer = float(shares @ (psi * slope)) / size if size else 0.0
    growth = kept**2 - 2 * moved**2 * float(shares @ (psi * slope))
    return Norms(
        np.stack([spread, np.full_like(moved, 2.0)]),
        np.stack([loadings, np.zeros_like(loadings)]),
        growth=np.stack([np.ones_like(moved), growth]),
        stretch=np.stack([0 * moved, np.sign(values) * moved * longer])[:, :, None],
    )


def _pull(values: FloatArray, probabilities: FloatArray, size: float) -> FloatArray:
    """What the initial output does to the penalty of m: it turns signs against W₀A."""
    root = np.sqrt(probabilities)
    memory = np.eye(len(values)) - size * np.outer(root * np.sign(values), root * values)
    change = memory @ memory.T - np.eye(len(values))
    return np.asarray(change / np.outer(root, root))[None]
