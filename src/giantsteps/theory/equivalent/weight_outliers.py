r"""Singular values of weights whose columns have different lengths and share a few spikes.

Column j of W (d × N) has type t: mean S_t along r orthonormal directions and variance c_t/d in
every other direction. With x = −m, m the Stieltjes transform of W Wᵀ, the bulk obeys

.. math:: z(x) = \frac1x + β\,E\Bigl[\frac{c}{1 - c x}\Bigr],\qquad 0 < x < x_e,\quad z'(x_e) = 0,

and outliers s² = z(x) sit where an eigenvalue λ(x) of the r × r matrix
:math:`B(x) = N x\,E[S S^\top/(1 - c x)]` is one. With e its unit eigenvector

.. math:: ⟨u, e⟩^2 = -\frac{x\,z'(x)}{λ'(x)},\qquad
          ⟨v, q⟩ = \frac{\sqrt N}{s}\,E\Bigl[q\,\frac{S·e}{1 - c x}\Bigr]⟨u, e⟩

for the left singular vector u, and the right one v against unit vectors q(A_j)/√N. Equal lengths
give the map of theory §2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from giantsteps.laws import Law, variance_profile

__all__ = ["TypedWeights", "WeightOutlier"]

#: How near the ends the searches go, relative to the interval.
_END = 1e-12


@dataclass(frozen=True, eq=False)
class WeightOutlier:
    """One outlier.

    Attributes
    ----------
    value : float
        Its singular value s.
    direction : ndarray of shape (r,)
        e, with unit norm, in the coordinates of the spikes.
    left : float
        ⟨u, e⟩²; a unit vector f of those coordinates has ⟨u, f⟩² = left · ⟨e, f⟩².
    right : ndarray of shape (T,)
        ⟨v, q⟩ = Σ_t π_t q_t right_t for a right vector with entries q(A_j)/√N.
    """

    value: float
    direction: NDArray
    left: float
    right: NDArray


@dataclass(frozen=True, eq=False)
class TypedWeights:
    """Weights with types, through what their singular values depend on.

    ======  ===============  =========  ================================
    symbol  argument         shape      meaning
    ======  ===============  =========  ================================
    S_t     spikes           (T, r)     means
    c_t     variances        (T,)       squared lengths of the bulk
    π_t     probabilities    (T,)
    β, N    width, neurons   float
    ======  ===============  =========  ================================

    Types of which N neurons are not expected to have one (the tails of a continuous law) get the
    largest variance of the others, so that they do not widen the bulk.

    References: theory §2; benaych2012.
    """

    spikes: NDArray
    variances: NDArray
    probabilities: NDArray
    width: float
    neurons: float

    @cached_property
    def lengths(self) -> NDArray:
        """c_t without the tails."""
        order = np.argsort(self.variances)[::-1]
        rare = np.cumsum(self.probabilities[order]) * self.neurons < 1.0
        largest = self.variances[order][~rare].max()
        return np.minimum(self.variances, largest)

    @property
    def bulk(self) -> Law:
        """The law of the min(d, N) singular values without the spikes."""
        lengths, where = np.unique(np.round(self.lengths, 12), return_inverse=True)
        weights = np.bincount(where, self.probabilities)
        return variance_profile(lengths, weights, width=self.width)

    @cached_property
    def outliers(self) -> tuple[WeightOutlier, ...]:
        """Those that leave the bulk, largest first."""
        end = self._edge
        count = int(np.sum(np.linalg.eigvalsh(self._matrix(end)) > 1.0))
        found = []
        for number in range(1, count + 1):
            x = brentq(
                lambda x, k=number: np.linalg.eigvalsh(self._matrix(x))[-k] - 1.0,
                _END * end,
                end,
                xtol=1e-15 * end,
            )
            found.append(self._outlier(float(x), number))
        return tuple(found)

    @cached_property
    def _edge(self) -> float:
        """x_e, where z' = 0."""
        top = 1.0 / self.lengths.max()
        return float(brentq(lambda x: x**2 * self._slope(x), _END * top, (1.0 - _END) * top))

    def _slope(self, x: float) -> float:
        """z'(x)."""
        squares = (self.lengths / (1.0 - self.lengths * x)) ** 2
        return float(self.width * (self.probabilities @ squares) - 1.0 / x**2)

    def _matrix(self, x: float) -> NDArray:
        """B(x)."""
        weight = self.probabilities * self.neurons * x / (1.0 - self.lengths * x)
        return self.spikes.T @ (weight[:, None] * self.spikes)

    def _outlier(self, x: float, number: int) -> WeightOutlier:
        direction = np.linalg.eigh(self._matrix(x))[1][:, -number]
        along = self.spikes @ direction
        gain = 1.0 / (1.0 - self.lengths * x)
        # λ' = N E[(S·e)²/(1 − cx)²]
        slope = self.neurons * float(self.probabilities @ (along * gain) ** 2)
        left = -x * self._slope(x) / slope
        squared = 1.0 / x + self.width * float(self.probabilities @ (self.lengths * gain))
        value = float(np.sqrt(squared))
        right = np.sqrt(self.neurons * left) / value * along * gain
        return WeightOutlier(value, direction, left, right)
