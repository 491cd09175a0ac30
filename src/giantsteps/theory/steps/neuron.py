r"""The law of one neuron after one step, given the batch (theory §5b).

.. math:: w = S_t\hat b + (ϱI + κ_t M)\,w_0 + ζ,\qquad M = n_0^{-1}Σ_i r_i x_ix_i^⊤,\qquad
          ζ = s\,n_0^{-1}Σ_i r_i φ_h(g_i)\,x_i,\qquad s = η̃A_t,

with σ'(g) = μ₁ + h₁g + φ_h(g): the constant makes the spike, the linear part multiplies the initial
weights, the rest acts like noise on each sample; ϱ = 1 − decay. Over w₀, for weights on the sphere,

.. math:: d\,\mathrm{Cov}(w) = Σ_t = (ϱI + κ_tM)² + ε_t\mathbf S,\qquad
          d\,\mathrm{Cov}(w, ‖w‖²) = (ϱI + κ_tM)λ_t + ζ_t,\qquad d\,\mathrm{Var}‖w‖² = v_t .
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from giantsteps.functions import Function
from giantsteps.gaussian import gauss_rule
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.functions_of_spike import left_of
from giantsteps.theory.model.norms import Norms
from giantsteps.theory.solver.bulk import Batch, Stage
from giantsteps.theory.solver.once import once
from giantsteps.theory.steps.labels import Labels
from giantsteps.types import FloatArray


@dataclass(frozen=True)
class Slopes:
    """Gaussian moments of σ' and of φ_h = σ' − μ₁ − h₁g (φ = σ' − μ₁).

    ==============  ==================  ============================
    symbol          attribute           meaning
    ==============  ==================  ============================
    μ₁, h₁, h₂, h₃  hermite             E[σ'He_k]/k! = (k+1)c_{k+1}
    v_h             noise               E φ_h²
    a₁, a₂          skew, bend          E[gφ_h²], ½E[He₂φ_h²]
    \\               fourth, spread      Eφ_h⁴, E[g²φ_h²]
    \\               cubic               E[gφ_h³]
    \\               lean, mixed, third  E[gφ²], E[gφφ_h], E[φ²φ_h]
    ==============  ==================  ============================
    """

    hermite: tuple[float, float, float, float]
    noise: float
    skew: float
    bend: float
    fourth: float
    spread: float
    cubic: float
    lean: float
    mixed: float
    third: float


def slopes(activation: Function) -> Slopes:
    """Moments of the derivative of σ."""
    derivative = activation.derivative
    rule = gauss_rule(derivative)
    g, mean = rule.nodes, rule.mean
    slope = np.asarray(derivative(g), dtype=float)
    powers = (np.ones_like(g), g, (g * g - 1) / 2, (g**3 - 3 * g) / 6)
    hermite = [float(mean(slope * he)) for he in powers]
    size = math.sqrt(float(mean(slope * slope)))
    hermite = [0.0 if abs(h) < 1e-14 * size else h for h in hermite]
    phi = slope - hermite[0]
    rest = phi - hermite[1] * g
    return Slopes(
        hermite=(hermite[0], hermite[1], hermite[2], hermite[3]),
        noise=float(mean(rest**2)),
        skew=float(mean(g * rest**2)),
        bend=float(mean((g * g - 1) * rest**2)) / 2,
        fourth=float(mean(rest**4)),
        spread=float(mean((g * rest) ** 2)),
        cubic=float(mean(g * rest**3)),
        lean=float(mean(g * phi**2)),
        mixed=float(mean(g * phi * rest)),
        third=float(mean(phi**2 * rest)),
    )


@dataclass(frozen=True, eq=False)
class NeuronLaw:
    """Neurons that move by s = η̃A along the gradient of one batch.

    ======  ============  =================================================
    symbol  attribute     meaning
    ======  ============  =================================================
    s       moved         shape (T,)
    α₀      samples       n₀/d
    r, u    labels        residuals of the batch, and the teacher's coordinates
    φ       slope         moments of σ'
    ϱ       kept          what decay leaves of the initial weights
    ======  ============  =================================================
    """

    moved: FloatArray
    samples: float
    labels: Labels
    slope: Slopes
    kept: float = 1.0

    # -- the spike ------------------------------------------------------------------------------

    @property
    def length(self) -> float:
        """‖b‖, b = n₀⁻¹Σ r_ix_i."""
        return _step_direction(self.labels, self.samples)[0]

    @property
    def overlaps(self) -> FloatArray:
        """γ = ⟨b, β*⟩/‖b‖ for each direction of the teacher, (R,)."""
        return _step_direction(self.labels, self.samples)[1]

    @property
    def overlap(self) -> float:
        """γ of a teacher of one direction."""
        return float(self.overlaps[0])

    @property
    def spikes(self) -> FloatArray:
        """S_t = s μ₁‖b‖."""
        return self.moved * self.slope.hermite[0] * self.length

    # -- the bulk -------------------------------------------------------------------------------

    @once
    def tilt(self) -> FloatArray:
        """κ_t = h₁s."""
        return self.slope.hermite[1] * self.moved

    @property
    def noise(self) -> FloatArray:
        """ε_t = s²v_h/α₀."""
        return self.moved**2 * self.slope.noise / self.samples

    @property
    def lengthening(self) -> float | None:
        """κ₀ = (c_t − 1)/S_t², the same for all types where E r = 0 and nothing decays; else
        None.
        """
        linear, tilt = self.slope.hermite[:2]
        mean, square = self.labels.moment(1), self.labels.moment(2)
        if self.kept != 1 or abs(tilt * mean) > 1e-13 * math.sqrt(square) or not linear:
            return None
        noise = (self.slope.noise + tilt**2) * square / self.samples
        return noise / (linear * self.length) ** 2

    def covariance(self) -> NeuronCovariance:
        """Σ_t through I, 2M, M² and 𝐒 (without the two in the middle where κ = 0)."""
        tilt, whole = self.tilt, np.full_like(self.moved, self.kept**2)
        columns = [whole, self.noise]
        if self._even:
            columns = [whole, self.kept * tilt, self.noise, tilt**2]
        operators = _operators(self.labels, self.samples, self._even)
        return replace(operators, coefficients=np.ascontiguousarray(np.array(columns).T))

    # -- the norms ------------------------------------------------------------------------------

    def norms(self, gaussian: bool) -> Norms:
        r"""Variance of the squared norms, and what they go with; initial norms of Gaussian weights
        apart.

        λ_t = 4sh₂(ϱ + κm̄) b + (s²/α₀)E[gφ²] b₂ is the part of ‖w‖² linear in w₀; sample i moves
        ‖w‖² by n₀⁻¹[2sr(ϱ + κm̄)gφ + (s²r²/α₀)φ²], which goes with its own srφ_h x/n₀:
        ζ_t = (2s²/α₀)(ϱ + κm̄)E[gφφ_h] b₂ + (s³/α₀²)E[φ²φ_h] b₃. Here b_j = n₀⁻¹Σ r^j x, m̄ = E r.
        """
        s, alpha, slope, e = self.moved, self.samples, self.slope, self.labels.moment
        _, _, h2, h3 = slope.hermite
        inner, second, kept = self._inner, s * s / alpha, self.kept
        by_b = (4 * h2) * s * inner
        by_b2 = slope.lean * second
        own_b2 = (2 * slope.mixed) * second * inner
        own_b3 = (slope.third / alpha) * second * s
        zero = np.zeros(len(s))
        beside = [zero] * len(self.overlaps)
        columns = [by_b * (self.length * kept), *beside, by_b2 * kept + own_b2, own_b3]
        growth = self._powers[0] + second * (slope.bend * e(2)) + (6 * h3 * kept * e(1)) * s
        if self._even:
            columns += [self.tilt * by_b, self.tilt * by_b2]
            growth = growth + (6 * h3 * (e(2) / alpha + e(1) ** 2)) * s * self.tilt
        loadings = np.ascontiguousarray(np.array(columns).T)
        spread = np.maximum(self.spread(), 0.0)
        if not gaussian:
            return Norms(spread, loadings)
        return Norms(
            np.array([spread, zero + 2.0]),
            np.array([loadings, 0.0 * loadings]),
            growth=np.array([zero + 1.0, growth]),
            stretch=np.array([zero, s * (h2 * self.length)])[:, :, None],
            initial=1,
        )

    @once
    def _inner(self) -> FloatArray:
        """ϱ + κm̄."""
        return self.kept + self.tilt * self.labels.moment(1)

    @once
    def _even(self) -> bool:
        """Whether some κ is not zero."""
        return bool(self.tilt.any())

    @once
    def _powers(self) -> tuple[FloatArray, FloatArray]:
        """N_j = d⁻¹tr (ϱI + κM)^j, j = 2 and 4, from the free cumulants of M."""
        e, alpha, kappa, k1 = self.labels.moment, self.samples, self.tilt, self._inner
        if not self._even:
            return k1 * k1, (k1 * k1) ** 2
        k2, k3, k4 = (kappa**j * e(j) / alpha ** (j - 1) for j in (2, 3, 4))
        return k2 + k1**2, k4 + 4 * k1 * k3 + 2 * k2**2 + 6 * k1**2 * k2 + k1**4

    def spread(self) -> FloatArray:
        """v_t: traceless forms of w₀, products of old and new weights, and the new ones.

        A sample has (ϱI + κM)² at κm̄ + κr/α beyond its trace: κ(r/α)(2(ϱ + κm̄) + κr/α).
        """
        s, alpha, slope, e = self.moved, self.samples, self.slope, self.labels.moment
        _, _, h2, h3 = slope.hermite
        inner, second = self._inner, s * s / alpha
        most = e(4) * (slope.fourth - slope.noise**2) / alpha + 2 * (slope.noise * e(2)) ** 2
        product, third = inner * inner * e(2), inner * e(3)
        total = second * second * most
        bent = second * slope.skew
        if self._even:
            b = self.tilt / alpha
            n2, n4 = self._powers
            total = total + 2 * (n4 - n2**2)
            excess = b * (2 * inner**2 * e(2) + 3 * inner * b * e(3) + b * b * e(4))
            total = total + 24 * h3 * s * excess
            total = total + 4 * slope.bend * second * b * (2 * inner * e(3) + b * e(4))
            total = total + 4 * slope.noise * second * alpha * (b * e(2)) ** 2
            product = product + b * (2 * inner * e(3) + b * e(4))
            third, bent = third + b * e(4), bent + (4 * h2) * s * b
        cubic = (slope.cubic / alpha) * s * third
        total = total + 4 * second * (product * slope.spread + cubic)
        plain = (4 * h2) * s * inner
        for first, square in zip(self.labels.teacher(1), self.labels.teacher(2)):
            total = total + (plain * first + bent * square) ** 2
        return np.asarray(total)


@lru_cache(maxsize=64)
def _step_direction(labels: Labels, samples: float) -> tuple[float, FloatArray]:
    """‖b‖, and the cosines of b with the teacher's directions."""
    seen = labels.teacher(1)
    length = math.sqrt(float(seen @ seen) + labels.moment(2) / samples)
    overlaps = seen / length if length else 0.0 * seen
    overlaps.setflags(write=False)
    return length, overlaps


@lru_cache(maxsize=64)
def _operators(labels: Labels, samples: float, even: bool) -> NeuronCovariance:
    """The operators and vectors of one batch, the same for all rates; without neurons."""
    r, (length, overlaps) = labels.nodes, _step_direction(labels, samples)
    batch = Batch(
        samples=np.array(samples),
        weights=labels.weights,
        first=labels.first,
        second=labels.second,
        linear=np.stack([2 * r, r * r]) if even else (r * r)[None],
        factors=r[None] if even else np.zeros((0, len(r))),
    )
    # Vectors: b̂, b₂, b₃, where norms need them M b and M b₂, and the teacher's.
    powers = [r / length, r**2, r**3, *([r, r**2] if even else [])]
    rank, count = len(overlaps), len(powers)
    place = (0, 0, 0, *((1, 1) if even else ()), *(0,) * rank)
    carry = np.concatenate([np.zeros((count, rank)), np.eye(rank)])
    sums = np.concatenate([np.stack(powers), np.zeros((rank, len(r)))])
    # A teacher along the step leaves no direction of its own: any generic one will do.
    _, inverse = left_of(overlaps[:, None])
    special = np.zeros((count + rank, count + rank))
    special[0, 0] = 1.0
    special[1 : 1 + rank, 0], special[1 : 1 + rank, count:] = -inverse @ overlaps, inverse
    special[np.arange(1 + rank, count + rank), np.arange(1, count)] = 1.0
    return NeuronCovariance(
        shares=np.ones(1),
        diagonal=np.ones((1, 1)),
        coefficients=np.zeros((0, 4 if even else 2)),
        external=np.eye(rank)[:, None],
        special=special,
        gram=_gram(labels, samples, even),
        batches=(batch,),
        stages=(Stage(frame=np.eye(rank), carry=carry, sums=sums, place=place),),
    )


def _gram(labels: Labels, alpha: float, even: bool) -> FloatArray:
    """d⁻¹tr Ω_cΩ_c' of I, 2M, 𝐒, M²: sums over non-crossing partitions of moments of r."""
    e = labels.moment
    square = e(4) / alpha + e(2) ** 2
    if not even:
        return np.array([[1.0, e(2)], [e(2), square]])
    m2 = e(2) / alpha + e(1) ** 2
    m3 = e(3) / alpha**2 + 3 * e(1) * e(2) / alpha + e(1) ** 3
    m4 = e(4) / alpha**3 + 4 * e(1) * e(3) / alpha**2 + 2 * e(2) ** 2 / alpha**2
    m4 += 6 * e(1) ** 2 * e(2) / alpha + e(1) ** 4
    ms = e(3) / alpha + e(1) * e(2)
    mms = e(4) / alpha**2 + 2 * e(1) * e(3) / alpha + e(2) ** 2 / alpha + e(1) ** 2 * e(2)
    return np.array(
        [
            [1.0, 2 * e(1), e(2), m2],
            [2 * e(1), 4 * m2, 2 * ms, 2 * m3],
            [e(2), 2 * ms, square, mms],
            [m2, 2 * m3, mms, m4],
        ]
    )
