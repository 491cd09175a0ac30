"""From a problem with one step (or none) to its equivalent model (theory §5b, §9)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtri

from giantsteps.gaussian import moments
from giantsteps.problem import Problem, SecondLayer
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.norms import Norms
from giantsteps.theory.model.rules import graded_rule, mapped_rule, octave
from giantsteps.theory.model.spiked_features import USUAL, SpikedFeatures
from giantsteps.theory.model.step_direction import StepDirection
from giantsteps.theory.model.teacher import is_resolved
from giantsteps.theory.steps.closure import closure_of_continuous, closure_of_few
from giantsteps.theory.steps.first import by_chance, curvature, initial_output
from giantsteps.theory.steps.labels import Labels, labels
from giantsteps.theory.steps.neuron import NeuronLaw, slopes
from giantsteps.theory.steps.sized import at_size, by_resolution
from giantsteps.types import FloatArray

#: Nodes of a second layer on each side of zero, by resolution, and how many more each octave of
#: steepness needs; where labels and second layer are bounded, nodes of a panel.
_TYPES, _MORE = (5, 7, 9, 13, 20, 28), (1.5, 2.0, 2.7, 4.0, 7.0, 9.0)
_BOUNDED = (10, 14, 19, 26, 36, 48)
#: Draws whose largest bounds labels and second layer in the limit.
_LIMIT = 1e9
_slopes = lru_cache(maxsize=256)(slopes)


def types_of(
    law: SecondLayer, level: int, steepness: float, tail: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Values of the second layer and their probabilities; a quadrature of a continuous law.

    * ``level``: resolution.
    * ``steepness``: spike of A = 1: functions of A vary on the scale of its inverse.
    * ``tail``: share of the largest |A| that is moved to their quantile, as for `labels`; E A²
      stays what it is.
    """
    if math.isfinite(law.distinct_nonzero):
        return law.types()
    if not tail:
        near = octave(steepness)
        count = math.ceil(_TYPES[level] + _MORE[level] * math.log2(1.0 + near))
        rule = mapped_rule(count, near)
        return rule.nodes, rule.weights
    reach = float(-ndtri(tail / 2))
    width = 2.0 ** math.floor(math.log2(6.0 / steepness)) if steepness > 1.0 else reach
    rule = graded_rule(level, width, (0.0,), reach, _BOUNDED, reach)
    nodes = np.concatenate([[-reach], rule.nodes, [reach]])
    weights = np.concatenate([[tail / 2], (1.0 - tail) * rule.weights, [tail / 2]])
    return nodes * math.sqrt(law.second_moment / float(weights @ nodes**2)), weights


def tails_of(problem: Problem, d: int | None, neurons: float) -> tuple[float, float]:
    """Shares of labels and second layer beyond the largest of their draws: ½ of one draw."""
    samples = _LIMIT if d is None else problem.steps[0].samples * d
    return 0.5 / samples, 0.5 / min(neurons, _LIMIT)


def movement(problem: Problem, number: int, neurons: float) -> float:
    """η̃ = η/√N of a step; its rate in the limit, where its exponent is 1/2."""
    step = problem.steps[number]
    return step.rate if math.isinf(neurons) else step.rate * neurons ** (step.exponent - 0.5)


def first_movement(problem: Problem, neurons: float) -> float:
    r"""η̃ of the first step as it multiplies √N G; a normalised step divides by

    .. math:: ‖\sqrt N G‖_F² → E A²\Bigl(μ_1²‖b‖² + \frac{E r² \operatorname{Var}σ'}{α_0}
              + (2c_2 E r)²\Bigr) .
    """
    rate = movement(problem, 0, neurons)
    if problem.steps[0].rule != "normalized" or not rate:
        return rate
    law, slope = neuron_law(problem, np.array([1.0])), _slopes(problem.activation)
    mean, square = law.labels.moment(1), law.labels.moment(2)
    linear, tilt = slope.hermite[:2]
    noise = (slope.noise + tilt**2) * square / law.samples + (tilt * mean) ** 2
    power = (linear * law.length) ** 2 + noise
    if problem.init.output == "unscaled":  # the initial output is unlearned, too
        power += (linear**2 * curvature(problem)) ** 2 * problem.init.second_layer.second_moment
    norm = math.sqrt(power * problem.init.second_layer.second_moment)
    return rate / norm if norm else 0.0


def labels_of(problem: Problem, moved: float, level: int, tail: float = 0.0) -> Labels:
    """The residuals of the first batch for neurons that move by at most ``moved``.

    They are y − c₀E A for the squared loss; an unscaled network starts with an output of variance E
    A² E σ², which is noise to the gradient.
    """
    step, slope = problem.steps[0], _slopes(problem.activation)
    shift, own = initial_output(problem)
    noise, tilt = moved * math.sqrt(slope.noise) / step.samples, abs(slope.hermite[1]) * moved
    finest = 1.0 / max(noise, tilt / step.samples, 0.25)
    finest = 2.0 ** math.floor(math.log2(finest))
    # With many types the labels are a level behind: they converge faster than the second layer.
    few = math.isfinite(problem.init.second_layer.distinct_nonzero)
    level = min(level if tail or few else max(level - 1, 0), 3)
    return labels(
        problem.teacher, problem.noise_variance, shift, finest, level, tail, step.loss, own
    )


def neuron_law(
    problem: Problem, moved: FloatArray, level: int = USUAL, tail: float = 0.0
) -> NeuronLaw:
    """Neurons with η̃A = ``moved`` after the first step of ``problem``."""
    largest = float(np.abs(moved).max(initial=0.0))
    return NeuronLaw(
        moved,
        problem.steps[0].samples,
        labels_of(problem, largest, level, tail),
        _slopes(problem.activation),
        1.0 - problem.steps[0].decay,
    )


def one_step(
    problem: Problem,
    d: int | None = None,
    *,
    simplify: tuple[str, ...] = (),
    level: int = USUAL,
    **others: Any,
) -> SpikedFeatures:
    r"""The equivalent model after one gradient step, or none.

    One spike direction b̂ with overlap γ = ρ; types A_t of the second layer with S_t = η̃A_tμ₁‖b‖,
    η̃ = η/√N, and the covariances and norms of :class:`NeuronLaw`. At finite N the initial output
    pulls on the neurons: along the right vectors of the types W₀ becomes W₀(I − η̃μ₁²AAᵀ/N), which
    changes the penalty on m_t by

    .. math:: \frac{A_tA_s}{N}\bigl\{-η̃μ_1²[2ϱg̃^0_{ts} + (κ_t+κ_s)g̃^M_{ts}]
              + η̃²μ_1⁴(1 + 1/α_0)E A²\,g̃^0_{ts}\bigr\},\qquad
              g̃^0 = Uτ(𝒢)U^⊤,\quad g̃^M = Uτ(M𝒢)U^⊤ .

    References: theory §5b, §5c; cui2024, dandi2024.
    """
    sized, neurons, shared = at_size(problem, d, **others)
    if not is_resolved(sized.teacher):  # jumps and kinks of several directions
        shared["levels"] = (0, 3)
    if not sized.steps:
        return _untrained(sized, simplify, level, shared)
    rate, tails = first_movement(sized, neurons), tails_of(sized, d, neurons)
    if d is not None and sized.init.output == "scaled":
        shared["by_chance"] = lambda: by_chance(sized, d)
    if d is not None:
        shared["first_direction"] = lambda: _direction(sized, rate, neurons)

    def built(level: int, tails: tuple[float, float] = (0.0, 0.0)) -> SpikedFeatures:
        return _at_level(sized, rate, neurons, simplify, level, shared, tails)

    return by_resolution(built, level, lambda level: built(level, tails))


def _untrained(
    problem: Problem, simplify: tuple[str, ...], level: int, shared: dict[str, Any]
) -> SpikedFeatures:
    """One type, of all values of the second layer."""
    directions, law = problem.teacher.rank, problem.init.second_layer
    values, chances = types_of(law, level, 0.0)
    gaussian = problem.init.weights == "gaussian" and not simplify
    return SpikedFeatures(
        spikes=0.0,
        overlap=np.zeros((directions, 1) if directions > 1 else 1),
        bulk=1.0,
        norms=Norms(2.0) if gaussian else None,
        second_layer=law.mean,
        values_within=(values, chances[None]),
        **shared,
    )


def _at_level(
    problem: Problem,
    rate: float,
    neurons: float,
    simplify: tuple[str, ...],
    level: int,
    shared: dict[str, Any],
    tails: tuple[float, float],
) -> SpikedFeatures:
    law, unit = problem.init.second_layer, neuron_law(problem, np.array([rate]), level, tails[0])
    steepness = abs(float(unit.spikes[0]))
    values, probabilities = folded_types(problem, level, steepness, tails[1])
    neuron = replace(unit, moved=rate * values)
    bulk, spike, overlap = neuron.covariance(), neuron.spikes, neuron.overlaps[:, None]
    felt = rate * curvature(problem)
    pull = None if math.isinf(neurons) else _pull(neuron, values, probabilities, felt, simplify)
    if problem.init.output == "unscaled" and law.second_moment > 0:
        bulk, spike, along = _unscaled(neuron, values, rate, felt, neurons, law.second_moment)
        overlap = np.array([[along]])
        root = np.sqrt(probabilities)
        own = -np.outer(root * values, root * values) / law.second_moment
        size = float((probabilities * values**2) @ bulk.totals) / law.second_moment
        pull = (size * own / np.outer(root, root))[None]
    if "isotropic bulk" in simplify:
        bulk = NeuronCovariance.isotropic(bulk.totals, 1, len(overlap))
    norms = None
    # Without penalty a continuous second layer fits every function that norms could add, where
    # neurons lean.
    fits_all = math.isinf(neurons) and math.isinf(law.distinct_nonzero) and steepness > 0
    if (rate or neuron.kept < 1) and not simplify and not fits_all:
        norms = neuron.norms(problem.init.weights == "gaussian")
    regressors = None
    if math.isinf(neurons) and problem.init.output == "scaled":
        regressors = (
            closure_of_continuous(problem.activation, neuron, level)
            if fits_all
            else closure_of_few(problem.activation, neuron)
        )
    return SpikedFeatures(
        spikes=spike[:, None],
        overlap=overlap if len(overlap) > 1 else overlap[0],
        probabilities=probabilities,
        bulk=bulk,
        norms=norms,
        pull=pull,
        regressors=regressors,
        second_layer=values,
        **shared,
    )


def folds(problem: Problem) -> bool:
    """Whether types A ≥ 0 stand for all: with odd σ a neuron with −A and −w is one with A and w in
    all but its sign.
    """
    return problem.init.second_layer.symmetric and moments(problem.activation).is_odd


def folded_types(
    problem: Problem, level: int, steepness: float, tail: float
) -> tuple[FloatArray, FloatArray]:
    """`types_of` the second layer of a problem, without those that others stand for."""
    found = types_of(problem.init.second_layer, level, steepness, tail)
    return folded(*found) if folds(problem) and not tail else found


def folded(values: FloatArray, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The types A ≥ 0, each for two."""
    kept = values >= 0
    return values[kept], np.where(values > 0, 2.0, 1.0)[kept] * probabilities[kept]


def _direction(problem: Problem, rate: float, neurons: float) -> StepDirection:
    """The direction of the first step in networks.

    The spike of an unscaled network contains the initial output: t differs from it by the lean
    1/√(N E A²) along W₀â, from which neurons start.
    """
    law, power = neuron_law(problem, np.array([rate])), problem.init.second_layer.second_moment
    lean = float(law.spikes[0]) * math.sqrt(power)
    pull = rate * curvature(problem) * law.slope.hermite[0] ** 2 * power
    if not lean:
        return StepDirection()
    uneven = rate * law.slope.hermite[2] * math.sqrt(power) / lean
    common = 2.0 * problem.width * uneven**2 * law.labels.moment(2) / law.samples
    if problem.init.output == "unscaled":
        own = law.kept / math.sqrt(neurons)
        return StepDirection(0.0, (lean * own / (lean**2 - pull * (own - pull))) ** 2, common)
    square, whole = pull**2 * (1.0 + 1.0 / law.samples), neurons * lean**2
    return StepDirection((square - pull * law.kept) / whole, square / whole, common)


def _pull(
    neuron: NeuronLaw,
    values: FloatArray,
    probabilities: FloatArray,
    rate: float,
    simplify: tuple[str, ...],
) -> FloatArray:
    """What multiplies uᵀτ(𝒢)u and uᵀτ(2M𝒢)u in the penalty of m, shape (1 or 2, T, T).

    ``rate`` is η̃E ℓ''.
    """
    linear = rate * neuron.slope.hermite[0] ** 2
    square = linear**2 * (1.0 + 1.0 / neuron.samples) * float(probabilities @ values**2)
    outer = np.outer(values, values)
    plain = outer * (square - 2.0 * linear * neuron.kept)
    if not neuron.tilt.any() or "isotropic bulk" in simplify:
        return plain[None]
    tilt = np.add.outer(neuron.tilt, neuron.tilt)
    return np.stack([plain, -0.5 * linear * outer * tilt])


def _unscaled(
    neuron: NeuronLaw,
    values: FloatArray,
    rate: float,
    felt: float,
    neurons: float,
    power: float,
) -> tuple[NeuronCovariance, FloatArray, float]:
    r"""Bulk, leans and overlap of a network whose output starts at order one.

    The gradient points against the initial output too, along ŵ = W₀a/‖W₀a‖, on which neurons lean
    from the start: in the end by A(s₁b̂ + s₂ŵ),

    .. math:: s_1 = η̃μ_1‖b‖,\qquad
              s_2 = \frac{ϱ}{\sqrt{N E A²}} - η̃μ_1²\sqrt{E A²}\;E ℓ''(f_0; y) ,

    one direction; ``felt`` is η̃ E ℓ''. Of the bulk the component along the second layer is gone.
    """
    linear = neuron.slope.hermite[0]
    first = rate * linear * neuron.length
    second = neuron.kept / math.sqrt(neurons * power) - felt * linear**2 * math.sqrt(power)
    size = math.hypot(first, second)
    along = np.array([first, second]) / size if size else np.array([0.0, 1.0])
    overlap = float(neuron.overlap * along[0])
    found = neuron.covariance()
    (stage,), special = found.stages, found.special
    assert special is not None
    count = len(stage.place)
    # Vectors: as before, then ŵ, generic in the batch, and the teacher.
    carry = np.zeros((count + 1, 2))
    carry[-2, 1] = carry[-1, 0] = 1.0
    sums = np.insert(stage.sums, count - 1, 0.0, axis=0)
    wider = np.insert(special, count - 1, 0.0, axis=1)
    wider[0] = 0.0
    wider[0, 0], wider[0, -2] = along
    rest = math.sqrt(max(1.0 - overlap**2, 1e-300))
    wider[1] = -overlap * wider[0] / rest
    wider[1, -1] += 1.0 / rest
    stage = replace(
        stage, frame=np.eye(1, 2), carry=carry, sums=sums, place=(*stage.place[:-1], 0, 0)
    )
    bulk = replace(found, external=np.eye(2)[:, None], special=wider, stages=(stage,))
    return bulk, size * values, overlap
