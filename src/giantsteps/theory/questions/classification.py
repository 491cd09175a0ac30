"""Fraction of wrong classes of a linear probe, from the predictions on a pool (§8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from giantsteps.errors import InvalidProblem
from giantsteps.theory.questions.feature_pool import FeaturePool

__all__ = ["Classes", "classes_of", "classification_error", "wrong_fraction"]

#: Draws of the noise per row, for more than two classes.
_DRAWS = 32


@dataclass(frozen=True)
class Classes:
    """The class of each row, and how a probe's outputs say a class.

    With one output, ``truth`` is whether the label exceeds ``threshold``; with several, it is the
    place of the largest output, and ``threshold`` is None.
    """

    truth: NDArray[np.int64]
    threshold: float | None


def classes_of(labels: NDArray[np.float64], threshold: float | None) -> Classes | None:
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


def wrong_fraction(classes: Classes, predicted: NDArray[np.float64]) -> float:
    """Fraction of rows whose predicted class is wrong."""
    if classes.threshold is None:
        return float(np.mean(predicted.argmax(axis=1) != classes.truth))
    return float(np.mean((predicted[:, 0] > classes.threshold) != classes.truth))


def classification_error(
    pool: FeaturePool,
    classes: Classes,
    penalty: float,
    kappa: float,
    freedom: float,
    added: float,
) -> float:
    """Fraction wrong when the predictions of the pool's probe get ``added`` more variance.

    A probe trained on n rows predicts what the pool's own probe predicts for a row left out, plus
    Gaussian noise of variance ``added`` times the row's share.
    For n > m there is less noise, not more: the fraction is extrapolated from one and two times
    the noise added, by a parabola.
    """
    levels = np.array([added]) if added >= 0 else -added * np.arange(3.0)
    plug_in = float(np.sum((pool.values / (pool.values + kappa)) ** 2)) + pool.intercept
    scale = freedom / plug_in
    covariance, total = np.zeros((pool.outputs, pool.outputs)), np.zeros(len(levels))
    for _, residual, _, _ in pool.predictions(penalty, kappa):
        covariance += residual.T @ residual
    covariance /= covariance.trace() / pool.outputs
    for predicted, _, share, place in pool.predictions(penalty, kappa):
        truth = classes.truth[place]
        for i, level in enumerate(levels):
            variance = level * scale * share
            total[i] += _wrong(predicted, truth, classes.threshold, variance, covariance)
    fraction = total / pool.rows
    if len(levels) == 1:
        return float(fraction[0])
    return float(np.clip(3 * fraction[0] - 3 * fraction[1] + fraction[2], 0.0, 1.0))


def _wrong(
    predicted: NDArray[np.float64],
    truth: NDArray[np.int64],
    threshold: float | None,
    variance: NDArray[np.float64],
    covariance: NDArray[np.float64],
) -> float:
    """Expected number of wrong rows under Gaussian noise of the given variances."""
    if threshold is not None:
        margin = np.where(truth == 1, 1.0, -1.0) * (predicted[:, 0] - threshold)
        if not np.any(variance):
            return float(np.sum(margin <= 0))
        return float(np.sum(ndtr(-margin / np.sqrt(variance))))
    if not np.any(variance):
        return float(np.sum(predicted.argmax(axis=1) != truth))
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = np.random.default_rng(0).standard_normal((_DRAWS // 2, len(root))) @ root.T
    spread, wrong = np.sqrt(variance)[:, None], 0
    for draw in np.concatenate([draws, -draws]):
        wrong += int(np.sum((predicted + spread * draw).argmax(axis=1) != truth))
    return wrong / _DRAWS
