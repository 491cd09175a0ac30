"""Integration of a density over an interval with algebraic edges, on adapted panels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev, legendre
from numpy.typing import NDArray

from ..errors import NotConverged

_NODES = 20
_TOLERANCE = 1e-12
_ROUNDS = 60
_LIMIT = 2000  # panels refined at once: more means noise, not an edge
_GAUSS, _WEIGHTS = legendre.leggauss(_NODES)
# Values at the Gauss nodes -> Chebyshev coefficients (degree _NODES − 1).
_TO_SERIES = np.linalg.inv(chebyshev.chebvander(_GAUSS, _NODES - 1))


@dataclass(frozen=True)
class Panels:
    r"""∫ ρ over [lower, upper] as a piecewise polynomial in t, x = lower + (upper−lower) v(t).

    The substitution v(t) = t⁴/(t⁴ + (1−t)⁴) turns every edge (x−lower)^p with p > −3/4 into a
    bounded integrand, square-root edges into smooth ones, and has the explicit inverse
    t = q/(1+q), q = (v/(1−v))^{1/4}. Panels in t are halved until the integrand is resolved.
    """

    #: The interval.
    lower: float
    upper: float
    #: (panels,): panels in t, increasing.
    starts: NDArray[Any]
    widths: NDArray[Any]
    before: NDArray[Any]  # (panels + 1,): mass up to the start of each panel, and the total
    #: (nodes + 1, panels): chebyshev series, in the local variable of [−1, 1], of the mass since
    #: the panel's start.
    series: NDArray[Any]

    @classmethod
    def adapted(
        cls, density: Callable[[NDArray[Any]], NDArray[Any]], lower: float, upper: float
    ) -> Panels:
        """Resolve a density (real or complex) given as a function of x."""

        def rate(t: NDArray[Any]) -> NDArray[Any]:
            return density(_point(t, lower, upper)) * ((upper - lower) * _slope(t))

        starts, widths, values = _resolve(rate, np.arange(8) / 8.0, np.full(8, 0.125))
        order = np.argsort(starts)
        values = values[order]
        before = np.concatenate([[0.0], np.cumsum(values @ _WEIGHTS)])
        series = chebyshev.chebint(_TO_SERIES @ values.T, lbnd=-1.0)
        return cls(lower, upper, starts[order], widths[order], before, series)

    @property
    def mass(self) -> float:
        """Total mass of the interval."""
        return float(self.before[-1])

    def integrate(self, f: Callable[[NDArray[Any]], NDArray[Any]]) -> float:
        """∫ f(x) ρ(x) dx, with further halving where f needs it."""

        def rate(t: NDArray[Any]) -> NDArray[Any]:
            return f(_point(t, self.lower, self.upper)) * self._density_in_t(t)

        return float(np.sum(_resolve(rate, self.starts, self.widths)[2] @ _WEIGHTS))

    def cumulative(self, x: NDArray[Any]) -> NDArray[Any]:
        """Mass of [lower, x]."""
        length = self.upper - self.lower
        below = np.clip((x - self.lower) / length, 0.0, 1.0) ** 0.25
        above = np.clip((self.upper - x) / length, 0.0, 1.0) ** 0.25
        panel, u = self._locate(below / (below + above))
        mass = self.before[panel] + _columns(u, self.series[:, panel])
        return np.where(x > self.lower, mass, 0.0)

    def inverse(self, mass: NDArray[Any]) -> NDArray[Any]:
        """The x with given mass of [lower, x]: safeguarded Newton inside the right panel."""
        panel = np.searchsorted(self.before, mass, side="right") - 1
        panel = np.clip(panel, 0, self.starts.size - 1)
        series = self.series[:, panel]
        slope = chebyshev.chebder(self.series)[:, panel]
        target = mass - self.before[panel]
        low, high = np.full(mass.shape, -1.0), np.full(mass.shape, 1.0)
        u = np.zeros(mass.shape)
        for _ in range(60):
            excess = _columns(u, series) - target
            low, high = np.where(excess < 0, u, low), np.where(excess < 0, high, u)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = u - excess / _columns(u, slope)
            new = np.where((step > low) & (step < high), step, 0.5 * (low + high))
            moved = np.abs(new - u)
            u = new
            if np.all(moved < 1e-15):
                break
        return _point(
            self.starts[panel] + self.widths[panel] * (0.5 + 0.5 * u), self.lower, self.upper
        )

    def _locate(self, t: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Panel of each t, and the local variable in [−1, 1]."""
        panel = np.searchsorted(self.starts, t, side="right") - 1
        panel = np.clip(panel, 0, self.starts.size - 1)
        u = 2.0 * (t - self.starts[panel]) / self.widths[panel] - 1.0
        return panel, np.clip(u, -1.0, 1.0)

    def _density_in_t(self, t: NDArray[Any]) -> NDArray[Any]:
        panel, u = self._locate(t)
        return _columns(u, chebyshev.chebder(self.series)[:, panel]) * 2.0 / self.widths[panel]


def _resolve(
    rate: Callable[[NDArray[Any]], NDArray[Any]], starts: NDArray[Any], widths: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Halve panels until the last Chebyshev coefficients of rate(t) dt are negligible."""
    done: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
    tail = np.zeros(1)
    for _ in range(_ROUNDS):
        t = starts[:, None] + widths[:, None] * (0.5 + 0.5 * _GAUSS)
        values = rate(t) * (0.5 * widths[:, None])
        tail = np.abs(values @ _TO_SERIES[-4:].T).max(axis=1)
        fine = tail <= np.maximum(_TOLERANCE, 1e-11 * np.abs(values).max(axis=1))
        done.append((starts[fine], widths[fine], values[fine]))
        starts, widths = starts[~fine], widths[~fine] / 2
        if not starts.size:
            joined = tuple(np.concatenate(part) for part in zip(*done))
            return joined[0], joined[1], joined[2]
        if starts.size > _LIMIT or not np.all(np.isfinite(values)):
            break
        starts = np.concatenate([starts, starts + widths])
        widths = np.concatenate([widths, widths])
    raise NotConverged(
        "integral over the support of a law",
        float(np.max(tail)),
        len(done),
        "a smoother function, or a setting further from a degenerate one",
    )


def _columns(u: NDArray[Any], series: NDArray[Any]) -> NDArray[Any]:
    """Chebyshev series whose coefficients differ from point to point (Clenshaw)."""
    return chebyshev.chebval(u, series, tensor=False)


def _point(t: NDArray[Any], lower: float, upper: float) -> NDArray[Any]:
    p, q, length = t**4, (1.0 - t) ** 4, upper - lower
    return np.where(t < 0.5, lower + length * p / (p + q), upper - length * q / (p + q))


def _slope(t: NDArray[Any]) -> NDArray[Any]:
    return 4.0 * (t * (1.0 - t)) ** 3 / (t**4 + (1.0 - t) ** 4) ** 2
