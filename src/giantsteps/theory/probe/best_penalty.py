"""The ridge penalty with the smallest predicted error (§8)."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

from giantsteps.theory.probe.feature_pool import FeaturePool
from giantsteps.theory.probe.leverages import row_errors
from giantsteps.theory.probe.transfer import Transfer, population
from giantsteps.types import FloatArray


def best_penalties(pool: FeaturePool, sample: FeaturePool, sizes: FloatArray) -> FloatArray:
    """λ with the smallest predicted test error for each n.

    The curve for even leverages is dense and cheap; what uneven ones change, found on a sample of
    the pool, is smooth in log λ and added at three places.
    """
    values = pool.values
    logs = np.linspace(np.log(1e-9 * values.mean()), np.log(1e3 * values.max()), 61)
    loss = CubicSpline(logs, np.log(pool.leave_one_out(np.exp(logs)).mean(axis=1)))
    dense = np.linspace(logs[0], logs[-1], 1201)
    kappa, first = np.array([population(pool, mu) for mu in np.exp(dense)]).T
    slope = kappa * (values / (values + np.exp(dense)[:, None]) ** 2).sum(axis=1)
    second = (first - slope) / (1.0 - slope / pool.rows)
    best = np.empty(sizes.size)
    for i, n in enumerate(sizes.ravel()):
        penalties = kappa * (1.0 - first / n)
        usable = (penalties > 0) & (second < n)
        curve = loss(dense[usable]) + np.log1p(-second[usable] / pool.rows)
        curve -= np.log1p(-second[usable] / n)
        best[i] = _lowest(sample, float(n), np.log(penalties[usable]), curve)
    return best.reshape(sizes.shape)


def _lowest(
    sample: FeaturePool,
    samples: float,
    logs: FloatArray,
    curve: FloatArray,
) -> float:
    """Minimum of a curve over log λ once the leverages have moved it."""
    center = float(logs[np.argmin(curve)])
    for _ in range(4):
        places = np.unique(np.clip(center + np.log(4.0) * np.arange(-1, 2), logs[0], logs[-1]))
        moved = [np.log(unevenness(sample, samples, float(np.exp(at)))) for at in places]
        factor = np.polynomial.Polynomial.fit(places, moved, len(places) - 1)
        near = (logs >= places[0]) & (logs <= places[-1])
        found = float(logs[near][np.argmin(curve[near] + factor(logs[near]))])
        if places[0] < found < places[-1] or len(places) < 3:
            break
        center = found
    return float(np.exp(found))


def unevenness(sample: FeaturePool, samples: float, penalty: float) -> float:
    """Error with the leverages of the rows over that with even ones."""
    even = Transfer.to(sample, samples, penalty)
    loss = float(sample.leave_one_out(np.array([even.mu])).mean())
    return float(row_errors(sample, samples, penalty).error.mean()) / (loss * even.price)
