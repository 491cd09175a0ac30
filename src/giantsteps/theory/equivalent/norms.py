"""How the squared norms of the neurons of a type vary, and what they go with (theory §5b)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from giantsteps.errors import InvalidProblem
from giantsteps.types import FloatArray

__all__ = ["Norms"]


@dataclass(frozen=True, eq=False)
class Norms:
    r"""The law of the squared norms L_j of neurons beside their spikes, within a type.

    .. math:: d\,\mathrm{Var}(L_j) = v_t,\qquad d\,\mathrm{Cov}(w_j, L_j) = Σ_a ℓ_{ta} f_a,\qquad
              L_j ∋ f_t\,ϖ_j,\quad S_j ∋ e_t\,ϖ_j,\quad d\,\mathrm{Var}(ϖ_j) = 2

    with ϖ_j = ‖w_j‖² − 1 at initialisation, which varies for Gaussian weights. All of this is of order
    d^{-1/2}, and so is the weight of a single neuron in what the readout sums over all of them:
    it changes the errors by an amount that does not vanish.

    ======  ============  =========  ====================================================
    symbol  argument      shape      meaning
    ======  ============  =========  ====================================================
    vₜ      ``spread``    (T,)       variance of L_j, initial norms apart
    ℓₜₐ     ``loadings``  (T, F)     covariance with the weights, on the special vectors
    \       ``initial``   bool       whether initial norms vary (Gaussian rows)
    fₜ      ``growth``    (T,)       what that makes of the squared norm
    eₜ      ``stretch``   (T,)       and of the spike
    ======  ============  =========  ====================================================

    References
    ----------
    theory §5b.

    Examples
    --------
    Rows with independent Gaussian entries instead of rows on a sphere, c = 1:

    >>> from giantsteps.problem import Ridge
    >>> from giantsteps.theory import SpikedFeatures
    >>> given = {"activation": "tanh", "teacher": "tanh", "width": 1.0, "spikes": 2.0,
    ...          "overlap": 1.0, "bulk": 1.0}
    >>> readout = Ridge(samples=3.0, penalty=0.1 / 3)
    >>> sphere = SpikedFeatures(**given).risk(readout).test
    >>> gaussian = SpikedFeatures(**given, norms=Norms(0.0, initial=True)).risk(readout)
    >>> f"{gaussian.test / sphere - 1:.1%}"
    '-5.3%'
    """

    spread: FloatArray
    loadings: FloatArray
    initial: bool
    growth: FloatArray
    stretch: FloatArray

    def __init__(
        self,
        spread: ArrayLike,
        loadings: ArrayLike = 0.0,
        *,
        initial: bool = False,
        growth: ArrayLike = 1.0,
        stretch: ArrayLike = 0.0,
    ) -> None:
        spread = np.atleast_1d(np.array(spread, dtype=float))
        types = len(spread)
        given = {"spread": spread, "growth": growth, "stretch": stretch}
        for name, value in given.items():
            array = np.array(value, dtype=float)
            if array.shape not in ((), (types,)) or not np.all(np.isfinite(array)):
                raise InvalidProblem(f"norms.{name}", value, "a finite number for each type")
            self._keep(name, np.array(np.broadcast_to(array, (types,))))
        if np.any(self.spread < 0):
            raise InvalidProblem("norms.spread", spread, "non-negative")
        loads = np.array(loadings, dtype=float)
        loads = np.full((types, 1), loads) if loads.ndim == 0 else loads
        if loads.ndim != 2 or len(loads) != types or not np.all(np.isfinite(loads)):
            raise InvalidProblem("norms.loadings", loadings, "finite, one row for each type")
        self._keep("loadings", loads)
        object.__setattr__(self, "initial", bool(initial))

    def _keep(self, name: str, array: FloatArray) -> None:
        array.setflags(write=False)
        object.__setattr__(self, name, array)

    def on(self, frame: int) -> FloatArray:
        """The loadings on so many special vectors, shape (T, F)."""
        padded = np.zeros((len(self.spread), frame))
        count = min(frame, self.loadings.shape[1])
        padded[:, :count] = self.loadings[:, :count]
        return padded

    def functions(self, by_norm: FloatArray, by_spike: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What norms and initial norms add to μ₀, from ∂μ₀/∂c and ∂μ₀/∂S, shapes (T or 0, K)."""
        both = self.growth[:, None] * by_norm + self.stretch[:, None] * by_spike
        return by_norm, both if self.initial else both[:0]
