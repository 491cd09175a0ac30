"""The minimum of the readout's objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from giantsteps.answers._answer import Answer
from giantsteps.answers._leaves import Leaf


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TrainingLoss(Answer):
    r"""The minimum of the objective of ridge regression: training error and penalty.

    .. math:: L = \min_a\; n^{-1}\|\tilde y - Φa\|^2 + (λ/N)\|a\|^2

    ======  ==================  ====================================================
    symbol  attribute
    ======  ==================  ====================================================
    L       ``loss``            after the steps
    L₀      ``initial.loss``    the same readout on the features at initialisation
    L₀ − L  ``drop``            decrease by the steps
    ======  ==================  ====================================================

    References
    ----------
    theory §6; moniri2023.
    """

    loss: Leaf
    initial: TrainingLoss | None = None

    _parts: ClassVar[tuple[str, ...]] = ("initial",)

    @property
    def drop(self) -> Leaf | None:
        """``initial.loss − loss``; None where there is no ``initial``."""
        return None if self.initial is None else self.initial.loss - self.loss
