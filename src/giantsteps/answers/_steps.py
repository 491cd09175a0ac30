"""Answers about the steps of a problem; those over all of them have an axis "step"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers._answer import Answer
from giantsteps.answers._leaves import Leaf, over
from giantsteps.types import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OverSteps(Answer):
    """An answer whose leaves have the axis "step" after those of the grid.

    Over a grid of problems with different numbers of steps, those that are missing are NaN.
    """

    #: The number of the first step on the axis.
    _first: ClassVar[int] = 0
    _row_dims: ClassVar[tuple[str, ...]] = ("step",)

    @property
    def step(self) -> FloatArray:
        """Numbers of the steps along the axis."""
        shown = next(
            values
            for name in self._leaves
            if (values := getattr(self, name)) is not None and self._leaves[name][:1] == ("step",)
        )
        count = np.shape(shown)[len(self.shape)]
        return np.arange(self._first, self._first + count, dtype=float)

    def _axes(self) -> dict[str, NDArray[Any]]:
        return {"step": self.step}

    @classmethod
    def _stack_fields(cls, shape: tuple[int, ...], cells: list[Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name in cls._leaves:
            leaves = [getattr(cell, name) for cell in cells]
            if all(leaf is not None for leaf in leaves):
                longest = max(len(leaf) for leaf in leaves)
                padded = [_padded(leaf, longest) for leaf in leaves]
                values[name] = np.reshape(padded, shape + np.shape(padded[0]))
        return values


def _padded(leaf: FloatArray, length: int) -> FloatArray:
    missing = np.full((length - len(leaf), *np.shape(leaf)[1:]), np.nan)
    return np.concatenate([leaf, missing])


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Movement(OverSteps):
    r"""How far each step moves weights, pre-activations, features and output: the coordinate check.

    With ΔW = W_t − W_{t−1} and x a fresh input,

    .. math::
        \frac{‖ΔW‖_F}{‖W_{t-1}‖_F}, \qquad \frac{‖ΔW‖_{op}}{‖W_{t-1}‖_{op}}, \qquad
        \Bigl(\frac1N \sum_j E⟨Δw_j, x⟩^2\Bigr)^{1/2}, \qquad
        \frac{(E‖Δσ(W^\top x)‖^2)^{1/2}}{(E‖σ(W_{t-1}^\top x)‖^2)^{1/2}}, \qquad
        (E[Δf(x)^2])^{1/2}

    ==========  ==================  ===========================================================
    symbol      attribute           meaning; the last axis is the step, 1 … t
    ==========  ==================  ===========================================================
    ΔW          ``weights``         first formula: relative change in Frobenius norm
    ΔW          ``spectral``        second: relative change in operator norm
    ⟨Δw_j, x⟩   ``preactivations``  third: root mean square over inputs and neurons;
                                    pre-activations start with variance one
    Δσ(Wᵀx)     ``features``        fourth: relative root mean square change
    Δf          ``output``          fifth: of the network with its second layer in training
    ==========  ==================  ===========================================================

    References
    ----------
    theory §0.

    Examples
    --------
    A giant step moves every pre-activation by as much as it has at the start; a small one moves
    the matrix, but no single neuron:

    >>> import giantsteps as gs
    >>> from giantsteps import simulation
    >>> giant = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                    steps=[gs.Step(samples=4, rate=2, exponent=0.5)])
    >>> moved = simulation.movement(giant, d=200, seed=0)
    >>> small = simulation.movement(giant.replace({"steps.0.exponent": 0}), d=200, seed=0)
    >>> isinstance(moved, Movement), moved.step.tolist()
    (True, [1.0])
    >>> bool(moved.preactivations[0] > 0.5), bool(small.preactivations[0] < 0.1)
    (True, True)
    """

    weights: FloatArray = field(metadata=over("step"))
    spectral: FloatArray = field(metadata=over("step"))
    preactivations: FloatArray = field(metadata=over("step"))
    features: FloatArray = field(metadata=over("step"))
    output: FloatArray = field(metadata=over("step"))

    _first: ClassVar[int] = 1


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Trajectory(OverSteps):
    """Errors of the readout and leading singular values of W after 0, 1, …, t steps.

    Attributes
    ----------
    test, train : ndarray or None
        Errors of the readout on the features after each number of steps, of the shape of the grid,
        then the step, from 0, before the steps, to t; None for a problem without a readout.
    value : ndarray
        Largest singular values of W, decreasing: shape of the grid, then step and top.
    overlap : ndarray or None
        Squared overlaps of their left vectors with the teacher's directions, likewise; None where
        the teacher is not known.

    References
    ----------
    theory §0, §2.
    """

    value: FloatArray = field(metadata=over("step", "top"))
    overlap: FloatArray | None = field(default=None, metadata=over("step", "top"))
    test: FloatArray | None = field(default=None, metadata=over("step"))
    train: FloatArray | None = field(default=None, metadata=over("step"))


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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OutlierCount(Answer):
    """The number of outliers of W that the exponents of the steps allow.

    It counts the terms of the weights' movement, one for each power A^p of the second layer in the
    right vectors, whose size N^e does not vanish: e ≥ 0. Those with e > 0 diverge and are outliers
    of every large network. Those with e = 0, on a boundary line, stay of order one, and are
    outliers if they are strong enough.

    Attributes
    ----------
    count : float or ndarray
        The number of all of them; ``inf`` where every power contributes.
    marginal : float or ndarray
        The number of those of order one.
    sizes : mapping of str to float or ndarray
        Exponent of the size of each, by its right vector ``"A"``, ``"A^2"``, …; the first ten.

    References
    ----------
    theory §7; moniri2026.
    """

    count: Leaf
    marginal: Leaf
    sizes: Mapping[str, Leaf] = field(default_factory=dict)

    def __int__(self) -> int:
        return int(self.count)
