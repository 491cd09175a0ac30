"""How far each step moves the network."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from giantsteps.answers._leaves import over
from giantsteps.answers._steps import OverSteps
from giantsteps.types import FloatArray


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

    Attributes
    ----------
    weights, spectral, preactivations, features, output : ndarray
        Shape of the grid, then the step.

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
