"""How many parameters the readout uses."""

from __future__ import annotations

from dataclasses import dataclass

from giantsteps.answers._answer import Answer
from giantsteps.answers._leaves import Leaf


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DegreesOfFreedom(Answer):
    r"""Effective penalty and degrees of freedom of a ridge readout, relative to its n samples.

    .. math::
        df_1 = n^{-1}\operatorname{tr} H,\qquad H = ΦΦ^\top(ΦΦ^\top + λ_s)^{-1},\qquad
        κ = \frac{λ}{1 - df_1},\qquad \frac{dκ}{dλ} = \frac{1}{1 - df_2}

    ======  =============  ===========================================================
    symbol  attribute      meaning
    ======  =============  ===========================================================
    κ       ``kappa``      the penalty of the same fit on infinitely many samples
    df₁     ``df1``        n⁻¹ tr Σ(Σ+κ)⁻¹ under Gaussian equivalence
    df₂     ``df2``        n⁻¹ tr Σ²(Σ+κ)⁻² likewise; 1/(1 − df₂) multiplies the risk
    ======  =============  ===========================================================

    References
    ----------
    theory §4; ba2022.
    """

    kappa: Leaf
    df1: Leaf
    df2: Leaf

    @property
    def hat_square(self) -> Leaf:
        """n⁻¹ tr H² = df₁ − (1 − df₁)(df₁ − df₂)/(1 − df₂)."""
        return self.df1 - (1 - self.df1) * (self.df1 - self.df2) / (1 - self.df2)
