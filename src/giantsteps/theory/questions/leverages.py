"""Ridge regression whose rows have uneven leverages: the law of the rows, not of Gaussians (§8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import brentq

from giantsteps.errors import NotConverged

__all__ = ["Errors", "Leverages", "effective_penalty"]

#: Directions that are treated with all their correlations; further ones by their variances.
_DIRECTIONS = 512
#: λ/κ below which a probe interpolates; the limit is reached well before.
_INTERPOLATES = 1e-6
#: Penalty, in units of the mean variance, that stands for none.
_UNPENALISED = 1e-9
_ROUNDS = 60
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Errors:
    """Test and training error: with the leverages of the rows, and with their mean alone.

    ``noise`` (q, q) says how the squared error of one row in the training set becomes variance of
    the prediction for another: K of the equation e = r² + K e.
    """

    test: float
    train: float
    even_test: float
    even_train: float
    noise: NDArray[np.float64]


class Leverages:
    """Errors of probes trained on n draws from a finite set of rows.

    Parameters
    ----------
    rows : array (q, p)
        Features without their means.
    labels : array (q, outputs)
        Labels without their means.
    intercept : bool
        Whether the probe has a free intercept.
    """

    def __init__(
        self, rows: NDArray[np.float64], labels: NDArray[np.float64], intercept: bool
    ) -> None:
        q = len(rows)
        self.intercept = intercept
        if intercept:
            rows, labels = rows - rows.mean(axis=0), labels - labels.mean(axis=0)
        top, tail = rows[:, :_DIRECTIONS], rows[:, _DIRECTIONS:]
        values, vectors = np.linalg.eigh(top.T @ top / q)
        self.values = np.concatenate([np.maximum(values, 0.0), (tail**2).mean(axis=0)])
        self.rows = np.hstack([top @ vectors, tail])
        self.top = top.shape[1]
        self.labels = labels
        self.cross = self.rows.T @ labels / q

    def errors(self, samples: float, penalty: float) -> Errors:
        """Errors of a probe trained on ``samples`` rows, with labels averaged over outputs."""
        kappa = effective_penalty(self.values, samples, penalty, self.intercept)
        floor = _INTERPOLATES * kappa if kappa else _UNPENALISED * float(self.values.mean())
        if penalty < floor:
            penalty = floor
            kappa = effective_penalty(self.values, samples, penalty, self.intercept)
        freedom = self.values / (self.values + kappa)
        residual = self.labels - self.rows @ (self.cross / (self.values + kappa)[:, None])
        second = (float(freedom @ freedom) + self.intercept) / samples
        even = float((residual**2).mean()) / (1.0 - second)
        ratio = penalty / kappa  # 1/(1 + h) for even leverages
        test, train, noise = self._uneven(samples, penalty, kappa)
        return Errors(test, train, even, ratio**2 * even, noise)

    def _uneven(
        self, samples: float, penalty: float, kappa: float
    ) -> tuple[float, float, NDArray[np.float64]]:
        """h_i = g_iᵀA⁻¹g_i/n with A = λ + E g gᵀ/(1 + h), then e = r² + K e.

        One matrix, K_ij = (g_iᵀA⁻¹g_j)²/((1 + h_j)² n q), is the slope of the first equation,
        for Newton's method, and the whole of the second.
        """
        q = len(self.rows)
        h = np.full(q, kappa / penalty - 1.0)
        for _ in range(_ROUNDS):
            weights = 1.0 / (1.0 + h)
            half = self._half_inverse(weights, penalty)
            fresh = (half**2).sum(axis=0) / samples
            root = weights / np.sqrt(samples * q)
            operator = half.T @ half
            operator *= operator
            operator *= root[:, None]
            operator *= root
            # (1 + h)⁻¹ makes the operator symmetric, with eigenvalues below one.
            step = _solve(operator, weights * (fresh - h)) / weights
            if float(np.max(np.abs(step) * weights)) < _TOLERANCE:
                break
            h = np.maximum(h + step, 0.1 * h)
        else:
            raise NotConverged(
                f"leverages for {samples:g} samples, penalty {penalty:.3g}",
                float(np.max(np.abs(step) * weights)),
                _ROUNDS,
                "a larger penalty, or a number of samples further from that of the features",
            )
        moment = half @ (self.labels * weights[:, None]) / q
        residual = self.labels - half.T @ moment
        square = (residual**2).mean(axis=1)
        error = _solve(operator, weights * square) / weights
        operator *= weights
        operator /= weights[:, None]
        return float(error.mean()), float((error * weights**2).mean()), operator

    def _half_inverse(self, weights: NDArray[np.float64], penalty: float) -> NDArray[np.float64]:
        """B with BᵀB = G A⁻¹ Gᵀ, columns of G the rows with their constant."""
        q = len(self.rows)
        top = self.rows[:, : self.top]
        diagonal = np.full(self.top, penalty)
        if self.intercept:
            top = np.hstack([top, np.ones((q, 1))])
            diagonal = np.append(diagonal, 0.0)
        matrix = (top * weights[:, None]).T @ top / q
        matrix[np.diag_indices_from(matrix)] += diagonal
        half = solve_triangular(cholesky(matrix, lower=True), top.T, lower=True)
        if self.top == self.rows.shape[1]:
            return np.asarray(half)
        tail = self.rows[:, self.top :]
        variance = penalty + weights @ tail**2 / q
        return np.vstack([half, (tail / np.sqrt(variance)).T])


def effective_penalty(
    values: NDArray[np.float64], samples: float, penalty: float, intercept: bool
) -> float:
    """κ with κ(1 − n⁻¹(Σ e/(e + κ) + intercept)) = λ; 0 if λ = 0 and n exceeds the parameters."""
    alive = values[values > 0]
    if penalty == 0.0 and samples > len(alive) + intercept:
        return 0.0

    def gap(log: float) -> float:
        kappa = np.exp(log)
        freedom = float(np.sum(alive / (alive + kappa))) + intercept
        return float(kappa * (1.0 - freedom / samples) - penalty)

    low = np.log(float(alive.max())) - 40.0
    high = np.log(2.0 * (penalty + float(alive.sum()) / samples)) + 1.0
    return float(np.exp(brentq(gap, low, high, xtol=1e-13, rtol=1e-14)))


def _solve(operator: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """x = right + operator x, by conjugate gradients; the operator is symmetric."""
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
        if curvature <= 0.0:  # far from the solution: a step of the plain iteration
            return right
        rate = square / curvature
        x = x + rate * direction
        residual = residual - rate * image
        fresh = float(residual @ residual)
        direction = residual + (fresh / square) * direction
        square = fresh
    return x
