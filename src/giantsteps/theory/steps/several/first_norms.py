r"""How the norms of neurons vary after the first step (theory §5b, §10).

Where one eigenvector of the inputs has a share of d⁻¹tr Σ², it has a share of the norms as well:
w₁², which a sample feels as w₁²k₁². So the slope of a neuron on it is μ₁ + h₂(w₁²k₁² − λ₁/d), and
the step moves the neuron by more than its direction b,

.. math:: δS = s h_2 (w_1² - λ_1/d)\,⟨\hat b, Σ^{1-p}n_0^{-1}Σ_ir_ik_{1i}²x_i⟩,\qquad
          E[r k_1²z] = (f_1 + τ_1f_3)\,β + 2f_1\sqrt{τ_1}\,e_1,\qquad f_j = E[r He_j(u)] ;

the readout feels it beside k₁², of which the spike knows 1 + ⟨e₁, b̂⟩²(k² − 1).
"""

from __future__ import annotations

import math

import numpy as np

from giantsteps.gaussian import coordinate_rule, moments
from giantsteps.problem import Problem
from giantsteps.theory.model.teacher import teacher_rule
from giantsteps.theory.steps.neuron import NeuronLaw
from giantsteps.theory.steps.several.fresh_norms import larger_forms, profile_of
from giantsteps.theory.steps.several.moves import Pace
from giantsteps.theory.steps.several.spectrum import Spectrum
from giantsteps.theory.steps.several.trained import Fluctuation
from giantsteps.types import FloatArray

#: Share of d⁻¹tr Σ² along the spike from which on the eigenvector has fluctuations of its own.
_HEAVY = 0.01
#: A variance of norms that is rounding.
_ROUNDING = 1e-13
#: Nodes of the noise of the labels.
_NOISE = 24


def first_norms(
    problem: Problem,
    law: NeuronLaw,
    spectrum: Spectrum,
    direction: FloatArray,
    reach: FloatArray,
    gains: FloatArray,
    along: FloatArray,
) -> tuple[Fluctuation, ...]:
    """Fluctuations of the norms: on b̂, b₂, b₃ and, with an even part, M b and M b₂.

    Where Σ ≠ I they are on b̂, and their initial spread is there for weights on the sphere, too.

    * ``direction``: Σ^{1/2}b by coordinates, (I, R + 1).
    * ``reach``: λ^{1−p} as the step has it, (I,).
    * ``gains``, ``along``: ϱ + sλ^{1−p}h₁E r and c_A(ι), (T, I).
    """
    gaussian = problem.init.weights == "gaussian"
    if spectrum.flat:
        found = law.norms(gaussian)
        # The teacher's remainder has none.
        loadings = np.delete(found.loadings, np.arange(1, 1 + len(law.overlaps)), axis=2)
        stretch = found.stretch if found.stretch.shape[2] else np.zeros((*found.spread.shape, 1))
        parts = zip(found.spread, found.growth, stretch, loadings)
        return tuple(Fluctuation(*part, initial=place > 0) for place, part in enumerate(parts))
    length = float(np.linalg.norm(direction))
    plain, power, square = law.norms(True), 1 - 2 * spectrum.power, spectrum.mean(2)
    bend, shares = law.moved * law.slope.hermite[2], spectrum.shares
    new = profile_of(along, spectrum.values * gains**2, spectrum)
    bent = 4 * bend * law.kept  # of b in the part of ‖w‖² linear in w₀
    seen, noise = law.labels.teacher(1), law.labels.moment(2) / law.samples
    own = float(seen @ seen) * float(spectrum.teacher @ spectrum.values**power)
    own += noise * spectrum.mean(power)  # ‖b‖²
    rest = np.maximum(plain.spread[0] - (bent * law.length) ** 2, 0.0)
    pace = Pace(law.moved, law.samples, law.kept, reach, spectrum)
    added = law.moved**2 * (law.slope.noise + law.slope.hermite[1] ** 2) * noise
    gain = law.kept + law.tilt * law.labels.moment(1)
    start = np.tile(spectrum.values, (len(gain), 1))
    rest = rest * larger_forms(start, gains, gain, added, pace)
    loadings, one = (law.kept * length * bent)[:, None], np.ones_like(bend)
    none, stretch = np.zeros_like(loadings), bend[:, None]
    place, spike = int(np.argmax(spectrum.heavy)), direction / (length or 1.0)
    share = float(spectrum.heavy[place])
    if len(seen) > 1 or share * float(spike[place, 0]) ** 2 < _HEAVY:
        spread = rest + (square * bent) ** 2 * own
        initial, profile = initial_norms(spectrum, spectrum.values, gaussian)
        spaces = _spaces(law, spectrum, profile, reach, gains)
        return (
            Fluctuation(spread, one, none, square * loadings, spaces=new),
            Fluctuation(
                initial * one, spaces @ shares, stretch * length, none, initial=True, spaces=spaces
            ),
        )
    heavy = np.arange(len(spectrum.values)) == place
    initial, profile = initial_norms(spectrum, np.where(heavy, 0.0, spectrum.values), gaussian)
    # Variances of w₁ before the step, and of what it adds there.
    before = float(spectrum.shares[place] * spectrum.values[place])
    added = spectrum.shares[place] * reach[place] ** 2 * added
    more = _lean_beside_square(problem, law, spectrum, direction, reach, place)
    steeper = stretch * float((more * spike).sum())
    fresh = (4 * before * added + 2 * added**2) / spectrum.inverse
    spaces = _spaces(law, spectrum, profile, reach, gains)
    single = _spaces(law, spectrum, heavy / shares[place], reach, gains)
    alone = np.tile(heavy / shares[place], (len(one), 1))
    return (
        Fluctuation(bent**2 * own, square * one, none, loadings, heavy=share * heavy),
        Fluctuation((1 - share) * rest, one, none, none, spaces=new),
        Fluctuation(
            initial * one, spaces @ shares, stretch * length, none, initial=True, spaces=spaces
        ),
        Fluctuation(
            2 * share * square * one, single @ shares, steeper, none, spaces=single, heavy=heavy
        ),
        Fluctuation(fresh, one, none, none, spaces=alone, heavy=heavy),
    )


def initial_norms(
    spectrum: Spectrum, values: FloatArray, gaussian: bool
) -> tuple[float, FloatArray]:
    """d times the variance of ‖Σ^{1/2}w₀‖² over directions with these variances of the weights, and
    what of it lies in which eigenspace, (I,): the squares of a Gaussian, or with a given sum.
    """
    profile = values * (values - (0.0 if gaussian else float(spectrum.shares @ values)))
    half = float(spectrum.shares @ profile)
    if half <= _ROUNDING:
        return 0.0, np.ones_like(values)
    return 2 * half, profile / half


def _spaces(
    law: NeuronLaw,
    spectrum: Spectrum,
    initial: FloatArray,
    reach: FloatArray,
    gains: FloatArray,
) -> FloatArray:
    """What an initial norm that is larger by one, by ``initial`` in the eigenspaces, makes of
    c_A(ι), (T, I): it is multiplied as the weights are, and moves the slopes.
    """
    s, alpha, e = law.moved[:, None], law.samples, law.labels.moment
    tilt, h3 = law.slope.hermite[1], law.slope.hermite[3]
    noise = s**2 * (tilt**2 + law.slope.bend + 6 * h3 * tilt)
    bent = 6 * h3 * e(1) * s * reach * gains * spectrum.values
    return np.asarray(initial * gains**2 + reach**2 * noise * e(2) / alpha + bent)


def _lean_beside_square(
    problem: Problem,
    law: NeuronLaw,
    spectrum: Spectrum,
    direction: FloatArray,
    reach: FloatArray,
    place: int,
) -> FloatArray:
    """Σ^{1−p}n⁻¹Σ rk₁²x along the teacher and along the noise of Σ^{1−p}n⁻¹Σ rx, (I, 2)."""
    labels, share = law.labels, float(spectrum.teacher[place])
    linear, square = labels.signal, labels.moment(2)
    third, bent = _third(problem), float(labels.second[0, 0] @ labels.nodes**2) - square
    found = direction.copy()
    found[:, 0] *= 1 + share * third / linear if linear else 1.0
    found[place, 0] += 2 * linear * math.sqrt(share) * reach[place]
    found[:, 1] *= 1 + share * bent / square if square else 1.0
    return found


def _third(problem: Problem) -> float:
    """f₃ = E[r He₃(u)] of the residuals of the first step."""
    rule = teacher_rule(problem.teacher)
    noise = coordinate_rule(1, nodes=_NOISE if problem.noise_variance else 1)
    labels = np.asarray(problem.teacher(rule.nodes), dtype=float)[:, None]
    labels = labels + math.sqrt(problem.noise_variance) * noise.nodes[:, 0]
    output = moments(problem.activation).mean * problem.init.second_layer.mean
    r = problem.steps[0].residual(np.full_like(labels, output), labels) @ noise.weights
    u = rule.nodes[:, 0]
    return float(rule.mean((u**3 - 3 * u) * r))
