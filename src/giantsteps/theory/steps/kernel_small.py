r"""Spectra of kernel and features after no step, or one with η = Θ(1) (theory §3).

By Gaussian equivalence a row of the features √N Φ is, with v_j = ‖w_j‖² − 1 and z white,

    c₀𝟙 + c₂v + c₂(‖x‖²/d − 1)𝟙 + μ₁W₁ᵀx + μ₂z .

Its covariance has the spikes of `SpikedPopulation`; each τ of them appears in K at Λ(τ). The mean
c₀𝟙 makes an outlier of order n, and hides the directions 𝟙 and v from the rest (theory §3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from giantsteps.answers import Solution, Spectrum, Spike
from giantsteps.gaussian import hermite_coefficients, moments
from giantsteps.laws import KernelBulk
from giantsteps.problem import Problem
from giantsteps.theory.model.teacher import teacher_moments
from giantsteps.theory.steps.first import first_step
from giantsteps.theory.steps.spiked_population import PopulationSpike, SpikedPopulation


class _Outlier(NamedTuple):
    """An eigenvalue of K outside the bulk, and squared cosines of its vectors in K and Φ."""

    value: float
    labels: float
    monomial: float
    second_layer_power: float
    degree: int | None


def kernel(problems: Sequence[Problem], claims: Sequence[Any], d: int | None) -> list[Spectrum]:
    r"""Eigenvalues of K = ΦΦᵀ (n × n): bulk, spikes and their overlap with the labels.

    .. math::
        Λ(τ) = Γτ + τ\int\frac{t\,dH(t)}{τ-t},\qquad
        ⟨u, ỹ⟩^2/\|ỹ\|^2 → \frac{ρ^2 μ_1^{*2}}{E y^2}\,\frac{μ_1^2⟨b̂, W_1ξ⟩^2}{τ}\,
        \frac{Λ'(τ)}{Γ}

    for each spike τ (unit eigenvector ξ) of the features' covariance with Λ'(τ) > 0.

    Parameters
    ----------
    problems : sequence of Problem
        No step or one with exponent 0; with a readout.
    claims : sequence
        What the answers say of themselves.
    d : int, optional
        Input dimension. An activation with a mean puts an outlier at order n, about
        n c₀² + Var σ (1+Γ): without d its value is infinite.

    Returns
    -------
    Spectrum
        Overlaps: ``labels``. ``initial`` is the spectrum before the step.

    Notes
    -----
    Finite networks approach the limit as 1/d, but for two effects of order d^{-1/2}: the initial
    network f₀ in the gradient pulls b against W₀a, and of the two equal spikes that the norms of
    inputs and of gaussian neurons make (c₂ ≠ 0, c₀ = 0), one moves up and the other down.
    """
    return [_spectrum(p, claim, d, "kernel") for p, claim in zip(problems, claims, strict=True)]


def features(problems: Sequence[Problem], claims: Sequence[Any], d: int | None) -> list[Spectrum]:
    r"""Singular values of Φ = N^{-1/2}σ(X̃W) (n × N): square roots of the kernel's.

    With k = ⟨x, b̂⟩ the left vector of the step's spike aligns with k and the right one with a,

    .. math::
        ⟨u, k⟩^2/\|k\|^2 → \frac{μ_1^2⟨b̂, W_1ξ⟩^2}{τ}\frac{Λ'(τ)}{Γ},\qquad
        ⟨v, â⟩^2 → ⟨â, ξ⟩^2 \frac{τΛ'(τ)}{Λ(τ)} .

    Parameters as for `kernel`.

    Returns
    -------
    Spectrum
        Overlaps: ``monomial`` (k^degree) and ``second_layer_power`` (a^degree, made orthogonal
        to 𝟙 if σ has a mean). ``degree`` is 1 for the step, 0 for the mean of σ, None for spikes
        made by ‖x‖² and ‖w_j‖², which align with no monomial.
    """
    return [_spectrum(p, claim, d, "features") for p, claim in zip(problems, claims, strict=True)]


def _spectrum(
    problem: Problem,
    claim: Any,
    d: int | None,
    matrix: Literal["kernel", "features"],
    bulk: KernelBulk | None = None,
) -> Spectrum:
    """The spectrum, and with the same ``bulk`` that before the step."""
    sized = problem if d is None else problem.realised(d)
    if bulk is None:
        activation = moments(sized.activation)
        bulk = KernelBulk(
            width=sized.width,
            samples=sized.require_readout().samples,
            linear=activation.linear,
            residual=activation.residual,
        )
    found = sorted(_outliers(sized, bulk, d), key=lambda one: -one.value)
    if matrix == "kernel":
        # What the labels have beside a vector falls on it by chance.
        chance = 0.0 if d is None else 1.0 / (sized.require_readout().samples * d)
        spikes = [
            Spike(value=one.value, overlaps={"labels": one.labels + (1.0 - one.labels) * chance})
            for one in found
        ]
    else:
        spikes = [
            Spike(
                value=math.sqrt(one.value),
                overlaps={
                    "monomial": one.monomial,
                    "second_layer_power": one.second_layer_power,
                },
                degree=one.degree,
            )
            for one in found
        ]
    return Spectrum(
        **{**claim, "problem": problem},
        solution=Solution(status="closed form", error=1e-9),
        matrix=matrix,
        bulk=bulk if matrix == "kernel" else bulk.singular_values(),
        spikes=tuple(spikes),
        initial=_spectrum(problem.untrained(), claim, d, matrix, bulk) if problem.steps else None,
    )


def _outliers(problem: Problem, bulk: KernelBulk, d: int | None) -> list[_Outlier]:
    """The outliers of K above its bulk, in no order; the ratios of ``problem`` are the realised
    ones.
    """
    activation, law = moments(problem.activation), problem.init.second_layer
    centered, gaussian = activation.is_centered, problem.init.weights == "gaussian"
    norms = 2.0 * bulk.width * activation.quadratic**2
    mean = 0.0 if centered else math.inf if d is None else _squared_mean(problem, bulk, d)
    # A mean takes the norms of the neurons along: c₀𝟙 + c₂v is one vector, the same in all samples.
    mean += 0.0 if centered or not gaussian else norms
    population = SpikedPopulation(
        bulk=bulk,
        strength=first_step(problem).strength if problem.steps else 0.0,
        common=norms + mean,
        shared=law.mean / math.sqrt(law.second_moment) if law.second_moment else 0.0,
    )
    found = [_image(problem, population, spike, mean) for spike in population.spikes()]
    if centered and gaussian:
        found += [_image(problem, population, spike, mean) for spike in population.mirrored()]
    if math.isinf(mean):
        found.append(_Outlier(math.inf, 0.0, 1.0, 1.0, degree=0))
    return [one for one in found if one.value > bulk.edge]


def _image(
    problem: Problem, population: SpikedPopulation, spike: PopulationSpike, mean: float
) -> _Outlier:
    """What a spike of the population becomes in K and Φ."""
    bulk, tau = population.bulk, spike.tau
    value, slope = float(bulk.spike(tau)), float(bulk.spike_slope(tau))
    left, right = slope / (tau * bulk.ratio), tau * slope / value
    linear = bulk.linear**2 * spike.step * left
    constant = mean * spike.common * left if mean and math.isfinite(mean) else 0.0
    labels = 0.0
    if linear:
        teacher = teacher_moments(problem.teacher)
        variance = teacher.second_moment + problem.noise_variance
        labels = first_step(problem).alignment * teacher.linear**2 / variance * linear
    if constant > linear:
        return _Outlier(value, labels, constant, right * spike.common, degree=0)
    along = spike.rest if mean else spike.second_layer
    return _Outlier(value, labels, linear, right * along, degree=1 if linear else None)


def _squared_mean(problem: Problem, bulk: KernelBulk, d: int) -> float:
    r"""N c̄², c̄ = c₀ + c₂δ + 3c₄(Var ‖w_j‖² + δ²) the mean of σ over inputs and neurons.

    The step lengthens the neurons by δ = E‖w_j‖² − 1, which is of order 1/√N where it sees the
    mean of the activation in the labels (E A ≠ 0), else of order 1/N: enough to move an outlier
    of order n.
    """
    activation, law = moments(problem.activation), problem.init.second_layer
    c = hermite_coefficients(problem.activation, 4)
    growth = 0.0
    if problem.steps:
        step, (first,) = first_step(problem), problem.steps
        rate = first.rate / math.sqrt(bulk.width * d)  # η̃
        drift = -2.0 * c[2] * rate * law.mean**2 * c[0]  # κ̄ E y₀
        own = activation.linear**2 * step.norm_squared
        own += activation.derivative_variance * step.label_moment / first.samples
        growth = 2.0 * drift + drift**2 + rate**2 * law.second_moment * own
    spread = 2.0 / d if problem.init.weights == "gaussian" else 0.0
    return float(bulk.width * d * (c[0] + c[2] * growth + 3.0 * c[4] * (spread + growth**2)) ** 2)
