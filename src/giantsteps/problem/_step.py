"""One step on the first layer: its batch, its size, its rule and its loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from array_api_compat import array_namespace

from giantsteps.errors import InvalidProblem
from giantsteps.problem._checks import choice, number
from giantsteps.problem._part import LATER, Part, set_fields
from giantsteps.problem._parts import BATCHES

RULES = ("gradient", "sign", "normalized", "muon", "adam")
_PRECONDITIONERS = (0.0, 0.5, 1.0)


def _squared(output: Any, labels: Any) -> Any:
    return labels - output


def _logistic(output: Any, labels: Any) -> Any:
    # y/(1 + exp(yf)), by a function that does not overflow.
    return labels * (1 - array_namespace(output, labels).tanh(labels * output / 2)) / 2


def _hinge(output: Any, labels: Any) -> Any:
    xp = array_namespace(output, labels)
    return xp.where(labels * output < 1, labels, xp.zeros_like(labels))


def _huber(output: Any, labels: Any) -> Any:
    return array_namespace(output, labels).clip(labels - output, -1.0, 1.0)


#: −∂ℓ/∂f by loss: ½(y − f)², log(1 + exp(−yf)), max(0, 1 − yf), and ½r² that goes on as |r| − ½.
_RESIDUALS: dict[str, Callable[[Any, Any], Any]] = {
    "squared": _squared,
    "logistic": _logistic,
    "hinge": _hinge,
    "huber": _huber,
}
#: Names of the losses.
LOSSES = tuple(_RESIDUALS)


@dataclass(frozen=True, kw_only=True, repr=False)
class Step(Part):
    r"""One step on the first layer, by default a gradient step (theory §0).

    .. math:: W ← (1 − decay)\,W + ΔW, \qquad
              \sqrt N G = n_0^{-1} X^\top [r\, a^\top ⊙ σ'(XW)], \qquad η = rate · N^{exponent}

    ======  =============  ========================================================================
    symbol  argument       meaning
    ======  =============  ========================================================================
    n₀/d    samples        size of the batch, > 0
    \       rate           coefficient of the learning rate, ≥ 0 (0: a step that does not move)
    e       exponent       in [0, 1/2]: 0 "small" steps, 1/2 "giant" steps, between them the
                           staircase
    \       batch          ``"fresh"`` samples, or once more those of the ``"previous"`` step
    ΔW      rule           see below
    r       loss           residual −∂ℓ/∂f: see below
    \       decay          decoupled weight decay, in [0, 1); G is taken at W before it
    \       precondition   p ∈ {0, 1/2, 1}: G is multiplied by Σ^{−p} first, with Σ the covariance
                           of the inputs (``Problem.inputs``)
    ======  =============  ========================================================================

    The rule ``"gradient"`` is the step of the papers. For every other rule the scale of G plays no
    part and η is the Frobenius norm of the update, so that a neuron moves by η̃ = η/√N:

    ==============  ===============================================================================
    rule            ΔW
    ==============  ===============================================================================
    "gradient"      η √N G
    "normalized"    η G/‖G‖_F
    "sign"          η̃ sign(G)/√d: signSGD
    "muon"          η̃ √(N/min(d, N)) UVᵀ, with G = USVᵀ: the polar factor of G, exactly
    "adam"          η̃ m̂/(√v̂ + ε)/√d: bias-corrected moments with β = (0.9, 0.999), carried through
                    all steps with this rule, and ε = 1e-8 of the root mean square of G; its first
                    step is the sign step up to ε
    ==============  ===============================================================================

    ==============  ======================================  =======================================
    loss            ℓ(f; y)                                 residual r = −∂ℓ/∂f
    ==============  ======================================  =======================================
    "squared"       ½(y − f)²                               y − f
    "logistic"      log(1 + exp(−yf))                       y/(1 + exp(yf))
    "hinge"         max(0, 1 − yf)                          y where yf < 1, else 0
    "huber"         ½(y − f)² while |y − f| ≤ 1, then       y − f, clipped to [−1, 1]
                    |y − f| − ½
    ==============  ======================================  =======================================

    References
    ----------
    theory §0; ba2022, moniri2023, cui2024.

    Examples
    --------
    >>> step = Step(samples=4, rate=2, exponent=0.5)  # a giant step, η = 2√N
    >>> step.learning_rate(neurons=900)
    60.0
    >>> Step(samples=4, rate=1, exponent=0.5, rule="sign", decay=0.1)
    Step(samples=4.0, rate=1.0, exponent=0.5, batch='fresh', rule='sign', decay=0.1)
    """

    samples: float
    rate: float
    exponent: float = 0.0
    batch: str = "fresh"
    rule: str = field(default="gradient", metadata=LATER)
    loss: str = field(default="squared", metadata=LATER)
    decay: float = field(default=0.0, metadata=LATER)
    precondition: float = field(default=0.0, metadata=LATER)

    def __post_init__(self) -> None:
        power = number(self.precondition, "precondition", "0, 1/2 or 1 (the power of 1/Sigma)")
        if power not in _PRECONDITIONERS:
            raise InvalidProblem("precondition", power, "0, 1/2 or 1 (the power of 1/Sigma)")
        decay = number(self.decay, "decay", "a number in [0, 1)", lower=0.0, upper=1.0)
        if decay == 1:
            raise InvalidProblem("decay", decay, "a number in [0, 1): 1 would erase the weights")
        set_fields(
            self,
            samples=number(
                self.samples,
                "samples",
                "a positive finite number (n0/d)",
                lower=0.0,
                open_below=True,
            ),
            rate=number(
                self.rate, "rate", "a finite number >= 0 (eta = rate * N**exponent)", lower=0.0
            ),
            exponent=number(
                self.exponent,
                "exponent",
                "a number in [0, 1/2] (eta = rate * N**exponent)",
                lower=0.0,
                upper=0.5,
            ),
            batch=choice(self.batch, "batch", BATCHES),
            rule=choice(self.rule, "rule", RULES),
            loss=choice(self.loss, "loss", _RESIDUALS),
            decay=decay,
            precondition=power,
        )

    def learning_rate(self, neurons: int) -> float:
        """Return η = rate · N^exponent for a network of N = ``neurons``."""
        return self.rate * float(neurons) ** self.exponent

    def residual(self, output: Any, labels: Any) -> Any:
        """Return r = −∂ℓ/∂f at outputs f and labels y, arrays of one shape and namespace."""
        return _RESIDUALS[self.loss](output, labels)
