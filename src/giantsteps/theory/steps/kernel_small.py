r"""Spectra of kernel and features in the limit, after no step or one with η = Θ(1) (theory §3).

By Gaussian equivalence a row of the features √N Φ is, with v_j = ‖w_j‖² − 1 and z white,

    c₀𝟙 + c₂v + c₂(‖x‖²/d − 1)𝟙 + μ₁W₁ᵀx + μ₂z .

Its covariance has the spikes of `SpikedPopulation`; each τ of them appears in K at Λ(τ). The mean
c₀𝟙 makes an infinite outlier, and hides the directions 𝟙 and v from the rest. At a given d the
spectra are those of the equivalent model (theory §5d).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from giantsteps.answers import Solution, Spectrum, Spike
from giantsteps.gaussian import moments
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


def kernel(problems: Sequence[Problem], claims: Sequence[Any], d: None) -> list[Spectrum]:
    r"""Eigenvalues of K = ΦΦᵀ (n × n): bulk, spikes and their overlap with the labels.

    .. math::
        Λ(τ) = Γτ + τ\int\frac{t\,dH(t)}{τ-t},\qquad
        ⟨u, ỹ⟩^2/\|ỹ\|^2 → \frac{ρ^2 μ_1^{*2}}{E y^2}\,\frac{μ_1^2⟨b̂, W_1ξ⟩^2}{τ}\,
        \frac{Λ'(τ)}{Γ}

    for each spike τ (unit eigenvector ξ) of the features' covariance with Λ'(τ) > 0. Overlaps:
    ``labels``; ``initial`` is the spectrum before the step.

    Finite networks approach the limit as 1/d, but for two effects of order d^{-1/2}: the initial
    network f₀ in the gradient pulls b against W₀a, and of the two equal spikes that the norms of
    inputs and of gaussian neurons make (c₂ ≠ 0, c₀ = 0), one moves up and the other down.
    """
    return [_spectrum(p, claim, "kernel") for p, claim in zip(problems, claims, strict=True)]


def features(problems: Sequence[Problem], claims: Sequence[Any], d: None) -> list[Spectrum]:
    r"""Singular values of Φ = N^{-1/2}σ(X̃W) (n × N): square roots of the kernel's.

    With k = ⟨x, b̂⟩ the left vector of the step's spike aligns with k and the right one with a,

    .. math::
        ⟨u, k⟩^2/\|k\|^2 → \frac{μ_1^2⟨b̂, W_1ξ⟩^2}{τ}\frac{Λ'(τ)}{Γ},\qquad
        ⟨v, â⟩^2 → ⟨â, ξ⟩^2 \frac{τΛ'(τ)}{Λ(τ)} .

    Overlaps: ``monomial`` (k^degree) and ``second_layer_power`` (a^degree, made orthogonal to 𝟙 if
    σ has a mean). ``degree`` is 1 for the step, 0 for the mean of σ, None for spikes made by ‖x‖²
    and ‖w_j‖², which align with no monomial.
    """
    return [_spectrum(p, claim, "features") for p, claim in zip(problems, claims, strict=True)]


def _spectrum(
    problem: Problem,
    claim: Any,
    matrix: Literal["kernel", "features"],
    bulk: KernelBulk | None = None,
) -> Spectrum:
    """The spectrum, and with the same ``bulk`` that before the step."""
    if bulk is None:
        activation = moments(problem.activation)
        bulk = KernelBulk(
            width=problem.width,
            samples=problem.require_readout().samples,
            linear=activation.linear,
            residual=activation.residual,
        )
    found = sorted(_outliers(problem, bulk), key=lambda one: -one.value)
    if matrix == "kernel":
        spikes = [Spike(value=one.value, overlaps={"labels": one.labels}) for one in found]
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
        initial=_spectrum(problem.untrained(), claim, matrix, bulk) if problem.steps else None,
    )


def _outliers(problem: Problem, bulk: KernelBulk) -> list[_Outlier]:
    """The outliers of K above its bulk, in no order."""
    activation, law = moments(problem.activation), problem.init.second_layer
    centered, gaussian = activation.is_centered, problem.init.weights == "gaussian"
    norms = 2.0 * bulk.width * activation.quadratic**2
    population = SpikedPopulation(
        bulk=bulk,
        strength=first_step(problem).strength if problem.steps else 0.0,
        common=norms if centered else math.inf,
        shared=law.mean / math.sqrt(law.second_moment) if law.second_moment else 0.0,
    )
    found = [_image(problem, population, spike) for spike in population.spikes()]
    if centered and gaussian:
        found += [_image(problem, population, spike) for spike in population.mirrored()]
    if not centered:
        found.append(_Outlier(math.inf, 0.0, 1.0, 1.0, degree=0))
    return [one for one in found if one.value > bulk.edge]


def _image(problem: Problem, population: SpikedPopulation, spike: PopulationSpike) -> _Outlier:
    """What a spike of the population becomes in K and Φ."""
    bulk, tau = population.bulk, spike.tau
    value, slope = float(bulk.spike(tau)), float(bulk.spike_slope(tau))
    left, right = slope / (tau * bulk.ratio), tau * slope / value
    linear = bulk.linear**2 * spike.step * left
    labels = 0.0
    if linear:
        teacher = teacher_moments(problem.teacher)
        variance = teacher.second_moment + problem.noise_variance
        labels = first_step(problem).alignment * teacher.linear**2 / variance * linear
    along = spike.rest if math.isinf(population.common) else spike.second_layer
    return _Outlier(value, labels, linear, right * along, degree=1 if linear else None)
