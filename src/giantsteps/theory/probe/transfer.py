"""What a pool says of other sample sizes if the leverages of its rows are even (§8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from giantsteps.theory.probe.feature_pool import FeaturePool


@dataclass(frozen=True)
class Transfer:
    """How the pool's own probe with penalty μ speaks for n samples with penalty λ.

    Both have the same effective penalty κ and degrees of freedom df₁, df₂ (``first``, ``second``);
    ``price`` is what the error of the pool's probe is multiplied by.
    """

    samples: float
    penalty: float
    mu: float
    kappa: float
    first: float
    second: float
    price: float
    parameters: int

    @classmethod
    def to(cls, pool: FeaturePool, samples: float, penalty: float) -> Transfer:
        """μ with the same κ on m rows as λ on n."""
        lowest = 1e-13 * float(pool.values.max())
        parameters = len(pool.values) + pool.intercept
        if penalty == 0.0 and samples >= parameters:
            mu = lowest
        else:
            mean = 2.0 * float(pool.values.sum()) / min(samples, pool.rows)
            high = np.log(3.0 * (penalty + mean))

            def gap(log: float) -> float:
                kappa, first = population(pool, np.exp(log))
                return kappa * (1.0 - first / samples) - penalty

            mu = float(np.exp(brentq(gap, np.log(lowest) - 80.0, high + 2.0, xtol=1e-13)))
        kappa, first = population(pool, mu)
        slope = kappa * float(np.sum(pool.values / (pool.values + mu) ** 2))
        second = (first - slope) / (1.0 - slope / pool.rows)
        left = 1.0 - second / samples
        diverges = left <= 0 or (penalty == 0.0 and samples == parameters)
        price = np.inf if diverges else (1.0 - second / pool.rows) / left
        return cls(samples, penalty, mu, kappa, first, second, price, parameters)


def population(pool: FeaturePool, mu: float) -> tuple[float, float]:
    """κ and df₁ of the population, as the pool's penalty μ sees them."""
    first = float(np.sum(pool.values / (pool.values + mu))) + pool.intercept
    return mu / (1.0 - first / pool.rows), first
