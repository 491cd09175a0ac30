r"""Ridge regression on features with given weights, however they were trained (theory §4, §5c).

Let u be the directions that the columns of W have in common, k the coordinates of the input along
them and g ~ N(0, W_⊥ᵀW_⊥) what the neurons see beside them. Given k, features have the mean and
the covariance

.. math:: μ_j(k) = E σ(s_j·k + g_j),\qquad
          Ω_{ij}(k) = \sum_{l ≥ 1} b_{li}(k)\, b_{lj}(k) \cos(w_i, w_j)_⊥^l,

b_lj the normalised Hermite coefficients of z ↦ σ(s_j·k + ‖w_⊥j‖z): l = 1, 2 exactly, and of higher
ones the diagonal, as no two neurons are aligned beside u. A sample at k counts with the weight
ω(k), and

.. math:: A = (λ + E_k[ωM])^{-1},\quad M = Ω + μμ^⊤,\qquad
          ω = \frac1{1 + V},\quad V(k) = n^{-1}\operatorname{tr} M(k)A,
.. math:: \bar a = A\,E_k[ω\,E(yφ|k)],\qquad
          err(k) = E[(y - φ^⊤\bar a)²|k] + n^{-1}E_{k'}\bigl[ω²(k')\,err(k')
          \operatorname{tr} M(k)A\,M(k')A\bigr],
.. math:: R + Δ = E_k[err],\qquad \text{train} = E_k[ω²\,err] .

Without common directions there is one k, and this is the effective penalty κ = λ/ω of theory §4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack
from scipy.sparse.linalg import LinearOperator, cg, svds

from giantsteps.errors import NotConverged
from giantsteps.functions import Function
from giantsteps.gaussian import Rule, smoothed
from giantsteps.theory.model.classification import Predicted, jumps_of_link, wrong_sign
from giantsteps.theory.model.rules import spike_rule
from giantsteps.types import FloatArray

#: A direction is common if the neurons have at least this share of their squared norms along it,
#: and at most so many are.
_COMMON, _DIRECTIONS = 0.03, 2
#: Resolution of k with one common direction, and with two.
_LEVELS = {1: 1, 2: 0}
#: Rounds at most, and those in which the residual has halved.
_ROUNDS, _PATIENCE = 200, 50
_TOLERANCE, _HISTORY = 1e-9, 6
#: All singular vectors are computed up to this size.
_WHOLE = 400
#: Residual of the errors that is wanted, and that is enough.
_EXACT, _GOOD = 1e-13, 1e-9
#: Penalties, relative to the variance of a feature, that stand for none, and that are small.
_NONE, _SMALL = 1e-12, 1e-3


@dataclass(frozen=True)
class GivenErrors:
    """Test error without noise, training error, probability of a wrong sign, and the solution."""

    test: float
    train: float
    wrong_sign: float
    rounds: int
    residual: float


@dataclass(frozen=True, eq=False)
class GivenFeatures:
    """Features σ(⟨w_j, x⟩) of given weights (d, N), and a teacher σ*(⟨x, β*⟩)."""

    activation: Function
    link: Function
    weights: FloatArray
    teacher: FloatArray
    noise_variance: float

    # -- coordinates ----------------------------------------------------------------------------

    @cached_property
    def directions(self) -> FloatArray:
        """u, (d, r): left singular vectors of W along which neurons lean, r ≤ 2."""
        w = self.weights
        if min(w.shape) > _WHOLE:  # the strongest alone, by Lanczos from a fixed start
            left, values, _ = svds(w, k=_DIRECTIONS, v0=np.ones(min(w.shape)))
            left, values = left[:, ::-1], values[::-1]
        else:
            left, values, _ = np.linalg.svd(w, full_matrices=False)
        strong = values**2 > _COMMON * float(np.sum(w * w))
        return np.asarray(left[:, : min(int(strong.sum()), _DIRECTIONS)])

    @cached_property
    def leans(self) -> FloatArray:
        """s, (N, r)."""
        return np.asarray(self.weights.T @ self.directions)

    @cached_property
    def _beside(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """‖w_⊥‖, cosines of different w_⊥ (zeros on the diagonal) and of each with the teacher's
        remainder."""
        rest = self.weights - self.directions @ self.leans.T
        norms = np.linalg.norm(rest, axis=0)
        units = rest / np.where(norms > 0, norms, 1.0)
        aside = self.teacher - self.directions @ self.overlap
        size = float(np.linalg.norm(aside))
        toward = units.T @ aside / size if size > 1e-12 else np.zeros(len(norms))
        cosines = units.T @ units
        np.fill_diagonal(cosines, 0.0)
        return norms, cosines, toward

    @cached_property
    def overlap(self) -> FloatArray:
        """γ, (r,)."""
        return np.asarray(self.directions.T @ self.teacher)

    @property
    def remainder(self) -> float:
        """√(1 − |γ|²)."""
        return math.sqrt(max(1.0 - float(self.overlap @ self.overlap), 0.0))

    @cached_property
    def rule(self) -> Rule:
        """Quadrature of k, nodes (K, r)."""
        rank = self.leans.shape[1]
        if not rank:
            return Rule(np.zeros((1, 0)), np.ones(1))
        norms = self._beside[0]
        return spike_rule(_LEVELS[rank], self.leans, norms**2, self.overlap, self.link)

    # -- features and labels given k ------------------------------------------------------------

    @cached_property
    def _felt(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """μ, b₁, b₂ and the rest of the variance, (N, K) each."""
        found = smoothed(self.activation, self.leans @ self.rule.nodes.T, self._beside[0][:, None])
        second = math.sqrt(2.0) * found.quadratic
        rest = np.maximum(found.residual_variance - second**2, 0.0)
        return found.mean, found.linear, second, rest

    @cached_property
    def _wanted(self) -> tuple[FloatArray, FloatArray]:
        """E[y²| k], (K,), and E[yφ | k], (N, K)."""
        along = self.rule.nodes @ self.overlap
        found = smoothed(self.link, along, np.full(len(along), self.remainder))
        mean, first, second, _ = self._felt
        toward = self._beside[2][:, None]
        cross = mean * found.mean + first * found.linear * toward
        cross = cross + second * math.sqrt(2.0) * found.quadratic * toward**2
        return found.second_moment + self.noise_variance, cross

    @cached_property
    def _diagonal(self) -> FloatArray:
        """Ω_jj(k), (N, K)."""
        _, first, second, rest = self._felt
        return np.asarray(first**2 + second**2 + rest)

    def mixed(self, weights: FloatArray) -> FloatArray:
        """Σ_k weights_k M(k), (N, N)."""
        mean, first, second, _ = self._felt
        found = (mean * weights) @ mean.T
        cosines = self._beside[1]
        found += (((second * weights) @ second.T) * cosines + (first * weights) @ first.T) * cosines
        found[np.diag_indices_from(found)] += self._diagonal @ weights
        return np.asarray(found)

    def traces(self, matrix: FloatArray) -> FloatArray:
        """tr M(k)B of a symmetric B, (K,)."""
        mean, first, second, _ = self._felt
        found = np.diag(matrix) @ self._diagonal + (mean * (matrix @ mean)).sum(axis=0)
        hidden = matrix
        for part in (first, second):
            hidden = self._beside[1] * hidden
            found = found + (part * (hidden @ part)).sum(axis=0)
        return np.asarray(found)

    # -- the readout ----------------------------------------------------------------------------

    def errors(self, samples: int, penalty: float, classify: bool = False) -> GivenErrors:
        """Errors of ridge regression on n samples."""
        scale = float(self._diagonal.mean())
        inverse, omega, rounds, residual = self._solve(samples, max(penalty, _NONE * scale), scale)
        weights = self.rule.weights
        square, cross = self._wanted
        fitted = inverse @ (cross @ (weights * omega))  # ā
        fit = fitted @ self._felt[0]
        power = self.traces(np.outer(fitted, fitted))  # āᵀMā
        known = square - 2 * (fitted @ cross) + power

        def noise(error: FloatArray) -> FloatArray:
            """What the errors at k' add to those at k, n⁻¹E[ω² err tr M(k)AM(k')A]."""
            inner = self.mixed(weights * omega**2 * error)
            return self.traces(inverse @ inner @ inverse) / samples

        error = self._error(known, omega, noise)
        wrong = math.nan
        if classify:
            wrong = self._wrong(fitted, fit, power - fit**2 + noise(error))
        return GivenErrors(
            test=float(weights @ error) - self.noise_variance,
            train=float((weights * omega**2) @ error),
            wrong_sign=wrong,
            rounds=rounds,
            residual=residual,
        )

    def _error(
        self, known: FloatArray, omega: FloatArray, noise: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """The solution of err = known + noise(err), by conjugate gradients: in √w ω err the map is
        symmetric with a spectral radius below one, and far nodes of no weight do not count."""
        scale = np.sqrt(self.rule.weights) * omega
        some = scale > 0

        def moved(values: FloatArray) -> FloatArray:
            error = np.zeros_like(known)
            error[some] = values / scale[some]
            return np.asarray(values - (scale * noise(error))[some])

        source = (scale * known)[some]
        operator = LinearOperator((len(source),) * 2, matvec=moved, dtype=float)
        found, _ = cg(operator, source, rtol=_EXACT, maxiter=_ROUNDS)
        left = float(np.linalg.norm(source - moved(found)) / np.linalg.norm(source))
        if not left < _GOOD:
            what = f"the errors of {len(self.leans)} given neurons"
            raise NotConverged(what, left, _ROUNDS, "a larger penalty")
        error = np.zeros_like(known)
        error[some] = found / scale[some]
        return known + noise(error)

    def _solve(
        self, samples: int, penalty: float, scale: float
    ) -> tuple[FloatArray, FloatArray, int, float]:
        """A, ω(k), and how they were found: log V by iteration from above, with Newton's steps for
        one k and Anderson's mixing for several.

        With more samples than neurons, small penalties start from the solution with a larger one.
        """
        weights = self.rule.weights
        if penalty < _SMALL * scale and samples > len(self.leans):
            omega = self._solve(samples, penalty / _SMALL, scale)[1]
            value = np.log(1.0 / omega - 1.0)
        else:
            value = np.log(self.traces(np.eye(len(self.leans))) / (samples * penalty))
        past: list[tuple[FloatArray, FloatArray]] = []
        least, since = math.inf, 0
        for rounds in range(1, _ROUNDS + 1):
            omega = 1.0 / (1.0 + np.exp(value))
            inverse = _inverse(self.mixed(weights * omega), penalty)
            gap = np.log(self.traces(inverse) / samples) - value
            residual = float(np.abs(gap).max())
            if residual < _TOLERANCE:
                return inverse, omega, rounds, residual
            if residual < 0.5 * least:
                least, since = residual, rounds
            if rounds - since > _PATIENCE:
                break
            if len(weights) == 1:
                value = value + gap / (1.0 - _slope(inverse, omega, penalty))
                continue
            past = [*past[-_HISTORY:], (value, gap)]
            value = _mixed_step(past)
        raise NotConverged(
            f"the leverages of {len(self.leans)} given neurons on {samples} samples",
            residual,
            rounds,
            "a larger penalty, or samples further from the number of neurons",
        )

    def _wrong(self, fitted: FloatArray, fit: FloatArray, variance: FloatArray) -> float:
        """The probability that prediction and teacher have different signs."""
        _, first, second, _ = self._felt
        toward = self._beside[2]
        slope, bend = (fitted * toward) @ first, (fitted * toward**2) @ second / math.sqrt(2.0)
        along, rest = self.rule.nodes @ self.overlap, self.remainder
        predicted = Predicted(self.rule.weights, fit, slope, bend, variance)
        return wrong_sign(
            predicted,
            lambda z: np.asarray(self.link(along[:, None] + rest * z), dtype=float),
            jumps_of_link(self.link, along, rest),
        )


def _inverse(matrix: FloatArray, penalty: float) -> FloatArray:
    """(penalty + matrix)⁻¹ of a positive semidefinite matrix."""
    matrix[np.diag_indices_from(matrix)] += penalty
    factor, bad = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
    if bad:
        raise NotConverged(
            "the inverse of the features' second moments", 1.0, 1, "a larger penalty"
        )
    lower, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    found = np.tril(lower)
    return np.asarray(found + np.tril(found, -1).T)


def _slope(inverse: FloatArray, omega: FloatArray, penalty: float) -> float:
    """∂ log tr MA/∂ log V for one k, with MA = (1 − λA)/ω: in [0, 1)."""
    size, trace = len(inverse), float(np.trace(inverse))
    first = size - penalty * trace  # ω tr MA
    second = first - penalty * trace + penalty**2 * float(np.vdot(inverse, inverse))
    return float(np.clip((1.0 - omega[0]) * second / first, 0.0, 0.99)) if first > 0 else 0.0


def _mixed_step(past: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """The next value by Anderson's mixing of the values and gaps so far."""
    value, gap = past[-1]
    if len(past) == 1:
        return value + gap
    changes = np.stack([value - old for old, _ in past[:-1]], axis=1)
    slopes = np.stack([gap - old for _, old in past[:-1]], axis=1)
    share = np.linalg.lstsq(slopes, gap, rcond=1e-10)[0]
    step = gap - (changes + slopes) @ share
    return np.asarray(value + np.clip(step, -3.0, 3.0))
