"""Singular values of the weights of the equivalent model: deformed bulk and outliers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from giantsteps.theory._continuation import Continuation, State
from giantsteps.theory._directions import Directions
from giantsteps.theory._implicit_law import ImplicitLaw

__all__ = ["WeightSpectrum"]

_ROUNDS = 200
_TOLERANCE = 1e-13
_WARM_UP = 3
#: Least squared cosine of an outlier with a spike.
_CARRIED = 0.01


@dataclass(frozen=True, eq=False)
class WeightSpectrum:
    r"""Spectrum of W Wᵀ for rows of variance sₜ(ι)/d and spikes: W = bulk + Σ_j b̂_j S_jᵀ.

    .. math:: G_ι = \frac{-1}{z(1 + βΣ_t π_t s_t(ι) H_t)},\qquad
              H_t = \frac{-1}{z(1 + Σ_ι ν_ι s_t(ι) G_ι)},\qquad m(z) = Σ_ι ν_ι G_ι,

    and outliers at the z above the bulk where I − z 𝔊ℌ is singular,

    .. math:: 𝔊 = Σ_ι ν_{bb}(ι) G_ι,\qquad ℌ = N Σ_t π_t S_tS_tᵀ H_t.

    ======  =================  ===========================
    symbol  argument           meaning
    ======  =================  ===========================
    β, N    width, neurons
    πₜ, Sₜ  probabilities,     shapes (T,), (T, r)
            spikes
    \       bulk               ν, sₜ and the special measures
    ======  =================  ===========================

    References: theory §2 (last remark), §5b.
    """

    width: float
    neurons: float
    probabilities: NDArray
    spikes: NDArray
    bulk: Directions

    # -- the bulk -------------------------------------------------------------------------------

    def _rows(self, z: NDArray, h: NDArray, variances: NDArray) -> NDArray:
        """G along directions with variances (T, I): shape (Z, I)."""
        return -1.0 / (z[:, None] * (1.0 + self.width * (h * self.probabilities) @ variances))

    def _solve(self, z: NDArray, start: State | None, rounds: int | None) -> tuple[State, NDArray]:
        """H (Z, T) by Newton's method inside the upper half-plane, else by damped steps."""
        h = -1.0 / np.repeat(z[:, None], len(self.spikes), axis=1) if start is None else start[0]
        g, image, gap = self._image(z, h)
        for count in range(rounds or _ROUNDS):
            if np.all(gap <= _TOLERANCE):
                break
            if start is None and count < _WARM_UP:
                h = image
                g, image, gap = self._image(z, h)
                continue
            outer = (z[:, None] * image * image)[:, :, None] * self._shared
            inner = (z[:, None] * g * g)[:, :, None] * (self.bulk.variances.T * self.probabilities)
            matrix = np.eye(h.shape[1]) - self.width * (outer @ inner)
            bold = h + np.linalg.solve(matrix, (image - h)[..., None])[..., 0]
            g_bold, image_bold, gap_bold = self._image(z, bold)
            good = np.all(bold.imag > 0, axis=1) & (gap_bold < gap)
            if good.all():
                h, g, image, gap = bold, g_bold, image_bold, gap_bold
            else:
                h = np.where(good[:, None], bold, 0.5 * (h + image))
                g, image, gap = self._image(z, h)
        return (h,), gap

    @property
    def _shared(self) -> NDArray:
        """ν_ι sₜ(ι) of shape (T, I)."""
        return self.bulk.weights * self.bulk.variances

    def _image(self, z: NDArray, h: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """G, what the equations make of H, and how far it is from H."""
        g = self._rows(z, h, self.bulk.variances)
        image = -1.0 / (z[:, None] * (1.0 + g @ self._shared.T))
        return g, image, np.abs(image / h - 1.0).max(axis=1)

    def transform(self, z: NDArray) -> NDArray:
        """m(z) of the d eigenvalues of W Wᵀ."""
        return self._rows(z, self._types(z), self.bulk.variances) @ self.bulk.weights

    def _types(self, z: NDArray) -> NDArray:
        return self._follow(z)[0]

    @cached_property
    def _follow(self) -> Continuation:
        return Continuation(self._solve, self.scale, "the resolvent of the weights")

    @cached_property
    def scale(self) -> float:
        """Mean eigenvalue of W Wᵀ: βΣ πₜcₜ."""
        return self.width * float(self.probabilities @ self.bulk.totals)

    @cached_property
    def law(self) -> ImplicitLaw:
        """Law of the d eigenvalues of W Wᵀ without outliers; an atom at zero if d > N."""
        atoms = ((0.0, 1.0 - self.width),) if self.width < 1 else ()
        return ImplicitLaw(self.transform, self.scale, atoms)

    # -- outliers -------------------------------------------------------------------------------

    @property
    def _special(self) -> NDArray:
        rank = self.spikes.shape[1]
        return self.bulk.special[:, :rank, :rank]

    def _outside(self, x: float) -> NDArray:
        """H at a real x above the bulk."""
        return self._types(np.array([x * (1 + 1e-10j)]))[0].real

    def _forms(self, x: float) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """At x above the bulk: 𝔊 on spikes and teacher's remainder, ℌ, and H, G there."""
        h = self._outside(x)
        g = self._rows(np.array([x]), h[None], self.bulk.special_variances)[0]
        left = np.tensordot(g, self.bulk.special, axes=1)
        weighted = (self.probabilities * h)[:, None] * self.spikes
        return left, self.neurons * self.spikes.T @ weighted, h, g

    def _strengths(self, x: float) -> NDArray:
        """Eigenvalues of x𝔊ℌ, descending; an outlier where one of them is one."""
        left, right, _, _ = self._forms(x)
        rank = self.spikes.shape[1]
        return np.sort(np.linalg.eigvals(x * left[:rank, :rank] @ right).real)[::-1]

    @cached_property
    def _poles(self) -> list[float]:
        """Where 𝔊 is infinite above the bulk: special directions that leave it by themselves."""
        low, high = self.law.edge * (1 + 1e-7), self._highest

        def excess(x: float, node: int) -> float:
            variances = self.bulk.special_variances[:, node]
            return 1.0 + self.width * float((self._outside(x) * self.probabilities) @ variances)

        carried = np.trace(self._special, axis1=1, axis2=2) > 1e-10
        return sorted(
            float(brentq(excess, low, high, args=(node,), xtol=1e-12 * high))
            for node in map(int, np.flatnonzero(carried))
            if excess(low, node) < 0 < excess(high, node)
        )

    @cached_property
    def _highest(self) -> float:
        """Above every outlier."""
        total = self.neurons * float(self.probabilities @ (self.spikes**2).sum(axis=1))
        return 4.0 * (self.law.edge * self.bulk.special_variances.max() / self._smallest + total)

    @property
    def _smallest(self) -> float:
        return float(min(1.0, self.bulk.totals.min()))

    @cached_property
    def outliers(self) -> tuple[float, ...]:
        """Eigenvalues of W Wᵀ above the bulk that carry a spike, largest first.

        Between two poles of 𝔊 every eigenvalue of x𝔊ℌ is continuous, so outliers are found there
        by their sign changes at the ends. Beside each pole sits one that belongs to a special
        direction alone; where labels are heavy-tailed these are nodes of a law without an end,
        so those with less than a hundredth of any spike are left out.
        """
        bounds = [self.law.edge, *self._poles, self._highest]
        spikes = dict(zip("abcdefgh", np.eye(self.spikes.shape[1] + 1)[:-1]))
        found = []
        for lower, upper in pairwise(bounds):
            low, high = lower * (1 + 1e-7), upper * (1 - 1e-7)
            if low < high:
                found += [
                    float(brentq(self._excess, low, high, args=(rank,), xtol=1e-12 * high))
                    for rank in range(self.spikes.shape[1])
                    if self._excess(low, rank) > 0 > self._excess(high, rank)
                ]
        carried = (x for x in found if max(self.overlaps(x, spikes, {}).values()) > _CARRIED)
        return tuple(sorted(carried, reverse=True))

    def _excess(self, x: float, rank: int) -> float:
        return float(self._strengths(x)[rank]) - 1.0

    def overlaps(
        self, value: float, left: Mapping[str, NDArray], right: Mapping[str, NDArray]
    ) -> dict[str, float]:
        """Squared cosines of an outlier's singular vectors, from the poles of quadratic forms.

        Parameters
        ----------
        value : float
            The eigenvalue.
        left : mapping
            Directions of the left vector in the frame (spikes, teacher's remainder), unit vectors
            of length r + 1.
        right : mapping
            Functions of the type, of shape (T,), for the right vector.
        """
        rank = self.spikes.shape[1]
        step = 1e-5 * (value - self.law.edge)
        found = dict.fromkeys([*left, *right], 0.0)
        for sign in (1.0, -1.0):
            x = value + sign * step
            g, h, types, _ = self._forms(x)
            core = np.linalg.inv(np.eye(rank) - x * g[:rank, :rank] @ h)
            for name, direction in left.items():
                cross = (g @ direction)[:rank]
                form = x * cross @ h @ core @ cross
                found[name] -= sign * step * float(form) / 2
            for name, values in right.items():
                squares = self.probabilities @ values**2
                cross = np.sqrt(self.neurons / squares) * (
                    self.spikes.T @ (self.probabilities * types * values)
                )
                form = x * cross @ core @ g[:rank, :rank] @ cross
                found[name] -= sign * step * float(form) / 2
        return found
