"""What every law of eigenvalues or singular values offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidProblem
from ._panels import Panels


class Law(ABC):
    """A probability measure on the line: a density on finitely many intervals, and atoms.

    A subclass gives `support`, `atoms`, `density` and `stieltjes`; the rest follows from them
    by integration on panels that are refined towards the edges.

    References: theory §1.
    """

    @property
    @abstractmethod
    def support(self) -> tuple[tuple[float, float], ...]:
        """Intervals (lower, upper) that carry the density, increasing; atoms are not in it."""

    @property
    @abstractmethod
    def atoms(self) -> tuple[tuple[float, float], ...]:
        """Pairs (location, mass), increasing in location."""

    @abstractmethod
    def density(self, x: ArrayLike) -> NDArray[Any]:
        """Density of the continuous part at real points; 0 outside the support."""

    @abstractmethod
    def stieltjes(self, z: ArrayLike) -> NDArray[Any]:
        """∫ dμ(x)/(x − z), complex; at a real z the limit from the upper half-plane."""

    @property
    def edge(self) -> float:
        """Largest point of the support or of the atoms."""
        return max([upper for _, upper in self.support] + [x for x, _ in self.atoms])

    def cdf(self, x: ArrayLike) -> NDArray[Any]:
        """Mass of (−∞, x], atoms included."""
        x = np.asarray(x, dtype=float)
        out = np.zeros(x.shape)
        for panels in self._panels:
            out += panels.cumulative(x)
        for location, mass in self.atoms:
            out += mass * (x >= location)
        return np.clip(out, 0.0, 1.0)

    def quantile(self, p: ArrayLike) -> NDArray[Any]:
        """Smallest x with cdf(x) ≥ p, for p in [0, 1]."""
        p = np.asarray(p, dtype=float)
        if not np.all((p >= 0) & (p <= 1)):
            raise InvalidProblem("p", p, "probabilities in [0, 1]")
        pieces: list[tuple[float, float, Panels | None]] = [
            (location, mass, None) for location, mass in self.atoms
        ]
        pieces += [(panels.lower, panels.mass, panels) for panels in self._panels]
        pieces.sort(key=lambda piece: piece[0])
        # Pieces do not overlap: an atom sits outside the intervals of every law of this package.
        masses = np.array([mass for _, mass, _ in pieces])
        ends = np.cumsum(masses)
        ends[-1] = max(ends[-1], 1.0)
        index = np.searchsorted(ends, p, side="left")
        out = np.empty(p.shape)
        for i, (location, mass, panels) in enumerate(pieces):
            here = index == i
            if panels is None:
                out[here] = location
            else:
                out[here] = panels.inverse(np.clip(p[here] - (ends[i] - mass), 0.0, mass))
        return out

    def expectation(self, f: Callable[[NDArray[Any]], NDArray[Any]]) -> float:
        """∫ f dμ for an elementwise function f that is smooth inside each interval."""
        total = sum(panels.integrate(f) for panels in self._panels)
        return float(total + sum(mass * f(np.asarray(x)) for x, mass in self.atoms))

    def sample(self, size: int | tuple[int, ...], seed: int) -> NDArray[Any]:
        """Independent draws, by inversion of the cdf."""
        return self.quantile(np.random.default_rng(seed).uniform(size=size))

    def _stieltjes_by_quadrature(self, z: ArrayLike) -> NDArray[Any]:
        """∫ dμ(x)/(x − z) point by point, the pole subtracted: right up to the real axis."""
        z = np.asarray(z, dtype=complex)
        return np.reshape([self._stieltjes_at(complex(point)) for point in z.ravel()], z.shape)

    def _stieltjes_at(self, z: complex) -> complex:
        total = sum((mass / (x - z) for x, mass in self.atoms), 0j)
        height = float(self.density(z.real))
        for lower, upper in self.support:
            value = height if lower < z.real < upper else 0.0

            def regular(x: NDArray[Any], value: float = value) -> NDArray[Any]:
                with np.errstate(divide="ignore", invalid="ignore"):
                    return np.where(x == z, 0.0, (self.density(x) - value) / (x - z))

            total += complex(Panels.adapted(regular, lower, upper).before[-1])
            if value:
                total += value * (
                    np.log((upper - z) / (z - lower)) + np.copysign(np.pi, z.imag) * 1j
                )
        return total

    @cached_property
    def _panels(self) -> tuple[Panels, ...]:
        return tuple(Panels.adapted(self.density, lo, hi) for lo, hi in self.support)
