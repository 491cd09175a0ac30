"""A law that is known through its Stieltjes transform in the upper half-plane."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray

from giantsteps.errors import NotConverged
from giantsteps.laws import Law

__all__ = ["ImplicitLaw"]

_SCAN = 91
#: Im z over x, and x·Im m above which a point is inside: for the scan, and close to an edge.
_SCAN_HEIGHT, _SCAN_INSIDE = 1e-7, 1e-4
_HEIGHT, _INSIDE = 1e-9, 3e-5
_EDGE_ROUNDS = 40
_EDGE_TOLERANCE = 1e-9
_SMALLEST, _LARGEST = 32, 256
_SERIES_TOLERANCE = 1e-7
_LOST, _SPECK = 0.05, 0.01


class _Piece(NamedTuple):
    """Density on one interval: mass dθ = Σ c_j cos(jθ) dθ, x from lower to upper with θ."""

    lower: float
    upper: float
    logarithmic: bool
    series: NDArray

    @property
    def mass(self) -> float:
        return float(self.series[0]) * np.pi

    def angle(self, x: NDArray) -> NDArray:
        if self.logarithmic:
            x, lower, upper = np.log(x), np.log(self.lower), np.log(self.upper)
        else:
            lower, upper = self.lower, self.upper
        return np.arccos(np.clip((lower + upper - 2 * x) / (upper - lower), -1.0, 1.0))

    def point(self, angle: NDArray) -> NDArray:
        share = (1 - np.cos(angle)) / 2
        if self.logarithmic:
            return self.lower * (self.upper / self.lower) ** share
        return self.lower + (self.upper - self.lower) * share

    def slope(self, angle: NDArray) -> NDArray:
        """dx/dθ."""
        if self.logarithmic:
            return self.point(angle) * np.log(self.upper / self.lower) * np.sin(angle) / 2
        return (self.upper - self.lower) * np.sin(angle) / 2


class ImplicitLaw(Law):
    r"""The law with Stieltjes transform m(z) = ∫ dμ/(x − z) on (0, ∞), and atoms.

    The density is Im m(x + i0)/π. Its intervals are found by a scan; an edge e from outside, where
    m' diverges like (x − e)^{-1/2} and m'^{-2} is a straight line to zero. On an interval the
    mass in the angle θ, x = lower + (upper − lower)(1 − cos θ)/2 (or the same in log x), is smooth
    at soft and hard edges alike and is kept as a cosine series. Intervals with less than one per
    cent of the mass (the far tail of the samples, close to zero) are counted with the rest.

    Parameters
    ----------
    transform : callable
        m at an array of complex z with Im z > 0.
    scale : float
        Mean of the continuous part: where to look for it.
    atoms : tuple of (location, mass)
    """

    def __init__(
        self,
        transform: Callable[[NDArray], NDArray],
        scale: float,
        atoms: tuple[tuple[float, float], ...] = (),
    ) -> None:
        self._transform = transform
        self._scale = float(scale)
        self._atoms = atoms

    def __repr__(self) -> str:
        shown = " ∪ ".join(f"[{low:.6g}, {high:.6g}]" for low, high in self.support)
        return f"ImplicitLaw({shown}, atoms={self.atoms})"

    @property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        return self._atoms

    @cached_property
    def support(self) -> tuple[tuple[float, float], ...]:
        return tuple((piece.lower, piece.upper) for piece in self._pieces)

    @property
    def masses(self) -> tuple[float, ...]:
        """Mass of each interval of the support."""
        return tuple(piece.mass for piece in self._pieces)

    def _intervals(self) -> list[tuple[float, float]]:
        """Where a scan over nine decades finds density, with exact edges; specks left out."""
        x = self._scale * np.geomspace(1e-6, 1e3, _SCAN)
        density = x * self._transform(x * (1 + 1j * _SCAN_HEIGHT)).imag / np.pi
        inside = np.pi * density > _SCAN_INSIDE
        mass = density * np.log(x[1] / x[0])
        starts = np.flatnonzero(inside & ~np.concatenate([[False], inside[:-1]]))
        ends = np.flatnonzero(inside & ~np.concatenate([inside[1:], [False]]))
        wanted = 1.0 - sum(share for _, share in self.atoms)
        runs = [
            (first, last)
            for first, last in zip(starts, ends)
            if mass[first : last + 1].sum() > _SPECK * wanted
        ]
        if not runs or inside[-1]:
            raise NotConverged(
                "the support of a law", float(np.mean(inside)), _SCAN, "another width or rate"
            )
        # A run that starts with the scan reaches down to zero.
        grounded = int(runs[0][0] == 0)
        outer = [i for first, last in runs for i in (first - 1, last + 1)][grounded:]
        inner = [i for pair in runs for i in pair][grounded:]
        edges = self._edges(x[outer], x[inner])
        if grounded:
            edges = np.concatenate([[0.0], edges])
        return [(float(lo), float(hi)) for lo, hi in edges.reshape(-1, 2)]

    def _imaginary(self, x: NDArray) -> NDArray:
        return self._transform(x * (1 + 1j * _HEIGHT)).imag

    def _edges(self, outside: NDArray, within: NDArray) -> NDArray:
        """Where m'^{-2}, linear near an edge, vanishes; all edges side by side."""
        before, line_before = np.full_like(outside, np.nan), np.full_like(outside, np.nan)
        guess = within.copy()
        line = (_HEIGHT * outside / self._imaginary(outside)) ** 2
        for _ in range(_EDGE_ROUNDS):
            with np.errstate(invalid="ignore", divide="ignore"):
                zero = outside - line * (outside - before) / (line - line_before)
            between = (zero - within) * (zero - outside) < 0
            guess = np.where(between, zero, 0.5 * (outside + within))
            if np.all(np.abs(guess - outside) <= _EDGE_TOLERANCE * outside):
                break
            trial = np.where(between, guess + 0.1 * (outside - guess), guess)
            height = self._imaginary(trial)
            hit = trial * height > _INSIDE
            within = np.where(hit, trial, within)
            before = np.where(hit, before, outside)
            line_before = np.where(hit, line_before, line)
            line = np.where(hit, line, (_HEIGHT * trial / height) ** 2)
            outside = np.where(hit, outside, trial)
        return guess

    @cached_property
    def _pieces(self) -> tuple[_Piece, ...]:
        pieces = [self._resolve(lower, upper) for lower, upper in self._intervals()]
        wanted = 1.0 - sum(mass for _, mass in self.atoms)
        found = sum(piece.mass for piece in pieces)
        if abs(found / wanted - 1) > _LOST:
            raise NotConverged(
                "the mass of a law", abs(found / wanted - 1), _SCAN, "another width or rate"
            )
        return tuple(piece._replace(series=piece.series * (wanted / found)) for piece in pieces)

    def _resolve(self, lower: float, upper: float) -> _Piece:
        piece = _Piece(lower, upper, lower > 0 and upper > 10 * lower, np.zeros(1))
        count = _SMALLEST
        while True:
            angle = (np.arange(count) + 0.5) * np.pi / count
            x = piece.point(angle)
            mass = self._transform(x * (1 + 1j * 1e-12)).imag / np.pi * piece.slope(angle)
            series = 2 / count * np.cos(np.outer(np.arange(count), angle)) @ mass
            series[0] /= 2
            tail = np.abs(series[-count // 8 :]).max()
            if tail <= _SERIES_TOLERANCE * np.abs(series).max() or count >= _LARGEST:
                return piece._replace(series=series)
            count *= 2

    def density(self, x: ArrayLike) -> NDArray:
        x = np.asarray(x, dtype=float)
        out = np.zeros(x.shape)
        for piece in self._pieces:
            # Closer to an edge than it is known, 0/0 would be noise.
            here = x > piece.lower * (1 + _EDGE_TOLERANCE)
            here &= x < piece.upper * (1 - _EDGE_TOLERANCE)
            angle = piece.angle(x[here])
            with np.errstate(divide="ignore", invalid="ignore"):
                mass = chebyshev.chebval(np.cos(angle), piece.series) / piece.slope(angle)
            out[here] = np.maximum(np.nan_to_num(mass, nan=0.0, posinf=0.0), 0.0)
        return out

    def stieltjes(self, z: ArrayLike) -> NDArray:
        z = np.asarray(z, dtype=complex)
        flat = z.ravel()
        lower = flat.imag < 0
        raised = np.where(lower, flat.conj(), flat)
        tiny = 1e-12 * np.maximum(np.abs(raised.real), self._scale * 1e-6)
        raised = np.where(raised.imag > tiny, raised, raised.real + 1j * tiny)
        values = self._transform(raised)
        return np.where(lower, values.conj(), values).reshape(z.shape)
