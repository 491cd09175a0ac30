"""How the squared norms of the neurons of a type vary, and what they go with (theory §5b)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from giantsteps.errors import InvalidProblem
from giantsteps.types import FloatArray


@dataclass(frozen=True, eq=False)
class Norms:
    r"""Fluctuations of the norms of neurons within a type, one or several independent ones.

    .. math:: ‖w_j‖² = c_t + Σ_c (f_{ct} + f'_{ct}·(k² - 1))\,ϖ_{cj},\qquad
              S_j = S_t + Σ_c e_{ct}\,ϖ_{cj},\qquad
              d\,\mathrm{Var}(ϖ_{cj}) = v_{ct},\qquad d\,\mathrm{Cov}(w_j, ϖ_{cj}) = Σ_a ℓ_{cta} f_a

    apart from the spikes, with the special vectors f_a of the bulk. All of this is of order
    d^{-1/2}, and so is the weight of a single neuron in what the readout sums over all of them: it
    changes the errors by an amount that does not vanish.

    ======  ============  ===============  ================================================
    symbol  argument      shape            meaning
    ======  ============  ===============  ================================================
    v       ``spread``    (C, T)           variance of the fluctuation
    ℓ       ``loadings``  (C, T, F)        covariance with the weights, on the special vectors
    f       ``growth``    (C, T)           what it makes of the squared norm …
    f'      ``own``       (C, T, r)        … and beside it k_j² − 1: the share of a weight that lies
                                           along a spike is not felt where k is zero
    e       ``stretch``   (C, T, r)        and of the spike
    \       ``initial``                    which of them is that of the initial norms, if one is
    ======  ============  ===============  ================================================

    Without the axis of fluctuations, C = 1; numbers stand for all types.
    """

    spread: FloatArray
    loadings: FloatArray
    growth: FloatArray
    stretch: FloatArray
    own: FloatArray
    initial: int | None

    def __init__(
        self,
        spread: ArrayLike,
        loadings: ArrayLike = 0.0,
        *,
        growth: ArrayLike = 1.0,
        stretch: ArrayLike = 0.0,
        own: ArrayLike = 0.0,
        initial: int | None = None,
    ) -> None:
        base = np.atleast_2d(np.array(spread, dtype=float))
        for name, value, more in (
            ("spread", base, 0),
            ("loadings", loadings, 1),
            ("growth", growth, 0),
            ("stretch", stretch, 1),
            ("own", own, 1),
        ):
            if isinstance(value, float):
                array = np.full((*base.shape, *(1,) * more), value)
            else:
                array = np.array(value, dtype=float)
            while more and 0 < array.ndim < 3:
                array = array[None]
            shape = base.shape + (array.shape[2:] if array.ndim == 3 else (1,) * more)
            if array.shape != shape:
                try:
                    array = np.array(np.broadcast_to(array, shape))
                except ValueError:
                    array = np.array(np.nan)
            if not math.isfinite(array.sum()) and not np.isfinite(array).all():
                raise InvalidProblem(f"norms.{name}", value, "finite numbers for each type")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if (self.spread < 0).any():
            raise InvalidProblem("norms.spread", spread, "non-negative")
        object.__setattr__(self, "initial", initial)

    @classmethod
    def after_steps(
        cls,
        spread: FloatArray,
        loadings: FloatArray,
        growth: FloatArray,
        stretch: FloatArray,
        gaussian: bool,
    ) -> Norms:
        """One fluctuation with a variance and loadings (T, F), and for gaussian initial weights
        theirs, by which norms grow (T,) and leans stretch (T, r).
        """
        if not gaussian:
            return cls(spread[None], loadings[None])
        return cls(
            np.stack([spread, np.full(len(spread), 2.0)]),
            np.stack([loadings, np.zeros_like(loadings)]),
            growth=np.stack([np.ones(len(spread)), growth]),
            stretch=np.stack([np.zeros_like(stretch), stretch]),
            initial=1,
        )

    @property
    def types(self) -> int:
        """Number of types T."""
        return int(self.spread.shape[1])

    @property
    def variances(self) -> FloatArray:
        """v of all fluctuations and types in a row, shape (CT,)."""
        return self.spread.ravel()

    def on(self, frame: int) -> FloatArray:
        """The loadings on so many special vectors, shape (CT, F)."""
        padded = np.zeros((self.spread.size, frame))
        count = min(frame, self.loadings.shape[2])
        padded[:, :count] = self.loadings[..., :count].reshape(len(padded), count)
        return padded

    def of_leans(self) -> FloatArray:
        """d Cov(S_j) within the types, (T, r, r)."""
        return np.einsum("ct,ctj,cti->tji", self.spread, self.stretch, self.stretch)

    def functions(
        self, by_norm: FloatArray, by_spike: FloatArray, points: FloatArray
    ) -> FloatArray:
        """What the fluctuations add to μ₀ at points k (K, r), from ∂μ₀/∂c (T, K) and ∂μ₀/∂S
        (r, T, K): (CT, K).
        """
        grown = self.growth[:, :, None]
        for j in range(self.own.shape[2]):
            grown = grown + self.own[:, :, j, None] * (points[:, j] ** 2 - 1.0)
        found = grown * by_norm
        for j in range(self.stretch.shape[2]):
            found = found + self.stretch[:, :, j, None] * by_spike[j]
        return found.reshape(-1, by_norm.shape[1])
