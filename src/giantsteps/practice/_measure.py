"""Learning curves of a linear probe, measured by training it on random splits."""

from __future__ import annotations

from typing import Any

import numpy as np

from giantsteps.answers import ProbeCurve
from giantsteps.errors import InvalidProblem
from giantsteps.problem import integer
from giantsteps.theory import classes_of
from giantsteps.types import FloatArray


def measure_probe(
    features: Any, labels: Any, curve: ProbeCurve, *, splits: int = 40, seed: int = 0
) -> ProbeCurve:
    """Measure a learning curve where :func:`giantsteps.theory.risk_of_features` predicted one.

    For each training set of ``curve`` the rows are split at random, the probe is trained on n of
    them and tested on the others.

    Parameters
    ----------
    features, labels : array (m, p), array (m,) or (m, k)
        The pool.
    curve : ProbeCurve
        Gives the sizes, the penalties, the intercept and the threshold.
    splits : int
        Number of random splits per training set, at least 2.
    seed : int
        Of the splits.

    Returns
    -------
    ProbeCurve
        With ``source="measured"``.
        It is NaN where n leaves fewer than two rows for the test.

    Notes
    -----
    ``standard_error`` is that of the mean over the splits of this one pool.
    Another pool would give other numbers; the standard error of the prediction covers that.

    Examples
    --------
    >>> import numpy as np
    >>> from giantsteps import theory
    >>> rng = np.random.default_rng(0)
    >>> features = rng.standard_normal((400, 20))
    >>> labels = features[:, 0] + 0.5 * rng.standard_normal(400)
    >>> curve = theory.risk_of_features(features, labels, samples=[60, 200], penalty=0.01)
    >>> measured = measure_probe(features, labels, curve, splits=100)
    >>> bool(np.all(abs(curve.test / measured.test - 1) < 0.05))
    True
    """
    x, y = np.asarray(features, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if x.ndim != 2 or len(x) != len(y):
        raise InvalidProblem("features", x.shape, f"of shape ({len(y)}, p), one row per label")
    integer(splits, "splits", "an integer of at least 2", lower=2)
    integer(seed, "seed", "a non-negative integer", lower=0)
    y = y.reshape(len(y), -1)
    classes = classes_of(y, curve.threshold)
    sizes, penalties = np.ravel(curve.samples).astype(int), np.ravel(curve.penalty)
    found = np.full((3, len(sizes)), np.nan)
    by_output = np.full((len(sizes), y.shape[1]), np.nan)
    spread = np.full((2, len(sizes)), np.nan)
    for i, (n, penalty) in enumerate(zip(sizes, penalties)):
        if n > len(x) - 2:
            continue
        rng = np.random.default_rng([seed, n])
        tests, trains, wrongs = [], [], []
        for _ in range(splits):
            order = rng.permutation(len(x))
            fit, rest = order[:n], order[n:]
            slope, constant = _fit(x[fit], y[fit], float(penalty), curve.intercept)
            out = x[rest] @ slope + constant
            tests.append(((y[rest] - out) ** 2).mean(axis=0))
            trains.append(float(((y[fit] - x[fit] @ slope - constant) ** 2).mean()))
            if classes is not None:
                said = (
                    out.argmax(axis=1)
                    if classes.threshold is None
                    else (out[:, 0] > classes.threshold).astype(np.int64)
                )
                wrongs.append(float(np.mean(said != classes.truth[rest])))
        means = np.mean(tests, axis=1)
        by_output[i] = np.mean(tests, axis=0)
        found[:2, i] = means.mean(), np.mean(trains)
        spread[0, i] = means.std(ddof=1) / np.sqrt(splits)
        if wrongs:
            found[2, i] = np.mean(wrongs)
            spread[1, i] = np.std(wrongs, ddof=1) / np.sqrt(splits)
    shape = curve.shape
    return ProbeCurve(
        samples=curve.samples,
        penalty=curve.penalty,
        test=found[0].reshape(shape),
        train=found[1].reshape(shape),
        standard_error=spread[0].reshape(shape),
        by_output=by_output.reshape(*shape, y.shape[1]),
        classification_error=None if classes is None else found[2].reshape(shape),
        classification_standard_error=None if classes is None else spread[1].reshape(shape),
        probes=np.full(shape, float(splits)),
        rows=len(x),
        features=x.shape[1],
        intercept=curve.intercept,
        threshold=curve.threshold,
        source="measured",
    )


def _fit(
    x: FloatArray, y: FloatArray, penalty: float, intercept: bool
) -> tuple[FloatArray, FloatArray]:
    """Slope and constant of one probe; of minimum norm where the penalty is zero."""
    n, p = x.shape
    means = (x.mean(axis=0), y.mean(axis=0)) if intercept else (np.zeros(p), np.zeros(y.shape[1]))
    z, t = x - means[0], y - means[1]
    left, values, right = np.linalg.svd(z, full_matrices=False)
    alive = values > values[0] * max(n, p) * np.finfo(float).eps
    scale = values[alive] / (values[alive] ** 2 + n * penalty)
    slope = right[alive].T @ (scale[:, None] * (left[:, alive].T @ t))
    return slope, means[1] - means[0] @ slope
