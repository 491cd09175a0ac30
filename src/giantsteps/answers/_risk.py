"""The error of ridge regression on the learned features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from giantsteps.answers._answer import Answer
from giantsteps.answers._leaves import Leaf, over
from giantsteps.types import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Risk(Answer):
    r"""Test and train error of the readout, after the steps and before them.

    .. math:: R = E(\hat f - f^*)^2, \qquad R_{noisy} = R + \Delta, \qquad
              R_{train} = n^{-1} \|\tilde y - \Phi \hat a\|^2

    ==========  ========================  ====================================================
    symbol      attribute
    ==========  ========================  ====================================================
    R           ``test``                  without the label noise
    R + Δ       ``test_noisy``            with it
    R_train     ``train``                 mean square on the readout's samples, with noise
    R₀          ``initial.test``          the same readout on the features at initialisation
    R[k]        ``by_degree``             last axis: the part of R on He_k(⟨x, β*⟩), k = 0, 1, …
    R − Σ R[k]  ``rest``                  the part on higher degrees and in other directions
    P(wrong)    ``classification_error``  probability of sign(f̂) ≠ f*; None unless f* is ±1
    ==========  ========================  ====================================================

    Attributes
    ----------
    standard_error : float, ndarray or None
        Simulation: of ``test`` over the test points drawn, given the network.

    References
    ----------
    theory §0, §4, §5c.
    """

    test: Leaf
    train: Leaf
    initial: Risk | None = None
    standard_error: Leaf | None = None
    by_degree: FloatArray | None = field(default=None, metadata=over("degree"))
    classification_error: Leaf | None = None

    _parts: ClassVar[tuple[str, ...]] = ("initial",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.initial is not None and self.initial.shape != self.shape:
            raise ValueError(f"initial has shape {self.initial.shape}, expected {self.shape}")

    @property
    def test_noisy(self) -> Leaf:
        """Error on noisy labels: ``test`` plus the variance of the label noise."""
        return self.test + self.field("noise_variance")

    @property
    def rest(self) -> Leaf | None:
        """The part of ``test`` that is not in ``by_degree``; None where there is no ``by_degree``.

        This is the error on higher degrees of ⟨x, β*⟩ and in all other directions.
        """
        return None if self.by_degree is None else self.test - self.by_degree.sum(axis=-1)

    @property
    def gain(self) -> Leaf | None:
        """The gain of the steps, ``initial.test − test``; None where there is no ``initial``."""
        return None if self.initial is None else self.initial.test - self.test

    def _summary(self) -> list[tuple[str, str]]:
        rows = super()._summary()
        at = next((i for i, (name, _) in enumerate(rows) if name == "by_degree"), None)
        if at is not None and not self.shape:
            rows.insert(at + 1, ("rest", f"{self.rest:.6g}  (higher degrees, other directions)"))
        return rows
