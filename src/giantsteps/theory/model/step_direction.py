r"""The direction that the first step of a network took, its initial output included (theory §2).

The model has the spike θb̂ without the random part of the initial output, which pulls on W₀ instead.
In networks that part belongs to the gradient: with δ = η̃μ₁²E A², Σ̂ = XᵀX/n₀ and â = a/‖a‖

.. math:: W_1\hat a = θ\hat b + f + W_0\hat a + …,\qquad f = -δ\,\hat Σ\,W_0\hat a,
          \qquad t = θ\hat b + f ,

and t is the direction of the step. Leaving out the column of â, with 𝒢 the resolvent of the rest, a
left singular vector u has

.. math:: \frac{⟨u, f⟩}{⟨u, \hat b⟩} = \frac{τ(𝒢)}{𝒢_{\hat b\hat b}}\,
          \frac{δ²(1 + 1/α_0) - δϱ}{θ},\qquad ‖f‖² = δ²(1 + 1/α_0) .
"""

from __future__ import annotations

from typing import NamedTuple

from giantsteps.types import FloatArray


class StepDirection(NamedTuple):
    """t beside b̂, and what else all neurons have in common, relative to the leans along b̂.

    ======  =================================================================
    field   meaning
    ======  =================================================================
    along   (δ²(1 + 1/α₀) − δϱ)/θ²: what W₁â − θb̂ has along f
    beside  ‖f‖²/θ²
    common  squared norm of Σ_i r_i(‖x_i‖²/d − 1)x_i/n₀, along which neurons of
            one A lean alike: slopes σ' depend on the norm of a sample
    ======  =================================================================
    """

    along: float = 0.0
    beside: float = 0.0
    common: float = 0.0

    def squared_cosine(self, spike: float, trace: float, form: float) -> float:
        """⟨u, t⟩²/‖t‖² from ⟨u, b̂⟩², τ(𝒢) and 𝒢_b̂b̂."""
        return spike * (1.0 + self.along * trace / form) ** 2 / (1.0 + self.beside)

    def leans(self, spikes: FloatArray) -> FloatArray:
        """How neurons that lean by S_t along b̂ lean along f/‖f‖, (T,)."""
        return spikes * (self.along / self.beside**0.5 if self.beside else 0.0)
