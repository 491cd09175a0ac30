"""Probes trained on random subsets of a pool, where the theory is not precise enough (§8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from giantsteps.theory.probe.classification import Classes, wrong_fraction
from giantsteps.theory.probe.feature_pool import FeaturePool
from giantsteps.types import FloatArray

#: Probes are trained until the mean test error is known to this part of it, but so many at least
#: and at most, and not for more than about so many operations.
_PRECISE = 0.005
_FEWEST, _MOST = 40, 400
_OPERATIONS = 1e10
#: Rows that must be left for the test.
_TEST_ROWS = 10


@dataclass(frozen=True)
class Subsets:
    """Mean errors of probes on n rows of the pool; ``spread`` are relative standard errors."""

    probes: int
    by_output: FloatArray
    train: float
    wrong: float
    spread: float
    train_spread: float


def probes_on_subsets(
    pool: FeaturePool, samples: float, penalty: float, classes: Classes | None
) -> Subsets | None:
    """Train and test probes on random subsets, test them on the other rows; None for n near m."""
    x, y = pool.sample, pool.sample_labels
    (m, p), n = x.shape, round(samples)
    if m - n < _TEST_ROWS:
        return None
    smaller = min(n, p)
    cost = n * p * (smaller + y.shape[1]) + smaller**3 + (m - n) * p * y.shape[1]
    most = int(np.clip(_OPERATIONS / cost, _FEWEST, _MOST))
    rng = np.random.default_rng([m, n])
    tests: list[FloatArray] = []
    trains, wrongs = [], []
    order = np.empty(0, dtype=np.int64)
    while len(tests) < most:
        if len(order) < n:  # subsets of one permutation have no row in common
            order = rng.permutation(m)
        chosen, order = order[:n], order[n:]
        rest = np.delete(np.arange(m), chosen)
        slope, constant = _ridge(x[chosen], y[chosen], penalty, pool.intercept)
        out = x[rest] @ slope + constant
        tests.append(((y[rest] - out) ** 2).mean(axis=0))
        trains.append(float(((y[chosen] - x[chosen] @ slope - constant) ** 2).mean()))
        if classes is not None:
            known = Classes(classes.truth[rest], classes.threshold)
            wrongs.append(wrong_fraction(known, out + pool.label_mean))
        enough = len(tests) >= _FEWEST and len(tests) % 10 == 0
        if enough and _relative(np.mean(tests, axis=1)) < _PRECISE:
            break
    return Subsets(
        len(tests),
        np.mean(tests, axis=0),
        float(np.mean(trains)),
        float(np.mean(wrongs)) if wrongs else np.nan,
        _relative(np.mean(tests, axis=1)),
        _relative(np.array(trains)),
    )


def _ridge(
    x: FloatArray, y: FloatArray, penalty: float, intercept: bool
) -> tuple[FloatArray, FloatArray]:
    """Slope and constant, from normal equations of the smaller size."""
    n, p = x.shape
    at, mean = (x.mean(axis=0), y.mean(axis=0)) if intercept else (np.zeros(p), 0.0 * y[0])
    z, t = x - at, y - mean
    small = z @ z.T if n < p else z.T @ z
    small[np.diag_indices_from(small)] += n * penalty
    slope = z.T @ np.linalg.solve(small, t) if n < p else np.linalg.solve(small, z.T @ t)
    return slope, mean - at @ slope


def _relative(values: FloatArray) -> float:
    """Standard error of the mean over the mean."""
    mean = float(values.mean())
    return float(values.std(ddof=1)) / np.sqrt(len(values)) / mean if mean else 0.0
