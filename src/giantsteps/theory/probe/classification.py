"""Fraction of wrong classes of a linear probe, from the predictions on a pool (§8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from giantsteps.errors import InvalidProblem
from giantsteps.types import FloatArray

#: Draws of the noise per row, for more than two classes.
_DRAWS = 32
#: Amounts of noise from which less noise is extrapolated.
_LEVELS = (0.25, 1.0, 2.0)


@dataclass(frozen=True)
class Classes:
    """The class of each row, and how a probe's outputs say a class.

    With one output, ``truth`` is whether the label exceeds ``threshold``; with several, it is the
    place of the largest output, and ``threshold`` is None.
    """

    truth: NDArray[np.int64]
    threshold: float | None

    def of_sample(self, labels: FloatArray) -> Classes:
        """The same classes for other rows."""
        if self.threshold is None:
            return Classes(labels.argmax(axis=1), None)
        return Classes((labels[:, 0] > self.threshold).astype(np.int64), self.threshold)


def classes_of(labels: FloatArray, threshold: float | None) -> Classes | None:
    """Classes of labels (rows, outputs) that take two values or are one-hot, or None."""
    if threshold is not None and labels.shape[1] > 1:
        raise InvalidProblem("threshold", threshold, "left out for labels of several outputs")
    if threshold is not None and not np.isfinite(threshold):
        raise InvalidProblem("threshold", threshold, "a finite number")
    values = np.unique(labels[: 1 << 16])
    if labels.shape[1] == 1:
        if threshold is None:
            values = np.unique(labels) if len(values) == 2 else values
            if len(values) != 2:
                return None
            threshold = float(values.mean())
        return Classes((labels[:, 0] > threshold).astype(np.int64), float(threshold))
    if len(values) != 2 or not np.all(np.isin(labels, values)):
        return None
    hot = labels == values[1]
    if not np.all(hot.sum(axis=1) == 1):
        return None
    return Classes(hot.argmax(axis=1).astype(np.int64), None)


def wrong_fraction(classes: Classes, predicted: FloatArray) -> float:
    """Fraction of rows whose predicted class is wrong."""
    if classes.threshold is None:
        return float(np.mean(predicted.argmax(axis=1) != classes.truth))
    return float(np.mean((predicted[:, 0] > classes.threshold) != classes.truth))


def classification_error(
    classes: Classes,
    predicted: FloatArray,
    residual: FloatArray,
    weights: FloatArray,
) -> float:
    """Fraction wrong when the predictions of the pool's probe get more noise, or less.

    A probe trained on n rows predicts for a row what the pool's own probe predicts when the row is
    left out, plus Gaussian noise Σ_j √w_ij ξ_j r_j of the residuals r_j of the rows that it was
    trained on.
    Negative weights (n > m) mean less noise: the fraction is extrapolated by a parabola from
    what some, as much and twice as much noise would give.
    """
    if weights.sum() >= 0:
        return _wrong(classes, predicted, residual, np.maximum(weights, 0.0))
    added = np.maximum(-weights, 0.0)
    found = [_wrong(classes, predicted, residual, level * added) for level in _LEVELS]
    curve = np.polynomial.Polynomial.fit(_LEVELS, found, 2)
    return float(np.clip(curve(-1.0), 0.0, found[0]))


def _wrong(
    classes: Classes,
    predicted: FloatArray,
    residual: FloatArray,
    weights: FloatArray,
) -> float:
    """Expected fraction of wrong rows under the noise of given weights."""
    if not np.any(weights):
        return wrong_fraction(classes, predicted)
    if classes.threshold is not None:
        sign = np.where(classes.truth == 1, 1.0, -1.0)
        margin = sign * (predicted[:, 0] - classes.threshold)
        spread = np.sqrt(weights @ residual[:, 0] ** 2)
        return float(np.mean(ndtr(-margin / np.maximum(spread, 1e-300))))
    root = np.sqrt(weights)
    draws = np.random.default_rng(0).standard_normal((_DRAWS // 2, len(residual)))
    wrong = 0.0
    for draw in draws:
        noise = root @ (draw[:, None] * residual)
        wrong += wrong_fraction(classes, predicted + noise)
        wrong += wrong_fraction(classes, predicted - noise)
    return wrong / _DRAWS
