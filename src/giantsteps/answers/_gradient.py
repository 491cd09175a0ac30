"""The gradient of a step: a rank-one part and a residual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from giantsteps.answers._answer import Answer
from giantsteps.answers._leaves import Leaf


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Gradient(Answer):
    r"""The first gradient, split into its spike and a remainder.

    .. math:: \sqrt N G = \mu_1 b a^\top + B

    ============  =============================  =====================================
    symbol        attribute
    ============  =============================  =====================================
    μ₁‖b‖‖a‖      ``spike_norm``                 the rank-one part
    ‖B‖_op        ``residual_operator_norm``     smaller than the spike by ~ 1/√N
    ‖B‖_F         ``residual_frobenius_norm``    of the order of the spike
    ============  =============================  =====================================

    Attributes
    ----------
    spike_norm, residual_operator_norm, residual_frobenius_norm : float or ndarray
        Of the shape of the grid.
    overlaps : mapping of str to float or ndarray
        Squared cosines of the top singular vectors of G: ``"teacher"`` and ``"direction"`` (β*
        and b, left), ``"second_layer"`` (a, right).

    References
    ----------
    theory §2; ba2022, Proposition 2.
    """

    spike_norm: Leaf
    residual_operator_norm: Leaf
    residual_frobenius_norm: Leaf
    overlaps: Mapping[str, Leaf] = field(default_factory=dict)

    @property
    def ratio(self) -> Leaf:
        """Operator norm of the residual over that of the spike, of order 1/√N; NaN or infinite
        where there is no spike.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.divide(self.residual_operator_norm, self.spike_norm)
        return ratio if self.shape else float(ratio)
