"""The law of a finite set of values, with the same methods as a limiting law."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidProblem
from ._law import Law

_CHUNK = 2**21  # entries of a (points, values) table held at once


class EmpiricalLaw(Law):
    r"""Law of finitely many values.

    .. math:: μ = \sum_i w_i δ_{x_i}, \qquad \sum_i w_i = 1 .

    ======  ===========  ===============================
    symbol  argument     meaning
    ======  ===========  ===============================
    x_i     ``values``   the points
    w_i     ``weights``  their masses, equal by default
    ======  ===========  ===============================

    cdf, quantile, Stieltjes transform, expectation and sampling are those of μ itself. Only
    `density` smooths: it is μ convolved with a Gaussian of standard deviation `bandwidth`.

    Parameters
    ----------
    values : array_like
        The points x_i, any shape, finite; flattened and sorted.
    weights : array_like, optional
        Non-negative w_i of the same shape, normalised to sum one. Default: equal.
    bandwidth : float, optional
        Standard deviation of the kernel of `density`. Default: Silverman's rule,
        0.9 min(std, interquartile range/1.349) · (effective sample size)^(−1/5).

    Attributes
    ----------
    values, weights : ndarray
        Sorted values and their normalised weights.

    References
    ----------
    theory §1.

    Examples
    --------
    The singular values of a random matrix are close to the law of Marchenko and Pastur.

    >>> from giantsteps.laws import MarchenkoPastur
    >>> W = np.random.default_rng(0).standard_normal((400, 600)) / 20
    >>> drawn = EmpiricalLaw(np.linalg.svd(W, compute_uv=False))
    >>> drawn.ks_distance(MarchenkoPastur(1.5).singular_values()) < 0.01
    True
    """

    def __init__(
        self,
        values: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        bandwidth: float | None = None,
    ) -> None:
        x = np.asarray(values, dtype=float).ravel()
        if x.size == 0 or not np.all(np.isfinite(x)):
            raise InvalidProblem("values", values, "a non-empty array of finite numbers")
        w = np.ones_like(x) if weights is None else np.asarray(weights, dtype=float).ravel()
        if w.shape != x.shape or not np.all(w >= 0) or not 0 < w.sum() < np.inf:
            raise InvalidProblem("weights", weights, "non-negative, one a value, not all zero")
        if bandwidth is not None and not 0 < bandwidth < np.inf:
            raise InvalidProblem("bandwidth", bandwidth, "a positive finite number")
        order = np.argsort(x, kind="stable")
        self.values: NDArray[Any] = x[order]
        self.weights: NDArray[Any] = w[order] / w.sum()
        self._bandwidth = bandwidth

    def __repr__(self) -> str:
        return f"EmpiricalLaw({self.values.size} values in [{self.values[0]:.6g}, {self.edge:.6g}])"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, EmpiricalLaw)
            and np.array_equal(self.values, other.values)
            and np.array_equal(self.weights, other.weights)
        )

    def __hash__(self) -> int:
        return hash((self.values.tobytes(), self.weights.tobytes()))

    @property
    def support(self) -> tuple[tuple[float, float], ...]:
        """Empty: all mass sits in atoms."""
        return ()

    @cached_property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        """Distinct values with their masses, increasing."""
        points, index = np.unique(self.values, return_inverse=True)
        masses = np.bincount(index, self.weights)
        return tuple((float(x), float(w)) for x, w in zip(points, masses))

    @property
    def edge(self) -> float:
        """The largest value."""
        return float(self.values[-1])

    @cached_property
    def bandwidth(self) -> float:
        """Standard deviation of the Gaussian kernel used by `density`."""
        if self._bandwidth is not None:
            return float(self._bandwidth)
        mean = self.weights @ self.values
        std = np.sqrt(self.weights @ (self.values - mean) ** 2)
        quartiles = self.quantile([0.25, 0.75])
        spread = min(std, (quartiles[1] - quartiles[0]) / 1.349) or std or abs(mean) or 1.0
        return float(0.9 * spread * np.sum(self.weights**2) ** 0.2)

    def density(self, x: ArrayLike) -> NDArray[Any]:
        """Kernel density estimate with the stated `bandwidth`."""
        scale = self.bandwidth

        def kernel(x: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
            return np.exp(-0.5 * ((x - values) / scale) ** 2) / (scale * np.sqrt(2 * np.pi))

        return self._average(kernel, np.asarray(x, dtype=float))

    def cdf(self, x: ArrayLike) -> NDArray[Any]:
        """Mass of (−∞, x]."""
        index = np.searchsorted(self.values, np.asarray(x, dtype=float), side="right")
        return np.clip(self._cumulative[index], 0.0, 1.0)

    def quantile(self, p: ArrayLike) -> NDArray[Any]:
        """Smallest value with cdf ≥ p."""
        p = np.asarray(p, dtype=float)
        if not np.all((p >= 0) & (p <= 1)):
            raise InvalidProblem("p", p, "probabilities in [0, 1]")
        index = np.searchsorted(self._cumulative[1:], p - 1e-12, side="left")
        return self.values[np.minimum(index, self.values.size - 1)]

    def stieltjes(self, z: ArrayLike) -> NDArray[Any]:
        """∫ dμ(x)/(x − z), complex."""
        return self._average(lambda z, x: 1.0 / (x - z), np.asarray(z, dtype=complex))

    def fractions(self, omega: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """∫ dμ/(t − ω), ∫ t dμ/(t − ω), ∫ t² dμ/(t − ω)²: what a sample covariance needs."""
        omega = np.asarray(omega)
        return (
            self._average(lambda z, t: 1.0 / (t - z), omega),
            self._average(lambda z, t: t / (t - z), omega),
            self._average(lambda z, t: (t / (t - z)) ** 2, omega),
        )

    def ks_distance(self, law: Law) -> float:
        """Kolmogorov–Smirnov distance sup_x |F(x) − F_law(x)| to any other law."""
        points = np.unique(self.values)
        if isinstance(law, EmpiricalLaw):
            points = np.union1d(points, law.values)
            return float(np.max(np.abs(self.cdf(points) - law.cdf(points))))
        points = np.union1d(points, [x for x, _ in law.atoms])
        theirs = law.cdf(points)
        jumps = np.zeros_like(points)
        for location, mass in law.atoms:
            jumps[np.searchsorted(points, location)] = mass
        mine = self.cdf(points)
        before = self._cumulative[np.searchsorted(self.values, points, side="left")]
        return float(max(np.max(np.abs(mine - theirs)), np.max(np.abs(before - theirs + jumps))))

    @cached_property
    def _cumulative(self) -> NDArray[Any]:
        return np.concatenate([[0.0], np.cumsum(self.weights)])

    def _average(
        self, f: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]], z: NDArray[Any]
    ) -> NDArray[Any]:
        """Σ_i w_i f(z, x_i), in chunks of points."""
        flat = z.reshape(-1, 1)
        rows = max(1, _CHUNK // self.values.size)
        parts = [
            f(flat[i : i + rows], self.values) @ self.weights for i in range(0, flat.size, rows)
        ]
        out = np.concatenate(parts) if parts else np.zeros(0, flat.dtype)
        return out.reshape(z.shape)
