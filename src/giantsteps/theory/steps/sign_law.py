"""The law of the signs of a gradient over the neurons: covariance and norms (theory §9)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import erf

from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.norms import Norms
from giantsteps.theory.solver.bulk import Batch, Stage
from giantsteps.theory.steps.neuron import NeuronLaw
from giantsteps.types import FloatArray


@dataclass(frozen=True, eq=False)
class SignLaw:
    """The law of the signs over the neurons, at nodes ζ of the coordinates."""

    law: NeuronLaw
    q: float
    deviation: float
    zeta: FloatArray
    shares: FloatArray
    #: Component of b along W₀a, which the initial output of an unscaled network gives it.
    along: float = 0.0
    #: Of the direction on which neurons lean: shares of the mean of the signs, and of W₀a.
    parts: tuple[float, float] = (1.0, 0.0)

    @property
    def length(self) -> float:
        """‖b‖."""
        return math.hypot(self.law.length, self.along)

    @property
    def overlap(self) -> float:
        """⟨b̂, β*⟩."""
        return self.law.overlap * self.law.length / self.length if self.along else self.law.overlap

    @cached_property
    def psi(self) -> FloatArray:
        """ψ, the mean."""
        return np.asarray(erf(self.q * self.zeta / math.sqrt(2)))

    @cached_property
    def phi(self) -> FloatArray:
        """φ, the slope."""
        slope = np.exp(-((self.q * self.zeta) ** 2) / 2)
        return np.asarray(math.sqrt(2 / math.pi) / self.deviation * slope)

    @cached_property
    def gain(self) -> float:
        """E φ."""
        return math.sqrt(2 / math.pi / (1 + self.q**2)) / self.deviation

    @cached_property
    def size(self) -> float:
        """√(E ψ²)."""
        return math.sqrt(self.mean(self.psi**2))

    @cached_property
    def bend(self) -> FloatArray:
        """v = ψ''."""
        return -self.q * self.zeta * self.phi * self.deviation

    def mean(self, values: FloatArray) -> float:
        """Mean over the coordinates."""
        return float(self.shares @ values)

    @cached_property
    def uneven(self) -> float:
        """ω."""
        step = replace(self.law, moved=np.ones(1)).covariance()
        own = step.coefficients[0].copy()
        own[0] = 0.0
        if len(own) > 2:
            own[1] = 0.0  # of 2M, which goes with the initial weights
        total = float(own @ step.gram[0])
        return (float(own @ step.gram @ own) / total**2 - 1) / 2 if total else 0.0

    def covariance(
        self, moved: FloatArray, sign: FloatArray, kept: float, overlap: float
    ) -> NeuronCovariance:
        """Σ along the coordinates: generic vectors in them, and in copies of no share of their own
        functions of ζ, to which spike and b̂ belong.
        """
        law, labels, zeta, phi, psi = self.law, self.law.labels, self.zeta, self.phi, self.psi
        r, alpha, tilt = labels.nodes, law.samples, law.slope.hermite[1] * moved * sign
        even = bool(np.any(tilt))
        columns = [np.full_like(moved, kept**2), moved**2, moved**2 * law.slope.noise / alpha]
        if even:
            columns += [kept * tilt, tilt**2]
        count = 7 if self.parts[1] else 6
        left = 1 - psi**2 - (phi * self.deviation) ** 2
        root, none = np.sqrt(self.shares), np.zeros_like(zeta)
        spike = root * psi / self.size if self.size else root * zeta
        bent = root * (1 - psi**2) * psi
        bent = bent + self.uneven * self.mean(self.bend * psi) * root * self.bend

        def vector(generic: FloatArray, function: FloatArray) -> FloatArray:
            parts = np.concatenate([generic, none]), np.concatenate([none, function])
            return np.stack(parts, axis=1)

        return NeuronCovariance(
            shares=np.concatenate([self.shares, none]),
            diagonal=np.stack(
                [np.ones(2 * len(zeta)), np.concatenate([left, left + self._uneven_along(spike)])]
            ),
            coefficients=np.stack(columns, axis=1),
            # β⊥, Dβ⊥, b̂, Db̂, the spike, and what norms go with.
            external=self._with_start(
                vector(root, none),
                vector(root * phi, none),
                vector(none, root * zeta),
                vector(none, root * zeta * phi),
                vector(none, spike),
                vector(none, bent),
            ),
            special=self._special(overlap),
            gram=self._gram(left, even),
            scales=np.concatenate([phi, phi]) ** 2,
            within=np.ones(2 * len(zeta)) if even else None,
            batches=(
                Batch(
                    samples=np.array(alpha),
                    weights=labels.weights,
                    linear=(r * r)[None],
                    factors=r[None] if even else np.zeros((0, len(r))),
                    crossed=even,
                    **self._coordinates(),
                ),
            ),
            stages=(
                Stage(
                    frame=np.eye(6, count)[[1, 3]],
                    carry=np.eye(count),
                    sums=np.zeros((count, len(r))),
                    place=(0,) * count,
                    within=np.eye(6, count)[[0, 2]] if even else None,
                ),
            ),
        )

    def _special(self, overlap: float) -> FloatArray:
        """Spike, the teacher's remainder, and what norms go with: Cov(s)ψ, b̂, β⊥."""
        beside, _, along, _, spike, bent, *others = np.eye(7 if self.parts[1] else 6)
        rest = math.sqrt(max(1.0 - overlap**2, 0.0))
        teacher = self.overlap * along
        teacher = teacher + math.sqrt(max(1.0 - self.overlap**2, 0.0)) * beside
        if others:  # W₀a is orthogonal to the teacher
            own = self.along / self.length if self.length else 0.0
            left = math.sqrt(max((1.0 - own**2) * (1.0 - self.overlap**2), 0.0)) or 1.0
            shared = -own * self.overlap * math.sqrt(max(1.0 - own**2, 0.0)) / left
            other = math.sqrt(max(1.0 - own**2 - shared**2, 0.0))
            start = own * along + shared * beside + other * others[0]
            spike = self.parts[0] * spike + self.parts[1] * start
        # A teacher along the spike leaves no direction of its own: any generic one will do.
        remainder = (teacher - overlap * spike) / rest if rest > 1e-12 else beside
        return np.stack([spike, remainder, bent, along, beside])

    def _with_start(self, *vectors: FloatArray) -> FloatArray:
        """With a generic direction for what W₀a has beside b̂ and the teacher."""
        if not self.parts[1]:
            return np.stack(vectors)
        wider = np.pad(np.stack(vectors), ((0, 1), (0, 0), (0, 1)))
        wider[-1, :, -1] = vectors[0][:, 0]
        return wider

    def _coordinates(self) -> dict[str, FloatArray]:
        """Moments of the samples' coordinates on β⊥ and b̂."""
        labels, gamma = self.law.labels, self.overlap
        weights, first, second = labels.weights, labels.first[0], labels.second[0, 0]
        own, seen = labels.nodes / self.law.samples, labels.signal
        length = self.length or 1.0
        rest = labels.moment(2) / self.law.samples + self.along**2
        along = (own * weights + seen * first) / length
        mixed = (own * first + seen * second) / length
        square = (own**2 + rest) * weights + 2 * seen * own * first + seen**2 * second
        square = square / length**2
        beside = math.sqrt(max(1.0 - gamma**2, 0.0)) or 1.0
        cross = (mixed - gamma * square) / beside
        other = (second - 2 * gamma * mixed + gamma**2 * square) / beside**2
        return {
            "first": np.stack([(first - gamma * along) / beside, along]),
            "second": np.array([[other, cross], [cross, square]]),
        }

    def _uneven_along(self, spike: FloatArray) -> FloatArray:
        """ωvvᵀ as a diagonal operator with its forms of spike and b̂: a multiple of exp(−Bζ²)."""
        zeta, shares = self.zeta, self.shares
        along, own = self.mean(self.bend * zeta) ** 2, float(spike @ (np.sqrt(shares) * self.bend))
        if not own or not self.uneven:
            return np.zeros_like(zeta)

        def ratio(power: float) -> float:
            shape = np.exp(-power * zeta**2)
            return float(shape @ (shares * zeta**2)) / float(shape @ spike**2) - along / own**2

        high = 1.0
        while ratio(high) > 0:
            high *= 2.0
        shape = (
            np.exp(-brentq(ratio, 0.0, high) * zeta**2) if ratio(0.0) > 0 else np.ones_like(zeta)
        )
        return np.asarray(self.uneven * own**2 / float(shape @ spike**2) * shape)

    def _gram(self, left: FloatArray, even: bool) -> FloatArray:
        """d⁻¹tr ΩΩ' of I, what is left on the diagonal, D𝐒D, DM + MD, DM²D: sums of products of
        their entries off and on the diagonal.
        """
        step = replace(self.law, moved=np.ones(1)).covariance()
        m1, m2, m3, m4 = (self.mean(self.phi**k) for k in (1, 2, 3, 4))
        e = self.law.labels.moment
        gram = np.zeros((5, 5))
        gram[0, :3] = 1.0, self.mean(left), m2 * e(2)
        gram[1, 1:3] = self.mean(left**2), self.mean(left * self.phi**2) * e(2)
        if not even:
            gram[2, 2] = m2**2 * (step.gram[1, 1] - e(2) ** 2) + m4 * e(2) ** 2
            return _mirrored(gram[:3, :3])
        own = step.gram[1:, 1:].copy()  # of 2M, 𝐒, M²
        square = step.gram[0, 3]
        on = np.array([2 * e(1), e(2), square])
        own -= np.outer(on, on)  # off the diagonal
        gram[0, 3:] = 2 * m1 * e(1), m2 * square
        gram[1, 3:] = 2 * self.mean(left * self.phi) * e(1), self.mean(left * self.phi**2) * square
        gram[2, 2:] = (
            m2**2 * own[1, 1] + m4 * e(2) ** 2,
            m1 * m2 * own[0, 1] + m3 * on[0] * on[1],
            m2**2 * own[1, 2] + m4 * on[1] * on[2],
        )
        gram[3, 3] = (m1**2 + m2) / 2 * own[0, 0] + m2 * on[0] ** 2
        gram[3, 4] = m1 * m2 * own[0, 2] + m3 * on[0] * on[2]
        gram[4, 4] = m2**2 * own[2, 2] + m4 * on[2] ** 2
        return _mirrored(gram)

    def norms(self, moved: FloatArray, sign: FloatArray, kept: float, gaussian: bool) -> Norms:
        r"""The squared norm beside the spike is a sum over coordinates of
        2ϱη̃ x(s − ψ) − 2η̃²ψs, x = √d w₀ and s the sign of μ₁b + ax + n, with a = h₁E r.

        Its quadratic part in x and n has the variance of a gradient step, all else that of
        independent coordinates. Gaussian weights have norms of their own; a longer neuron has
        another mean slope and another h.
        """
        psi, hermite, labels = self.psi, self.law.slope.hermite, self.law.labels
        noise, h2, h3 = 1.0 - psi**2, hermite[2], hermite[3]
        a = labels.moment(1) * hermite[1]
        # E x^i n^j s of Hermite polynomials, i + j = 1, 2, 3: a^i τ^j times derivatives of ψ.
        first, second = self.phi, self.bend / self.deviation**2
        third = first * ((self.q * self.zeta) ** 2 - 1) / self.deviation**2
        old, own = 2 * kept * moved * sign, -2 * moved**2
        turned = self.mean(psi * second)
        by_xx = old * self.mean(2 * a * first + a**3 * third) + own * a**2 * turned
        by_xn = old * self.mean(first + a**2 * third) + own * a * turned
        by_nn = (old * a * self.mean(third) + own * turned) / 2
        alone = (
            old**2 * self.mean(noise - 2 * a**2 * psi * second - (a * first) ** 2)
            - 4 * old * own * a * self.mean(first * psi**2)
            + own**2 * self.mean(psi**2 * noise)
        )
        entry = max(self.deviation**2 - a**2, 0.0)
        xn, both, nn = self._forms()
        spread = alone - by_xx**2 / 2 + by_xn**2 * (xn - entry)
        spread = spread + 2 * by_xn * by_nn * both + by_nn**2 * (nn - 2 * entry**2)
        spread = np.maximum(spread, 0.0)
        loadings = np.zeros((len(moved), 5))
        loadings[:, 2] = -2 * moved**3 * sign
        # On b̂, as after a gradient step of the size η̃E φ; signs that follow Mw₀ overlap with ψ.
        follows = -2 * kept * moved**2 * hermite[1] * self.mean(first * psi * self.zeta)
        cross, square = self._coordinates()["second"][1] @ labels.nodes
        loadings[:, 3] = 2 * kept * h2 * by_xn * self.length + follows * square
        loadings[:, 4] = follows * cross
        if not gaussian:
            return Norms(spread, loadings)
        # Growth of n along x and of its variance with ‖w₀‖², then that of the mean slope.
        share, power = 3 * h3 * labels.moment(1), labels.moment(2) / self.law.samples
        power = power * (hermite[1] ** 2 + 6 * hermite[1] * h3 + self.law.slope.bend)
        change = self.q * h2 / hermite[0] if hermite[0] else 0.0  # ∂q/∂‖w₀‖²
        sharper = self.mean(psi * self.zeta * first) * self.deviation * change
        wider = turned * (a**2 + 2 * a * share + power) / 2
        longer = (sharper + wider) / self.size if self.size else 0.0
        growth = kept**2 + by_xx / 2 + by_xn * share + by_nn * power + own * sharper
        return Norms(
            np.stack([spread, np.full_like(moved, 2.0)]),
            np.stack([loadings, np.zeros_like(loadings)]),
            growth=np.stack([np.ones_like(moved), growth]),
            stretch=np.stack([0 * moved, sign * moved * longer])[:, :, None],
            initial=1,
        )

    def _forms(self) -> tuple[float, float, float]:
        """d times Var w₀·n, Cov(w₀·n, n·n) and Var n·n, n = h − aw₀, on the sphere."""

        def spread(size: float, kept: float) -> float:
            mean = size * self.law.slope.hermite[1] * self.law.labels.moment(1)
            return float(replace(self.law, moved=np.array([size]), kept=kept - mean).spread()[0])

        new, more, less = spread(1.0, 0.0), spread(1.0, 1.0), spread(-1.0, 1.0)
        return ((more + less) / 2 - new) / 4, (more - less) / 8, new


def _mirrored(upper: FloatArray) -> FloatArray:
    return upper + np.triu(upper, 1).T
