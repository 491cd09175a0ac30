"""Probes on n rows from the rows of a pool, whose leverages are uneven (§8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from giantsteps.errors import NotConverged
from giantsteps.theory.probe.feature_pool import FeaturePool
from giantsteps.theory.probe.transfer import Transfer
from giantsteps.types import FloatArray

#: λ/κ below which a probe interpolates; the limit is reached well before.
_INTERPOLATES = 1e-6
#: Penalty, in units of the mean variance, that stands for none.
_UNPENALISED = 1e-9
_ROUNDS = 100
#: Relative change of the leverages at the end; rounding may stop it earlier, at most here.
_TOLERANCE, _STALLED = 1e-9, 1e-6
#: Where the slope is above one, start again from leverages so many times larger.
_LARGER = 3.0


@dataclass(frozen=True)
class RowErrors:
    """What a pool says of a probe trained on n rows, row by row."""

    predicted: FloatArray  # (m, outputs): for each row, by the pool without it
    residual: FloatArray  # (m, outputs): labels less ``predicted``
    #: (m,): mean squared error of a probe with n samples, averaged over the outputs.
    error: FloatArray
    train: float  # mean squared error of such a probe on its own rows
    #: (m,): weight of each row's squared residual in the mean error; one each for n = m.
    influence: FloatArray
    #: (m, m): variance that n samples add to a prediction, per squared residual; negative for n >
    #: m.
    noise: FloatArray


@dataclass(frozen=True)
class Leverages:
    """Leverages h of the rows of a pool for n training samples, with the fit that has them.

    ``penalty`` is the λ that was used: where a probe interpolates, a very small one.
    """

    pool: FeaturePool
    samples: float
    penalty: float
    h: FloatArray
    fit: Fit

    @classmethod
    def of(
        cls,
        pool: FeaturePool,
        samples: float,
        penalty: float,
        start: FloatArray | None = None,
    ) -> Leverages:
        """Solve h_i = q_i/(n(1 − H_i)) for n < m.

        ==================================  ===================================================
        symbol                              meaning
        ==================================  ===================================================
        A = λ + m⁻¹Σ ω_i g_i g_iᵀ           rows g_i with their constant
        ω_i = 1/(1 + (1 − n/m) h_i)         weight of a row
        q_i = g_iᵀA⁻¹g_i, H_i = ω_i q_i/m   leverage, and that of the row in the pool's own fit
        ==================================  ===================================================
        """
        even = Transfer.to(pool, samples, penalty)
        floor = _INTERPOLATES * even.kappa if samples <= even.parameters else 0.0
        penalty = max(penalty, floor, _UNPENALISED * float(pool.values.mean()))
        h = start
        if h is None:
            kappa = Transfer.to(pool, samples, penalty).kappa
            h = np.full(pool.rows, max(kappa / penalty - 1.0, 1e-6))
        # The right-hand side is concave in h: Newton's method comes down to the solution once it
        # is above it, and it is after one step from where the slope K is below one.
        before = np.inf
        for round_ in range(_ROUNDS):
            fit = Fit.of(pool, samples, penalty, 1.0 / (1.0 + (1.0 - samples / pool.rows) * h))
            fresh = fit.leverage / (samples * fit.left)
            step = fit.solve(fresh - h)
            if step is None:
                h = _LARGER * np.maximum(h, fresh)
                continue
            change = float(np.max(np.abs(step) / (1.0 + h)))
            if change < _TOLERANCE or (round_ > 9 and _STALLED > change > before / 2):
                return cls(pool, samples, penalty, h, fit)
            h, before = np.maximum(h + step, 0.1 * h), change
        raise NotConverged(
            f"leverages for {samples:g} samples, penalty {penalty:.3g}",
            before,
            _ROUNDS,
            "a larger penalty, or a number of samples further from that of the features",
        )

    def errors(self) -> RowErrors:
        """Solve e = ε + (1 − n/m) K e, with the squared residuals ε of the fit without a row."""
        return self.fit.errors(self.pool, self.samples, 1.0 / (1.0 + self.h))


def row_errors(pool: FeaturePool, samples: float, penalty: float) -> RowErrors:
    """Errors of a probe on n rows from the leverages.

    For n ≥ m all rows keep one weight, that of even leverages: a pool cannot say how the heaviest
    of its rows, which fit themselves, would share their weight with others like them.
    """
    if samples < pool.rows:
        return Leverages.of(pool, samples, penalty).errors()
    even = Transfer.to(pool, samples, penalty)
    fit = Fit.of(pool, samples, even.mu, np.ones(pool.rows))
    ratio = (1.0 - even.first / samples) / (1.0 - even.first / pool.rows)
    return fit.errors(pool, samples, ratio * fit.left)


@dataclass(frozen=True)
class Fit:
    """A weighted ridge fit of the pool: q, 1 − H, and (1 − n/m) K in a symmetric form.

    ``half`` is B with BᵀB = G A⁻¹ Gᵀ, and K_ij = (g_iᵀA⁻¹g_j)² ω_j²/((1 − H_i)² n m) is the noise
    from row j in the prediction for row i ≠ j: the slope of the equation for the leverages, and
    the kernel of that for the errors.
    """

    half: FloatArray
    weights: FloatArray
    leverage: FloatArray
    left: FloatArray
    operator: FloatArray

    @classmethod
    def of(cls, pool: FeaturePool, samples: float, penalty: float, weights: FloatArray) -> Fit:
        m = pool.rows
        half = _half_inverse(pool, weights, penalty)
        leverage = (half**2).sum(axis=0)
        left = np.maximum(1.0 - weights * leverage / m, 1e-12)
        factor = (1.0 - samples / m) / (samples * m)
        scaled = half * np.sqrt(weights / left * np.sqrt(abs(factor)))
        operator = scaled.T @ scaled
        np.multiply(operator, operator if factor >= 0 else -operator, out=operator)
        np.fill_diagonal(operator, 0.0)
        return cls(half, weights, leverage, left, operator)

    @property
    def scale(self) -> FloatArray:
        """x = scale · e turns e = ε + (1 − n/m) K e into an equation with a symmetric operator."""
        return self.weights * self.left

    def solve(self, right: FloatArray) -> FloatArray | None:
        """e = right + (1 − n/m) K e; None if K has eigenvalues above one."""
        found = _solve(self.operator, self.scale * right)
        return None if found is None else found / self.scale

    def errors(self, pool: FeaturePool, samples: float, shrinkage: FloatArray) -> RowErrors:
        """Residuals without each row, errors with n samples; training residuals are shrunk."""
        labels = pool.sample_labels
        fit = self.half.T @ (self.half @ (labels * self.weights[:, None]) / pool.rows)
        residual = (labels - fit) / self.left[:, None]
        square = (residual**2).mean(axis=1)
        found = _solve(self.operator, 1.0 / self.scale)
        error = self.solve(square)
        assert found is not None  # K is below one at the solution
        assert error is not None
        influence = self.scale * found
        if samples > pool.rows:
            # More samples than rows take noise away: at most all of it, and no row's own fit.
            influence = np.clip(influence, self.left**2, 1.0)
            error = influence * square
        noise = self.operator * self.scale
        noise /= self.scale[:, None]
        return RowErrors(
            predicted=labels - residual + pool.label_mean,
            residual=residual,
            error=error,
            train=float(np.mean(error * shrinkage**2)),
            influence=influence,
            noise=noise,
        )


def _half_inverse(pool: FeaturePool, weights: FloatArray, penalty: float) -> FloatArray:
    """B with BᵀB = G A⁻¹ Gᵀ, columns of G the rows with their constant."""
    rows = pool.sample
    diagonal = np.full(rows.shape[1], penalty)
    if pool.intercept:
        rows = np.hstack([rows, np.ones((len(rows), 1))])
        diagonal = np.append(diagonal, 0.0)
    matrix = (rows * weights[:, None]).T @ rows / len(rows)
    matrix[np.diag_indices_from(matrix)] += diagonal
    return np.asarray(solve_triangular(cholesky(matrix, lower=True), rows.T, lower=True))


def _solve(operator: FloatArray, right: FloatArray) -> FloatArray | None:
    """x = right + operator x, by conjugate gradients; None if 1 − operator is not positive."""
    x = right.copy()
    residual = operator @ x
    direction = residual.copy()
    square = float(residual @ residual)
    target = 1e-20 * float(right @ right)
    for _ in range(500):
        if square <= target:
            break
        image = direction - operator @ direction
        curvature = float(direction @ image)
        if curvature <= 0.0:
            return None
        rate = square / curvature
        x = x + rate * direction
        residual = residual - rate * image
        fresh = float(residual @ residual)
        direction = residual + (fresh / square) * direction
        square = fresh
    return x
