"""What the pool's own probe says of one with other samples and another penalty (§8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from giantsteps.theory.questions.feature_pool import FeaturePool
from giantsteps.theory.questions.leverages import Leverages

__all__ = ["Transfer", "best_penalties"]

#: Rows that the search for the best penalty works with; the answer has all of the sample.
_SEARCH_ROWS = 1024


@dataclass(frozen=True)
class Transfer:
    """How the pool's own probe with penalty μ speaks for n samples with penalty λ."""

    samples: float
    penalty: float
    mu: float
    kappa: float
    first: float
    second: float
    price: float

    @classmethod
    def to(cls, pool: FeaturePool, samples: float, penalty: float) -> Transfer:
        """μ with the same κ on m rows as λ on n."""
        lowest = 1e-13 * float(pool.values.max())
        parameters = len(pool.values) + pool.intercept
        if penalty == 0.0 and samples >= parameters:
            mu = lowest
        else:
            high = np.log(
                3.0 * (penalty + 2.0 * float(pool.values.sum()) / min(samples, pool.rows))
            )

            def gap(log: float) -> float:
                kappa, first = _population(pool, np.exp(log))
                return kappa * (1.0 - first / samples) - penalty

            mu = float(np.exp(brentq(gap, np.log(lowest) - 5.0, high + 2.0, xtol=1e-13)))
        kappa, first = _population(pool, mu)
        slope = kappa * float(np.sum(pool.values / (pool.values + mu) ** 2))
        second = (first - slope) / (1.0 - slope / pool.rows)
        left = 1.0 - second / samples
        diverges = left <= 0 or (penalty == 0.0 and samples == parameters)
        price = np.inf if diverges else (1.0 - second / pool.rows) / left
        return cls(samples, penalty, mu, kappa, first, second, price)


def _population(pool: FeaturePool, mu: float) -> tuple[float, float]:
    """κ and df₁ of the population, as the pool's penalty μ sees them."""
    first = float(np.sum(pool.values / (pool.values + mu))) + pool.intercept
    return mu / (1.0 - first / pool.rows), first


def best_penalties(pool: FeaturePool, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """λ with the smallest predicted test error for each n."""
    values = pool.values
    thin = slice(None, None, -(-len(pool.sample) // _SEARCH_ROWS))
    leverages = Leverages(pool.sample[thin], pool.sample_labels[thin], pool.intercept)
    logs = np.linspace(np.log(1e-9 * values.mean()), np.log(1e3 * values.max()), 61)
    loss = CubicSpline(logs, np.log(pool.leave_one_out(np.exp(logs)).loss.mean(axis=1)))
    dense = np.linspace(logs[0], logs[-1], 1201)
    smooth = loss(dense)
    kappa, first = np.array([_population(pool, mu) for mu in np.exp(dense)]).T
    slope = kappa * (values / (values + np.exp(dense)[:, None]) ** 2).sum(axis=1)
    second = (first - slope) / (1.0 - slope / pool.rows)
    best = np.empty(sizes.size)
    for i, n in enumerate(sizes.ravel()):
        penalties = kappa * (1.0 - first / n)
        usable = (penalties > 0) & (second < n)
        curve = smooth[usable] + np.log1p(-second[usable] / pool.rows)
        curve -= np.log1p(-second[usable] / n)
        best[i] = _lowest(leverages, float(n), np.log(penalties[usable]), curve)
    return best.reshape(sizes.shape)


def _lowest(
    leverages: Leverages,
    samples: float,
    logs: NDArray[np.float64],
    curve: NDArray[np.float64],
) -> float:
    """Minimum of a curve over log λ once the leverages have moved it."""
    center = float(logs[np.argmin(curve)])
    for _ in range(4):
        places = np.clip(center + np.log(4.0) * np.arange(-1, 2), logs[0], logs[-1])
        places = np.unique(places)
        moved = []
        for at in places:
            here = leverages.errors(samples, float(np.exp(at)))
            moved.append(np.log(here.test / here.even_test))
        factor = np.polynomial.Polynomial.fit(places, moved, len(places) - 1)
        near = (logs >= places[0]) & (logs <= places[-1])
        found = float(logs[near][np.argmin(curve[near] + factor(logs[near]))])
        if places[0] < found < places[-1] or len(places) < 3:
            break
        center = found
    return float(np.exp(found))
