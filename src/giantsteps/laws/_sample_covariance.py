"""Eigenvalues of N⁻¹ Z Σ Zᵀ for a population Σ: generalised Marchenko–Pastur laws."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidProblem, NotConverged
from ._law import Law

_Function = Callable[[NDArray[Any]], NDArray[Any]]
_SHRINK = 0.25  # ratio of successive imaginary parts in the continuation
_TOLERANCE = 1e-12  # on |Λ(ω) − z|, relative to the size of its terms


class Population(Protocol):
    """The law H of the eigenvalues of Σ, on [0, ∞), as `SampleCovariance` uses it."""

    @property
    def support(self) -> tuple[tuple[float, float], ...]:
        """Intervals of the continuous part."""

    @property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        """Pairs (location, mass)."""

    def fractions(self, omega: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """∫ dH/(t − ω), ∫ t dH/(t − ω), ∫ t² dH/(t − ω)², real or complex, same shape as ω."""


class Subordination(NamedTuple):
    """Solution of Λ(ω) = z, and how well it solves it."""

    omega: NDArray[Any]  # the solution in the closed upper half-plane
    residual: float  # largest |Λ(ω) − z| relative to the size of its terms
    iterations: int  # Newton rounds, all continuation steps together


class SampleCovariance(Law):
    r"""Law of the n eigenvalues of N⁻¹ Z Σ Zᵀ, Z (n × N) white, Σ with eigenvalue law H.

    With Γ = n/N and ω = −1/(Γ m), the Stieltjes transform m(z) solves

    .. math:: m = -\Bigl(z - \int \frac{t\,dH(t)}{1 + Γ t m}\Bigr)^{-1}
              \iff Λ(ω) = z,\quad Λ(ω) = Γω + ω\int\frac{t\,dH(t)}{ω - t}.

    The solution with Im ω > 0 is unique, at real z inside the support too, so a small residual
    and Im ω > 0 together certify the branch. A real x lies outside the support iff x = Λ(ω) for
    some real ω outside that of H with Λ'(ω) > 0 (Silverstein and Choi); there
    Λ'(ω) = Γ − ∫ t² dH/(t−ω)² is concave on every gap of H, so each gap of H opens at most one
    gap. Λ is also where spikes go: a spike τ of Σ appears at Λ(τ) iff Λ'(τ) > 0.

    ======  ==============  ===========================================
    symbol  argument        meaning
    ======  ==============  ===========================================
    H       ``population``  law of the eigenvalues of Σ (N of them)
    Γ       ``ratio``       n/N
    ======  ==============  ===========================================

    * ``population``: such as `MarchenkoPastur` or `EmpiricalLaw` (a variance profile: the columns
      of an n × N matrix with entries of variance t_j/N).
    * ``ratio``: positive.
    """

    def __init__(self, population: Population, ratio: float) -> None:
        if not 0 < ratio < np.inf:
            raise InvalidProblem("ratio", ratio, "a positive finite number (n/N)")
        lowest = min([lo for lo, _ in population.support] + [x for x, _ in population.atoms])
        if lowest < 0 or not self._positive_blocks(population).size:
            raise InvalidProblem("population", population, "a law on [0, ∞), not all at 0")
        self.population = population
        self.ratio = float(ratio)

    def __repr__(self) -> str:
        return f"SampleCovariance({self.population!r}, ratio={self.ratio!r})"

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, SampleCovariance)
            and self.ratio == other.ratio
            and self.population == other.population
        )

    def __hash__(self) -> int:
        return hash((type(self), self.population, self.ratio))

    @cached_property
    def support(self) -> tuple[tuple[float, float], ...]:
        """Intervals between consecutive gaps, from the critical points of Λ."""
        edges = self._critical_points.copy()
        edges[edges != 0] = np.maximum(self.spike(edges[edges != 0]), 0.0)  # Λ(0) = 0
        return tuple((float(lo), float(hi)) for lo, hi in edges)

    @cached_property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        """The null space, of mass 1 − min(1, (1 − H{0})/Γ)."""
        mass = 1.0 - self._population_rank / self.ratio
        return ((0.0, mass),) if mass > 1e-14 else ()

    def density(self, x: ArrayLike) -> NDArray[Any]:
        """Im m(x + i0)/π."""
        x = np.asarray(x, dtype=float)
        out = np.zeros(x.shape)
        inside = self._inside(x)
        if np.any(inside):
            out[inside] = (-1.0 / (self.ratio * self.solve(x[inside]).omega)).imag / np.pi
        return out

    def stieltjes(self, z: ArrayLike) -> NDArray[Any]:
        """m(z) = −1/(Γ ω(z)); infinite at an atom."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return -1.0 / (self.ratio * self.solve(z).omega)

    def spike(self, tau: ArrayLike) -> NDArray[Any]:
        """Λ(τ) = Γτ + τ ∫ t/(τ − t) dH(t), for τ outside the support of the population."""
        return self._map(np.asarray(tau, dtype=float))[0]

    def spike_slope(self, tau: ArrayLike) -> NDArray[Any]:
        """Λ'(τ) = Γ − ∫ t²/(τ − t)² dH(t); positive iff the spike leaves the bulk."""
        return self._map(np.asarray(tau, dtype=float))[1]

    @property
    def critical_spike(self) -> float:
        """The τ above which a spike of the population leaves the bulk: Λ' = 0, Λ = edge."""
        return float(self._critical_points[-1, 1])

    def solve(self, z: ArrayLike) -> Subordination:
        """ω(z) with Λ(ω) = z, in the closed upper half-plane (conjugated for Im z < 0).

        Raises
        ------
        NotConverged
            When the residual is not small or Im ω has the wrong sign, rather than return a
            point of another branch.
        """
        z = np.asarray(z, dtype=complex)
        target = np.where(z.imag < 0, z.conj(), z).ravel()
        omega = np.empty(target.shape, dtype=complex)
        outside = (target.imag == 0) & ~self._inside(target.real)
        omega[outside] = self._real_solution(target.real[outside])
        omega[~outside], iterations = self._continue(target[~outside])
        residual = float(np.max(self._residual(target, omega), initial=0.0))
        if not (np.all(omega[~outside].imag > 0) and residual <= _TOLERANCE):
            raise NotConverged(repr(self), residual, iterations, "points away from the edges")
        solution = omega.reshape(z.shape)
        solution = np.where(z.imag < 0, solution.conj(), solution)
        return Subordination(solution, residual, iterations)

    # -- the map Λ and its critical points ----------------------------------------------------

    def _map(self, omega: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Λ, Λ' and the size of the terms of Λ.

        Near ω = 0 the constant of ∫ t/(t−ω) is taken out, so that Γ ≈ 1 loses no digits.
        """
        zeroth, first, second = self.population.fractions(omega)
        null = 1.0 - self._population_rank
        constant = omega * (self.ratio - self._population_rank)
        curved = omega * (omega * zeroth + null)
        near = np.abs(omega) < self._scale
        value = np.where(near, constant - curved, omega * (self.ratio - first))
        far_size = np.abs(omega) * (self.ratio + np.abs(first))
        size = np.where(near, np.abs(constant) + np.abs(curved), far_size)
        return value, self.ratio - second, size

    def _residual(self, z: NDArray[Any], omega: NDArray[Any]) -> NDArray[Any]:
        value, _, size = self._map(omega)
        return np.abs(value - z) / np.maximum(size + np.abs(z), 1e-24 * self._blocks[-1, 1])

    @staticmethod
    def _positive_blocks(population: Population) -> NDArray[Any]:
        """Intervals and atoms of H at t > 0, sorted and merged, as rows (lower, upper)."""
        blocks = list(population.support) + [(x, x) for x, _ in population.atoms if x > 0]
        merged: list[list[float]] = []
        for lower, upper in sorted(blocks):
            if merged and lower <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], upper)
            else:
                merged.append([lower, upper])
        return np.array(merged).reshape(-1, 2)

    @cached_property
    def _blocks(self) -> NDArray[Any]:
        return self._positive_blocks(self.population)

    @cached_property
    def _population_rank(self) -> float:
        """1 − H{0}."""
        return 1.0 - sum(mass for x, mass in self.population.atoms if x == 0)

    @cached_property
    def _scale(self) -> float:
        """A small part of the bottom of H (of its top if it reaches 0)."""
        bottom, top = self._blocks[0, 0], self._blocks[-1, 1]
        return float(0.5 * (bottom if bottom > 0 else 0.01 * top))

    @cached_property
    def _critical_points(self) -> NDArray[Any]:
        """Zeros of Λ' that bound the support: rows (ω lower, ω upper), one an interval."""
        ratio, blocks = self.ratio, self._blocks
        bottom, top = blocks[0, 0], blocks[-1, 1]
        reach = top / np.sqrt(ratio)  # ∫ t²/(t−ω)² ≤ Γ at this distance from H

        def excess(omega: NDArray[Any]) -> NDArray[Any]:
            return self.population.fractions(omega)[2] - ratio

        if bottom == 0 and ratio >= self._population_rank:
            first = 0.0
        else:
            first = float(find_root(excess, np.array(bottom - 1.001 * reach), np.array(bottom)))
            first = 0.0 if abs(first) < 1e-15 * bottom else first  # Γ = 1: a hard edge
        last = float(find_root(lambda w: -excess(w), np.array(top), np.array(top + 1.001 * reach)))
        inner = self._open_gaps(excess)
        return np.sort(np.concatenate([[first, last], inner.ravel()])).reshape(-1, 2)

    def _open_gaps(self, excess: _Function) -> NDArray[Any]:
        """Gaps of H where the convex ∫ t²/(t−ω)² dips below Γ: rows of its two crossings."""
        lower, upper = self._blocks[:-1, 1], self._blocks[1:, 0]
        step = 1e-30  # complex step: the derivative of an analytic function, exactly

        def slope(omega: NDArray[Any]) -> NDArray[Any]:
            return excess(omega + 1j * step).imag / step

        middle = 0.5 * (lower + upper)
        maybe = excess(middle) < 0.5 * (upper - lower) * np.abs(slope(middle))  # convexity
        lower, upper = lower[maybe], upper[maybe]
        lowest = find_root(slope, lower, upper)
        opened = excess(lowest) < 0
        lower, upper, lowest = lower[opened], upper[opened], lowest[opened]
        left = find_root(lambda w: -excess(w), lower, lowest)
        right = find_root(excess, lowest, upper)
        return np.stack([left, right], axis=-1)

    def _inside(self, x: NDArray[Any]) -> NDArray[Any]:
        inside = np.zeros(np.shape(x), dtype=bool)
        for lower, upper in self.support:
            inside |= (x > lower) & (x < upper)
        return inside

    def _real_solution(self, x: NDArray[Any]) -> NDArray[Any]:
        """Outside the support ω is real and Λ increases on the gap that holds it."""
        points = self._critical_points
        top = self._blocks[-1, 1]
        starts = np.concatenate([[-np.inf], points[:, 1]])
        ends = np.concatenate([points[:, 0], [np.inf]])
        gap = np.searchsorted([hi for _, hi in self.support], x, side="right")
        lower = np.where(gap == 0, np.minimum(ends[0], (x - top) / self.ratio) - 1.0, starts[gap])
        upper = np.where(
            gap == len(self.support), np.maximum(x / self.ratio, starts[-1]), ends[gap]
        )
        return find_root(lambda w: self.spike(w) - x, lower, upper)

    # -- Newton's method with continuation in Im z --------------------------------------------

    def _continue(self, z: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """Solve for Im ω > 0, coming down from large Im z; each point stops once certified."""
        omega = np.empty(z.shape, dtype=complex)
        todo = np.arange(z.size)
        height = 4.0 * (self.edge + np.max(np.abs(z), initial=0.0))
        current = (z + 1j * height) / self.ratio
        current, rounds = self._newton(z + 1j * height, current, 12)
        attempt = 0
        while todo.size and height > 1e-40 * self.edge:
            height *= _SHRINK
            attempt += 1
            current, used = self._newton(z[todo] + 1j * height, current, 3)
            rounds += used
            if attempt % 4:
                continue
            final, used = self._newton(z[todo], current, 12)
            rounds += used
            good = (final.imag > 0) & (self._residual(z[todo], final) <= _TOLERANCE)
            omega[todo[good]] = final[good]
            todo, current = todo[~good], current[~good]
        omega[todo] = np.nan
        return omega, rounds

    def _newton(
        self, z: NDArray[Any], omega: NDArray[Any], rounds: int
    ) -> tuple[NDArray[Any], int]:
        """Newton steps, shortened where they would leave the upper half-plane."""
        used = 0
        while used < rounds:
            used += 1
            value, slope, _ = self._map(omega)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = np.where(value == z, 0.0, (z - value) / slope)
                allowed = np.where(step.imag < 0, -0.75 * omega.imag / step.imag, 1.0)
            omega = omega + np.minimum(allowed, 1.0) * step
            if np.all(np.abs(step) <= 1e-15 * np.abs(omega)):
                break
        return omega, used


def find_root(f: _Function, lower: ArrayLike, upper: ArrayLike) -> NDArray[Any]:
    """Roots of functions that go from negative to positive, to the last digit.

    Chandrupatla's method, elementwise: inverse quadratic interpolation where it is safe, else
    bisection. The ends are never evaluated, so f may be infinite there.
    """
    b, a = np.broadcast_arrays(np.asarray(lower, float), np.asarray(upper, float))
    fa, fb = np.full(a.shape, np.inf), np.full(a.shape, -np.inf)
    t = np.full(a.shape, 0.5)
    for _ in range(200):
        x = a + t * (b - a)
        fx = f(x)
        fx = np.where(np.isnan(fx), np.inf, fx)
        same = (fx < 0) == (fa < 0)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        width = np.maximum(np.abs(b - a), np.finfo(float).tiny)
        limit = np.finfo(float).eps * np.abs(a) / width
        if np.all((limit > 0.5) | (fa == 0)):
            break
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
            safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
            step = fa / (fb - fa) * fc / (fb - fc)
            step = step + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        step = np.where(safe & np.isfinite(step), step, 0.5)
        t = np.clip(step, np.minimum(limit, 0.5), 1 - np.minimum(limit, 0.5))
    return a
