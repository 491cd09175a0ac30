r"""Where two steps on one batch move the neurons: a vector for each second-layer value (theory §7).

.. math:: W_2 = W_0 + \sum_j F(A_j)\,e_j^\top + \text{bulk},\qquad
          F(A) = A\,(η̃_1 μ_1 b + η̃_2 D(A)),\qquad
          D(A) = n^{-1} \sum_i x_i\, r_i\, ζ_A(i).

Only inner products matter: those of the vectors among themselves (the kernel 𝒦), with the
teacher's directions and with b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from giantsteps.functions import Function, Teacher
from giantsteps.gaussian import moments
from giantsteps.problem import SecondLayer
from giantsteps.theory.steps.one import types_of
from giantsteps.theory.steps.several.response import (
    Response,
    gains,
    lengths,
    reused_response,
    widths,
)
from giantsteps.theory.steps.several.sample_law import SampleLaw, sample_law

#: Eigenvalues of 𝒦 below this, relative to the largest, are rounding.
_ROUNDING = 1e-11
#: Resolution of a continuous second layer.
_TYPES = 2


@dataclass(frozen=True, eq=False)
class Modes:
    """Orthonormal directions of the field, strongest first.

    ======  =============  ========  =====================================================
    symbol  attribute      shape     meaning
    ======  =============  ========  =====================================================
    ℓ_j     strength       (r,)      eigenvalues of 𝒦 under the law of A: θ_j² = N ℓ_j
    S_tj    spikes         (T, r)    √ℓ_j φ_j(A_t), component of type t along direction j
    γ_j     teacher        (R, r)    cosines of the directions with those of the teacher
    \\       first          (r,)      cosines with b, the direction of the first step
    ======  =============  ========  =====================================================
    """

    strength: NDArray
    spikes: NDArray
    teacher: NDArray
    first: NDArray


@dataclass(frozen=True, eq=False)
class Field:
    """F(A) through its inner products, and what is left of the neurons.

    ==============  =============  ========  =================================================
    symbol          attribute      shape     meaning
    ==============  =============  ========  =================================================
    A_t, π_t        values,        (T,)      types of the second layer
                    probabilities
    𝒦(A, A')        kernel         (T, T)    ⟨F(A), F(A')⟩
    ⟨F(A), β_i⟩     teacher        (T, R)    along the teacher's directions
    ⟨F(A), b̂⟩       first          (T,)      along the direction of the first step
    c_t             variances      (T,)      squared length of the bulk of a neuron
    \\               law                      of the samples of the batch …
    \\               response                 … what neurons answer them …
    r               residual       (Y, V)    … and what is left of the labels
    ==============  =============  ========  =================================================
    """

    values: NDArray
    probabilities: NDArray
    kernel: NDArray
    teacher: NDArray
    first: NDArray
    variances: NDArray
    law: SampleLaw
    response: Response
    residual: NDArray

    def seen_by(self, law: SampleLaw) -> tuple[Response, NDArray]:
        """Response and residuals at the nodes of another law of the same samples."""
        label, step = (
            grid.spread(nodes.reshape(-1, 1), np.ones(1))[0]
            for grid, nodes in zip(self.law.grids, (law.label, law.step))
        )
        found = [label @ getattr(self.response, one.name) @ step.T for one in fields(Response)]
        return Response(*found), label @ self.residual @ step.T

    @cached_property
    def modes(self) -> Modes:
        """Eigenpairs of 𝒦 under the law of A; φ_j has the sign that makes E[A φ_j] ≥ 0."""
        root = np.sqrt(self.probabilities)
        strength, vectors = np.linalg.eigh(root[:, None] * self.kernel * root)
        kept = np.flatnonzero(strength > _ROUNDING * max(float(strength[-1]), 1e-300))[::-1]
        strength, phi = strength[kept], vectors[:, kept] / root[:, None]
        phi = phi * np.where((self.probabilities * self.values) @ phi < 0, -1.0, 1.0)
        weighted = self.probabilities[:, None] * phi / np.sqrt(strength)
        return Modes(
            strength=strength,
            spikes=phi * np.sqrt(strength),
            teacher=self.teacher.T @ weighted,
            first=self.first @ weighted,
        )


@lru_cache(maxsize=8)
def two_step_field(
    activation: Function,
    teacher: Teacher,
    noise_variance: float,
    second_layer: SecondLayer,
    samples: float,
    rates: tuple[float, float],
    tail: float = 0.0,
) -> Field:
    r"""The field of two steps on one batch.

    .. math::
        𝒦(A,A') = AA'\bigl[(η̃_1μ_1)^2\|b\|^2 + η̃_1μ_1η̃_2(⟨D_A,b⟩+⟨D_{A'},b⟩)
        + η̃_2^2⟨D_A,D_{A'}⟩\bigr]

    With g_A = r ζ_A, expectations over a sample of the batch:

    .. math::
        ⟨D_A,D_{A'}⟩ &= ⟨E[xg_A],E[xg_{A'}]⟩ + E[g_Ag_{A'}]/α_0
        + (E[∂g_A]E[yg_{A'}] + E[yg_A]E[∂g_{A'}])/α_0, \\
        ⟨D_A,b⟩ &= E[(y/α_0+v)g_A],

    ∂ the derivative in v at fixed y. For c_t see theory §7.

    ===========  ==================  =====================================================
    symbol       argument            meaning
    ===========  ==================  =====================================================
    σ            activation          the first gradient sees y − E σ E A
    α₀           samples             n/d of the batch
    η̃₁, η̃₂       rates               η_i/√N
    \\            tail                share of the largest |A| that is cut (`types_of`)
    ===========  ==================  =====================================================

    References: theory §7; moniri2026.
    """
    shift = moments(activation).mean * second_layer.mean
    law = sample_law(teacher, noise_variance, samples, shift=shift)
    linear = moments(activation).linear
    first, second = rates[0] * linear, rates[1]
    steepness = abs(linear) * math.sqrt(law.norm_squared) * (abs(rates[0]) + abs(rates[1]))
    values, probabilities = types_of(second_layer, 1 if tail else _TYPES, steepness, tail)
    response, residual = respond(activation, law, values, probabilities, rates[0])
    pull = residual * response.slope  # g_A, (T, Y, V)
    frame = law.frame(pull)  # E[x g_A], (T, R + 1)
    weighted = (pull * law.mass).reshape(len(values), -1)
    inner = frame @ frame.T + weighted @ pull.reshape(len(values), -1).T / samples
    feedback = np.tensordot(probabilities * values**2, response.slope, axes=1)
    drift = residual * response.curvature * values[:, None, None] - feedback * response.slope
    drift = first * law.mean(drift)  # E[∂g_A]
    echo = law.mean(pull * law.label)  # E[y g_A]
    inner = inner + (np.outer(drift, echo) + np.outer(echo, drift)) / samples
    along = law.mean((law.label / samples + law.step) * pull)  # ⟨D_A, b⟩
    kernel = first**2 * law.norm_squared + first * second * np.add.outer(along, along)
    kernel = kernel + second**2 * inner
    variances = _variances(activation, law, response, residual, values, rates)
    length = np.sqrt(law.norm_squared)
    return Field(
        values=values,
        probabilities=probabilities,
        kernel=np.outer(values, values) * kernel,
        teacher=values[:, None] * (first * law.linear + second * frame[:, :-1]),
        first=values * (first * length + second * along / length),
        variances=variances,
        law=law,
        response=response,
        residual=residual,
    )


def respond(
    activation: Function,
    law: SampleLaw,
    values: NDArray,
    probabilities: NDArray,
    rate: float,
) -> tuple[Response, NDArray]:
    """How neurons answer the samples in the second step, and the residuals r, (Y, V)."""
    response = reused_response(activation, law, rate * values)
    output = np.tensordot(probabilities * values, response.output, axes=1)
    initial = moments(activation).mean * float(probabilities @ values)
    return response, law.label + initial - output


def _variances(
    activation: Function,
    law: SampleLaw,
    response: Response,
    residual: NDArray,
    values: NDArray,
    rates: tuple[float, float],
) -> NDArray:
    """c_t, the squared length of the neurons without F(A): traces of the bulk (theory §7)."""
    sigma = moments(activation)
    first, second = rates[0] * values, rates[1] * values
    before = lengths(sigma, law, first)
    noise = response.slope_square - response.slope**2
    noise = law.mean(residual**2 * noise) / law.samples
    stretch = law.mean(residual * response.curvature)  # P = E[r σ''(h)]
    tilt = law.mean(residual * response.tilt)  # L = E[r g σ'(h)]
    echo = response.echo - sigma.linear * response.slope
    echo = law.mean(law.label * residual * echo) / law.samples  # X
    own = widths(sigma, law, first)
    return (
        before
        + 2.0 * second * (gains(sigma, law, first) * tilt + own * stretch)
        + 2.0 * first * second * echo
        + second**2 * (noise + tilt**2 + own * stretch**2 + 2.0 * first * stretch * echo)
    )
