"""Integration of a density over an interval with algebraic edges, on adapted panels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev, legendre
from numpy.typing import NDArray

__all__ = ["Panels"]

_NODES = 20
_TOLERANCE = 1e-12
_ROUNDS = 45
_GAUSS, _WEIGHTS = legendre.leggauss(_NODES)
# Values at the Gauss nodes -> Chebyshev coefficients (degree _NODES − 1).
_TO_SERIES = np.linalg.inv(chebyshev.chebvander(_GAUSS, _NODES - 1))


@dataclass(frozen=True)
class Panels:
    r"""∫ ρ over [lower, upper] as a piecewise polynomial in t, x = lower + (upper−lower) v(t).

    The substitution v(t) = t⁴/(t⁴ + (1−t)⁴) turns every edge (x−lower)^p with p > −3/4 into a
    bounded integrand, square-root edges into smooth ones, and has the explicit inverse
    t = q/(1+q), q = (v/(1−v))^{1/4}. Panels in t are halved until the integrand is resolved.

    Attributes
    ----------
    starts, widths : ndarray of shape (panels,)
        Panels in t, increasing.
    before : ndarray of shape (panels + 1,)
        Mass up to the start of each panel, and the total.
    series : ndarray of shape (nodes + 1, panels)
        Chebyshev series, in the local variable of [−1, 1], of the mass since the panel's start.
    nodes, weights : ndarray
        Points x and masses of the quadrature ∫ f ρ ≈ Σ weights f(nodes).
    """

    lower: float
    upper: float
    starts: NDArray
    widths: NDArray
    before: NDArray
    series: NDArray
    nodes: NDArray
    weights: NDArray

    @classmethod
    def adapted(cls, density: Callable[[NDArray], NDArray], lower: float, upper: float) -> Panels:
        """Refine until the last coefficients of every panel are negligible."""
        starts, widths = np.arange(8) / 8.0, np.full(8, 0.125)
        done: list[tuple[NDArray, NDArray, NDArray]] = []
        for _ in range(_ROUNDS):
            t = starts[:, None] + widths[:, None] * (0.5 + 0.5 * _GAUSS)
            length = upper - lower
            values = density(_point(t, lower, upper)) * length * _slope(t)
            values *= 0.5 * widths[:, None]
            tail = np.abs(values @ _TO_SERIES[-4:].T).max(axis=1)
            scale = np.abs(values).max(axis=1)
            fine = (tail <= _TOLERANCE) | (tail <= 1e-11 * scale) | (scale <= 0.01 * _TOLERANCE)
            done.append((starts[fine], widths[fine], values[fine]))
            starts, widths = starts[~fine], widths[~fine] / 2
            if not starts.size:
                break
            starts = np.concatenate([starts, starts + widths])
            widths = np.concatenate([widths, widths])
        starts, widths, values = (np.concatenate(part) for part in zip(*done))
        order = np.argsort(starts)
        starts, widths, values = starts[order], widths[order], values[order]
        series = chebyshev.chebint(_TO_SERIES @ values.T, lbnd=-1.0)
        before = np.concatenate([[0.0], np.cumsum(values @ _WEIGHTS)])
        t = starts[:, None] + widths[:, None] * (0.5 + 0.5 * _GAUSS)
        nodes = _point(t, lower, upper)
        return cls(
            lower, upper, starts, widths, before, series, nodes.ravel(), (values * _WEIGHTS).ravel()
        )

    @property
    def mass(self) -> float:
        """Total mass of the interval."""
        return float(self.before[-1])

    def integrate(self, f: Callable[[NDArray], NDArray]) -> float:
        """∫ f(x) ρ(x) dx."""
        return float(self.weights @ np.asarray(f(self.nodes), dtype=float))

    def cumulative(self, x: NDArray) -> NDArray:
        """Mass of [lower, x]."""
        below = np.clip((x - self.lower) / (self.upper - self.lower), 0.0, 1.0)
        above = np.clip((self.upper - x) / (self.upper - self.lower), 0.0, 1.0)
        a, b = np.sqrt(np.sqrt(below)), np.sqrt(np.sqrt(above))
        return self._at(a / (a + b))

    def inverse(self, mass: NDArray) -> NDArray:
        """The x with given mass of [lower, x]: safeguarded Newton inside the right panel."""
        panel = np.clip(
            np.searchsorted(self.before, mass, side="right") - 1, 0, self.starts.size - 1
        )
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
            if np.all(np.abs(new - u) < 1e-15):
                break
            u = new
        return _point(
            self.starts[panel] + self.widths[panel] * 0.5 * (1.0 + u), self.lower, self.upper
        )

    def _at(self, t: NDArray) -> NDArray:
        panel = np.clip(np.searchsorted(self.starts, t, side="right") - 1, 0, self.starts.size - 1)
        u = 2.0 * (t - self.starts[panel]) / self.widths[panel] - 1.0
        return self.before[panel] + _columns(np.clip(u, -1.0, 1.0), self.series[:, panel])


def _columns(u: NDArray, series: NDArray) -> NDArray:
    """Chebyshev series whose coefficients differ from point to point (Clenshaw)."""
    return chebyshev.chebval(u, series, tensor=False)


def _point(t: NDArray, lower: float, upper: float) -> NDArray:
    p, q = t**4, (1.0 - t) ** 4
    return np.where(
        t < 0.5, lower + (upper - lower) * p / (p + q), upper - (upper - lower) * q / (p + q)
    )


def _slope(t: NDArray) -> NDArray:
    return 4.0 * (t * (1.0 - t)) ** 3 / (t**4 + (1.0 - t) ** 4) ** 2
