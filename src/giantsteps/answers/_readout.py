"""Answers about the readout: its error, bounds of it, its bias and variance, what it minimises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from giantsteps.answers._answer import Answer
from giantsteps.answers._leaves import Index, Leaf, over
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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BiasVariance(Answer):
    r"""Bias and variance over everything that a seed draws except the teacher.

    .. math:: R = E_x(E\hat f - f^*)^2 + E_x \operatorname{Var}\hat f

    ========  ============  ==================================================================
    symbol    attribute     meaning
    ========  ============  ==================================================================
    R         ``test``      mean test error over the seeds, the sum of the two
    bias²     ``bias``      error of the average network, unbiased (so it may dip below zero)
    variance  ``variance``  mean spread of the networks around it, unbiased
    ========  ============  ==================================================================

    Attributes
    ----------
    test_error, bias_error, variance_error : float or ndarray
        Standard errors of the three over the seeds (jackknife).
    seeds : int
        Number of networks.

    References
    ----------
    theory §0.
    """

    test: Leaf
    bias: Leaf
    variance: Leaf
    test_error: Leaf
    bias_error: Leaf
    variance_error: Leaf
    seeds: int

    @classmethod
    def _stack_fields(cls, shape: tuple[int, ...], cells: list[Any]) -> dict[str, Any]:
        return super()._stack_fields(shape, cells) | {"seeds": cells[0].seeds}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Bounds(Answer):
    """Named bounds of the test error R: floor ≤ R, R ≤ ceiling.

    ``bounds["linear"]`` is the bound or term of this name; any other index is a cell of the grid.

    Attributes
    ----------
    floors, ceilings : mapping of str to float or ndarray
        Lower and upper bounds of R; their names are disjoint.
    terms : mapping of str to float or ndarray
        Numbers that enter a bound, such as τ*.
    arguments : mapping of str to float or ndarray
        Where an infimum is attained, by the name of its bound or term, such as κ* for τ*.

    References
    ----------
    theory §4; ba2022, cui2024.
    """

    floors: Mapping[str, Leaf] = field(default_factory=dict)
    ceilings: Mapping[str, Leaf] = field(default_factory=dict)
    terms: Mapping[str, Leaf] = field(default_factory=dict)
    arguments: Mapping[str, Leaf] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [*self.floors, *self.ceilings, *self.terms]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{twice} are named twice among floors, ceilings and terms")

    def __getitem__(self, index: Index) -> Any:
        if isinstance(index, str):
            named = dict(self.floors) | dict(self.ceilings) | dict(self.terms)
            if index not in named:
                raise KeyError(f"no bound {index!r}; there are {', '.join(named)}")
            return named[index]
        return super().__getitem__(index)


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
