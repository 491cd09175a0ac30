"""A single-index teacher fitted to data: direction, Hermite coefficients, and the rest."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np

from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.functions import Function, as_function
from giantsteps.practice._sources import open_data
from giantsteps.types import FloatArray

#: Degrees of the teacher with many rows, and with fewer than these.
_DEGREES, _FEW_DEGREES, _MANY = 5, 3, 1000
#: Degrees by which the direction is found, and rounds of least squares for it.
_DIRECTION_DEGREES, _ROUNDS = 3, 10
#: Excess of the mean squared eigenvalue of Σ − 1 that still counts as white.
_WHITE = 0.05
#: A coefficient below this share of the labels is rounding.
_ROUNDING = 1e-9
#: Standard deviations of a coefficient that is not noise.
_SEEN = 3.0


@dataclass(frozen=True, eq=False)
class TeacherFit:
    r"""Labels as a function of one direction: y = Σ_k c_k He_k(⟨x, β⟩) + rest.

    Attributes
    ----------
    direction : ndarray
        β, of norm one, from all rows.
    cosine : float
        Estimated cosine of ``direction`` with the true direction.
    coefficients : tuple of float
        c₁, c₂, …, c₅ (c₃ below 1,000 rows); those that cannot be told from noise are zero.
    standard_errors : tuple of float
        Of the coefficients.
    noise_variance : float
        Variance of the labels that the fit does not explain: noise, and every other direction.
    label_mean : float
        Mean of the labels, which the teacher does not have.
    """

    direction: FloatArray
    cosine: float
    coefficients: tuple[float, ...]
    standard_errors: tuple[float, ...]
    noise_variance: float
    label_mean: float

    @property
    def teacher(self) -> Function:
        """The link function."""
        terms = [f"{c!r}*he{k}(x)" for k, c in enumerate(self.coefficients, start=1) if c]
        return as_function(" + ".join(terms))


def fit_teacher(inputs: Any, labels: Any) -> TeacherFit:
    """Fit a single-index teacher to white inputs and one output.

    The direction is that of E[xy] or, if the labels have no linear part, the leading one of
    E[y(xxᵀ − 1)]; least squares on a cubic of ⟨x, β⟩ then improve it where the labels have little
    noise.
    Each half of the rows gives a direction for the coefficients of the other half; the cosine
    between that direction and the true one, which shrinks them, is estimated and divided out.

    Parameters
    ----------
    inputs : array (rows, d)
        Of mean zero and covariance one.
    labels : array (rows,)
        One output.

    Raises
    ------
    InvalidProblem
        If the inputs are not white.
    NotCovered
        If no direction can be seen in the labels.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((4000, 30))
    >>> fit = fit_teacher(x, np.tanh(2 * x[:, 3]))
    >>> int(np.argmax(np.abs(fit.direction))), bool(fit.cosine > 0.99)
    (3, True)
    """
    x, y = open_data((inputs, labels))
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.ndim != 2:
        raise InvalidProblem("inputs", x.shape, "of shape (rows, d)")
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1:
        raise InvalidProblem("labels", y.shape, "one output: the theory has scalar labels")
    _check_white(x)
    mean = float(y.mean())
    y = y - mean
    power = float(np.mean(y**2))
    if power == 0.0:
        raise InvalidProblem("labels", "the same in all rows", "labels that vary")
    direction, cosine = _direction(x, y)
    halves = np.arange(len(x)) % 2 == 0
    fits = []
    for half in (halves, ~halves):
        along, overlap = _direction(x[half], y[half])
        fits.append(_coefficients(x[~half] @ along * np.sign(along @ direction), y[~half], overlap))
    coefficients, errors, noises = (np.mean(part, axis=0) for part in zip(*fits, strict=True))
    errors /= np.sqrt(2)  # of the mean of two halves
    seen = np.abs(coefficients) > np.maximum(_SEEN * errors, _ROUNDING * np.sqrt(power))
    if not seen.any():
        raise _nothing_seen()
    powers = _factorials(len(coefficients)) * coefficients**2
    return TeacherFit(
        direction,
        cosine,
        tuple(np.where(seen, coefficients, 0.0).tolist()),
        tuple(errors.tolist()),
        max(float(noises + powers[~seen].sum()), 0.0),
        mean,
    )


def _factorials(degrees: int) -> FloatArray:
    """1!, 2!, …"""
    return np.array([float(factorial(k)) for k in range(1, degrees + 1)])


def _polynomials(values: FloatArray, degrees: int) -> FloatArray:
    """1, He₁, He₂, … of the values, as columns."""
    return np.asarray(np.polynomial.hermite_e.hermevander(values, degrees), dtype=np.float64)


def _coefficients(
    values: FloatArray, y: FloatArray, overlap: float
) -> tuple[FloatArray, FloatArray, float]:
    """Coefficients, their errors, and the variance of the noise, from coordinates of cosine
    ``overlap`` with the true ones."""
    degrees = _DEGREES if 2 * len(y) >= _MANY else _FEW_DEGREES
    columns = _polynomials(values, degrees)
    found = np.linalg.lstsq(columns, y, rcond=None)[0]
    rest = float(np.sum((y - columns @ found) ** 2)) / (len(y) - degrees - 1)
    spread = np.sqrt(rest * np.diag(np.linalg.inv(columns.T @ columns)))
    shrunk = overlap ** np.arange(1, degrees + 1)
    coefficients = found[1:] / shrunk
    hidden = _factorials(degrees) * coefficients**2 @ (1 - shrunk**2)  # looks like noise
    return coefficients, spread[1:] / shrunk, rest - float(hidden)


def _check_white(x: FloatArray) -> None:
    rows, d = x.shape
    if rows < 4 * d:
        raise InvalidProblem(
            "inputs", x.shape, f"at least {4 * d} rows, four per dimension, to see a direction"
        )
    mean = x.mean(axis=0)
    covariance = x.T @ x / rows
    drift = float(mean @ mean) / d - 1 / rows
    excess = float(np.mean(np.sum((covariance - np.eye(d)) ** 2, axis=1))) - (d + 1) / rows
    if drift > _WHITE or excess > _WHITE:
        raise InvalidProblem(
            "inputs",
            f"mean square of the means {drift:.2g}, of covariance − 1 {excess:.2g}",
            "white: subtract the means and multiply by the inverse root of the covariance",
        )


def _direction(x: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
    """The direction of the labels and its cosine with the true one: that of the moments, unless
    least squares halve its error, which they do not where they fit noise."""
    by_moments = _by_moments(x, y)
    by_squares = _by_least_squares(x, y, by_moments[0])
    return by_squares if 2 * (1 - by_squares[1] ** 2) < 1 - by_moments[1] ** 2 else by_moments


def _by_least_squares(x: FloatArray, y: FloatArray, start: FloatArray) -> tuple[FloatArray, float]:
    """The direction of least squares of a cubic, by Gauss and Newton from a start; exact without
    noise. Its error is σ²(d − 1)/((n − d) E g'²) for the slope g' of the cubic."""
    rows, d = x.shape
    along = start
    for _ in range(_ROUNDS):
        columns = _polynomials(x @ along, _DIRECTION_DEGREES)
        found = np.linalg.lstsq(columns, y, rcond=None)[0]
        slope = columns[:, :-1] @ (found[1:] * np.arange(1, _DIRECTION_DEGREES + 1))
        design = x * slope[:, None]
        gram = design.T @ design
        gram[np.diag_indices(d)] += 1e-12 * np.trace(gram) / d
        step = np.linalg.solve(gram, design.T @ (y - columns @ found))
        moved = along + step
        moved /= np.linalg.norm(moved)
        done = float(np.linalg.norm(moved - along)) < 1e-12
        along = moved
        if done:
            break
    columns = _polynomials(x @ along, _DIRECTION_DEGREES)
    found, *_ = np.linalg.lstsq(columns, y, rcond=None)
    noise = float(np.sum((y - columns @ found) ** 2)) / max(rows - d - _DIRECTION_DEGREES, 1)
    power = float(np.arange(1, 4) * _factorials(_DIRECTION_DEGREES) @ found[1:] ** 2)
    error = noise * (d - 1) / ((rows - d) * power) if power > 0 else np.inf
    return along, float(np.sqrt(max(1 - error, 0.01)))


def _by_moments(x: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
    """The direction of E[xy], or the leading one of E[y(xxᵀ − 1)]."""
    rows, d = x.shape
    power = float(np.mean(y**2))
    linear = x.T @ y / rows
    size = float(linear @ linear)
    # Without the terms of one row with itself: an unbiased estimate of c₁².
    signal = (rows * size - float(np.mean(y**2 * np.sum(x**2, axis=1)))) / (rows - 1)
    if signal > _SEEN * np.sqrt(2 * d) * power / rows:
        return linear / np.sqrt(size), float(np.sqrt(min(signal / size, 1.0)))
    quadratic = (x * y[:, None]).T @ x / rows
    values, vectors = np.linalg.eigh(quadratic)
    place = int(np.argmax(np.abs(values)))
    noise = np.sqrt(power / rows)  # of an entry: a symmetric matrix of edge 2√d noise
    value = abs(float(values[place]))
    if value < 2.2 * np.sqrt(d) * noise:
        raise _nothing_seen()
    strength = (value + np.sqrt(max(value**2 - 4 * d * noise**2, 0.0))) / 2
    return vectors[:, place], float(np.sqrt(max(1 - d * noise**2 / strength**2, 0.01)))


def _nothing_seen() -> NotCovered:
    return NotCovered(
        "a single-index teacher for these data",
        "no direction stands out in the labels, neither in E[xy] nor in E[y(xxᵀ − 1)]",
        "labels that depend on one direction, with more rows or less noise",
    )
